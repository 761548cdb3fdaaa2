"""Smoothed aggregation: interpolation that reproduces given near null vectors. Vaněk, Mandel and Brezina 1996.

Near null vectors ("modes") are vectors that the smoother hardly changes: constants for diffusion, the rigid motions for
elasticity. Restricted to an aggregate (aggregates.py), they form a tall matrix B = Q R with orthonormal Q. The
tentative prolongator T has the blocks Q, and the next level's modes are the blocks R, so T R = B. A mode that depends
on the others on a small aggregate is left out there. One step of Jacobi's method with the ℓ1 diagonal D smooths the
columns:

    P = (I − ω D⁻¹ A) T,    ω = 4 / (3 λ),    λ the largest eigenvalue of D⁻¹A by an estimate (smoother.py).

Its range has less energy and still nearly holds the modes. T stays if A gets new values.
"""
from __future__ import annotations

import numpy as np

from swell.formats.csr import CSRMatrix
from swell.formats.product import Product
from swell.formats.transpose import transposed
from swell.preconditioners.amg.hierarchy import Level
from swell.preconditioners.amg.aggregates import aggregates, exponent, node_graph, of_unknowns, one_a_row
from swell.preconditioners.amg.smoother import radius, scales

OMEGA = 4 / 3           # ω times the largest eigenvalue of D⁻¹A
DEPENDENT = 1e-8        # a mode with less than this share of its norm beside the others is left out


class Aggregation:
    """Makes the interpolation of one level after the other.

    Parameters
    ----------
    A : CSRMatrix
    settings : SmoothedAggregation
    modes : float64 array, shape (n, k)
        The near null vectors, on the device.
    nodes : int array, shape (n,), or None
        The node of each unknown, on the device; None: each unknown is a node.
    count : int
        The number of nodes.
    """

    def __init__(self, A, settings, modes, nodes, count):
        self._exponent = exponent(A)
        self.strength, self.modes, self.nodes, self.count = settings.strength, modes, nodes, count

    level = staticmethod(Level.of)               # makes a level of its matrix and the result of `interpolation`

    def interpolation(self, A):
        """Return the `SmoothedInterpolation` to the level of a CSRMatrix A from the next one. Goes on to the next
        level.

        Links weaken from level to level, and ``strength`` is halved."""
        aggregate_of, count = aggregates(node_graph(A, self.nodes, self.count, self._exponent), self.strength)
        members = of_unknowns(A, self.nodes, aggregate_of, count)
        T, self.modes, self.nodes = tentative(A, members, count, self.modes)
        self.strength, self.count = self.strength / 2, count
        return SmoothedInterpolation(A, T)


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


def tentative(A, members, count, modes):
    """Return (T, the next level's modes, the next level's nodes).

    Parameters
    ----------
    A : CSRMatrix
        Only its shape, space and index type are used.
    members : int array, shape (n,)
        The aggregate of each unknown; ``count`` if it has none.
    count : int
        The number of aggregates.
    modes : float64 array, shape (n, k)
    """
    space, n, width, index = A.space, A.shape[0], modes.shape[1], A.indices.dtype
    kernels = _kernels(A)
    lists = transposed(one_a_row(A, members, count + 1))[0]
    q, coefficients = modes.ravel().copy(), space.xp.zeros(count * width * width)
    ranks, lengths = space.empty(count, np.int32), space.empty(n, np.int32)
    kernels.orthonormalise(lists.indptr, lists.indices, width, DEPENDENT, q, coefficients, ranks)
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

    def __init__(self, A, T):
        self.T, self._AT = T, Product(A, T)
        self.P = self._AT.C.with_values(A.space.empty(self._AT.C.nnz, np.float64))
        self._smooth(A)

    def update(self, A):
        """Recompute P, in place, for new values of A."""
        self._AT.update(A, self.T)
        self._smooth(A)
        self.P.discard_adjoint()

    def _smooth(self, A):
        AT, T, self.radius = self._AT.C, self.T, radius(A)
        roots = scales(A, OMEGA / self.radius)                                 # √ω D^−½
        _kernels(A).smooth(AT.indptr, AT.indices, AT.data, T.indptr, T.indices, T.data, roots, self.P.data)

    @property
    def nbytes(self):
        return self.T.nbytes + self._AT.C.nbytes + self.P.data.nbytes


def _kernels(A):
    return A.space.kernels("swell.preconditioners.amg", "tentative", np.float64)
