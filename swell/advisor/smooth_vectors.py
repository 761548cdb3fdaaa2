"""How slowly CG with Jacobi converges, foreseen by Rayleigh and Ritz from smooth vectors.

CG with Jacobi takes about ½ √(λₙ/λ₁) ln(2/ε) iterations, with the eigenvalues λ of D⁻¹A, D the diagonal of A. λₙ is
about 2. A vector that is smooth on the mesh has a Rayleigh quotient xᵀA x / xᵀD x near λ₁, and mesh generators number
neighbours by and large near one another: so cos(c π (i + ½) / n), c = 0 to 3, in row i are such vectors. Three steps of
a Chebyshev smoother lower them towards boundary values, and wherever the mesh jumps in its numbering.

Of the four Ritz values the second smallest counts, since CG finds a single small eigenvalue, as of a pure Neumann
problem with one fixed value, in a few iterations. If the quotient of the second cosine exceeds `INFORMED` before it is
smoothed, the numbering does not follow the mesh, and the estimate is a lower bound only.

Cost: four products with four vectors in single precision, and one read of the host. `ITERATIONS_OVER` was fitted to the
iterations that twenty systems took (benchmarks/notes/choice.md).
"""
from __future__ import annotations

import math

import numpy as np
from scipy.linalg import eigh

from swell.preconditioners.amg.smoother import fourth_kind

VECTORS, STEPS = 4, 3   # VECTORS: as in kernels/smooth_vectors.hpp
TRIANGLE = VECTORS * (VECTORS + 1) // 2
UNCHECKED, SHARE = 64 << 20, 0.1  # bytes that are not compared with the free memory, and the share of it to take
INFORMED = 0.3          # Rayleigh quotient of the second cosine, at most, of a numbering that follows the mesh
LARGEST = 2.0           # eigenvalue of D⁻¹A
TOLERANCE = 1e-8        # relative residual
ITERATIONS_OVER = 1.6   # iterations that a system takes, over the estimate


def jacobi_iterations(A) -> tuple[float, bool]:
    """Return (the iterations that CG with Jacobi is expected to take, True if the numbering follows the mesh).

    Otherwise the number is only a lower bound. It is 0 if nothing is known, and if the vectors would take more than
    `SHARE` of the free memory.

    Parameters
    ----------
    A : CSRMatrix
        Real, symmetric, with a positive diagonal.
    """
    needed = 4 * (3 * VECTORS + 2) * A.shape[0]
    if needed > UNCHECKED and needed > SHARE * A.space.memory()[0]:
        return 0.0, False
    before, after = _energies(A)
    try:
        second = eigh(*after, eigvals_only=True)[1]
    except (np.linalg.LinAlgError, ValueError):  # dependent vectors, or numbers that are not finite
        return 0.0, False
    if not second > 0:
        return 0.0, False
    count = ITERATIONS_OVER * 0.5 * math.sqrt(LARGEST / second) * math.log(2 / TOLERANCE)
    return count, bool(before[0][1, 1] <= INFORMED * before[1][1, 1])


def _energies(A):
    """Return (XᵀA X, XᵀD X) for the cosines and for the smoothed vectors: the lower triangles of four matrices."""
    space, n = A.space, A.shape[0]
    own, single = (space.kernels("swell.advisor", "smooth_vectors", dtype) for dtype in (A.dtype, np.float32))
    x, y, z, diagonal, moduli = (space.empty(size, np.float32) for size in (*[VECTORS * n] * 3, n, n))
    out = space.empty(4 * TRIANGLE, np.float64)
    single.cosines(x, z)
    for step in range(STEPS + 1):
        own.products(A.indptr, A.indices, A.data, x, y, diagonal, moduli)
        if step in (0, STEPS):
            single.energies(x, y, diagonal, out[:2 * TRIANGLE] if step == 0 else out[2 * TRIANGLE:])
        if step < STEPS:
            single.relax(moduli, *fourth_kind(step + 1), y, x, z)
    matrices = np.zeros((2, 2, VECTORS, VECTORS))
    matrices[:, :, *np.tril_indices(VECTORS)] = space.to_host(out).reshape(2, 2, TRIANGLE)  # sync
    return matrices
