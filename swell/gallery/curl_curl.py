"""Maxwell's curl-curl equation in a box with electric walls, on Yee's grid: one unknown an edge.

Yee, Numerical solution of initial boundary value problems involving Maxwell's equations, 1966; in the form of Weiland's
finite integration: the unknowns are integrals of the field along edges.
"""
import math

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape, differences, kronecker


def curl_curl(shape, mass=1.0):
    """∇×∇×E + β E in the unit square or cube, with no tangential field on the boundary.

    Parameters
    ----------
    shape : tuple of 2 or 3 int
        Cells along each axis, at least 2.
    mass : float
        β, at least 0; with 0, A annihilates all gradients.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        Symmetric positive definite; with ``mass=0`` semidefinite. A row an inner edge, those along one axis together.
    gradient : scipy.sparse.csr_matrix, shape (n, nodes)
        −1 and 1 for the inner nodes at the ends of an edge.
    edges : numpy.ndarray, shape (n, axes)
        The vector along each edge.

    Examples
    --------
    >>> from swell import gallery
    >>> A, gradient, edges = gallery.curl_curl((8, 8, 8))
    >>> A.shape, gradient.shape, edges.shape
    ((1176, 1176), (1176, 343), (1176, 3))
    """
    shape = checked_shape(shape)
    if len(shape) not in (2, 3) or min(shape) < 2:
        raise InputError(f"shape={shape}: expected two or three axes with at least 2 cells each.")
    if not np.isfinite(mass) or mass < 0:
        raise InputError(f"mass={mass}: expected a number of at least 0.")
    axes, h = len(shape), np.array([1 / size for size in shape])
    volume, along = math.prod(h), np.arange(len(shape))
    gradient = sp.vstack([_product(shape, along == d, d) for d in range(axes)])
    sizes = [_product(shape, along == d, d).shape[0] for d in range(axes)]
    K = 0
    for i, j in ((0, 1), (1, 2), (2, 0))[:1 if axes == 2 else 3]:
        # The circulation around a face that axes i and j span: E_j grows along i, E_i along j.
        cells = (along == i) | (along == j)
        parts = [sp.csr_array((math.prod(np.where(cells, shape, np.array(shape) - 1)), size)) for size in sizes]
        parts[j], parts[i] = _product(shape, cells, i), -_product(shape, cells, j)
        C = sp.hstack(parts)
        K = K + C.T @ C * (volume / (h[i] * h[j]) ** 2)
    A = sp.csr_matrix(K + sp.diags_array(np.repeat(mass * volume / h**2, sizes)))
    A.sort_indices()
    return A, sp.csr_matrix(gradient), np.repeat(np.diag(h), sizes, axis=0)


def _product(shape, cells, axis):
    """The differences across cells on ``axis``, the identity on the cells or on the inner points of the other axes.

    ``cells``: a bool for each axis, True for cells."""
    return kronecker(differences(size) if k == axis else sp.eye_array(size if of_cells else size - 1)
                     for k, (size, of_cells) in enumerate(zip(shape, cells)))
