"""Dense LU: decomposers and solvers, accuracy, transposes, condition, mixed precision, and estimates from the last time step."""
import numpy as np
import scipy.linalg

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

# Factors solve with the transpose and the adjoint, too; they know A's condition and determinant, and LAPACK's form.
factors = dense.PCM(x=8).factor(A)
for trans, op in (("N", A), ("T", A.T), ("C", A.conj().T)):
    assert abs(op @ factors.solve(B, trans=trans) - B).max() < 1e-8
print(f"condition {factors.condition():.1e}, log |det A| {factors.slogdet()[1]:.2f}, first swaps {factors.piv[:5]}")
assert factors.condition() < 2 * np.linalg.cond(A, 1) and np.isclose(factors.slogdet()[1], np.linalg.slogdet(A)[1])
assert abs(A @ factors.inverse() - np.eye(200)).max() < 1e-8
assert np.allclose(dense.LUFactors.from_lapack(*scipy.linalg.lu_factor(A)).solve(B), factors.solve(B))
assert np.allclose(scipy.linalg.lu_solve(factors.to_lapack(), B), factors.solve(B))

# Mixed precision: factors in single precision, the answer in double; where that fails, double factors, with a note.
Q, R = np.linalg.qr(A)
for name, matrix in (("A", A), ("condition 1e10", (Q * np.logspace(0, -10, 200)) @ Q.T)):
    found = dense.solve(matrix, B)
    print(f"{name}: factors in {found.factors.dtype}, {found.steps} steps, backward error {found.backward_error:.1e}",
          *found.notes)
    assert found.backward_error < 200**0.5 * np.finfo(float).eps

# A decomposer is a method of swell.solve, judged by b − A x.
for method in ("getrf", "icm(x=8, tolerance=1e-3, pivoting=full)"):
    r = swell.solve(A, B[:, 0], method=method)
    print(f"{method}: steps of refinement {r.iterations}, residual {r.residual:.1e}")
    assert r.converged

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
