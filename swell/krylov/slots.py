"""Named scalars (slots) of every method, in memory order: kernels write neighbours, and ranks sum them, together.

``core/slots.py`` says how hosts and kernels get these names. (x, y) conjugates x. A slot NEXT_…
holds the value for the next iteration.
"""
import enum

from swell.core.slots import Norms, slots


@slots
class CG:
    """Scalars of conjugate gradients."""

    SIGMA = enum.auto()             # σ = (p, q)
    QQ = enum.auto()                # (q, q), computed with σ
    RHO = enum.auto()               # ρ = (r, z)
    NORM2 = enum.auto()             # norm² of the judged residual
    NEXT_RHO = enum.auto()
    ZZ = enum.auto()                # (z, z), computed with the next ρ


@slots
class SingleReductionCG:
    """Scalars of CG with one reduction; ranks add up the first five together."""

    GAMMA = enum.auto()             # γ = (r, u)
    UU = enum.auto()                # (u, u), computed with γ
    DELTA = enum.auto()             # δ = (u, w)
    WW = enum.auto()                # (w, w), computed with δ
    NORM2 = enum.auto()             # norm² of the judged residual
    LAST_GAMMA = enum.auto()        # γ of the iteration before
    ALPHA = enum.auto()
    BETA = enum.auto()
    DRIFT2 = enum.auto()            # largest squared drift of a replaced residual


@slots
class COCG:
    """Scalars of COCG."""

    MU = enum.auto()                # μ = pᵀ q
    QQ = enum.auto()                # (q, q), computed with μ
    RR = enum.auto()                # (r, r)
    NEXT_RHO = enum.auto()
    ZZ = enum.auto()                # (z, z), computed with the next ρ
    NORM2 = enum.auto()             # norm² of the judged residual
    RHO = enum.auto()               # ρ = rᵀ z
    LAST_RR = enum.auto()           # (r, r) before this iteration


@slots
class COCR:
    """Scalars of COCR."""

    RHO = enum.auto()               # ρ of the iteration before; 0 in the first
    NEXT_RHO = enum.auto()          # ρ' = zᵀ A z
    AZ2 = enum.auto()               # (A z, A z), computed with ρ'
    ZZ = enum.auto()                # (z, z)
    NORM2 = enum.auto()             # norm² of the judged residual
    MU = enum.auto()                # μ = qᵀ t
    TT = enum.auto()                # (t, t), computed with μ
    QQ = enum.auto()                # (q, q)
    ENDED = enum.auto()             # the Code with which the iteration ended


@slots
class MINRES:
    """Scalars of MINRES, all real; v and d are not scaled."""

    ALPHA = enum.auto()             # (z, A z), which is β² α
    QQ = enum.auto()                # (A z, A z), computed with α
    NORM2 = enum.auto()             # norm² of the judged residual
    RR = enum.auto()                # (r, r)
    BETA2 = enum.auto()             # β² = (v, z)
    NEXT_BETA2 = enum.auto()
    ZZ = enum.auto()                # (z, z), computed with the next β²
    VV = enum.auto()                # (v, v) of the next v
    DD = enum.auto()                # (d, d)
    LAST_BETA2 = enum.auto()        # β² of the iteration before; 0 in the first
    COS = enum.auto()               # the last rotation
    SIN = enum.auto()
    DELTA = enum.auto()             # δ before the last rotation
    EPSILON = enum.auto()           # ε of this iteration
    PHI = enum.auto()               # φ = (r, M r)^½
    GAMMA = enum.auto()             # γ of the iteration before
    LAST_GAMMA = enum.auto()        # γ of the iteration before that
    COLUMN = enum.auto()            # the largest norm of a column of T so far
    A2 = enum.auto()                # the largest (A z, A z)/(z, z) so far: a lower bound of ‖A‖²
    DRIFT = enum.auto()             # possible drift of r from b − A x by rounding: ε ‖A‖ Σ ‖Δx‖
    ENDED = enum.auto()             # the Code with which the iteration ended


@slots
class Shadow:
    """The first scalars of every method with a shadow vector r̂."""

    SHADOW2 = enum.auto()           # (r̂, r̂)
    RHO = enum.auto()               # ρ = (r̂, r)
    RR = enum.auto()                # (r, r)
    NORM2 = enum.auto()             # norm² of the judged residual


