"""Sparse matrix products C = A B, and R A P as two products, row by row (Gustavson, ACM TOMS 4, 1978, 250–269).

The symbolic phase finds the pattern of C, the numeric phase its values; new values on known patterns need only the
numeric phase. A product reads row k of B once for each entry in column k of A. C keeps entries whose sum is zero.

If memory allows, one pass finds the pattern, and writes it to memory reserved for an upper bound of its entries.
Otherwise an earlier pass counts the entries. On a CPU the pass also computes the values. On a GPU rows are binned by
their number of entries, which decides how many threads share a row; columns go to hash tables in shared memory
(``kernels/product.cu``). Both devices add the terms of a sum in the order of A's columns. Consecutive rows of A with
equal columns are computed together: a CPU sees them by itself, a GPU looks for them if it is told to (runs.py).
"""
import numpy as np

from swell.core.errors import InputError
from swell.core.library import _native
from swell.formats.csr import CSRMatrix
from swell.formats.matrix import index_type
from swell.formats.runs import Runs

TOGETHER = 8            # most rows of a run, as in product.cpp and runs.cu
BINS = 6                # sizes of groups of threads on a GPU, as in product.cu
LANE_BYTES = 128        # bytes of shared memory of a thread: POOL / THREADS of product.cu,
RUN_BYTES = 192         # and of runs.cu
MAX_ROWS_OF_BLOCK = 1 << 14  # most rows that one block of a GPU sorts into bins
SPREAD = (10_000, 8), (40_000, 4), (80_000, 2)      # (most rows, factor): with few rows a GPU gives each more lanes
SHARE = 0.5             # fraction of the free memory that a product may use to find its pattern in one pass
UNCHECKED = 64 << 20    # requests up to this many bytes are not compared with the free memory
REMEDY = "use float32 values, smaller factors, or a machine with more memory"


