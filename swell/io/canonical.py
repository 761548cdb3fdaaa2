"""One canonical form for every matrix that is read: CSR with sorted, summed, small indices."""
import numpy as np
import scipy.sparse as sp

from swell.core.arrays import native
from swell.io import files

_INT32_MAX = np.iinfo(np.int32).max


def canonical_csr(path, A):
    """Bring a sparse matrix into the form that `read_matrix` promises.

    Parameters
    ----------
    path : Path
        For the message.
    A : SciPy sparse matrix or array, any format
        May hold unsorted and duplicate entries.

    Returns
    -------
    A : scipy.sparse.csr_matrix
        float64 or complex128, sorted indices without duplicates, int32 indices where they fit.
    notes : list of str

    Raises
    ------
    InputError
        For far more rows or columns than entries.
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
    """CSR of the nonzeros (NaN included) of a dense 2-D array, with a note."""
    files.check_shape(path, values.shape, values.size)
    A, notes = canonical_csr(path, sp.csr_matrix(native(values)))
    return A, notes + [f"dense storage: {A.nnz} of {values.size} entries are not zero and were kept"]
