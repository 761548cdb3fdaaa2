"""Systems with several unknowns at each point, so that their matrices consist of small dense blocks."""
import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.gallery.convection_diffusion import convection_diffusion
from swell.gallery.fem import p1_laplacian
from swell.gallery.stencil import checked_shape

MAX_UNKNOWNS = 32       # most unknowns at a point


def coupled_transport(shape, components=3, peclet=0.5, reaction=0.1, seed=0):
    """Diffusion, convection and reaction of coupled species on a regular grid; an unsymmetric matrix.

        −∇·(D ∇c) + v·∇c + R c,   D symmetric positive definite, R an M-matrix, both dense, s × s

    Parameters
    ----------
    shape : tuple of int
        Grid points along each axis; the concentrations c are zero outside.
    components : int
        Number of species s, 1 to 32: the size of the blocks.
    peclet : float
        Cell Péclet number, convection over diffusion in a cell, along every axis.
    reaction : float
        Scale of R.
    seed : int
        Seed of the random D and R.

    Returns
    -------
    scipy.sparse.csr_matrix, shape (s n, s n) with n = prod(shape)
        The s unknowns of a point follow each other. Interior block rows have 2 dim + 1 full blocks.

    Raises
    ------
    InputError
        For an invalid shape or number of components.
    """
    shape, s = checked_shape(shape), _checked(components, "components")
    rng = np.random.default_rng(seed)
    mixing = rng.uniform(-0.2, 0.2, (s, s))
    D = np.eye(s) + mixing @ mixing.T
    R = -rng.uniform(0, 1, (s, s))
    np.fill_diagonal(R, 0)
    R = reaction * (R + np.diag(1 - R.sum(axis=1)))
    diffused, moved = convection_diffusion(shape, 0.0), convection_diffusion(shape, peclet)        # equal patterns
    along = (moved.data - diffused.data)[:, None, None]
    blocks = diffused.data[:, None, None] * D + along * np.eye(s)
    blocks[_on_diagonal(diffused)] += R
    return _csr(sp.bsr_matrix((blocks, diffused.indices, diffused.indptr)))


def multiconductor(n, phases=2, seed=0):
    """A network of lines with several conductors each, grounded at some nodes; symmetric positive definite.

    The nodes lie on a square grid. Lines join nearly all neighbours, and some distant pairs of nodes. The conductances
    of a line are a full s × s matrix, since its conductors couple, times a random number that spans three decades.

    Parameters
    ----------
    n : int
        Number of nodes wanted, at least 4; rounded down to a square number.
    phases : int
        Conductors of a line s, 1 to 32: the size of the blocks.
    seed : int
        Seed of the random network.

    Returns
    -------
    scipy.sparse.csr_matrix, shape (s m², s m²) with m = ⌊√n⌋

    Raises
    ------
    InputError
        For an invalid n or number of phases.
    """
    s = _checked(phases, "phases")
    if not isinstance(n, int | np.integer) or n < 4:
        raise InputError(f"n={n!r}: expected the number of nodes: an integer of at least 4")
    m = int(np.sqrt(n))
    rng = np.random.default_rng(seed)
    nodes = np.arange(m * m).reshape(m, m)
    ends = np.concatenate([np.stack([nodes[:, :-1].ravel(), nodes[:, 1:].ravel()]),
                           np.stack([nodes[:-1].ravel(), nodes[1:].ravel()])], axis=1)
    ends = ends[:, rng.random(ends.shape[1]) < 0.97]
    far = rng.integers(0, m * m, (2, m * m // 50))
    ends = np.concatenate([ends, far[:, far[0] != far[1]]], axis=1)
    g = 10.0 ** rng.uniform(-1.5, 1.5, ends.shape[1])
    incidence = sp.csr_array((np.tile([1.0, -1.0], g.size), ends.T.ravel(), 2 * np.arange(g.size + 1)),
                             shape=(g.size, m * m))
    ground = np.where(rng.random(m * m) < 0.02, 1.0, 1e-6)
    network = incidence.T @ sp.diags_array(g) @ incidence + sp.diags_array(ground)
    return _csr(sp.kron(network, np.eye(s) + 0.3, "bsr"))


def thermal_plate(n, degree=4, seed=0, mass=1e-2):
    """Heat conduction in an insulated plate, by linear triangles in its plane and polynomials across it.

        A = K ⊗ m + M ⊗ k

    K and M are the stiffness and the lumped mass matrix of the mesh. The dense k and m, s × s, are the stiffness and
    mass matrix of the polynomials. Each vertex has s = degree + 1 unknowns.

    Parameters
    ----------
    n : int
        Vertices of the mesh, random points in the unit square; at least 3. The plate is as thick as they are apart.
    degree : int
        Degree of the polynomials, 1 to 31.
    seed : int
        Seed of the random points.
    mass : float
        Heat loss: a multiple of the identity added to K, relative to the mean of K's diagonal.

    Returns
    -------
    scipy.sparse.csr_matrix, shape (s n, s n)
        Symmetric positive definite. The s unknowns of a vertex follow each other; a block row has about 7 blocks.

    Raises
    ------
    InputError
        For an invalid n or degree.
    """
    from numpy.polynomial import legendre
    s = _checked(degree, "degree") + 1
    K = p1_laplacian(n, seed, mass)
    x, weights = legendre.leggauss(s)
    nodes = np.cos(np.pi * np.arange(s) / (s - 1))                  # Chebyshev nodes, both surfaces included
    basis = np.linalg.inv(legendre.legvander(nodes, s - 1))         # columns: the Lagrange polynomials
    values, slopes = legendre.legval(x, basis).T, legendre.legval(x, legendre.legder(basis)).T
    m, k = ((B + B.T) / 2 for B in (values.T * weights @ values, slopes.T * weights @ slopes))
    blocks = K.data[:, None, None] * m / 2
    blocks[_on_diagonal(K)] += 2 * k
    return _csr(sp.bsr_matrix((blocks, K.indices, K.indptr)))


def _checked(size, name):
    if not isinstance(size, int | np.integer) or not 1 <= size <= MAX_UNKNOWNS:
        raise InputError(f"{name}={size!r}: expected an integer from 1 to {MAX_UNKNOWNS}")
    return int(size)


def _on_diagonal(A):
    """Return a bool array, one element an entry of a CSR matrix: True on the diagonal."""
    return A.indices == np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))


def _csr(A):
    """Return A, a SciPy matrix, as CSR with sorted 32-bit indices; zeros in blocks are kept."""
    A = sp.csr_matrix(A)
    A.sort_indices()
    return sp.csr_matrix((A.data, A.indices.astype(np.int32), A.indptr.astype(np.int32)), shape=A.shape)
