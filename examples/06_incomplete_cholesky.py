"""Incomplete Cholesky for CG: fewer iterations; settings choose factorisation, ordering and triangular solves."""
import numpy as np

import swell

A = swell.gallery.poisson2d(60)
b = np.ones(A.shape[0])

plain = swell.solve(A, b, method="cg", rtol=1e-10)
ic0 = swell.solve(A, b, method="cg", precond="ic0", rtol=1e-10)
ic2 = swell.solve(A, b, method="cg", precond=swell.IC(level=2), rtol=1e-10)
print("iterations:", plain.iterations, ic0.iterations, ic2.iterations)
assert ic2.iterations < ic0.iterations < plain.iterations / 2

# For a GPU: colouring gives few levels, and sweeps replace exact triangular solves.
for precond in ("ic0(ordering='multicolor')", "ic0(solve='sweeps(count=4)')", swell.IC0(factor="sweeps", factor_sweeps=3)):
    result = swell.solve(A, b, method="cg", precond=precond, rtol=1e-10)
    print(precond, result.iterations)
    assert result.converged and result.iterations < plain.iterations

# K is positive definite, but incomplete factorisation meets a pivot that is not positive. swell then factors a shifted
# matrix, and a note says so.
K = np.array([[3.0, -2, 0, 2], [-2, 3, -2, 0], [0, -2, 3, -2], [2, 0, -2, 3]])
result = swell.solve(K, np.ones(4), method="cg", precond="ic0")
print(result.notes)
assert result.converged and "was factored in place of A" in result.notes[0]
