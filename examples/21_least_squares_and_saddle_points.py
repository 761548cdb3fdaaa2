"""Least squares by LSMR, and Stokes' equations by MINRES with a block preconditioner."""
import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import swell

# A surface through 5000 noisy heights: piecewise bilinear on a grid of 21 × 21 nodes, A[k, node] = weight of the node.
rng, n = np.random.default_rng(1), 21
x, y = rng.random((2, 5000)) * (n - 1)
heights = np.sin(x / 4) * np.cos(y / 5) + 0.05 * rng.standard_normal(5000)


def hats(t):
    """The two hat functions that are not zero at each t, as a matrix."""
    left = np.minimum(t.astype(int), n - 2)
    rows, weights = np.tile(np.arange(t.size), 2), np.concatenate([1 - (t - left), t - left])
    return sp.csr_array((weights, (rows, np.concatenate([left, left + 1]))), shape=(t.size, n))


along_x, along_y = hats(x), hats(y)
A = sp.csr_array(sp.vstack([sp.kron(along_x[[k]], along_y[[k]]) for k in range(5000)]))
fit = swell.lstsq(A, heights)
print(fit)
nodes = np.arange(n)
exact = np.outer(np.sin(nodes / 4), np.cos(nodes / 5)).ravel()
error = np.sqrt(np.mean((fit.x - exact)**2))
print(f"root mean square error at the nodes {error:.3f}, with a noise of 0.05")
assert fit.converged and fit.solved == "least squares" and error < 0.05

# Few data make the fit ill-posed; a little damping selects a solution of small norm.
few = swell.lstsq(A[:300], heights[:300], damp=1e-2)
assert few.converged and few.norm_x < 30

# Stokes: viscous blocks K for two velocity components, and a pressure that enforces zero divergence. S is indefinite.
m = 24
K = sp.block_diag([swell.gallery.poisson2d(m)] * 2)
d = sp.diags_array([np.ones(m), -np.ones(m - 1)], offsets=[0, -1])
B = sp.hstack([sp.kron(sp.eye_array(m), d), sp.kron(d, sp.eye_array(m))])
S = sp.csr_array(sp.block_array([[K, B.T], [B, None]]))
force = np.concatenate([np.ones(m * m), np.zeros(2 * m * m)])

plain = swell.solve(S, force, method="minres", maxiter=5000)

# MINRES needs a positive definite M: here K⁻¹ for the velocity, and the identity (a mass matrix) for the pressure.
inverse = spla.splu(sp.csc_matrix(K))
M = spla.LinearOperator(S.shape, dtype=float, matvec=lambda r: np.r_[inverse.solve(r[:2 * m * m]), r[2 * m * m:]])
blocks = swell.solve(S, force, method="minres", M=M)
print(f"Stokes with {S.shape[0]} unknowns: {plain.iterations} iterations of MINRES, {blocks.iterations} with blocks")
assert blocks.converged and blocks.iterations < 100
assert np.linalg.norm(B @ blocks.x[:2 * m * m]) < 1e-6 * np.linalg.norm(blocks.x)
