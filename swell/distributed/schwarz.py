"""Additive Schwarz with a subdomain on each rank: its own rows and the rows within ``layers`` steps of them.

Cai and Sarkis 1999. Ma, Hu, Yuan and Liu 2021 use block Jacobi, their equation (7), and leave overlap open. In the
setup the ranks ask one another for the rows of the layers. An application exchanges a halo of x that is wider than a
product's; then each rank applies the inner preconditioner to its extended rows. "restricted" keeps the owned rows of
the solution and sends nothing back. "additive" sends the other rows back to their owners, which keeps the symmetry that
CG needs.
"""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.core.operator import Composite
from swell.core.settings import describe
from swell.distributed.entries import fetched, whole_blocks
from swell.distributed.halo import Halo
from swell.formats.csr import CSRMatrix


class RankSchwarz(Composite):
    """z = M r by additive Schwarz, for a DistributedMatrix and settings of ``Schwarz``.

    Attributes
    ----------
    inner : LinearOperator
        The inner preconditioner, for the rank's extended rows.
    """

    scratch = ("_given", "_solved", "_kept")

    def __init__(self, A, settings):
        from swell.core.registry import resolve
        if settings.domains or settings.partition != "rows" or settings.transmission != "dirichlet" \
                or settings.kind == "weighted":
            raise InputError(f"{describe(settings)}: across ranks there is one subdomain a rank, restricted or "
                             "additive, with Dirichlet conditions: leave domains, partition and transmission out")
        super().__init__(A.shape, A.dtype, A.space.local)
        self.settings = settings
        extended, ghosts = layers(A, settings.layers)
        self._halo = Halo(A.space, ghosts, A.dtype)
        if settings.kind == "additive":
            self._halo.prepare_return()
        below = int(np.searchsorted(ghosts, A.space.ranks.first))    # ghosts before the rank's own rows, in order
        rows = A.own.shape[0]
        self._own = slice(below, below + rows)
        self._before, self._after = slice(0, below), slice(below + rows, None)
        self._below = below
        self._matrix = CSRMatrix.from_scipy(extended, A.space.local, A.block_size)
        self.inner = resolve("precond", settings.inner).restricted(A, self._extended).build(self._matrix)
        self._given, self._solved = (A.space.empty(extended.shape[0], A.dtype) for _ in range(2))
        self._kept = A.space.empty(rows, A.dtype)        # aligned to 16 bytes, which solved[self._own] need not be
        self.self_adjoint = self.inner.self_adjoint if settings.kind == "additive" or not settings.layers else False

    def _extended(self, array):
        """Return ``array``, a host array of this rank's rows, shape (rows, k), for the extended rows."""
        halo, below, host = self._halo, self._below, self.space.to_host
        extended = np.empty((self._matrix.shape[0], array.shape[1]))
        for column, out in zip(array.T, extended.T, strict=True):
            halo.start(self.space.from_host(column.astype(self.dtype)))
            halo.finish()
            out[:below], out[self._own], out[self._after] = (
                host(halo.values[:below]).real, column, host(halo.values[below:]).real)
        return extended

    def update(self, A):
        """Recompute the preconditioner for a new matrix A with equal pattern and distribution. The ranks exchange the
        layers' rows again."""
        self._matrix.update(CSRMatrix.from_scipy(layers(A, self.settings.layers)[0], A.space.local))
        self.inner.update(self._matrix)

    def apply(self, x, out, alpha=1, beta=0):
        halo, extended, solved, below = self._halo, self._given, self._solved, self._below
        halo.start(x)
        extended[self._own] = x
        halo.finish()
        extended[self._before], extended[self._after] = halo.values[:below], halo.values[below:]
        self.inner.apply(extended, solved)
        self._combine(out, alpha, beta, self.settings.kind == "additive")

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        halo, extended, below = self._halo, self._given, self._below
        if self.settings.kind == "additive":
            halo.start(x)
            halo.finish()
        else:                                    # restriction drops these rows of the solution: its adjoint has zeros
            halo.prepare_return()
            halo.values.fill(0)
        extended[self._own] = x
        extended[self._before], extended[self._after] = halo.values[:below], halo.values[below:]
        self.inner.apply_adjoint(extended, self._solved)
        self._combine(out, alpha, beta, True)

    def _combine(self, out, alpha, beta, all_rows):
        """out = alpha z + beta out, where z is the inner solution on this rank's rows. With ``all_rows`` z's values in
        rows of other ranks are sent there, and each rank adds what it receives to its ``out``."""
        halo, solved, below = self._halo, self._solved, self._below
        self.space.copy(solved[self._own], self._kept)
        self.space.axpby(alpha, self._kept, beta, out)
        if all_rows:
            halo.values[:below], halo.values[below:] = solved[self._before], solved[self._after]
            if alpha != 1:
                halo.values[...] *= out.dtype.type(alpha)
            halo.give_back(out)

    @property
    def nbytes(self):
        return self._matrix.nbytes + self.inner.nbytes + self._halo.nbytes

    def describe(self):
        return (f"{describe(self.settings)}, a subdomain on each rank, of "
                f"{self._matrix.shape[0]} rows, by {self.inner.describe()}")


def layers(A, count):
    """Extend this rank's rows of A by ``count`` layers of rows around them. All ranks call it together.

    Returns
    -------
    (SciPy CSR, int64 array)
        The square matrix of the extended rows, in ascending order; and the rows of other ranks in it. A layer has whole
        block rows.
    """
    space, size = A.space, A.block_size
    local_rows = A.global_rows()
    rows, ghosts = local_rows, np.empty(0, np.int64)
    for _ in range(count):
        reached = whole_blocks(rows.indices, size)
        ghosts = np.union1d(ghosts, reached[(reached < space.ranks.first) | (reached >= space.ranks.stop)])
        rows = sp.vstack([local_rows, *fetched(space, local_rows, ghosts)], format="csr")
    numbers = np.concatenate([np.arange(space.ranks.first, space.ranks.stop), ghosts])
    order = np.argsort(numbers)
    return _columns(rows[order], numbers[order]), ghosts


def _columns(rows, numbers):
    """Return the columns ``numbers`` (ascending) of a CSR matrix, renumbered from 0. SciPy's own selection needs
    memory for every column of the whole matrix."""
    places = np.minimum(np.searchsorted(numbers, rows.indices), numbers.size - 1)
    inside = numbers[places] == rows.indices
    indptr = np.concatenate([[0], np.cumsum(inside)])[rows.indptr]
    return sp.csr_array((rows.data[inside], places[inside], indptr), shape=(rows.shape[0], numbers.size))
