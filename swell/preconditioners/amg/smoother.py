"""Smoothers of the cycle: polynomials in D⁻¹A with the ℓ1 diagonal, dᵢ = Σⱼ |aᵢⱼ|. Baker, Falgout, Kolev, Yang 2011.

The eigenvalues of D⁻¹A lie in (0, 1] for every SPD matrix. For scalar problems the largest is near 1, and nothing is
estimated. Smoothed aggregation takes the diagonal of A, dᵢ = aᵢᵢ, times an estimate of the largest eigenvalue,
`radius`: its coarse unknowns are orthonormal in energy, so that this is a smoother by the blocks of nodes.

- "chebyshev": Chebyshev polynomials of the fourth kind. Their weights, from Lottes 2023, are best for a whole V-cycle.
  Step k is z = a z + b D⁻¹ r, x = x + β z, r = r − A z with a = (2k − 3)/(2k + 1), b = (8k − 4)/(2k + 1). Degree 1 is
  ℓ1-Jacobi with weight 3/2.
- "l1_jacobi": x = x + D⁻¹ r, ``degree`` times.

In the balanced variables D^½ x and D^−½ b, D⁻¹A becomes D^−½ A D^−½: the polynomial is symmetric, and so is the cycle.
"""
from __future__ import annotations

import numpy as np

# β for degrees 1 to 4: table 1 of Lottes 2023 (arXiv 2202.08830)
WEIGHTS = ((1.125,),
           (1.02387287570313, 1.26408905371085),
           (1.00842544782028, 1.08867839208730, 1.33753125909618),
           (1.00391310427285, 1.04035811188593, 1.14863498546254, 1.38268869241000))
NAMES = ("chebyshev", "l1_jacobi")
POWERS, SAFETY, SEED = 12, 1.1, 11      # of `radius`: products, factor for an estimate that is too small, random vector


def steps(name: str, degree: int) -> list[tuple[float, float, float]]:
    """Return the coefficients (a, b, β) of each smoothing step, a list of ``degree`` tuples.

    A step is z = a z + b D⁻¹ r, x = x + β z. ``name`` is "chebyshev" or "l1_jacobi"."""
    if name == "l1_jacobi":
        return [(0.0, 1.0, 1.0)] * degree
    return [(*fourth_kind(k), beta) for k, beta in enumerate(WEIGHTS[degree - 1], start=1)]


def fourth_kind(k: int) -> tuple[float, float]:
    """Return (a, b) of step k, from 1 on, of a Chebyshev smoother of the fourth kind: z = a z + b D⁻¹ r, x = x + z."""
    return (2 * k - 3) / (2 * k + 1) if k > 1 else 0.0, (8 * k - 4) / (2 * k + 1)


def relaxation(name: str, degree: int) -> float:
    """Return ω, the factor in D = diag(√(ω / dᵢ)) of the cycle: the weight of a single step, or 1 for a higher
    ``degree``. ``name`` as in `steps`."""
    if degree > 1:
        return 1.0
    (_, b, beta), = steps(name, 1)
    return b * beta


def scales(A, omega: float, diagonal="l1"):
    """Return √(ω / dᵢ) of each row of a CSRMatrix in double precision, a new float64 array; 1 where dᵢ = 0.

    ``diagonal``: "l1", dᵢ = Σⱼ |aᵢⱼ|; or "point", dᵢ = |aᵢᵢ|."""
    if diagonal == "point":
        xp, d = A.space.xp, abs(A.diagonal())
        return xp.sqrt(xp.where(d > 0, omega / xp.where(d > 0, d, 1), 1))
    roots = A.space.empty(A.shape[0], np.float64)
    A.space.kernels("swell.preconditioners.amg", "cycle", A.dtype).l1_scales(A.indptr, A.data, omega, roots)
    return roots


def radius(A, diagonal="l1") -> float:
    """Return an estimate of the largest eigenvalue of D⁻¹A for a CSRMatrix in double precision; with the ℓ1 diagonal at
    most 1. ``diagonal`` as in `scales`. A may also be the `RankRows` of a matrix across ranks, with "point".

    Power method from a fixed random vector: ‖Bᵏv‖ / ‖Bᵏ⁻¹v‖ with B = D^−½ A D^−½ grows to the eigenvalue from below.
    If the estimate is too small by a quarter, every smoother of `NAMES` still converges."""
    space, root = A.space, scales(A, 1.0, diagonal)
    v, w, Bv = (space.empty(space.ranks.local_rows(A.shape[0]), np.float64) for _ in range(3))
    space.random(SEED, v)
    for k in range(POWERS):
        if k:
            v, Bv = Bv, v
        space.copy(v, w)
        space.multiply(root, w)
        A.apply(w, Bv)
        space.multiply(root, Bv)                                               # B v
    before, _, after, _ = space.norms(v, Bv)  # sync
    found = SAFETY * after / before if before > 0 and after > 0 else 1.0
    return min(found, 1.0) if diagonal == "l1" else found
