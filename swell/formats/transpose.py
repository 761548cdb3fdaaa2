"""The transpose of a CSR matrix, and the permutation of its values, so that new values take one gather.

A CPU counts the entries of each column, then distributes the rows in their order: two passes, by one thread.

A GPU takes four launches and no host read: a histogram of the columns, `Space.prefix_sums`, a place for each entry in
its column by an atomic operation, and a sort of each column's entries by row. The atomics leave an order that differs
from run to run; the sort makes the result reproducible. With N entries of a double-precision matrix and 32-bit indices
a GPU moves about 44 N bytes.
"""
LONG = 512              # a row of Mᵀ with more entries is sorted by a whole block, as in transpose.cu


def transposed(M):
    """Mᵀ, and for each of its values the index of this value in M.

    Parameters
    ----------
    M : CSRMatrix
        Columns sorted in each row and free of duplicates.

    Returns
    -------
    MT : CSRMatrix
        Columns sorted in each row.
    order : int array, shape (nnz,)
        ``MT.data`` is ``M.data[order]``. The type is the type of ``M.indices``.
    """
    order = M.space.empty(M.nnz, M.indices.dtype)
    return type(M)(M.space, *transposed_arrays(M, order), M.shape[::-1], block=M.known_block), order


def transposed_arrays(M, order):
    """Return the row pointers, columns and values of Mᵀ, new arrays; M is a CSRMatrix.

    Unless ``order`` is empty, the index in M of each value of Mᵀ is written into it."""
    space, index = M.space, M.indices.dtype
    indptr, indices = space.empty(M.shape[1] + 1, index), space.empty(M.nnz, index)
    data = space.empty(M.nnz, M.dtype)
    kernels = space.kernels("swell.formats", "transpose", M.dtype)
    if space.name == "cpu":
        kernels.transpose(M.indptr, M.indices, M.data, indptr, indices, data, order)
    else:
        _on_gpu(M, kernels, indptr, indices, data, order)
    return indptr, indices, data


def _on_gpu(M, kernels, indptr, indices, data, order):
    space, (_, columns) = M.space, M.shape
    counts = space.xp.zeros(columns + 1, indices.dtype)          # the last element counts the long columns
    long_rows, placed = space.empty(M.nnz // LONG, indices.dtype), space.empty(2 * M.nnz, indices.dtype)
    kernels.count_columns(M.indices, counts)
    space.prefix_sums(counts[:-1], indptr)
    kernels.place(M.indptr, M.indices, indptr, counts, placed, long_rows)
    kernels.sort(indptr, placed, counts, long_rows, M.shape[0], M.data, indices, data, order)
