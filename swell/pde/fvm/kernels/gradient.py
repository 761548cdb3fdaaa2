"""Gradients of cell values, on the CPU; ``gradient.cu`` is the GPU version."""
from __future__ import annotations

from numba import prange

from swell.core.compiled import parallel


@parallel
def least_squares(ptr, faces, owner, neighbour, reach, inverse, slope, rate, distance, p, out):
    """out = G⁻¹ Σ reach Δp over each cell's faces. ``ptr``, ``faces`` as in ``assemble``; ``inverse``: G⁻¹'s upper
    triangle by rows, (6, n). At the boundary Δp = (rate − slope p) distance, for one field's conditions."""
    for c in prange(ptr.size - 1):
        x = y = z = out.dtype.type(0)
        for at in range(ptr[c], ptr[c + 1]):
            f = faces[at]
            if f < 0:
                f = ~f
            if f < neighbour.size:
                jump = p[neighbour[f]] - p[owner[f]]
            else:
                e = f - neighbour.size
                jump = (rate[e] - slope[e] * p[c]) * distance[e]
            x += reach[0, f] * jump
            y += reach[1, f] * jump
            z += reach[2, f] * jump
        out[0, c] = inverse[0, c] * x + inverse[1, c] * y + inverse[2, c] * z
        out[1, c] = inverse[1, c] * x + inverse[3, c] * y + inverse[4, c] * z
        out[2, c] = inverse[2, c] * x + inverse[4, c] * y + inverse[5, c] * z
