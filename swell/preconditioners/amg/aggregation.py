"""Smoothed aggregation: interpolation that reproduces given near null vectors. Vaněk, Mandel and Brezina 1996.

Near null vectors ("modes") are vectors that the smoother hardly changes: constants for diffusion, the rigid motions for
elasticity. Restricted to an aggregate (aggregates.py), they form a tall matrix B = Q R with orthonormal Q. A mode that
depends on the others on a small aggregate is left out there. The tentative prolongator T has the blocks Q C⁻¹ with
CᵀC = Qᵀ A Q, and the next level's modes are the blocks C R, so T R = B. This makes the unknowns of a coarse node
orthonormal in energy: its diagonal block is near the identity, and a smoother by the diagonal is one by blocks. In a
thin plate the rotations of a node are stiffer than its translations by the square of the cells' aspect ratio.

One step of Jacobi's method with the diagonal D smooths the columns:

    P = (I − ω D⁻¹ A) T,    ω = 4 / (3 λ),    λ the largest eigenvalue of D⁻¹A by an estimate (smoother.py).

Its range has less energy and still nearly holds the modes. Rows of nodes without strong links to other aggregates stay
those of T: where flat cells are joined across, the step would hardly change T, and the next level would have three
times the entries. T stays if A gets new values.
"""
from __future__ import annotations

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.formats.transpose import transposed
from swell.preconditioners.amg.hierarchy import Level
from swell.preconditioners.amg.aggregates import aggregates, node_graph, of_unknowns, one_a_row
from swell.preconditioners.amg.smoother import radius, scales

OMEGA = 4 / 3           # ω times the largest eigenvalue of D⁻¹A
SINGULAR = 1e-12        # energies below this share of the diagonal's are rounding
LEAST_LEFT_OUT = 0.8     # P leaves out entries of A if at most this share of them stays
DEPENDENT = 1e-8        # a mode with less than this share of its norm beside the others is left out


class Aggregation:
    """Makes the interpolation of one level after the other.

    Parameters
    ----------
    settings : SmoothedAggregation
    modes : float64 array, shape (n, k)
        The near null vectors, on the device; `alike` makes them count alike in the links of nodes.
    nodes : int array, shape (n,), or None
        The node of each unknown, on the device; None: each unknown is a node.
    count : int
        The number of nodes.
    """

    def __init__(self, settings, modes, nodes, count):
        self.settings, self.modes, self.nodes, self.count = settings, modes, nodes, count

    def level(self, A, interpolation):
        """Return the `Level` of a CSRMatrix A and its `SmoothedInterpolation`."""
        return Level.of(A, interpolation, alike=self.modes.shape[1] > 1)       # the unknowns of a coarse node

    def interpolation(self, A):
        """Return the `SmoothedInterpolation` to the level of a CSRMatrix A from the next one. Goes on to the next
        level."""
        T, smoothed = self.prolongator(A)
        return SmoothedInterpolation(A, T, self.settings.diagonal, smoothed)

    def prolongator(self, A):
        """Return (T; a uint8 array of shape (n,), 1 for a row that P smooths). Goes on to the next level."""
        graph = node_graph(A, self.nodes, self.count, self.modes)
        aggregate_of, count, crossing = aggregates(graph, self.settings.strength)
        members = of_unknowns(A, self.nodes, aggregate_of, count)
        smoothed = crossing if self.nodes is None else crossing[self.nodes]
        T, self.modes, self.nodes = tentative(A, members, count, self.modes, energy=True)
        self.count = count
        return T, smoothed


def alike(space, modes):
    """Return ``modes`` with columns scaled to a largest entry of 1, on all ranks of ``space`` together."""
    largest = np.array([space.norms(mode)[1] for mode in space.xp.ascontiguousarray(modes.T)])  # sync
    return modes / space.from_host(np.where(largest > 0, largest, 1))


def blocks(A, size):
    """Return (the node of each unknown, an int array; the constants of a node's unknowns, a float64 array of shape (n,
    size)), for nodes of ``size`` consecutive unknowns."""
    n = A.shape[0]
    nodes, modes = A.space.empty(n, A.indices.dtype), A.space.empty((n, size), np.float64)
    _kernels(A).constants(nodes, size, modes.ravel())
    return nodes, modes


