"""DistributedMatrix: consecutive rows on each rank, split into the diagonal block and the rest.

Section 3.2 of Ma, Hu, Yuan and Liu 2021. The diagonal block holds the rank's own columns, in any format. The rest
multiplies ghost values: it has the boundary rows, those with entries in ghost columns, and its columns are compressed
to the halo. Ranks, boundary rows and ghosts are whole blocks of A's block size. So the rest is BSR if the diagonal
block is stored in dense blocks, else CSR. A product sends the entries that the neighbours need, and multiplies by the
diagonal block meanwhile. Then it waits for the halo, and adds the product of the rest. Local indices have 32 bits,
global ones 64.
"""
from __future__ import annotations

import math
import re

import numpy as np
import scipy.sparse as sp

from swell.core.arrays import check_finite
from swell.core.errors import InputError
from swell.core.registry import load, names
from swell.core.settings import describe
from swell.core.system_matrix import SystemMatrix
from swell.distributed.entries import compressed, gathered
from swell.distributed.halo import Halo
from swell.formats.bsr import BSR
from swell.formats.csr import CSRMatrix


class DistributedMatrix(SystemMatrix):
    """A square matrix distributed by rows; ``from_rows``, ``from_parts``, ``scatter`` and ``read`` make it.

    Attributes
    ----------
    shape : (int, int)
        Shape of the whole matrix.
    nnz : int
        Entries of the whole matrix.
    own : CSRMatrix
        This rank's diagonal block.
    local : Matrix
        The diagonal block in the format that products use.
    rest : CSRMatrix, shape (boundary rows, ghosts)
        The other entries of this rank's rows.
    remote : CSRMatrix or BSRMatrix
        The rest in the format that products use.
    boundary : int32 array of the space
        The rows of ``rest``, as local row numbers.
    halo : Halo
        The exchange of the ghost values, the columns of ``rest``.
    order : int64 array or None
        This rank's rows in the user's numbering, if a partition has reordered them.
    overlap : bool
        Multiply by the diagonal block while messages are pending; False: after them, for comparison.
    """

    scratch = ("_edge",)

    def __init__(self, space, own, rest, boundary, halo, shape, nnz, local=None, remote=None, order=None,
                 overlap=True):
        super().__init__(shape, own.dtype, space)
        self.own, self.halo, self.nnz, self.order, self.overlap = own, halo, nnz, order, overlap
        self.local = own if local is None else local
        self.rest, self.boundary = rest, boundary
        self.remote = rest if remote is None else remote
        self._edge = None                        # buffer for x at the boundary, which only adjoint products need
        self._kernels = space.kernels("swell.distributed", "halo", own.dtype)

    def apply(self, x, out, alpha=1, beta=0):
        self.halo.start(x)
        if not self.overlap:
            self.halo.finish()
        self.local.apply(x, out, alpha, beta)
        if self.overlap:
            self.halo.finish_product(self.boundary, self.remote, out, alpha)
        else:
            self.add_rest(out, alpha)

    def apply_dot(self, x, out, w, dots):
        """Write out = A x and dots[0] = (w, out). The inner product is computed for the diagonal block's product, then
        corrected for the rest, as exact as the product. Such a correction of (out, out) would lose digits where A x is
        small beside the diagonal block's product; so ``apply_dots`` takes a separate pass for it."""
        self.halo.start(x)
        if not self.overlap:
            self.halo.finish()
        self.local.apply_dots(x, out, w, dots)
        remote = self.remote
        if self.overlap:
            self.halo.finish_product_dot(self.boundary, remote, out, w, dots)
        else:
            self._kernels.add_product_dot(self.boundary, remote.indptr, remote.indices, remote.data.reshape(-1),
                                          self.halo.values, out, w, dots, remote.block)

    def add_rest(self, out, alpha=1):
        """out += alpha (A − diagonal block) x, for this rank's rows. The ghost values of x (values that other ranks
        own) must be in ``halo.values``."""
        remote = self.remote
        self._kernels.add_product(self.boundary, remote.indptr, remote.indices, remote.data.reshape(-1),
                                  self.halo.values, out, remote.block, out.dtype.type(alpha))

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self._edge is None:                   # allocated at the first use, as adjoints are
            self._edge = self.space.buffer(self.boundary.size, self.dtype)
        self._kernels.pack(self.boundary, x, self._edge)
        self.remote.apply_adjoint(self._edge, self.halo.values, alpha)
        self.halo.start_return()
        self.local.apply_adjoint(x, out, alpha, beta)            # while the messages are pending
        self.halo.finish_return(out)

    def residual_terms(self, x, b, out, terms):
        self.halo.start(x)
        self.own.residual_terms(x, b, out, terms)
        self._add_residual("residual", out, terms)

    def precise_residual(self, x, b, out, low):
        self.halo.start(x)
        self.own.start_precise_residual(x, b, out, low)
        self._add_residual("precise", out, low)
        self.space.axpy(1, low, out)
        return True

    def _add_residual(self, name, out, more):
        """Add the entries in ghost columns to a residual, once the ghost values are there."""
        self.halo.finish()
        if self.boundary.size:
            self.rest.add_residual(name, self.boundary, self.halo.values, out, more)

    @property
    def diagonal_block(self):
        return self.own

    @property
    def block_size(self):
        return self.own.block_size               # equal on all ranks since the matrix was made

    @property
    def notes(self):
        return self.own.notes

    @property
    def rows(self):
        """The numbers of this rank's rows in the user's numbering: a slice, or an array if a partition has reordered
        the rows."""
        return slice(self.space.ranks.first, self.space.ranks.stop) if self.order is None else self.order

    def gather(self, x):
        """Gather a distributed vector: every rank gets the whole vector on its host, in the user's order.

        All ranks call it together. A rank that calls it alone, as after ``if rank == 0``, waits for the others.

        Parameters
        ----------
        x : array, shape (rows of this rank,) or (rows of this rank, k)

        Returns
        -------
        numpy.ndarray, shape (n,) or (n, k)

        Raises
        ------
        InputError
            On every rank, if x has another shape on any rank.
        """
        rows, shape = self.space.ranks.local_rows(self.shape[0]), getattr(x, "shape", ())
        with self.space.ranks.agreed():
            if len(shape) not in (1, 2) or shape[0] != rows:
                raise InputError(f"x has shape {tuple(shape)}: expected ({rows},) or ({rows}, k), this rank's part, as "
                                 "a solve returns it")
            host = self.space.to_host(x)
            parts = self.space.ranks.allgather((self.rows, host))
            whole = np.empty((self.shape[0], *host.shape[1:]), host.dtype)
            for rows, part in parts:
                whole[rows] = part
        return whole

    # -- other values on the same pattern ----------------------------------------------------------------------------

    @property
    def revision(self):
        """A number that changes when the values of any part change."""
        return sum(part.revision for part in (self.own, self.local, self.rest, self.remote))

    def update(self, new):
        if not np.array_equal(new.halo.ghosts, self.halo.ghosts):
            raise InputError("the new matrix has other columns of other ranks than the prepared one: prepare again")
        for block, theirs in ((self.own, new.own), (self.rest, new.rest)):
            if block is not theirs:
                block.update(theirs)
        for stored, part in ((self.local, self.own), (self.remote, self.rest)):
            if stored is not part:
                stored.update(part)

    def with_values(self, own, rest):
        """Return a new DistributedMatrix of this pattern with other values.

        Parameters
        ----------
        own, rest : array of the host
            The values of ``self.own`` and of ``self.rest``, in the order of their entries.

        Raises
        ------
        InputError
            On every rank, if any rank passes arrays of another length, or values that are not finite.
        """
        with self.space.ranks.agreed():
            check_finite("A", own, rest, where=" of this rank's")
            if (own.size, rest.size) != (self.own.nnz, self.rest.nnz):
                raise InputError(f"{own.size} and {rest.size} values for the {self.own.nnz} and {self.rest.nnz} "
                                 "entries of this rank's two parts: prepare again")
        with self.space.active():                # a rank's GPU need not be the process's current one
            return self._with(*(part.with_values(self.space.from_host(values))
                                for part, values in ((self.own, own), (self.rest, rest))))

    def discard_adjoint(self):
        """Discard the stored adjoints of both parts, since their values have changed."""
        self.own.discard_adjoint()
        self.rest.discard_adjoint()

    def check(self, configuration, stopping):
        """Raise InputError, on every rank, if the settings do not work across ranks or differ between them.
        ``configuration``: a Configuration (method, preconditioner, …); ``stopping``: a Stopping."""
        self.space.ranks.require_equal(_to_compare(configuration), "what to solve with")
        self.space.ranks.require_equal(stopping, "when to stop")
        method, name = configuration.method, configuration.name
        if not method.distributed:
            able = [other for other in names("method") if load("method", other).distributed]
            raise InputError(f"{name('method')} does not run across ranks: use {', '.join(able[:-1])} or {able[-1]}")
        for kind in ("ordering", "smoother"):
            if getattr(configuration, kind) is not None:
                raise InputError(f"{kind}= does not work across ranks: leave it out, or solve on one rank")

    def global_rows(self):
        """Return this rank's rows as a new SciPy CSR matrix, shape (local rows, n), with global column numbers."""
        block, rest, rows = self.own.to_scipy(), self.rest.to_scipy().tocoo(), self.space.to_host(self.boundary)
        inside = sp.csr_array((block.data, block.indices.astype(np.int64) + self.space.ranks.first, block.indptr),
                              shape=(block.shape[0], self.shape[1]))
        outside = sp.coo_array((rest.data, (rows[rest.row], self.halo.ghosts[rest.col])), shape=inside.shape)
        return sp.csr_array(inside + outside)

    # -- for setups of scalings, preconditioners and methods ------------------------------------------------------

    def diagonal(self):
        return self.own.diagonal()

    def stored_as(self, settings):
        """Return this matrix with the diagonal block in the format ``settings``. The rest becomes BSR if the format has
        blocks on every rank, in the largest size that divides them all and the `block_size`. All ranks call it
        together."""
        with self.space.ranks.agreed():
            local = settings.build(self.own)
        block = math.gcd(self.block_size, *self.space.ranks.allgather(local.block))
        return self._with(self.own, self.rest, local, BSR(block).build(self.rest) if block > 1 else None)

    def scaled(self, left, right):
        there = self._of_others(right)
        return self._with(self.own.scaled(left, right), self.rest.scaled(left[self.boundary], there))

    def absolute(self):
        return self._with(self.own.absolute(), self.rest.absolute())

    def power(self, p):
        return self._with(self.own.power(p), self.rest.power(p))

    def astype(self, dtype):
        return self._with(self.own.astype(dtype), self.rest.astype(dtype))

    def times(self, x):
        y = self.space.empty(self.own.shape[0], self.dtype)
        self.apply(x, y)
        return y

    def transpose(self):
        """Return Aᵀ as a new matrix with the same distribution of rows. The ranks exchange the entries in ghost columns
        through the host."""
        space, rest = self.space, self.rest.to_scipy().tocoo()
        ranks, rows = space.ranks, space.ranks.first + space.to_host(self.boundary).astype(np.int64)[rest.row]
        entries = gathered(ranks.communicator, (rest.data, (self.halo.ghosts[rest.col], rows)), ranks.starts)
        ghosts, places = np.unique(entries.indices.astype(np.int64), return_inverse=True)
        rest = sp.csr_array((entries.data, places, entries.indptr), shape=(self.own.shape[0], ghosts.size))
        boundary, rest, ghosts = compressed(rest, ghosts, self.block_size)
        return DistributedMatrix(space, self.own.transpose(), CSRMatrix.from_scipy(rest, space.local),
                                 space.from_host(boundary), Halo(space, ghosts, self.dtype), self.shape, self.nnz,
                                 order=self.order, overlap=self.overlap)

    def row_maxima(self, x):
        maxima, rows = self.own.row_maxima(x), self.boundary
        maxima[rows] = self.space.xp.maximum(maxima[rows], self.rest.row_maxima(self._of_others(x)))
        return maxima

    def modulus_sums(self):
        sums = self.own.modulus_sums()
        sums[self.boundary] += self.rest.modulus_sums()
        return sums

    def row_lengths(self):
        lengths = self.own.row_lengths()
        lengths[self.boundary] += self.rest.row_lengths()
        return lengths

    def diagonal_range(self):
        d, most = abs(self.diagonal()), self.space.max_on_host
        return -most(-d), most(d)

    def gershgorin(self):
        d, sums, most = self.diagonal().real, self.modulus_sums(), self.space.max_on_host
        return -most(-d), -most(sums - 2 * d), most(sums)

    def longest_row(self):
        return int(self.space.max_on_host(self.row_lengths()))

    def norm_inf(self):
        return self.space.max_on_host(self.modulus_sums())

    def norm_frobenius(self):
        parts = [self.space.local.norms(part.data)[0] ** 2 for part in (self.own, self.rest)]
        return float(np.sqrt(sum(self.space.ranks.allgather(sum(parts)))))

    def _of_others(self, x):
        """Fetch and return the ghost values of a real vector x, of which this rank passes its own rows."""
        self.halo.start(x.astype(self.dtype))
        self.halo.finish()
        return self.halo.values.real.astype(x.dtype)

    def _with(self, own, rest, local=None, remote=None):
        """Return a new DistributedMatrix of this pattern. ``own``, ``rest``: its diagonal block and the rest, with
        other values; ``local``, ``remote``: both in the formats for products, by default unchanged."""
        halo = self.halo if rest.dtype == self.dtype else Halo(self.space, self.halo.ghosts, rest.dtype)
        return DistributedMatrix(self.space, own, rest, self.boundary, halo, self.shape, self.nnz, local, remote,
                                 self.order, self.overlap)

    @property
    def nbytes(self):
        """Bytes of the matrix and its halo on this rank."""
        return self.local.nbytes + self.remote.nbytes + self.boundary.nbytes + self.halo.nbytes

    @property
    def name(self):
        return self.local.name

    @property
    def origin(self):
        """A phrase that says how the entries are distributed."""
        communicator = self.space.ranks.communicator
        return (f"on each of {communicator.size} ranks {self.own.shape[0]} rows, {self.own.nnz} entries in the "
                f"diagonal block, {self.rest.nnz} others that need {self.halo.ghosts.size} entries of other ranks")

    def describe(self):
        in_blocks = self.remote.block > 1 and self.space.ranks.communicator.size > 1
        return self.local.describe() + (f"; off-diagonal part in blocks of {self.remote.block}" if in_blocks else "")


def _to_compare(configuration):
    """Return a configuration as text that equal ranks have in common. It leaves out everything that may differ: user
    objects, the addresses of matrices in settings, and the format."""
    kinds = ("method", "precond", "scaling", "ordering", "smoother")
    words = ", ".join("user" if configuration.name(kind) == "user" else describe(getattr(configuration, kind))
                      for kind in kinds)
    return re.sub(r" at 0x[0-9a-f]+", "", words)
