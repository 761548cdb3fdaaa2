"""Linear triangles (P1): symmetric positive definite matrices, on unstructured meshes or with 2 x 2 blocks."""
import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape


def p1_laplacian(n, seed=0, mass=1e-6):
    """Laplacian with free boundary on the Delaunay mesh of random points, plus a small multiple of the identity.

    Reverse Cuthill-McKee numbers the points, since meshes from practice have numberings with some locality.

    Parameters
    ----------
    n : int
        Number of points, uniform in the unit square; at least 3.
    seed : int
        Seed of the random points.
    mass : float
        The multiple of the identity that is added, relative to the mean of the diagonal; with 0, A is singular.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
        About 7 entries a row; the condition number is at least 1/mass.
    """
    # Imported here because these imports take longer than most of the gallery.
    from scipy.sparse.csgraph import reverse_cuthill_mckee
    from scipy.spatial import Delaunay

    if not isinstance(n, int | np.integer) or n < 3:
        raise InputError(f"n={n!r}: expected an integer of at least 3, the number of points")
    points = np.random.default_rng(seed).random((n, 2))
    # Points sorted in strips about one mesh width wide are close in memory: meshing takes a third less time.
    along = np.lexsort((points[:, 1], np.floor(points[:, 0] * np.sqrt(n))))
    A = laplacian(points, along[Delaunay(points[along]).simplices])
    A = (A + mass * A.diagonal().mean() * sp.identity(n, format="csr")).tocsr()
    return _renumbered(A, reverse_cuthill_mckee(A, symmetric_mode=True))


def laplacian(points, triangles):
    """P1 stiffness matrix of -Laplace with free boundary; its row sums are zero.

    Parameters
    ----------
    points : array, shape (n, 2)
        Coordinates of the vertices.
    triangles : array of int, shape (m, 3)
        Vertices of each triangle, in either orientation.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (n, n)
    """
    points, triangles = np.asarray(points, float), np.asarray(triangles)
    n = len(points)
    edges, area = _edges(points, triangles)
    # A triangle's entry for its vertices j and k is e_j . e_k / (4 area), where e_j is the edge opposite to j.
    couplings = [np.einsum("ti,ti->t", edges[:, j], edges[:, k]) / (4 * area) for j, k in ((0, 1), (1, 2), (2, 0))]
    ends = np.sort(np.concatenate([triangles[:, (0, 1)], triangles[:, (1, 2)], triangles[:, (2, 0)]]), axis=1)
    upper = sp.coo_matrix((np.concatenate(couplings), (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()
    beside = upper + upper.T
    return (beside - sp.diags_array(np.asarray(beside.sum(axis=1)).ravel(), format="csr")).tocsr()


def elasticity2d(m, young=1.0, poisson=0.3):
    """A square plate of linear elastic material in plane strain, clamped at its left side; 2 unknowns a node.

    Parameters
    ----------
    m : int
        Squares along each side, each cut into two triangles.
    young : float
        Young's modulus; positive.
    poisson : float
        Poisson's ratio, in (-1, 0.5); near 0.5 the material is nearly incompressible and A ill-conditioned.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (2*m*(m + 1), 2*m*(m + 1))
        Unknowns 2i and 2i + 1 are the displacements of free node i in x and y: a matrix of 2 x 2 blocks.
    """
    checked_shape((m,))
    if not (young > 0 and -1 < poisson < 0.5):
        raise InputError(f"young={young}, poisson={poisson}: expected young > 0 and -1 < poisson < 0.5.")
    x, y = np.meshgrid(np.linspace(0, 1, m + 1), np.linspace(0, 1, m + 1), indexing="ij")
    points = np.column_stack([x.ravel(), y.ravel()])        # the clamped side comes first
    corner = (np.arange(m)[:, None] * (m + 1) + np.arange(m)).ravel()
    right, top, across = corner + m + 1, corner + 1, corner + m + 2
    triangles = np.concatenate([np.column_stack([corner, right, across]), np.column_stack([corner, across, top])])

    edges, area = _edges(points, triangles)
    gradients = np.stack([-edges[..., 1], edges[..., 0]], axis=2) / (2 * area)[:, None, None]
    strain = np.zeros((len(triangles), 3, 6))               # rows: xx, yy, 2 xy
    strain[:, 0, 0::2] = strain[:, 2, 1::2] = gradients[..., 0]
    strain[:, 1, 1::2] = strain[:, 2, 0::2] = gradients[..., 1]
    law = young / ((1 + poisson) * (1 - 2 * poisson)) * np.array(
        [[1 - poisson, poisson, 0], [poisson, 1 - poisson, 0], [0, 0, 0.5 - poisson]])
    local = np.einsum("tai,ab,tbj->tij", strain, law, strain, optimize=True) * area[:, None, None]

    unknowns = (2 * triangles[:, :, None] + np.arange(2)).reshape(-1, 6)
    rows, columns = np.repeat(unknowns, 6, axis=1).ravel(), np.tile(unknowns, 6).ravel()
    size = 2 * len(points)
    clamped = 2 * (m + 1)
    A = sp.coo_matrix((local.ravel(), (rows, columns)), shape=(size, size)).tocsr()[clamped:, clamped:]
    return ((A + A.T) / 2).tocsr()      # symmetric to the last bit


def _edges(points, triangles):
    """Return (the edge vectors opposite to each vertex, shape (m, 3, 2), counter-clockwise; the areas, shape (m,)).

    ``points``: coordinates, shape (n, 2). ``triangles``: vertices of each triangle, shape (m, 3)."""
    corners = points[triangles]
    edges = np.roll(corners, 1, axis=1) - np.roll(corners, -1, axis=1)
    area = 0.5 * (edges[:, 0, 0] * edges[:, 1, 1] - edges[:, 0, 1] * edges[:, 1, 0])
    # Random points give some triangles so flat that their area rounds to zero; a lower bound keeps the entries finite.
    return edges * np.where(area < 0, -1.0, 1.0)[:, None, None], np.maximum(np.abs(area), 1e-14)


def _renumbered(A, order):
    """Return A[order][:, order], a new CSR matrix with sorted indices."""
    place = np.empty(len(order), A.indices.dtype)
    place[order] = np.arange(len(order))
    A = A[order]
    A.indices = place[A.indices]
    A.has_sorted_indices = False
    A.sort_indices()
    return A
