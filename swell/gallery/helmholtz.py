"""The Helmholtz equation, -Laplace u - k^2 (1 - i damping) u = f: complex symmetric, indefinite matrices."""
import numpy as np

from swell.core.errors import InputError
from swell.gallery.stencil import box, checked_shape


def helmholtz(shape, k2h2=0.3, damping=0.02):
    """Linear finite elements on a box with sound-hard walls: K - k^2 (1 - i damping) M, divided by h^(d-2).

    Rows have 9 entries for bilinear elements on squares, and 27 for trilinear elements on cubes.

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Nodes along each axis, walls included; at least 2.
    k2h2 : float
        (k h)^2, for wave number k and mesh width h. A wave spans 2 pi / sqrt(k2h2) elements (11 with the default).
    damping : float
        Loss factor of the medium; 0 gives a real operator, stored as complex.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n), complex128
        Symmetric, not Hermitian.
    """
    shape = checked_shape(shape)
    if min(shape) < 2:
        raise InputError(f"shape={shape}: expected two nodes or more along each axis.")
    stiffness, mass = [_assembled(m, 1.0, -1.0) for m in shape], [_assembled(m, 1 / 3, 1 / 6) for m in shape]
    axes = range(len(shape))
    terms = [tuple(stiffness[axis] if axis == along else mass[axis] for axis in axes) for along in axes]
    terms.append((-k2h2 * (1 - 1j * damping) * mass[0], *mass[1:]))
    return box(terms)


def _assembled(nodes, on, beside):
    """Assemble the 1D element matrices [[on, beside], [beside, on]] to a tridiagonal matrix, as a (nodes, 3) band."""
    rows = np.tile([beside, 2 * on, beside], (nodes, 1))
    rows[[0, -1], 1] = on
    return rows
