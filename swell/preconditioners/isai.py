"""ISAI: incomplete sparse approximate inverses of triangular factors. Anzt, Huckle, Bräckle and Dongarra 2018.

W ≈ T⁻¹ has the pattern of a power of T, with (W T)ᵢⱼ = δᵢⱼ on it. Row i with columns J solves w T(J, J) = eᵢᵀ, a small
triangular system; so all rows are independent. For a factor in BSR, blocks take the place of entries throughout.
An application is one product with W, as fast and as parallel as a product with T (power 1). It is a fixed linear map
whose adjoint is the product with Wᴴ, so that L and Lᴴ make a Hermitian positive definite preconditioner. If T has k
levels, power k − 1 gives W = T⁻¹.

Setup: for each row i, each entry of T in the rows J is looked up in J. No dense matrix is formed, and only W is
written. A GPU's warp has a row; its lanes have the columns of the blocks of several entries. A row with more than
``longest`` entries (blocks) keeps the ones nearest the diagonal, and a note reports it: one thread (one warp of a GPU)
would solve such a row while all others wait.

An application reads 10 bytes an entry of W (in SELL; 8 + 4/s² in BSR) and two vectors: one launch. With power 1, W has
the pattern of T, with the unit diagonal of L stored. ``update`` computes the values of W anew, on the same pattern.

Differs from the paper: rows may have any length and block size; no row is limited to a warp or solved as dense system.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.settings import positive
from swell.formats.bsr import BSRMatrix
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type, rows_of
from swell.formats.sell import SELL
from swell.preconditioners.block_factor import BlockFactor
from swell.preconditioners.guard import GuardedSolve
from swell.preconditioners.triangular import TriangularOperator, inverse_diagonal, random_vector
from swell.transforms.permutation import Permutation

MAX_POWER = 4           # highest power that guard="more" tries
SYMBOLIC_BYTES = 50     # memory for each pair of entries that meet in a product of patterns


@dataclass(frozen=True)
class ISAI(GuardedSolve):
    """A product with a sparse approximate inverse on the pattern of a power of the triangle.

    Attributes
    ----------
    power : int
        The inverse has the pattern of this power of the triangle.
    longest : int
        Most entries (blocks) of a row of the inverse; longer rows keep those nearest the diagonal.
    guard : str
        Replacement of W if its remainder exceeds ``growth``. "exact": an exact solve; "more": the least power, up to 4,
        whose remainder is small enough, else "exact"; "error": raise an error; "off": replace nothing.
    growth : float
        Largest remainder that is accepted.
    """

    power: int = 1
    longest: int = 512

    alike = False           # W is made by rows: the W of Tᵀ is not the transpose of the W of T
    remedy = "a higher power"
    cost = "one product with the approximate inverse, with power 1 as large as the triangle"

    def __post_init__(self):
        positive(self, "power")
        positive(self, "longest")
        super().__post_init__()

    def unguarded(self, T, lower, unit, order):
        return ApproximateInverse(T, lower, unit, order, self)

    def remainder(self, operator):
        return operator.remainder

    def named(self, operator):
        side = "lower" if operator.lower else "upper"
        return f"the inverse of the {side} triangle on the pattern of its power {operator.settings.power} leaves"

    def better(self, operator, T):
        for power in range(self.power + 1, MAX_POWER + 1):
            settings = replace(self, power=power)
            if settings.unguarded(T, operator.lower, operator.unit, operator.order).remainder <= self.growth:
                return settings, f"the pattern of its power {power} is used"
        return None


class ApproximateInverse(TriangularOperator):
    """W ≈ T⁻¹, applied as a product.

    Attributes
    ----------
    ptr, columns : int arrays
        The pattern of W, its rows and columns (or block rows and columns) numbered as in T.
    matrix : Matrix
        W, its rows and columns numbered as the vectors.
    remainder : float
        ‖(I − W T) v‖ / ‖v‖ for a fixed random v.
    """

    scratch = ("_copy",)

    def __init__(self, T, lower, unit, order, settings):
        T = T if isinstance(T, CSRMatrix) else BlockFactor.of(T, lower, unit)
        super().__init__(T, lower, unit, order, settings)
        n, self.block = T.shape[0], 1 if isinstance(T, CSRMatrix) else T.block
        self._kernels = T.space.kernels("swell.preconditioners", "isai", T.dtype)
        self.ptr, self.columns = self._pattern(T)
        self._renumber_pattern()
        self._adjoint, self._copy = None, self.space.empty(n, T.dtype)
        natural = self._inverse(T)
        self.matrix = SELL().build(natural) if self.block == 1 else natural

    def _pattern(self, T):
        """Return (ptr, columns), the pattern of the power Tᵖ of the triangle with its diagonal, p from the settings.

        Rows with more than ``longest`` entries are cut; ``notes`` then reports it."""
        T = T if isinstance(T, CSRMatrix) else T.pattern(self.lower)
        xp, count = self.space.xp, T.indptr.size - 1
        rows = rows_of(T.indptr, T.indices.size, xp)
        strict = T.indices < rows if self.lower else T.indices > rows
        every = xp.arange(count)
        keys = xp.concatenate([rows[strict] * count + T.indices[strict], every * count + every])
        keys = first = xp.sort(keys)
        for _ in range(self.settings.power - 1):
            keys = self._pattern_product(keys, first, count)
        ptr = self.space.row_pointers(keys // max(count, 1), count)
        if self.space.max_on_host(xp.diff(ptr)) > self.settings.longest:  # sync
            keys = self._cut_long_rows(keys, ptr, count)
            ptr = self.space.row_pointers(keys // count, count)
        index = index_type(*self.shape, keys.size * self.block**2)
        return ptr.astype(index), (keys % max(count, 1)).astype(index)

    def _pattern_product(self, left, right, count):
        """Return the pattern of the product of two patterns with ``count`` rows and columns. A pattern is an ascending
        array of keys, row × ``count`` + column."""
        xp = self.space.xp
        ptr, columns = self.space.row_pointers(right // count, count), right % count
        through = left % count
        lengths = (ptr[1:] - ptr[:-1])[through]
        ends = xp.cumsum(lengths)
        total = int(ends[-1])  # sync
        self.space.check_fits(total * SYMBOLIC_BYTES, f"the pattern of the power {self.settings.power} of a triangle",
                              "use a lower power")
        pair = xp.arange(total)
        owner = xp.searchsorted(ends, pair, side="right")
        at = ptr[through[owner]] + pair - (ends - lengths)[owner]
        keys = xp.sort(left[owner] // count * count + columns[at])   # NumPy's own ``unique`` hashes: ten times slower
        new = xp.ones(keys.size, bool)
        new[1:] = keys[1:] != keys[:-1]
        return keys[new]

    def _cut_long_rows(self, keys, ptr, count):
        """Return ``keys`` without those entries of long rows that are farthest from the diagonal; set ``notes``.

        ``keys`` is a pattern as in `_pattern_product`, ``ptr`` its row pointers."""
        xp, longest = self.space.xp, self.settings.longest
        rows, at = keys // count, xp.arange(keys.size)
        beyond = ptr[rows + 1] - at > longest if self.lower else at - ptr[rows] >= longest
        first, long = self.space.find_true(xp.diff(ptr) > longest)   # sync
        self.notes = (f"ISAI: {long} of {count} rows of the approximate inverse (the first is {first}) have more than "
                      f"{longest} entries; those nearest the diagonal are kept",)
        return keys[~beyond]

    def _renumber_pattern(self):
        """Set ``_placed``, W's pattern with rows and columns numbered as in the vectors, and ``_numbers``, the old
        place of each entry; None if the numbers are unchanged."""
        self._placed, self._numbers = (self.ptr, self.columns), None
        if self.order is not None:
            xp, count = self.space.xp, self.ptr.size - 1
            numbers = xp.arange(self.columns.size, dtype=np.float64)
            there = CSRMatrix(self.space, self.ptr, self.columns, numbers, (count, count))
            there = Permutation(there, xp.argsort(self.order)).matrix(there)
            self._placed, self._numbers = (there.indptr, there.indices), there.data.astype(there.indices.dtype)

    def _inverse(self, T):
        """Return W for the values of T, a new matrix with rows and columns numbered as in the vectors. Sets
        ``remainder``.

        Of T = (I + N) D in blocks W is D⁻¹ times the inverse of I + N."""
        xp, s, index = self.space.xp, self.block, self.ptr.dtype
        if isinstance(T, CSRMatrix):
            strict, inverse = (T.indptr, T.indices, T.data), T.data[:0] if self.unit else inverse_diagonal(T)
        else:
            strict, inverse = T.triangle(self.lower), T.data.reshape(-1)[:0]
        ptr, columns, blocks = strict
        values = xp.empty(self.columns.size * s * s, T.dtype)
        self._kernels.approximate(
            ptr.astype(index, copy=False), columns.astype(index, copy=False), blocks.reshape(-1), inverse,
            self.ptr[:-1], self.ptr[1:], self.columns, values, s, self.lower)
        values = values.reshape(-1, s, s)
        if not isinstance(T, CSRMatrix) and not self.unit:
            values = xp.matmul(T.inverse[rows_of(self.ptr, self.columns.size, xp)], values)
        self.remainder = self._measure(T, values)
        return self._as_matrix(*self._placed, values if self._numbers is None else values[self._numbers], self.shape[0])

    def _measure(self, T, values):
        """Return ‖(I − W T) v‖ / ‖v‖ for a fixed random v; ``values`` are the entries of W on the pattern ``ptr``,
        ``columns``."""
        xp, size = self.space.xp, (self.ptr.size - 1) * self.block
        original = v = random_vector(size, T.dtype, self.space)
        product, error = v.copy(), v.copy()
        if isinstance(T, CSRMatrix):
            rows = rows_of(T.indptr, T.indices.size, xp)
            kept = (T.indices < rows if self.lower else T.indices > rows) | ((T.indices == rows) & (not self.unit))
            ptr = self.space.row_pointers(rows[kept], self.ptr.size - 1)
            self._as_matrix(ptr, T.indices[kept], T.data[kept], size).apply(v, product, 1, int(self.unit))
        else:
            if not self.unit:                    # v becomes D v
                v = xp.linalg.solve(T.inverse, v.reshape(T.count, self.block, 1)).reshape(-1)
                product[...] = v
            ptr, columns, blocks = T.triangle(self.lower)
            self._as_matrix(ptr, columns, blocks.copy(), size).apply(v, product, 1, 1)   # a slice need not be aligned
        self._as_matrix(self.ptr, self.columns, values, size).apply(product, error, -1, 1)
        remainder, _, norm, _ = self.space.norms(error, original)  # sync
        return remainder / max(norm, 1e-300)

    def _as_matrix(self, ptr, columns, values, size):
        """Return a CSRMatrix of these arrays with ``size`` rows; a BSRMatrix if the factor has blocks."""
        if self.block == 1:
            return CSRMatrix(self.space, ptr, columns, values.reshape(-1), (size, size))
        return BSRMatrix(self.space, ptr, columns, values, (size, size))

    def update(self, T):
        fresh = self._inverse(T if isinstance(T, CSRMatrix) else BlockFactor.of(T, self.lower, self.unit))
        copy_values(self.matrix, fresh)
        if self._adjoint is not None:
            copy_values(self._adjoint, fresh.adjoint())

    def prepare_adjoint(self):
        if self._adjoint is None:
            self._adjoint = self.matrix.adjoint()

    def source(self, out):
        return self._copy

    def _unaliased(self, x, out):
        """Return x; if ``out`` is x, return a work vector with a copy of x."""
        if x is not out:
            return x
        self.space.copy(x, self._copy)
        return self._copy

    def solve(self, x, out):
        self.matrix.apply(self._unaliased(x, out), out)

    def solve_adjoint(self, x, out):
        self.prepare_adjoint()
        self._adjoint.apply(self._unaliased(x, out), out)

    def adjoint_dots(self, x, out, w, dots):
        self.prepare_adjoint()
        self._adjoint.apply_dots(self._unaliased(x, out), out, w, dots)

    @property
    def nbytes(self):
        moved = () if self._numbers is None else (*self._placed, self._numbers)
        matrices = (self.matrix,) if self._adjoint is None else (self.matrix, self._adjoint)
        return sum(a.nbytes for a in (self.ptr, self.columns, self._copy, *moved, *matrices))

    def describe(self):
        each = self.columns.size / max(self.ptr.size - 1, 1)
        return (f"ISAI(power={self.settings.power}), {each:.1f} {'entries' if self.block == 1 else 'blocks'} a row, "
                f"remainder {self.remainder:.1e}{'' if self.block == 1 else f', blocks of {self.block}'}")


def copy_values(matrix, fresh):
    """Write the values of ``fresh``, a CSRMatrix or BSRMatrix, into ``matrix``, which has the same pattern."""
    if isinstance(fresh, BSRMatrix):
        matrix.data[...] = fresh.data
    else:
        matrix.update(fresh)
