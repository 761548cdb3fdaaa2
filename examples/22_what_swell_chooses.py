"""The automatic choice: predicted times, a watch that changes the method, and a Solver that learns."""
import numpy as np
import scipy.sparse as sp

import swell

rng = np.random.default_rng(1)

# The result lists every choice, with predicted and spent seconds.
A = swell.gallery.poisson3d(20)
b = A @ rng.standard_normal(A.shape[0])
result = swell.solve(A, b)
print(result)
assert result.converged and {"direct, none", "cg, ic"} <= {c.choice for c in result.choices}

# For a matrix with small factors, swell chooses the direct solver at once.
band = swell.gallery.poisson1d(20_000)
result = swell.solve(band, band @ rng.standard_normal(20_000))
print(result.method, "for a band")
assert result.converged

# Biharmonic: cg would need thousands of iterations. The watch notices this, and swell changes to another choice.
plate = swell.gallery.poisson2d(70)
plate = plate @ plate
result = swell.solve(plate, plate @ rng.standard_normal(plate.shape[0]))
for attempt in [*result.attempts, result]:
    print(f"{attempt.method}, {attempt.precond}: {attempt.iterations} iterations, {attempt.reason.name}")
assert result.converged

# A prepared Solver learns from each solve; adapt=False keeps the first choice.
solver, steady = swell.prepare(A), swell.prepare(A, adapt=False)
for k in range(4):
    b = A @ rng.standard_normal(A.shape[0])
    learnt, same = solver.solve(b), steady.solve(b)
    print(f"solve {k + 1}: {learnt.method} with {learnt.precond}, {same.method} with {same.precond}")
    assert learnt.converged and same.converged


def small_pivots(kind, n=4000, seed=0):
    """A matrix whose pivots have to be found: an optimal control problem's, or a triangular one in a random order."""
    random = np.random.default_rng(seed)
    if kind == "optimal control":                # [[M, 0, K], [0, M, −M], [K, −M, 0]]
        K = swell.gallery.poisson2d(36)
        M = sp.eye_array(K.shape[0])
        return sp.block_array([[M, None, K], [None, 1e-4 * M, -M], [K, -M, None]]).tocsr()
    rows, columns = random.integers(0, n, (2, 3 * n))
    below = columns < rows
    A = sp.coo_array((random.standard_normal(below.sum()), (rows[below], columns[below])), shape=(n, n))
    A = (A + 4 * sp.eye_array(n)).tocsr()
    return A[random.permutation(n)][:, random.permutation(n)]


# Zero or small diagonal entries, rows in any order: the predicted factorisation is the one that runs.
for kind in "optimal control", "triangular":
    A = small_pivots(kind)
    b = np.ones(A.shape[0])
    result = swell.solve(A, b)
    print(f"{kind}: {A.nnz} entries;", next(line for line in str(result).splitlines() if "Direct" in line).strip())
    assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
