"""Convection and diffusion, -Laplace u + v . grad u = f with constant wind v: nonsymmetric matrices."""
import numpy as np

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape, star


def convection_diffusion(shape, peclet=1.0, scheme="centred"):
    """Finite differences with u = 0 on the boundary, scaled by the square of the mesh width.

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Interior points along each axis, of one mesh width h.
    peclet : float or sequence of float, one per axis
        Cell Péclet number v h / diffusivity; its sign is the direction of the wind.
    scheme : {"centred", "upwind"}
        Of the convective term: second order, which loses diagonal dominance where `peclet` exceeds 2, or first order,
        which gives an M-matrix for any wind.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
    """
    shape = checked_shape(shape)
    winds = np.asarray(peclet, dtype=float)
    if winds.shape not in ((), (len(shape),)):
        raise InputError(f"peclet = {peclet} came for a grid of shape {shape}, expected one number, or one per axis.")
    winds = np.broadcast_to(winds, len(shape))
    if scheme == "centred":
        lower, upper = -1 - winds / 2, -1 + winds / 2
    elif scheme == "upwind":
        lower, upper = -1 - np.maximum(winds, 0), -1 + np.minimum(winds, 0)
    else:
        raise InputError(f"scheme = {scheme!r} came, expected 'centred' or 'upwind'.")
    return star(shape, -(lower.sum() + upper.sum()), lower, upper)
