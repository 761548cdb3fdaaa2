"""Convection and diffusion, -Laplace u + v . grad u = f with constant wind v: nonsymmetric matrices."""
import numpy as np

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape, star


def convection_diffusion(shape, peclet=1.0, scheme="centred"):
    """Finite differences for convection and diffusion with u = 0 on the boundary, scaled by h².

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Interior points along each axis; the mesh width h is equal along all axes.
    peclet : float or sequence of float, one per axis
        Cell Péclet number v h / diffusivity; its sign is the direction of the wind.
    scheme : {"centred", "upwind"}
        Scheme for the convective term. "centred" is of second order, but A is not diagonally dominant if `peclet`
        exceeds 2. "upwind" is of first order; A is an M-matrix for any wind.

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
        raise InputError(f"scheme={scheme!r}: expected 'centred' or 'upwind'.")
    return star(shape, -(lower.sum() + upper.sum()), lower, upper)
