"""CSR: compressed sparse rows. Matrices arrive in CSR, and every other format is converted from it.

A product reads 8 nnz bytes of values (double), 4 nnz of columns and 4 (n + 1) of row pointers.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from swell.core.arrays import checked_dtype
from swell.core.cpu import SERIAL
from swell.core.errors import InputError
from swell.core.settings import ON_CPU, Idle, choose_by_none, circumstances, idle_notes
from swell.core.system_matrix import SystemMatrix
from swell.formats.blocks import BlockPattern, checked_block_size, detect
from swell.formats.facts import Facts, gather
from swell.formats.matrix import Matrix, index_type, rows_of
from swell.formats.transpose import transposed_arrays


@dataclass(frozen=True)
class CSR:
    """Compressed sparse rows.

    Attributes
    ----------
    lanes : int
        Threads of a GPU that share a row: 1, 2, 4, 8, 16 or 32; None: the power of two below the mean row length.
        On a CPU one thread computes each row.
    """

    lanes: int | None = None

    idle = Idle("lanes", ON_CPU, "a CPU gives every row to one thread"),

    def __post_init__(self):
        choose_by_none(self, 0, "lanes")
        if self.lanes not in (None, 1, 2, 4, 8, 16, 32):
            raise InputError(f"CSR(lanes={self.lanes!r}): expected 1, 2, 4, 8, 16 or 32 threads a row, or None for as "
                             "many as the mean row suggests")

    def build(self, csr):
        """Return ``csr``, a CSRMatrix, unchanged if it has these ``lanes``; else a new one that shares its arrays."""
        lanes = self.lanes or 0                  # the kernels choose for 0
        if lanes == csr.lanes:
            return csr
        made = csr.with_values(csr.data)
        made.lanes = lanes
        made.notes = idle_notes(self, circumstances(csr))
        return made


class CSRMatrix(Matrix, SystemMatrix):
    """A matrix in CSR, its columns sorted in each row and free of duplicates.

    Parameters
    ----------
    space : Space
    indptr, indices, data : arrays of the space
        Row pointers (rows + 1), columns and values (nnz each).
    shape : (int, int)
    fills : dict
        The fill ratios that ``formats/blocks.py`` has found; they belong to the pattern, so new values leave them.
    lanes : int
        See `CSR`.
    block : int
        The `block_size`, if the caller knows it; 0: detect it when needed.
    band : Band, False or None
        The narrow band for a factorisation (preconditioners/banded_factors.py), once it was asked for; False: none.
    elimination : Elimination or None
        In the order of minimum degree, once it was asked for.
    pivots : (Elimination, Matching or None) or None
        The same with good pivots on the diagonal (orderings/pivots.py), until the values change.
    """

    name = "csr"
    hints = "_facts", "fills", "band", "elimination", "pivots"

    def __init__(self, space, indptr, indices, data, shape, lanes=0, block=0):
        indptr, indices, data = (space.from_host(array) for array in (indptr, indices, data))
        super().__init__(shape, data.dtype, space, int(data.size))
        index = index_type(*shape, self.nnz)
        self.indptr = indptr.astype(index, copy=False)
        self.indices = indices.astype(index, copy=False)
        self.data = data
        self.lanes = lanes
        self._facts, self.fills, self.band, self.elimination, self.pivots = None, {}, None, None, None
        if block:
            self.block_size = block
        self._kernels = space.kernels("swell.formats", "csr", data.dtype)

    @classmethod
    def from_scipy(cls, A, space, block=None) -> "CSRMatrix":
        """Build from a SciPy or CuPy CSR matrix, moved to the space; integers become double.

        Its columns must be sorted in each row and free of duplicates. ``block`` is its `block_size`, if known. Values
        are copied, since `update` writes into them; the pattern may be shared.

        Raises
        ------
        InputError
            For another format, an unsupported type of values, unsorted or duplicate columns, or a block that does not
            divide the rows.
        """
        if getattr(A, "format", None) != "csr":
            raise InputError(f"A is a {type(A).__name__}: expected a CSR matrix of SciPy or CuPy; convert it with "
                             "scipy.sparse.csr_array(A), or give it to swell.solve as it is")
        if not A.has_canonical_format:
            raise InputError("A has rows whose columns are not sorted, or entries stored twice: call "
                             "A.sum_duplicates() first")
        data = space.from_host(A.data.astype(checked_dtype(A.dtype, "A"), copy=False))
        data = space.copied(data) if space.same_memory(data, A.data) else data
        return cls(space, A.indptr, A.indices, data, A.shape, block=checked_block_size(block, A.shape[0]))

    def to_scipy(self):
        """The matrix as scipy.sparse.csr_matrix, on the host."""
        import scipy.sparse as sp
        host = self.space.to_host
        return sp.csr_matrix((host(self.data), host(self.indices), host(self.indptr)), shape=self.shape)

    def apply(self, x, out, alpha=1, beta=0):
        alpha, beta = out.dtype.type(alpha), out.dtype.type(beta)
        self._kernels.product(self.indptr, self.indices, self.data, x, out, self.lanes, alpha, beta)

    def apply_plus(self, x, z, out):
        self.apply_sum(x, 1, z, 1, z, 0, out)

    def apply_sum(self, x, alpha, z, beta, w, gamma, out):
        """``out = alpha A x + beta z + gamma w``. ``out`` may be the same array as z or w, but not as x."""
        factors = (out.dtype.type(factor) for factor in (alpha, beta, gamma))
        self._kernels.product_sum(self.indptr, self.indices, self.data, x, z, w, out, self.lanes, *factors)

    def apply_dots(self, x, out, w, dots):
        self._kernels.product_dots(self.indptr, self.indices, self.data, x, out, w, dots, self.lanes)
        self.space.collect(dots)

    def residual_terms(self, x, b, out, terms):
        self._residual("residual", self.indptr[:0], x, b, out, terms)

    def precise_residual(self, x, b, out, low):
        self.start_precise_residual(x, b, out, low)
        self.space.axpy(1, low, out)
        return True

    def start_precise_residual(self, x, b, out, low):
        """out + low = b − A x as two numbers a row, the sum and its rounding error."""
        self._residual("precise", self.indptr[:0], x, b, out, low)

    def add_residual(self, name, rows, x, out, more):
        """Add this matrix's terms to the residual of a larger matrix. ``name``: the kernel, "residual" or "precise".
        ``rows``: the larger matrix's row for each row, at least one. ``x``: values of this matrix's columns. ``out``,
        ``more``: the kernel's arrays of the larger matrix."""
        self._residual(name, rows, x, out, out, more)

    def _residual(self, name, rows, x, b, out, more):
        kernel = getattr(self.space.kernels("swell.formats", "residual", self.dtype), name)
        kernel(self.indptr, self.indices, self.data, rows.astype(np.int32, copy=False), x, b, out, more)

    def to_csr(self):
        return self

    def convert(self, csr):
        return CSR(self.lanes or None).build(csr)

    def update(self, new):
        if not self.same_pattern(new):
            raise InputError(f"the new matrix ({new.shape}, {new.nnz} entries) has another pattern than the prepared "
                             f"one ({self.shape}, {self.nnz} entries): prepare again")
        facts, pivots = new._facts, new.pivots   # still true: code that changes values in place discards them
        self.discard_adjoint()
        if new.data is not self.data:
            self.data[...] = new.data
        self._facts, self.pivots = facts, pivots

    def discard_adjoint(self):
        self.discard_facts()
        super().discard_adjoint()

    def discard_facts(self):
        """Drop the kept `Facts` and pivots, because the values may have changed; the next call gathers them again."""
        self._facts = self.pivots = None

    def same_pattern(self, other) -> bool:
        """True if the CSRMatrix ``other`` has the same shape, row pointers and columns; values are not compared."""
        if other.indptr is self.indptr and other.indices is self.indices:          # shared arrays: nothing to compare
            return True
        return other.shape == self.shape and other.nnz == self.nnz and not any(
            self.space.find_true(a != b)[1] for a, b in ((other.indptr, self.indptr), (other.indices, self.indices)))

    def facts(self, search=True) -> Facts:
        """The `Facts` of this matrix, gathered in one pass over the entries and kept until the values change.

        With ``search``, each aᵢⱼ is also compared with aⱼᵢ: most of the time on a CPU, little on a GPU.
        """
        search = search or self.space.name != "cpu"
        facts = self._facts                      # read once: another thread may discard them
        if facts is None or search and not facts.searched:
            facts = self._facts = gather(self, search)
        return facts

    def asymmetry(self, conjugate=True):
        facts = self._facts if self.space.name == "cpu" and self.shape[0] >= SERIAL else self.facts()
        return facts.asymmetry(conjugate) if facts and facts.searched else None

    def rows(self):
        """Return a new integer array: the row of every entry."""
        return rows_of(self.indptr, self.nnz, self.space.xp)

    def diagonal(self):
        d = self.space.empty(self.shape[0], self.dtype)
        self._kernels.diagonal(self.indptr, self.indices, self.data, d)
        return d

    @cached_property
    def block_size(self):
        return detect(self)

    @property
    def known_block(self):
        """`block_size` if it is known, else 0."""
        return vars(self).get("block_size", 0)

    def block_graph(self):
        """Return the pattern of the nonempty blocks as a CSRMatrix with unspecified values; ``self`` if blocks have one
        row."""
        if self.block_size == 1:
            return self
        pattern = BlockPattern(self, self.block_size)
        return CSRMatrix(self.space, pattern.indptr, pattern.indices,
                         self.space.empty(pattern.indices.size, np.float32), (pattern.rows, pattern.columns))

    def with_values(self, data):
        """Return a new CSRMatrix with this pattern and the values ``data``; all arrays are shared, not copied."""
        made = CSRMatrix(self.space, self.indptr, self.indices, data, self.shape, block=self.known_block)
        made.notes = self.notes
        return made

    def transpose(self, conjugate=False):
        """Aᵀ as a new CSR matrix; Aᴴ if ``conjugate``."""
        indptr, indices, data = transposed_arrays(self, self.space.empty(0, self.indices.dtype))
        return CSRMatrix(self.space, indptr, indices, data.conj() if conjugate else data, self.shape[::-1],
                         block=self.known_block)

    def astype(self, dtype):
        return self.with_values(self.data.astype(dtype))

    def in_double(self):
        """Return the matrix in double precision: itself if it has it, else a copy."""
        double = np.result_type(self.dtype, np.float64)
        return self if self.dtype == double else self.astype(double)

    def scaled(self, left, right):
        xp = self.space.xp
        sides = [xp.ones(size, np.float32) if side is None else side for side, size in zip((left, right), self.shape)]
        dtype = np.result_type(self.dtype, *(side.dtype for side in sides))
        data = self.data.astype(dtype, copy=False)
        sides = [xp.ascontiguousarray(side, dtype=np.dtype(dtype.char.lower())) for side in sides]
        scaled = self.with_values(xp.empty_like(data))
        scaled._kernels.scale(self.indptr, self.indices, data, *sides, scaled.data)
        return scaled

    def power(self, p):
        return self.with_values(self.data**p)

    def absolute(self):
        return self.with_values(abs(self.data))

    def row_sums(self):
        """Return a new vector: Σⱼ aᵢⱼ of each row i."""
        return self.times(self.space.xp.ones(self.shape[1], self.dtype))

    def row_lengths(self):
        return self.indptr[1:] - self.indptr[:-1]

    def modulus_sums(self):
        sums = self.space.empty(self.shape[0], np.float64)
        self._kernels.modulus_sums(self.indptr, self.data, sums)
        return sums

    def times(self, x):
        y = self.space.empty(self.shape[0], self.dtype)
        self.apply(x, y)
        return y

    def row_maxima(self, x):
        y = self.space.empty(self.shape[0], x.dtype)
        self._kernels.maxima(self.indptr, self.indices, self.data, x, y)
        return y

    def stored_as(self, settings):
        return settings.build(self)

    def diagonal_range(self):
        return self.facts(search=False).diagonal_range

    def gershgorin(self):
        return self.facts(search=False).gershgorin

    def longest_row(self):
        return self.facts(search=False).longest_row

    def norm_inf(self):
        return self.facts(search=False).norm_inf

    def norm_frobenius(self):
        return self.facts(search=False).norm_frobenius

    @property
    def nbytes(self):
        return self.indptr.nbytes + self.indices.nbytes + self.data.nbytes

    def describe(self):
        lanes = f", {self.lanes} lanes a row" if self.lanes else ""
        return f"csr, {self.indices.dtype.itemsize * 8}-bit columns{lanes}"