@slots
class BiCGSTAB:
    """Scalars of BiCGSTAB."""

    SHADOW2 = Shadow.SHADOW2
    RHO = Shadow.RHO
    RR = Shadow.RR
    NORM2 = Shadow.NORM2
    NEXT_RHO = enum.auto()
    GAMMA = enum.auto()             # γ = (r̂, v)
    VV = enum.auto()                # (v, v), computed with γ
    ST = enum.auto()                # (s, t)
    TT = enum.auto()                # (t, t), computed with (s, t)


@slots
class BiCGSTABL:
    """Scalars of BiCGSTAB(l); û = A û_j and r̂ = A r̂_j are the latest products."""

    SHADOW2 = Shadow.SHADOW2
    SIGMA = Shadow.RHO              # σ = (r̃, r̂_0)
    RR = Shadow.RR                  # (r̂_0, r̂_0)
    NORM2 = Shadow.NORM2
    GAMMA = enum.auto()             # γ = (r̃, û)
    UU = enum.auto()                # (û, û), computed with γ
    PROJECTED = enum.auto()         # (r̃, r̂)
    PRODUCT2 = enum.auto()          # (r̂, r̂), computed with (r̃, r̂)
    RHO = enum.auto()               # ρ of the last step of BiCG
    ALPHA = enum.auto()
    OMEGA = enum.auto()
    THETA = enum.auto()             # θ; 0: not known yet
    LOST = enum.auto()              # 1 once an inner product was only rounding error, or ω was 0


@slots
class TFQMR:
    """Scalars of TFQMR."""

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


@slots
class QMR:
    """Scalars of QMR; the shadow vector is the first w, the residual r the first v."""

    XI2 = Shadow.SHADOW2            # ξ² = (w, w)
    WV = Shadow.RHO                 # (w, v)
    RHO2 = Shadow.RR                # ρ² = (v, v)
    NORM2 = Shadow.NORM2
    QQ = enum.auto()                # (q, q)
    EPSILON = enum.auto()           # ε = (q, A p)
    AP2 = enum.auto()               # (A p, A p), computed with ε
    NEXT_WV = enum.auto()
    NEXT_RHO2 = enum.auto()
    NEXT_XI2 = enum.auto()
    ETA = enum.auto()
    THETA = enum.auto()             # θ of the iteration before
    GAMMA = enum.auto()
    ENDED = enum.auto()             # the Code with which the iteration ended


@slots
class IDRS:
    """Scalars of IDR(s)."""

    OMEGA = enum.auto()
    LOST = enum.auto()              # 1 once an inner product was only rounding error
    BETA = enum.auto()
    RR = enum.auto()                # (r, r)
    RT = enum.auto()                # (r, t)
    TT = enum.auto()                # (t, t), computed with (r, t)


@slots
class GMRES:
    """Scalars of GMRES."""

    GAMMA = enum.auto()             # γ, the scale of the candidate


@slots
class GMRESSums:
    """Sums of a GMRES step that follow the m entries of s and the m entries of t."""

    UU = enum.auto()                # (u, u)
    UW = enum.auto()                # (u, w)
    WW = enum.auto()                # (w, w)


@slots
class BlockCG:
    """Small matrices of block CG, each k x k."""

    COEFFICIENTS = enum.auto()      # C: the residual block is R C
    XI = enum.auto()                # ξ = (Pᴴ A P)⁻¹
    ALPHA = enum.auto()             # α = ξ C
    ZETA = enum.auto()              # ζ, with ζᴴ ζ = Rᴴ M R
    INVERSE = enum.auto()           # of ζ on its rank


@slots
class BlockGMRES:
    """Small matrices of block GMRES, each k x k."""

    ALPHA = enum.auto()             # α, with αᴴ α = Uᴴ U − Sᴴ S
    INVERSE = enum.auto()           # of α on its rank
    BETA = enum.auto()              # β = V_jᴴ W
    GAMMA_INVERSE = enum.auto()     # of γ, with γᴴ γ = Wᴴ W − Tᴴ T − βᴴ β
    SCALE = enum.auto()             # Γ = γ α⁻¹


STEMS = {"cg": (CG,), "single_reduction_cg": (SingleReductionCG,), "cocg": (COCG,), "cocr": (COCR,),
         "minres": (MINRES,), "shadow": (Shadow,), "bicgstab": (BiCGSTAB,), "bicgstabl": (BiCGSTABL,),
         "tfqmr": (TFQMR,), "qmr": (QMR,), "idrs": (IDRS,), "gmres": (GMRES, GMRESSums, Norms), "block_cg": (BlockCG,),
         "block_gmres": (BlockGMRES, Norms)}
