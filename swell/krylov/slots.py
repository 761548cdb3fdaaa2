"""The scalars of every method by name, in the order in which they lie: neighbours are written and added up together.

``core/slots.py`` says how hosts, Numba's kernels and CUDA's get these names. (x, y) conjugates its first argument. The
next iteration takes over what is called "next".
"""
from __future__ import annotations

import enum

from swell.core.slots import Norms, Slots


class CG(Slots):
    """Conjugate gradients."""

    SIGMA = enum.auto()             # σ = (p, q)
    QQ = enum.auto()                # (q, q), which comes with σ
    RHO = enum.auto()               # ρ = (r, z)
    NORM2 = enum.auto()             # norm² of the judged residual
    NEXT_RHO = enum.auto()
    ZZ = enum.auto()                # (z, z), which comes with the next ρ


class SingleReductionCG(Slots):
    """CG with one reduction; the first five are added up over ranks together."""

    GAMMA = enum.auto()             # γ = (r, u)
    UU = enum.auto()                # (u, u), which comes with γ
    DELTA = enum.auto()             # δ = (u, w)
    WW = enum.auto()                # (w, w), which comes with δ
    NORM2 = enum.auto()             # norm² of the judged residual
    LAST_GAMMA = enum.auto()        # γ of the iteration before
    ALPHA = enum.auto()
    BETA = enum.auto()
    DRIFT2 = enum.auto()            # the largest squared drift of a residual that was replaced


class COCG(Slots):
    """COCG."""

    MU = enum.auto()                # μ = pᵀ q
    QQ = enum.auto()                # (q, q), which comes with μ
    RR = enum.auto()                # (r, r)
    NEXT_RHO = enum.auto()
    ZZ = enum.auto()                # (z, z), which comes with the next ρ
    NORM2 = enum.auto()             # norm² of the judged residual
    RHO = enum.auto()               # ρ = rᵀ z
    LAST_RR = enum.auto()           # (r, r) before this iteration


class COCR(Slots):
    """COCR."""

    RHO = enum.auto()               # ρ of the iteration before; 0 in the first
    NEXT_RHO = enum.auto()          # ρ' = zᵀ A z
    AZ2 = enum.auto()               # (A z, A z), which comes with ρ'
    ZZ = enum.auto()                # (z, z)
    NORM2 = enum.auto()             # norm² of the judged residual
    MU = enum.auto()                # μ = qᵀ t
    TT = enum.auto()                # (t, t), which comes with μ
    QQ = enum.auto()                # (q, q)
    ENDED = enum.auto()             # the Code with which the iteration ended


class MINRES(Slots):
    """MINRES; all are real. v and d are not scaled."""

    ALPHA = enum.auto()             # (z, A z), which is β² α
    QQ = enum.auto()                # (A z, A z), which comes with it
    NORM2 = enum.auto()             # norm² of the judged residual
    RR = enum.auto()                # (r, r)
    BETA2 = enum.auto()             # β² = (v, z)
    NEXT_BETA2 = enum.auto()
    ZZ = enum.auto()                # (z, z), which comes with the next β²
    VV = enum.auto()                # (v, v) of the next v
    DD = enum.auto()                # (d, d)
    LAST_BETA2 = enum.auto()        # β² of the iteration before; 0 in the first
    COS = enum.auto()               # the last rotation
    SIN = enum.auto()
    DELTA = enum.auto()             # δ before that rotation
    EPSILON = enum.auto()           # ε of this iteration
    PHI = enum.auto()               # φ = (r, M r)^½
    GAMMA = enum.auto()             # γ of the iteration before
    LAST_GAMMA = enum.auto()        # and of the one before that
    COLUMN = enum.auto()            # the largest norm of a column of T so far
    A2 = enum.auto()                # the largest (A z, A z)/(z, z) so far: ‖A‖², from below
    DRIFT = enum.auto()             # how far rounding may have driven r from b − A x: ε ‖A‖ Σ ‖Δx‖
    ENDED = enum.auto()             # the Code with which the iteration ended


class Shadow(Slots):
    """The first places of every method with a shadow vector r̂."""

    SHADOW2 = enum.auto()           # (r̂, r̂)
    RHO = enum.auto()               # ρ = (r̂, r)
    RR = enum.auto()                # (r, r)
    NORM2 = enum.auto()             # norm² of the judged residual


