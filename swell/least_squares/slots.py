"""Named scalars (slots) of LSQR and LSMR, all real; ``core/slots.py`` says how kernels get the names."""
import enum

from swell.core.slots import slots


@slots
class Bidiagonal:
    """The first scalars of both methods. A slot NEXT_… holds the value for the next step."""

    ALPHA = enum.auto()             # α = ‖v‖
    BETA = enum.auto()              # β = ‖u‖
    NEXT_ALPHA = enum.auto()
    NEXT_BETA = enum.auto()
    ALLOWED = enum.auto()           # ‖r‖ at which the equations count as solved
    NORMAL = enum.auto()            # ‖Aᴴ r‖/‖r‖ at which the least-squares problem counts as solved


@slots
class LSQR:
    """Scalars of LSQR."""

    ALPHA = Bidiagonal.ALPHA
    BETA = Bidiagonal.BETA
    NEXT_ALPHA = Bidiagonal.NEXT_ALPHA
    NEXT_BETA = Bidiagonal.NEXT_BETA
    ALLOWED = Bidiagonal.ALLOWED
    NORMAL = Bidiagonal.NORMAL
    RHO_BAR = enum.auto()
    PHI_BAR = enum.auto()           # φ̄ = ‖r‖


@slots
class LSMR:
    """Scalars of LSMR; the scalars for ‖r‖ have their names from section 5.1 of the paper."""

    ALPHA = Bidiagonal.ALPHA
    BETA = Bidiagonal.BETA
    NEXT_ALPHA = Bidiagonal.NEXT_ALPHA
    NEXT_BETA = Bidiagonal.NEXT_BETA
    ALLOWED = Bidiagonal.ALLOWED
    NORMAL = Bidiagonal.NORMAL
    ALPHA_BAR = enum.auto()
    RHO = enum.auto()               # ρ of the first rotation
    RHO_BAR = enum.auto()           # ρ̄ of the second rotation
    COS_BAR = enum.auto()           # the second rotation
    SIN_BAR = enum.auto()
    ZETA_BAR = enum.auto()          # |ζ̄| = ‖Aᴴ r‖
    ZETA = enum.auto()
    BETA_DOTS = enum.auto()         # β̈
    BETA_DOT = enum.auto()          # β̇
    RHO_DOT = enum.auto()           # ρ̇
    TAU = enum.auto()               # τ̃
    THETA = enum.auto()             # θ̃


STEMS = {"golub_kahan": (Bidiagonal,), "lsqr": (LSQR,), "lsmr": (LSMR,)}
