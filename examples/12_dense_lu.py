"""Dense LU: decomposers, their metrics and accuracy, matching solvers, and estimates from the last time step."""
import numpy as np

import swell
from swell import dense

random = np.random.default_rng(0)
A = random.uniform(-1000, 1000, (200, 200))
A[::2, ::2] *= 1 - np.eye(100)                             # every second diagonal entry is zero: pivoting is needed
B = np.ones((200, 10))

# Full pivoting keeps accuracy. Conditional pivoting, the iterative method's default, loses as much as the factors grow.
for decomposer in (dense.Getrf(), dense.PCM(x=8), dense.ICM(x=8), dense.ICM(x=8, pivoting="full")):
    factors = decomposer.factor(A)
    X = factors.solve(B)
    made, solved = dense.decomposition_accuracy(A, factors), dense.solution_accuracy(A, B, X, factors)
    print(f"{type(decomposer).__name__:5s} {factors.metrics.pivots.sum():3d} pivots, growth {made.growth:7.1e}, backward errors "
          f"{made.backward_error:.1e} and {solved.backward_error:.1e}")
    assert made.backward_error < 1e-15 * made.growth * 100 and solved.backward_error < 1e-15 * made.growth * 100

# A solver accepts only factors of the right type, which says whether L or U has the unit diagonal.
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


# The factors of the last time step serve as the estimate. The iteration then needs to find only the digits that differ.
# But no estimate shortens a section's longest chain of dependent elements, which may determine the iterations.
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
