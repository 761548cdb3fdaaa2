"""Advection in a given flow, v · ∇u − ε ∇²u = f: nonsymmetric matrices whose couplings point downwind."""
import numpy as np

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape, star

FIELDS = "oblique", "rotating", "inset"
CENTRE = 1.5 / np.pi    # of rotation, as a share of a side; irrational, so that no cell lies there and has no flow


def advection(shape, field="oblique", diffusion=0.0):
    """First-order upwind differences between the cells of a grid whose longest side is 1, with given u outside.

    A row is h times v · ∇u − ε ∇²u: each face through which the flow enters a cell contributes its speed times u minus
    the u upwind of it. The mesh width h is equal along all axes.

    Parameters
    ----------
    shape : tuple of 2 or 3 int
        Cells along each axis.
    field : {"oblique", "rotating", "inset"}
        Flow, of speed about 1. "oblique": constant, along no axis. "rotating": around a point near the middle of the
        first two axes, so that most streamlines are closed. "inset": curved, vᵢ = 0.001 + cos²(π xⱼ) with j the next
        axis; it nearly rests along lines.
    diffusion : float
        ε. The cell Péclet number is h / ε with h the mesh width.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)

    Examples
    --------
    >>> from swell import gallery
    >>> gallery.advection((3, 3)).nnz
    21
    """
    shape = checked_shape(shape)
    if len(shape) not in (2, 3):
        raise InputError(f"shape={shape}: expected 2 or 3 axes, such as (32, 32).")
    if field not in FIELDS:
        raise InputError(f"field={field!r}: expected 'oblique', 'rotating' or 'inset'.")
    if not diffusion >= 0 or not np.isfinite(diffusion):
        raise InputError(f"diffusion={diffusion!r}: expected a finite number of at least 0.")
    h, diagonal, lower, upper = 1 / max(shape), np.zeros(shape), [], []
    for axis in range(len(shape)):
        speed = _normal_speed(shape, field, axis, h)
        entering, leaving = _along(axis, slice(None, -1), len(shape)), _along(axis, slice(1, None), len(shape))
        from_before = np.maximum(speed[entering], 0) + diffusion / h           # through the face before a cell
        from_after = np.maximum(-speed[leaving], 0) + diffusion / h            # through the face after it
        diagonal += from_before + from_after
        lower.append(-from_before[leaving])
        upper.append(-from_after[entering])
    A = star(shape, diagonal, lower, upper)
    A.eliminate_zeros()
    return A


def _along(axis, part, axes):
    """Return an index that takes ``part`` of one axis and all of the others."""
    return tuple(part if k == axis else slice(None) for k in range(axes))


def _normal_speed(shape, field, axis, h):
    """Return the flow's speed along ``axis`` at the faces across this axis, one more of them than cells."""
    points = [h * (np.arange(size + 1) if k == axis else np.arange(size) + 0.5) for k, size in enumerate(shape)]
    x = np.meshgrid(*points, indexing="ij", sparse=True)
    if field == "oblique":
        speed = (0.8, -0.6, 0.37)[axis]
    elif field == "rotating":
        off_x, off_y = (x[k] - CENTRE * h * shape[k] for k in range(2))
        speed = (-off_y, off_x, 0.3)[axis]
    else:
        speed = 0.001 + np.cos(np.pi * x[(axis + 1) % len(shape)])**2
    return np.broadcast_to(speed, [points[k].size for k in range(len(shape))])
