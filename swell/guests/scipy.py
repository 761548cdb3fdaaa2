"""The guest for NumPy's arrays, SciPy's sparse matrices, and all objects that NumPy can convert to an array."""
from __future__ import annotations

import numpy as np

from swell.core.arrays import by_parts, check_dense, checked_dtype, host_array, native, stored_size
from swell.core.errors import InputError
from swell.core.guests import ArrayLibrary, Given


class SciPy(ArrayLibrary):
    """Arrays and sparse matrices on the host, sequences of numbers, and objects with ``__array__``."""

    def dtype_of(self, value, name):
        try:
            np.dtype(value.dtype)
            return value.dtype
        except (AttributeError, TypeError):      # pandas has types of its own
            return host_array(value, name).dtype

    def read_matrix(self, A):
        """Return A as it is, or as a SciPy matrix if its class is another one with a method ``tocsr``; np.matrix as an
        array."""
        import scipy.sparse as sp
        if isinstance(A, np.matrix):
            return np.asarray(A)
        return A.tocsr() if hasattr(A, "tocsr") and not sp.issparse(A) else A

    def read_vector(self, v, name):
        if hasattr(v, "toarray"):
            check_dense(name, v.shape, np.dtype(v.dtype).itemsize)
            v = v.toarray()
        return host_array(v, name)

    def read_preconditioner(self, M):
        """Return the factors of ``splu`` or ``spilu`` as an operator that solves with them."""
        from scipy.sparse.linalg import LinearOperator, SuperLU
        if not isinstance(M, SuperLU):
            return M, False
        dtype = M.L.dtype                        # SuperLU has no dtype of its own
        return LinearOperator(M.shape, lambda r: by_parts(M.solve, r, dtype), dtype=dtype,
                              rmatvec=lambda r: by_parts(lambda part: M.solve(part, "H"), r, dtype)), False

    def check(self, A, quick=False):
        """Raise InputError for damaged arrays of A, before SciPy's compiled code uses them: it would crash, or read
        past their ends. ``quick``: skip the indices of a CSR matrix of 32 bits, which a later pass checks."""
        import scipy.sparse as sp
        if not sp.issparse(A):
            return
        quick = quick and A.format == "csr" and A.indices.dtype == A.indptr.dtype == np.int32 \
            and A.indices.ndim == 1
        if A.format == "coo":
            _check_lengths(A.data.shape, *((index.size,) for index in A.coords))
            for name, index, size in zip(("row", "column"), A.coords, A.shape):
                _check_range(index, size, f"{name} index")
        elif A.format == "dia":
            _check_lengths(A.data.shape, (A.offsets.size, *A.data.shape[1:2]))
        elif A.format in ("csr", "csc", "bsr"):
            block = A.blocksize if A.format == "bsr" else ()
            shape = [size // one for size, one in zip(A.shape, block or (1, 1))]
            major, minor = shape[::-1] if A.format == "csc" else shape
            if (A.indptr.shape != (major + 1,) or A.indptr.dtype.kind not in "iu" or A.indptr[0] != 0
                    or A.indptr[-1] > A.indices.size or not quick and (A.indptr[1:] < A.indptr[:-1]).any()):
                raise InputError(f"A.indptr is inconsistent: expected {major + 1} ascending integers from 0 to nnz")
            _check_lengths(A.data.shape, (A.indices.size, *block))
            if not quick:
                _check_range(A.indices, minor, {"csc": "row index", "bsr": "block index"}.get(A.format, "column index"))

    def csr(self, A):
        import scipy.sparse as sp
        checked_dtype(A.dtype if hasattr(A, "dtype") else host_array(A, "A").dtype, "A")
        if not sp.issparse(A):
            csr = sp.csr_matrix(host_array(A, "A"))
            return Given(csr, csr.nnz, shared=False)
        try:
            csr = native(A).tocsr()
        except (IndexError, TypeError, ValueError) as error:     # in formats that `check` does not know, such as LIL
            raise InputError(f"A is an inconsistent {type(A).__name__} ({error}): build it anew") from None
        return Given(csr, A.nnz if A.format in ("coo", "csr", "csc") else csr.nnz, _share_memory(csr, A),
                     stored_size(A) or 0)

    def summed(self, csr):
        csr = csr.copy()
        csr.has_canonical_format = False
        csr.sum_duplicates()
        return csr


def _share_memory(csr, A) -> bool:
    """Return True if an array of the CSR matrix ``csr`` shares memory with one of A's arrays."""
    theirs = [getattr(A, name, None) for name in ("data", "indices", "indptr")]
    theirs = [array for array in theirs if isinstance(array, np.ndarray) and array.dtype != object]
    return any(np.shares_memory(ours, array) for ours in (csr.data, csr.indices, csr.indptr) for array in theirs)


def _check_lengths(shape, *expected):
    """Raise InputError unless ``shape``, the shape of the values, equals each shape that the indices imply."""
    for implied in expected:
        if tuple(shape) != tuple(implied):
            raise InputError(f"A.data has shape {tuple(shape)}: expected {tuple(implied)}, as A's indices have; was "
                             "one of its arrays replaced?")


def _check_range(index, size, name):
    """Raise InputError unless ``index`` holds integers from 0 to size − 1; ``name``: the indices in the message."""
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise InputError(f"A has {name} arrays of {index.dtype} and shape {index.shape}: expected integers in "
                         "one dimension")
    if index.size and (index.min() < 0 or index.max() >= size):
        worst = index.max() if index.max() >= size else index.min()
        raise InputError(f"A has a {name} of {worst}: expected 0 to {size - 1}; was it built with one-based indices?")
