"""CPU instructions for Numba kernels that neither Python nor NumPy offers."""
from __future__ import annotations

from numba import types
from numba.extending import intrinsic


@intrinsic
def fma(context, a, b, c):
    """Return a b + c of doubles with one rounding, on every processor. Called as ``fma(a, b, c)``.

    Numba gives ``context``, its typing context."""
    def build(context, builder, signature, values):
        return builder.fma(*values)
    return types.float64(types.float64, types.float64, types.float64), build
