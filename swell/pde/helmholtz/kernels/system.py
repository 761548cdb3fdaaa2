"""A(ω) from its three parts, on the CPU; ``system.cu`` is the GPU version."""
from numba import prange

from swell.core.compiled import parallel


@parallel
def form(K, M, B, w2, iw, out):
    """Write out = K − ω² M + iω B, entry by entry; K is real. ``w2`` is ω², ``iw`` is iω. One pass over 56 bytes an
    entry in double."""
    for k in prange(out.size):
        out[k] = K[k] - w2 * M[k] + iw * B[k]
