"""Named indices of the arrays and choices that the kernels of a flow share."""
import enum

from swell.core.slots import slots


@slots
class Side:
    """The first index of a velocity's boundary data: p_b = SHARE p' + OFFSET, ∂p/∂n = RATE − SLOPE p'."""

    SHARE = enum.auto()
    OFFSET = enum.auto()
    SLOPE = enum.auto()
    RATE = enum.auto()


@slots
class Scheme:
    """The scheme of convection, in the order of ``convection.SCHEMES``. CENTRAL is LINEAR, not deferred."""

    UPWIND = enum.auto()
    LINEAR = enum.auto()
    LINEAR_UPWIND = enum.auto()
    CENTRAL = enum.auto()


STEMS = {"flow": (Side, Scheme)}
