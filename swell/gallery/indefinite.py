"""Symmetric matrices that are not positive definite: shifted, constrained and singular."""
import numpy as np
import scipy.sparse as sp

from swell.gallery.poisson import poisson
from swell.gallery.stencil import checked_shape, star


def shifted_laplacian(shape, shift=0.5):
    """Poisson's matrix (see `swell.gallery.poisson.poisson`) minus `shift` times the identity.

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Interior points along each axis.
    shift : float
        Eigenvalues of Poisson's matrix below the shift become negative; all lie between 0 and 4 d in d dimensions.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        Symmetric indefinite; singular only if `shift` is an eigenvalue.
    """
    A = poisson(shape)
    return (A - shift * sp.identity(A.shape[0], format="csr")).tocsr()


def saddle_point(m):
    """Darcy flow in mixed form: unknown fluxes through the faces of m x m cells, and a pressure in each cell.

    The matrix is ``[[M, B^T], [B, 0]]``. The diagonal M has the resistance of each face (half of it on the boundary).
    B is the divergence. The pressure is 0 on the boundary; so B has full rank, and the matrix is nonsingular.

    Parameters
    ----------
    m : int
        Cells along each side.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n), n = 2*m*(m + 1) + m*m
        Symmetric indefinite; the last m*m entries of the diagonal are zero.
    """
    checked_shape((m,))
    difference = sp.diags_array([-np.ones(m), np.ones(m)], offsets=[0, 1], shape=(m, m + 1))
    resistance = np.ones(m + 1)
    resistance[[0, -1]] = 0.5
    ones = sp.eye_array(m)
    divergence = sp.hstack([sp.kron(ones, difference), sp.kron(difference, ones)])
    M = sp.diags_array(np.concatenate([np.tile(resistance, m), np.repeat(resistance, m)]))
    A = sp.csr_matrix(sp.bmat([[M, divergence.T], [divergence, None]]))
    A.sort_indices()
    return A


def neumann(shape):
    """Laplacian with free boundary (no flux): singular; the constant vectors are its null space.

    Parameters
    ----------
    shape : tuple of 1 to 3 int
        Points along each axis.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        Symmetric positive semidefinite; A x = b has a solution only if the entries of b sum to zero.
    """
    shape = checked_shape(shape)
    # Along each axis a point has two neighbours, less one at each end of the grid.
    neighbours = sum(2 - (index == 0) - (index == size - 1) for index, size in zip(np.indices(shape), shape))
    return star(shape, neighbours, [-1.0] * len(shape), [-1.0] * len(shape))
