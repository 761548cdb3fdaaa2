"""Diffusion, -div(K grad u) = f, on the unit interval, square and cube: symmetric positive definite matrices."""
import math

import numpy as np

from swell.core.errors import InputError
from swell.gallery.stencil import band, box, checked_shape, star


def poisson(shape, xp=np):
    """Poisson's equation with u = 0 on the boundary, second-order finite differences.

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Interior points along each axis. With m points the mesh width is h = 1/(m + 1).
    xp : module
        NumPy, or CuPy to build the matrix on the GPU.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        CuPy's csr_matrix if `xp` is CuPy. In d dimensions the stencil is 2d on the diagonal and -1 for each neighbour;
        with equal mesh widths, A / h**2 approximates -Laplace.
    """
    shape = checked_shape(shape)
    return star(shape, 2.0 * len(shape), [-1.0] * len(shape), [-1.0] * len(shape), xp)


def poisson1d(m):
    """Poisson on m interior points of the unit interval; see `poisson`."""
    return poisson((m,))


def poisson2d(m):
    """Poisson on m x m interior points of the unit square, 5-point; see `poisson`."""
    return poisson((m, m))


def poisson3d(m):
    """Poisson on m x m x m interior points of the unit cube, 7-point; see `poisson`."""
    return poisson((m, m, m))


def anisotropic2d(m, epsilon=1e-3, angle=math.pi / 6):
    """Diffusion, strong along one direction and weak across it; bilinear elements (9-point), u = 0 on the boundary.

    Parameters
    ----------
    m : int
        Interior points along each side of the unit square.
    epsilon : float
        Diffusion across the strong direction, relative to 1 along it; positive.
    angle : float
        Angle between the strong direction and the x axis (the axis that is numbered fastest), in radians.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (m*m, m*m)
        Stiffness matrix; in two dimensions its entries do not depend on the mesh width.
    """
    checked_shape((m,))
    if not epsilon > 0:
        raise InputError(f"epsilon={epsilon}: expected a positive number: the matrix would not be definite.")
    c, s = math.cos(angle), math.sin(angle)
    kxx, kyy, kxy = c * c + epsilon * s * s, s * s + epsilon * c * c, (1 - epsilon) * c * s
    stiffness, mass = band(m, -1.0, 2.0, -1.0), band(m, 1 / 6, 4 / 6, 1 / 6)
    slope = band(m, -0.5, 0.0, 0.5)         # integral of phi_i phi_j'; its transpose is its negative
    return box([(mass, kxx * stiffness), (kyy * stiffness, mass), (-2 * kxy * slope, slope)])


def jumping_diffusion(shape, contrast=1e4, block=8):
    """Diffusion through a chequerboard of two materials; finite volumes, u = 0 on the boundary.

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Cells along each axis; all cells are cubes of equal size.
    contrast : float
        Conductivity of every second block; the others have 1. Positive.
    block : int
        Cells along the side of a block.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
    """
    shape = checked_shape(shape)
    if not contrast > 0 or block < 1:
        raise InputError(f"contrast={contrast}, block={block}: expected positive numbers.")
    odd = sum(index // block for index in np.indices(shape)) % 2
    conductivity = np.where(odd, float(contrast), 1.0)
    to_boundary = np.zeros(shape)
    for axis in range(len(shape)):
        for end in (0, -1):
            face = tuple(end if k == axis else slice(None) for k in range(len(shape)))
            to_boundary[face] += 2 * conductivity[face]      # the boundary is half a cell away
    return diffusion(conductivity, (1.0,) * len(shape), to_boundary)


def diffusion(conductivity, spacing, to_boundary):
    """Cell-centred finite volumes for -div(k grad u) on a box of equal cells, without flux except by `to_boundary`.

    The flux between two cells is the difference of their u times area / (h/2k1 + h/2k2): the harmonic mean of the
    conductivities, exact for layers (S. Patankar, Numerical Heat Transfer and Fluid Flow, 1980, section 4.2-3).

    Parameters
    ----------
    conductivity : array, 1 to 3 axes
        One positive value per cell.
    spacing : sequence of float
        Size of a cell along each axis.
    to_boundary : array, shaped like `conductivity`
        Conductance of each cell to the outside, where u = 0; A is singular if all are zero.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        Symmetric; the sum of row i is ``to_boundary`` of cell i.
    """
    diagonal, links = np.array(to_boundary, dtype=float), []
    for axis, width in enumerate(spacing):
        k = np.moveaxis(conductivity, axis, 0)
        area = math.prod(spacing) / width
        link = area / width * 2 * k[:-1] * k[1:] / (k[:-1] + k[1:])
        along = np.moveaxis(diagonal, axis, 0)       # a view
        along[:-1] += link
        along[1:] += link
        links.append(-np.moveaxis(link, 0, axis))
    return star(conductivity.shape, diagonal, links, links)
