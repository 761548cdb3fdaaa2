"""The canonical form of every matrix read from a file: CSR, sorted, without duplicates, int32 indices if they fit."""
import numpy as np
import scipy.sparse as sp

from swell.core.arrays import native
from swell.core.errors import InputError
from swell.io import files

_INT32_MAX = np.iinfo(np.int32).max


def canonical_csr(path, A):
    """Convert a sparse matrix to the form that `swell.io.read_matrix` promises.

    Parameters
    ----------
    path : Path
        The file's name, for error messages.
    A : SciPy sparse matrix or array, any format
        May hold unsorted and duplicate entries.

    Returns
    -------
    A : scipy.sparse.csr_matrix
        float64 or complex128, sorted indices without duplicates, int32 indices if they fit.
    notes : list of str
        Sentences for the user; see `read_matrix`.

    Raises
    ------
    InputError
        If A has far more rows or columns than entries.
    """
    stored = A.nnz
    files.check_shape(path, A.shape, stored)
    A = sp.csr_matrix(A, dtype=np.complex128 if A.dtype.kind == "c" else np.float64)
    A.sum_duplicates()      # sorts as well
    if max(A.nnz, *A.shape) <= _INT32_MAX:
        A.indices, A.indptr = A.indices.astype(np.int32, copy=False), A.indptr.astype(np.int32, copy=False)
    duplicates = stored - A.nnz
    if not duplicates:
        return A, []
    return A, [f"{duplicates} duplicate {'entries were' if duplicates > 1 else 'entry was'} summed"]


def dense_to_csr(path, values):
    """Return (A, notes), as `canonical_csr` does, from the nonzeros (NaN included) of a dense 2-D array.

    ``path``: the file's name, for error messages."""
    files.check_shape(path, values.shape, values.size)
    A, notes = canonical_csr(path, sp.csr_matrix(native(values)))
    return A, notes + [f"dense storage: {A.nnz} of {values.size} entries are not zero and were kept"]


def expand(symmetry, stored):
    """Return the full COO matrix: `stored`, a COO triangle, with its mirror image.

    `symmetry`: "symmetric", "skew-symmetric" or "hermitian"; a "general" matrix is returned as it is."""
    if symmetry == "general":
        return stored
    row, col, value = stored.row, stored.col, stored.data
    mirror = {"symmetric": value, "skew-symmetric": -value, "hermitian": value.conj()}[symmetry]
    off = row != col
    return sp.coo_matrix((np.concatenate([value, mirror[off]]),
                          (np.concatenate([row, col[off]]), np.concatenate([col, row[off]]))), shape=stored.shape)


def check_indices(A):
    """Raise `ValueError` if an index of A, a SciPy matrix, lies outside: compiled code would read past the end."""
    if A.format in ("csr", "csc", "bsr"):
        A.check_format(full_check=True)
        if (np.diff(A.indptr) < 0).any():        # SciPy looks only where the last pointer is not zero
            raise ValueError("the row or column pointers decrease")
    elif A.format == "coo":
        for index, size in zip((A.row, A.col), A.shape):
            if index.min(initial=0) < 0 or index.max(initial=-1) >= size:
                raise ValueError(f"an index lies outside the shape {A.shape}")


def check_numeric(path, dtype):
    """Raise `InputError` unless values of this type are numbers; `path` is for the message."""
    if dtype.kind not in "biufc":
        raise InputError(f"{path} holds values of dtype {dtype}, expected numbers. Write them as float.")