class Product:
    """The product C = A B of two matrices in one space. It keeps both factors, to check the patterns in an update.

    Parameters
    ----------
    A, B : CSRMatrix
        Shapes (m, k) and (k, n), in one space. Their types may differ: C has the type that holds both.
    alike : bool
        Consecutive rows of A often have equal columns, as in systems with several unknowns at a mesh point. A GPU then
        looks for such rows, to save work. The result is the same.

    Attributes
    ----------
    C : CSRMatrix
        Shape (m, n), columns sorted in each row and free of duplicates.

    Raises
    ------
    InputError
        If the number of columns of A differs from the number of rows of B, or their spaces differ.
    OutOfMemory
        If C would not fit; raised before C is allocated.

    Examples
    --------
    >>> from swell import gallery
    >>> from swell.core.devices import make_space
    >>> from swell.formats.csr import CSRMatrix
    >>> A = CSRMatrix.from_scipy(gallery.poisson2d(3), make_space("cpu"))
    >>> product = Product(A, A)
    >>> product.C.shape, product.C.nnz
    ((9, 9), 61)
    >>> product.update(A.with_values(2 * A.data), A)
    >>> float(product.C.data[0])
    36.0
    """

    def __init__(self, A, B, alike=False):
        if A.shape[1] != B.shape[0]:
            raise InputError(f"A is {A.shape[0]} × {A.shape[1]} and B is {B.shape[0]} × {B.shape[1]}: expected as many "
                             "rows of B as A has columns; should one of them be transposed?")
        if A.space.device_name != B.space.device_name:
            raise InputError(f"A is on {A.space.device_name} and B on {B.space.device_name}: build both in one space")
        self._A, self._B, self._space, self._runs = A, B, A.space, None
        self._shape, self._dtype = (A.shape[0], B.shape[1]), np.result_type(A.dtype, B.dtype)
        self._kernels = self._space.kernels("swell.formats", "product", self._dtype)
        if self._space.name == "cpu":
            self._on_cpu(self._factors(A, B))
        else:
            self._on_gpu(self._factors(A, B), alike)

    def update(self, A, B):
        """Recompute C = A B, in place, for new values on the same patterns.

        Raises
        ------
        InputError
            If the pattern of a factor has changed, or C's type cannot hold its values.
        """
        for name, new, known in (("A", A, self._A), ("B", B, self._B)):
            if not known.same_pattern(new):
                raise InputError(f"the new {name} ({new.shape}, {new.nnz} entries) has another pattern than the first "
                                 f"one ({known.shape}, {known.nnz} entries): make a new product")
            if not np.can_cast(new.dtype, self._dtype):
                raise InputError(f"the new {name} is {new.dtype.name} and the product {self._dtype.name}: convert it "
                                 "with astype, or make a new product")
        self._compute_values(self._factors(A, B))
        self.C.discard_adjoint()

    def _factors(self, A, B):
        """Return six arrays, the CSR arrays of A and B: indices converted to one type, values to C's type."""
        index = np.result_type(A.indices.dtype, B.indices.dtype)
        return [array for M in (A, B) for array in (
            M.indptr.astype(index, copy=False), M.indices.astype(index, copy=False),
            M.data.astype(self._dtype, copy=False))]

    def _compute_values(self, factors):
        C = self.C
        if self._runs is None:
            self._kernels.values(*factors, self._shape[1], self._rows, self._bounds, C.indptr, C.indices, C.data)
        else:
            self._space.kernels("swell.formats", "runs", self._dtype).values(
                *factors, self._runs, self._rows, self._bounds, C.indptr, C.indices, C.data)

    def _bytes(self, entries):
        """Return the bytes of the columns and values of ``entries`` entries of C."""
        return entries * (index_type(*self._shape, entries).itemsize + self._dtype.itemsize)

    def _check_fits(self, needed, what):
        """Raise OutOfMemory unless ``needed`` bytes are free; ``what`` completes the message.

        Small products skip this: asking a GPU takes longer."""
        if needed > UNCHECKED:
            self._space.check_fits(needed, f"a product of {self._shape[0]} × {self._shape[1]} {what}", REMEDY)

    def _entries(self, starts):
        """Allocate and return the columns and values of C. Their number is the last element of ``starts``."""
        entries, = self._space.last_entries(starts)  # sync
        self._check_fits(self._bytes(entries), f"with {entries} entries")
        index = index_type(*self._shape, entries)
        return self._space.empty(entries, index), self._space.empty(entries, self._dtype)

    # -- CPU -------------------------------------------------------------------------------------------------------

    def _on_cpu(self, factors):
        """Compute C from ``factors``, the six arrays of `_factors`, on a CPU.

        One pass writes into memory for an upper bound of nnz(C); if that is too much memory, entries are counted first.
        """
        (m, n), chunks = self._shape, _native.threads()
        a_indptr, a_indices, _, b_indptr, b_indices, _ = factors
        counts, starts = np.empty(m, np.int64), np.empty(m + 1, np.int64)
        self._check_fits(8 * (n * chunks + 4 * m), f"on {chunks} threads")
        self._kernels.products(a_indptr, a_indices, b_indptr, n, counts)
        self._space.prefix_sums(counts, starts)
        bounds = np.searchsorted(starts, np.linspace(0, starts[-1], chunks + 1)[1:-1])
        self._rows, self._bounds = np.empty(0, np.int64), np.r_[0, bounds, m]
        room = self._bytes(int(starts[-1]))
        if room > UNCHECKED and room > SHARE * self._space.memory()[0]:
            self._kernels.count(a_indptr, a_indices, b_indptr, b_indices, n, self._bounds, counts)
            self._space.prefix_sums(counts, starts)
        indices, data = self._entries(starts)
        self._kernels.fill(*factors, n, self._bounds, starts, indices, data, counts)
        indptr = np.empty_like(starts)
        self._space.prefix_sums(counts, indptr)
        if indptr[-1] < starts[-1]:
            self._kernels.close_gaps(self._bounds, starts, indptr, indices, data)
            for array in (indices, data):
                array.resize(indptr[-1], refcheck=False)         # releases the unused memory
        self.C = CSRMatrix(self._space, indptr, indices, data, self._shape)

    # -- GPU -------------------------------------------------------------------------------------------------------

    def _on_gpu(self, factors, alike):
        """Compute C from ``factors``, the six arrays of `_factors`, on a GPU.

        It counts the products, an upper bound; finds the columns; computes the values. The host reads the upper bound
        and nnz(C). If the upper bound needs too much memory, columns are counted first. With ``alike`` the host also
        reads the number of runs, and the columns are found for their first rows."""
        (m, n), space, kernels = self._shape, self._space, self._kernels
        a_indptr, a_indices, _, *b = factors
        size = a_indices.dtype.itemsize
        self._check_fits(m * (16 + 2 * size), "before its entries are counted")
        runs = Runs(space, a_indptr, a_indices, kernels.join_rows) if alike and m else None
        pattern = (a_indptr, a_indices) if runs is None else (runs.indptr, runs.indices)
        counts, starts = space.empty(pattern[0].size - 1, a_indices.dtype), space.empty(pattern[0].size, np.int64)
        self._bins.products(*pattern, b[0], n, counts)
        rows, bounds = self._binned(counts, LANE_BYTES // size)
        space.prefix_sums(counts, starts)
        room, = space.last_entries(starts)  # sync
        if size * room > UNCHECKED and size * room > SHARE * space.memory()[0]:
            kernels.columns(*pattern, *b[:2], rows, bounds, starts, space.empty(0, a_indices.dtype), counts)
            space.prefix_sums(counts, starts)
            room, = space.last_entries(starts)  # sync
            self._check_fits(size * room + self._bytes(room), f"with {room} entries")
        apart = space.empty(room, a_indices.dtype)
        kernels.columns(*pattern, *b[:2], rows, bounds, starts, apart, counts)
        lengths, starts, sizes = (counts, starts, counts) if runs is None else runs.spread(counts, starts)
        indptr = space.empty(m + 1, index_type(*self._shape, room if runs is None else TOGETHER * room))
        space.prefix_sums(lengths, indptr)
        indices, data = self._entries(indptr)
        indptr = indptr.astype(indices.dtype, copy=False)
        kernels.join_rows(starts, apart, indptr, indices)
        self._runs = None if runs is None else runs.rows
        lane_bytes = LANE_BYTES if runs is None else RUN_BYTES
        self._rows, self._bounds = self._binned(sizes, lane_bytes // (data.itemsize + indices.itemsize))
        self.C = CSRMatrix(space, indptr, indices, data, self._shape)
        self._compute_values(factors)

    @property
    def _bins(self):
        return self._space.kernels("swell.formats", "product_bins", self._dtype)

    def _binned(self, counts, each):
        """Return (the rows sorted by bin, where each bin begins). ``counts``: upper bound of each row's entries in C.

        A bin stands for a size of thread groups, with room for ``each`` entries a thread."""
        space, m = self._space, counts.size
        rows, spread = space.empty(m, counts.dtype), next((by for most, by in SPREAD if m <= most), 1)
        if m <= MAX_ROWS_OF_BLOCK:
            bounds = space.empty(BINS + 1, np.int64)
            self._bins.place_few(counts, each, spread, rows, bounds)
        else:
            zeros = space.xp.zeros(3 * BINS + 1, np.int64)
            bins, bounds = zeros[:2 * BINS], zeros[2 * BINS:]
            self._bins.count_bins(counts, each, spread, bins)
            self._bins.place_rows(counts, each, spread, bins, rows, bounds)
        return rows, bounds


class TripleProduct:
    """The triple product R A P, as R (A P): the coarse matrix of a multigrid hierarchy.

    Parameters
    ----------
    R, A, P : CSRMatrix
        The factors, in one space.

    Attributes
    ----------
    C : CSRMatrix
        The product R A P.

    Raises
    ------
    InputError, OutOfMemory
        See `Product`.
    """

    def __init__(self, R, A, P):
        self._inner = Product(A, P)
        self._outer = Product(R, self._inner.C)
        self.C = self._outer.C

    def update(self, R, A, P):
        """Recompute R A P, in place, for new values on the same patterns."""
        self._inner.update(A, P)
        self._outer.update(R, self._inner.C)
