"""Elastic bodies by linear triangles and tetrahedra (P1): meshes of boxes, and matrices of any such mesh."""
import itertools

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.gallery.stencil import checked_shape


def box_mesh(shape, size=None):
    """Mesh of a box: rectangles cut into two triangles, or cuboids cut into six tetrahedra (Kuhn's triangulation).

    Parameters
    ----------
    shape : sequence of 2 or 3 int
        Rectangles or cuboids along each axis.
    size : sequence of float, optional
        Lengths of the sides; 1 each by default.

    Returns
    -------
    points : array, shape (n, 2) or (n, 3)
        The last axis is numbered fastest.
    cells : array of int, shape (m, 3) or (m, 4)
        The points of each triangle or tetrahedron.

    Examples
    --------
    >>> points, cells = box_mesh((2, 2))
    >>> points.shape, cells.shape
    ((9, 2), (8, 3))
    """
    shape = tuple(shape)
    checked_shape(shape)
    size = (1.0,) * len(shape) if size is None else tuple(size)
    if len(shape) not in (2, 3) or len(size) != len(shape) or not all(side > 0 for side in size):
        raise InputError(f"box_mesh(shape={shape}, size={size}) came: expected 2 or 3 numbers of cells, and as many "
                         "positive lengths")
    lines = [np.linspace(0, side, m + 1) for side, m in zip(size, shape)]
    points = np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, len(shape))
    steps = np.cumprod([1, *(m + 1 for m in shape[:0:-1])])[::-1]              # from a point to the next, by axis
    corners = sum(np.arange(m).reshape([-1 if k == axis else 1 for k in range(len(shape))]) * steps[axis]
                  for axis, m in enumerate(shape)).ravel()
    # A simplex goes from a corner to the opposite one along the axes, one axis after the other, in one of their orders.
    paths = np.array([np.cumsum([0, *(steps[axis] for axis in order)])
                      for order in itertools.permutations(range(len(shape)))])
    return points, (corners[None, :, None] + paths[:, None, :]).reshape(-1, len(shape) + 1)