class BiCGSTAB(Slots):
    """BiCGSTAB."""

    SHADOW2 = Shadow.SHADOW2
    RHO = Shadow.RHO
    RR = Shadow.RR
    NORM2 = Shadow.NORM2
    NEXT_RHO = enum.auto()
    GAMMA = enum.auto()             # γ = (r̂, v)
    VV = enum.auto()                # (v, v), which comes with γ
    ST = enum.auto()                # (s, t)
    TT = enum.auto()                # (t, t), which comes with (s, t)


class BiCGSTABL(Slots):
    """BiCGSTAB(l); û and r̂ are what the last products made of û_j and r̂_j."""

    SHADOW2 = Shadow.SHADOW2
    SIGMA = Shadow.RHO              # σ = (r̃, r̂_0)
    RR = Shadow.RR                  # (r̂_0, r̂_0)
    NORM2 = Shadow.NORM2
    GAMMA = enum.auto()             # γ = (r̃, û)
    UU = enum.auto()                # (û, û), which comes with γ
    PROJECTED = enum.auto()         # (r̃, r̂)
    PRODUCT2 = enum.auto()          # (r̂, r̂), which comes with (r̃, r̂)
    RHO = enum.auto()               # ρ of the last step of BiCG
    ALPHA = enum.auto()
    OMEGA = enum.auto()
    THETA = enum.auto()             # 0: not known yet
    LOST = enum.auto()              # not 0 once an inner product was rounding


class TFQMR(Slots):
    """TFQMR."""

    SHADOW2 = Shadow.SHADOW2
    RHO = Shadow.RHO
    TAU2 = Shadow.RR                # τ², which begins as (r, r)
    NORM2 = Shadow.NORM2
    SIGMA = enum.auto()             # σ = (r̂, v)
    VV = enum.auto()                # (v, v)
    ODD2 = enum.auto()              # (w, w) after the odd step
    EVEN2 = enum.auto()             # (w, w) after the even step
    NEXT_RHO = enum.auto()          # (r̂, w)
    CARRY = enum.auto()             # θ² η of the iteration before
    BETA = enum.auto()
    ENDED = enum.auto()             # the Code with which the iteration ended


class QMR(Slots):
    """QMR; the shadow vector is the first w, and r is the first v."""

    XI2 = Shadow.SHADOW2            # ξ² = (w, w)
    WV = Shadow.RHO                 # (w, v)
    RHO2 = Shadow.RR                # ρ² = (v, v)
    NORM2 = Shadow.NORM2
    QQ = enum.auto()                # (q, q)
    EPSILON = enum.auto()           # ε = (q, A p)
    AP2 = enum.auto()               # (A p, A p), which comes with ε
    NEXT_WV = enum.auto()
    NEXT_RHO2 = enum.auto()
    NEXT_XI2 = enum.auto()
    ETA = enum.auto()
    THETA = enum.auto()             # θ of the iteration before
    GAMMA = enum.auto()
    ENDED = enum.auto()             # the Code with which the iteration ended


class IDRS(Slots):
    """IDR(s)."""

    OMEGA = enum.auto()
    LOST = enum.auto()              # not 0 once an inner product was rounding
    BETA = enum.auto()
    RR = enum.auto()                # (r, r)
    RT = enum.auto()                # (r, t)
    TT = enum.auto()                # (t, t), which comes with (r, t)


class GMRES(Slots):
    """GMRES."""

    GAMMA = enum.auto()             # γ, the scale of the candidate


class GMRESSums(Slots):
    """What follows s and t, m of each, among the sums of a step of GMRES."""

    UU = enum.auto()                # (u, u)
    UW = enum.auto()                # (u, w)
    WW = enum.auto()                # (w, w)


STEMS = {"cg": (CG,), "single_reduction_cg": (SingleReductionCG,), "cocg": (COCG,), "cocr": (COCR,),
         "minres": (MINRES,), "shadow": (Shadow,), "bicgstab": (BiCGSTAB,), "bicgstabl": (BiCGSTABL,),
         "tfqmr": (TFQMR,), "qmr": (QMR,), "idrs": (IDRS,), "gmres": (GMRES, GMRESSums, Norms)}
