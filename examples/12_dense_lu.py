"""Dense LU: decomposers, their metrics and accuracies, solvers that fit, and what an estimate from the last time step is worth."""
import numpy as np

import swell
from swell import dense

random = np.random.default_rng(0)
A = random.uniform(-1000, 1000, (200, 200))
A[::2, ::2] *= 1 - np.eye(100)                             # every second of the diagonal is zero: pivots are needed
B = np.ones((200, 10))

# Full pivoting keeps the digits; conditional pivoting, the iterative method's default, loses what the factors grow by.
for decomposer in (dense.Getrf(), dense.PCM(x=8), dense.ICM(x=8), dense.ICM(x=8, pivoting="full")):
    factors = decomposer.factor(A)
    X = factors.solve(B)
    made, solved = dense.decomposition_accuracy(A, factors), dense.solution_accuracy(A, B, X, factors)
    print(f"{type(decomposer).__name__:5s} {factors.metrics.pivots.sum():3d} pivots, growth {made.growth:7.1e}, backward errors "
          f"{made.backward_error:.1e} and {solved.backward_error:.1e}")
    assert made.backward_error < 1e-15 * made.growth * 100 and solved.backward_error < 1e-15 * made.growth * 100

# A solver takes the factors that it can: where the unit diagonal is, is their type.
try:
    dense.ICM(x=8).factor(A).solve(B, "getrs")
except swell.InputError as error:
    print(error)
print("iterations of every section:", dense.ICM(x=8, section=64, form="plain").factor(A).metrics.iterations.tolist())


def curvature_flow(u, k, step, smallest=1e-2):
    """The matrix of a semi-implicit step of mean curvature flow, u_t = |∇u| div(∇u / |∇u|), on a k by k grid."""
    h, u = 1 / (k - 1), u.reshape(k, k)
    gradient = np.sqrt(smallest**2 + sum(g**2 for g in np.gradient(u, h))).ravel()
    matrix, index = np.eye(k * k), np.arange(k * k).reshape(k, k)
    for a, b in ((index[:, :-1], index[:, 1:]), (index[:-1], index[1:])):
        a, b = a.ravel(), b.ravel()
        for i, j in ((a, b), (b, a)):
            weight = step / h**2 * gradient[i] * 2 / (gradient[a] + gradient[b])
            np.add.at(matrix, (i, i), weight)
            np.add.at(matrix, (i, j), -weight)
    return matrix


# The factors of the last time step as the estimate: the digits that they share are saved, of all the digits that there are
# to find. And where a section needs its longest chain of elements one after the other, no estimate shortens the chain.
k = 12
x, y = np.meshgrid(*[np.linspace(-0.5, 0.5, k)] * 2)
print("step/h²  tolerance  from A  from the last step")
for ratio in (0.1, 1, 100):
    for tolerance in (0, 1e-6, 1e-3):
        icm = dense.ICM(x=8, section=72, form="plain", tolerance=tolerance)
        u, last, counts = np.sqrt(x**2 + 2 * y**2).ravel(), None, []
        for _ in range(4):
            matrix = curvature_flow(u, k, ratio / (k - 1)**2)
            factors = icm.factor(matrix)
            if last:
                counts.append((factors.metrics.iterations.sum(), icm.factor(matrix, estimate=last).metrics.iterations.sum()))
            u, last = factors.solve(u), factors
        before, after = np.mean(counts, axis=0)
        print(f"{ratio:7g} {tolerance:10g} {before:7.1f} {after:7.1f}")
        assert after < before * 1.1
