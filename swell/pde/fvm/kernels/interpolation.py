"""Interpolation of cell values to faces, on the CPU; ``interpolation.cu`` is the GPU version."""
from __future__ import annotations

from numba import prange

from swell.core.compiled import parallel


@parallel
def to_faces(owner, neighbour, weight, p, harmonic, out):
    """Interpolate cell values p to the faces: out = w p_O + (1 − w) p_N with w = weight[face], or if ``harmonic`` (a
    bool) the harmonic mean 1/((1 − w)/p_O + w/p_N). O = owner[face], N = neighbour[face]; out = p_O on boundary faces,
    which have no neighbour."""
    one = out.dtype.type(1)
    for f in prange(out.size):
        own = p[owner[f]]
        if f < neighbour.size:
            other, w = p[neighbour[f]], weight[f]
            if harmonic:
                out[f] = one / ((one - w) / own + w / other)
            else:
                out[f] = w * own + (one - w) * other
        else:
            out[f] = own