def elastic_body(points, cells, clamped, young=1.0, poisson=0.3):
    """A linear elastic body, in plane strain in two dimensions. The unknowns of a node are consecutive.

    Parameters
    ----------
    points : array, shape (n, 2) or (n, 3)
    cells : array of int, shape (m, 3) or (m, 4)
        The points of each triangle or tetrahedron, in either orientation.
    clamped : array of bool, shape (n,)
        True for a point that is held: it has no unknowns. If no point is held, A is singular.
    young : float or array, shape (m,)
        Young's modulus, of each cell if an array; positive.
    poisson : float
        Poisson's ratio, in (-1, 0.5); near 0.5 the material is nearly incompressible and A ill-conditioned.

    Returns
    -------
    A : scipy.sparse.csr_matrix
    nodes : array, shape (k, 2) or (k, 3)
        Positions of the k free points, each of which has 2 or 3 rows of A: for
        ``swell.SmoothedAggregation(coordinates=nodes)``.

    Raises
    ------
    InputError
        If shapes do not fit, a cell has no volume, or a constant is out of range.

    Examples
    --------
    >>> points, cells = box_mesh((2, 1, 1))
    >>> A, nodes = elastic_body(points, cells, points[:, 0] == 0)
    >>> A.shape, nodes.shape
    ((24, 24), (8, 3))
    """
    points, cells, clamped = np.asarray(points, float), np.asarray(cells), np.asarray(clamped)
    n, axes = points.shape if points.ndim == 2 else (0, 0)
    if axes not in (2, 3) or cells.ndim != 2 or cells.shape[1] != axes + 1:
        raise InputError(f"elastic_body got points of shape {points.shape} and cells of shape {cells.shape}: expected "
                         "(n, 2) and (m, 3), triangles, or (n, 3) and (m, 4), tetrahedra")
    if cells.dtype.kind not in "iu" or not cells.size or cells.min() < 0 or cells.max() >= n:
        raise InputError(f"elastic_body: expected cells of whole numbers from 0 to {n - 1}, the points' numbers")
    if clamped.shape != (n,) or clamped.dtype != bool:
        raise InputError(f"elastic_body got clamped of shape {clamped.shape} and type {clamped.dtype}: expected a bool "
                         f"for each of the {n} points")
    young = np.broadcast_to(np.asarray(young, float), len(cells)) if np.size(young) in (1, len(cells)) else np.zeros(1)
    if not ((young > 0).all() and -1 < poisson < 0.5):
        raise InputError(f"elastic_body got poisson = {poisson} and Young's moduli from {young.min()}: expected a "
                         f"positive modulus, or one for each of the {len(cells)} cells, and -1 < poisson < 0.5")
    gradients, volumes = _gradients(points, cells)
    starts = np.arange(len(cells) + 1) * (axes + 1)
    weights = np.sqrt(young * volumes)[:, None]
    # D_a: the derivative along axis a in each cell, times the root of the cell's stiffness. A product D_aᵀ D_b adds the
    # terms of entries (i, j) and (j, i) in the same order, which makes A symmetric to the last bit.
    D = [sp.csr_matrix(((weights * gradients[:, :, a]).ravel(), cells.ravel(), starts), (len(cells), n))
         for a in range(axes)]
    first, second = poisson / ((1 + poisson) * (1 - 2 * poisson)), 1 / (2 * (1 + poisson))   # Lamé's constants over E
    shear = sum(d.T @ d for d in D) * second
    blocks = [[None] * axes for _ in range(axes)]
    for a in range(axes):
        blocks[a][a] = shear + D[a].T @ D[a] * (first + second)
        for b in range(a):
            mixed = (D[a].T @ D[b]).tocsr()
            blocks[a][b] = first * mixed + second * mixed.T                    # λ (∂ₐv, ∂ᵦu) + μ (∂ᵦv, ∂ₐu)
            blocks[b][a] = blocks[a][b].T
    free = np.flatnonzero(~clamped)
    rows = (free[:, None] + n * np.arange(axes)).ravel()
    A = sp.bmat(blocks, format="csr")[rows][:, rows]
    A.eliminate_zeros()
    A.sort_indices()
    return A, points[free]


def elastic_subdomains(points, cells, clamped, parts, young=1.0, poisson=0.3):
    """The elastic body of `elastic_body` in subdomains, for BDDC.

    Parameters
    ----------
    points, cells, clamped, young, poisson
        As for `elastic_body`.
    parts : int or int array, shape (m,)
        The number of subdomains, found by METIS from the mesh (needs pymetis); or the subdomain of each cell, from 0.
        Cells of a subdomain that no chain of common faces connects become subdomains of their own.

    Returns
    -------
    parts : list of (scipy.sparse.csr_matrix, int array)
        Matrix and rows of each subdomain, for ``swell.Subdomains(parts)`` or
        ``swell.distributed.from_subdomains(ranks, parts)``. The matrices add up to the result of `elastic_body`.
    nodes : array, shape (k, 2) or (k, 3)
        Positions of the free points, for ``BDDC(near_nullspace=swell.rigid_body_modes(nodes))``.

    Raises
    ------
    InputError
        As for `elastic_body`, or if ``parts`` does not fit the cells.

    Examples
    --------
    >>> points, cells = box_mesh((4, 2, 2))
    >>> left = points[cells].mean(axis=1)[:, 0] < 0.5
    >>> parts, nodes = elastic_subdomains(points, cells, points[:, 0] == 0, np.where(left, 0, 1))
    >>> len(parts), nodes.shape
    (2, (36, 3))
    """
    points, cells, clamped = np.asarray(points, float), np.asarray(cells), np.asarray(clamped)
    nodes = elastic_body(points, cells, clamped, young, poisson)[1]            # checks the arguments
    young, axes = np.broadcast_to(np.asarray(young, float), len(cells)), points.shape[1]
    number, result = np.cumsum(~clamped) - 1, []
    owner = _connected(cells, _owners(cells, parts))
    for some in np.split(np.argsort(owner, kind="stable"), np.cumsum(np.bincount(owner))[:-1]):
        used, corners = np.unique(cells[some], return_inverse=True)
        if not clamped[used].all():
            matrix, _ = elastic_body(points[used], corners.reshape(-1, axes + 1), clamped[used], young[some], poisson)
            rows = number[used[~clamped[used]]]
            result.append((matrix, (axes * rows[:, None] + np.arange(axes)).ravel()))
    return result, nodes