def rigid_motions(A, points, dimensions):
    """Return the rigid motions of a body, a float64 array of shape (n, 3) in two ``dimensions``, (n, 6) in three.

    ``points``: coordinates, stored point after point. `rigid_body_modes` in transforms/nullspace.py does the same on
    the host, and makes the vectors orthonormal; here the aggregates do."""
    modes = A.space.empty((A.shape[0], dimensions * (dimensions + 1) // 2), np.float64)
    _kernels(A).rigid_motions(points, dimensions, modes.ravel())
    return modes


def tentative(A, members, count, modes, energy=False):
    """Return (T, the next level's modes, the next level's nodes).

    Parameters
    ----------
    A : CSRMatrix
        Without ``energy`` only its shape, space and index type are used.
    members : int array, shape (n,)
        The aggregate of each unknown; ``count`` if it has none.
    count : int
        The number of aggregates.
    modes : float64 array, shape (n, k)
    energy : bool
        Make the columns of each aggregate orthonormal in energy; else in the usual sense.
    """
    space, n, width, index = A.space, A.shape[0], modes.shape[1], A.indices.dtype
    kernels = _kernels(A)
    lists = transposed(one_a_row(A, members, count + 1))[0]
    q, coefficients = modes.ravel().copy(), space.xp.zeros(count * width * width)
    ranks, lengths = space.empty(count, np.int32), space.empty(n, np.int32)
    kernels.orthonormalise(lists.indptr, lists.indices, width, DEPENDENT, q, coefficients, ranks)
    if energy:
        products = space.xp.zeros(n * width)
        kernels.within(A.indptr, A.indices, A.data, members, ranks, width, q, products)
        kernels.in_energy(lists.indptr, lists.indices, width, SINGULAR, A.diagonal(), ranks, q, products, coefficients)
    kernels.row_lengths(members, ranks, lengths)
    first, indptr = space.empty(count + 1, index), space.empty(n + 1, index)
    space.prefix_sums(ranks, first)
    space.prefix_sums(lengths, indptr)
    coarse, stored = space.last_entries(first, indptr)  # sync
    indices, data = space.empty(stored, index), space.empty(stored, np.float64)
    kernels.place(members, first, width, q, indptr, indices, data)
    below, nodes = space.empty((coarse, width), np.float64), space.empty(coarse, index)
    kernels.coarse_modes(first, width, coefficients, below.ravel(), nodes)
    return CSRMatrix(space, indptr, indices, data, (n, coarse)), below, nodes


class SmoothedInterpolation:
    """P = (I − ω D⁻¹ A) T, with the matrices that `update` needs.

    Parameters
    ----------
    A, T : CSRMatrix
    diagonal : {"l1", "point"}
        D, as for `smoother.scales`.
    smoothed : uint8 array, shape (n,), optional
        0 for a row that stays T's.
    first : int
        The row of T, and the column of A, that belong to row 0 of A: across ranks, A has this rank's rows, and its
        columns are those of a window (distributed/amg/window.py).
    weights : callable, optional
        Takes A and returns (λ, √ω D^−½ of each row); None: of A alone.
    ranks : Ranks, optional
        Who has other rows of the matrix; None: nobody.

    Attributes
    ----------
    P : CSRMatrix
    T : CSRMatrix
    R : None
        The restriction is Pᵀ.
    radius : float
        The estimate λ.
    """

    R = None

    def __init__(self, A, T, diagonal="l1", smoothed=None, first=0, weights=None, ranks=None):
        self.T, self._diagonal, self._kept, self._smoothed = T, diagonal, None, None
        self._first, self._weights = first, weights or self._of_one_device
        if smoothed is not None:
            self._leave_out(A, smoothed, ranks or A.space.ranks)
        self._source = A if self._kept is None else self._part(A)
        self._AT = Product(self._source, T)
        self.P = self._AT.C.with_values(A.space.empty(self._AT.C.nnz, np.float64))
        self._smooth(A)

    def _leave_out(self, A, smoothed, ranks):
        """Find the entries of A that P needs: of rows that are not ``smoothed`` the diagonal, for T's pattern."""
        xp, rows = A.space.xp, A.rows()
        kept = xp.flatnonzero((smoothed[rows] > 0) | (A.indices == rows + self._first))
        needed, entries = np.sum(ranks.allgather((kept.size, A.nnz)), axis=0)
        if needed < LEAST_LEFT_OUT * entries:
            self._kept, self._smoothed = kept, smoothed.astype(np.float64)
            self._pattern = A.space.row_pointers(rows[kept], A.shape[0], A.indices.dtype), A.indices[kept]

    def _part(self, A):
        """Return the entries of A that P needs, a CSRMatrix."""
        return CSRMatrix(A.space, *self._pattern, A.data[self._kept], A.shape)

    def update(self, A):
        """Recompute P, in place, for new values of A."""
        if self._kept is None:
            self._AT.update(A, self.T)
        else:
            self._source.data[...] = A.data[self._kept]
            self._AT.update(self._source, self.T)
        self._smooth(A)
        self.P.discard_adjoint()

    def _smooth(self, A):
        AT, T, (self.radius, roots) = self._AT.C, self.T, self._weights(A)
        if self._smoothed is not None:
            roots *= self._smoothed
        pointers = T.indptr[self._first:self._first + A.shape[0] + 1]
        _kernels(A).smooth(AT.indptr, AT.indices, AT.data, pointers, T.indices, T.data, roots, self.P.data)

    def _of_one_device(self, A):
        largest = radius(A, self._diagonal)
        return largest, scales(A, OMEGA / largest, self._diagonal)             # √ω D^−½

    @property
    def nbytes(self):
        part = 0 if self._kept is None else self._source.nbytes + self._kept.nbytes + self._smoothed.nbytes
        return self.T.nbytes + self._AT.C.nbytes + self.P.data.nbytes + part


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "tentative", np.float64)