def _dual(cells):
    """Return a sparse matrix with an entry for each pair of cells that share a face."""
    starts = np.arange(len(cells) + 1) * cells.shape[1]
    has = sp.csr_array((np.ones(cells.size, np.int8), cells.ravel(), starts))
    return (has @ has.T == cells.shape[1] - 1).tocsr()


def _owners(cells, parts):
    """Return the subdomain of each cell, an int array; ``parts`` as in `elastic_subdomains`."""
    if np.ndim(parts):
        owner = np.asarray(parts)
        if owner.shape != (len(cells),) or owner.dtype.kind not in "iu" or owner.min() < 0:
            raise InputError(f"elastic_subdomains got parts of shape {owner.shape} and type {owner.dtype}: expected "
                             f"the subdomain of each of the {len(cells)} cells, from 0")
        return owner.astype(np.int64)
    if isinstance(parts, bool) or not isinstance(parts, int | np.integer) or not 1 <= parts <= len(cells):
        raise InputError(f"elastic_subdomains got parts = {parts!r}: expected a number from 1 to the number of cells, "
                         f"{len(cells)}, or the subdomain of each cell")
    from swell.core.devices import make_space
    from swell.formats.csr import CSRMatrix
    from swell.orderings.partition import of_matrix
    return of_matrix(CSRMatrix.from_scipy(_dual(cells).astype(float), make_space("cpu")), int(parts))


def _connected(cells, owner):
    """Return ``owner`` renumbered so that the cells of each subdomain are connected by common faces."""
    from scipy.sparse.csgraph import connected_components
    dual = _dual(cells).tocoo()
    within = owner[dual.row] == owner[dual.col]
    graph = sp.coo_array((np.ones(int(within.sum()), bool), (dual.row[within], dual.col[within])), shape=dual.shape)
    piece = connected_components(graph, directed=False)[1]
    return np.unique(np.stack((owner, piece)), axis=1, return_inverse=True)[1].reshape(-1)


def elasticity3d(m, young=1.0, poisson=0.3):
    """A cube of linear elastic material, clamped at its side x = 0; 3 unknowns a node.

    Parameters
    ----------
    m : int
        Cubes along each side, each cut into six tetrahedra.
    young : float
        Young's modulus; positive.
    poisson : float
        Poisson's ratio, in (-1, 0.5); near 0.5 the material is nearly incompressible and A ill-conditioned.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (3*m*(m + 1)**2, 3*m*(m + 1)**2)
        Unknowns 3i to 3i + 2 are the displacements of free node i, whose position is
        ``box_mesh((m, m, m))[0][(m + 1)**2 + i]``.
    """
    checked_shape((m,))
    points, cells = box_mesh((m, m, m))
    return elastic_body(points, cells, points[:, 0] == 0, young, poisson)[0]


def _gradients(points, cells):
    """Return (the gradients of the linear functions that are 1 at one point of a cell and 0 at the others, shape (m,
    axes + 1, axes); the volumes, shape (m,)). Raises InputError for a cell without volume."""
    corners = points[cells]
    edges = corners[:, 1:] - corners[:, :1]
    determinant = np.linalg.det(edges)
    lengths = np.prod(np.linalg.norm(edges, axis=2), axis=1)
    flat = np.flatnonzero(~(abs(determinant) > 1e-14 * lengths))
    if flat.size:
        raise InputError(f"elastic_body: cell {flat[0]} has no volume: expected points that do not lie in a "
                         f"{'line' if points.shape[1] == 2 else 'plane'}")
    others = np.linalg.inv(edges).transpose(0, 2, 1)
    factorial = 2 if points.shape[1] == 2 else 6
    return np.concatenate([-others.sum(axis=1, keepdims=True), others], axis=1), abs(determinant) / factorial
