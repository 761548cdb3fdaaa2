"""The transpose of a CSR matrix, and where each of its values came from, so that new values are a gather.

A CPU counts the entries of each column and takes the rows in their order: two passes, by one thread.

A GPU takes four launches and no host read: a histogram of the columns, `Space.add_up`, a place for each entry in its
column, taken by an atomic, and a sort of each column's entries by their rows. The atomics leave an order that differs
from run to run; the sort makes the result the same. With N entries of a double-precision matrix and 32-bit indices a
GPU moves about 44 N bytes.
"""
from __future__ import annotations

LONG = 512              # entries of a row of Mᵀ beyond which a whole block sorts it, as in transpose.cu


def transposed(M):
    """(Mᵀ, where each of its values is among the values of M).

    Parameters
    ----------
    M : CSRMatrix
        Its columns sorted in each row and free of duplicates.

    Returns
    -------
    MT : CSRMatrix
        Its columns sorted in each row.
    order : int array, shape (nnz,)
        Of the type of ``M.indices``: ``MT.data`` is ``M.data[order]``.
    """
    order = M.space.empty(M.nnz, M.indices.dtype)
    return type(M)(M.space, *transposed_arrays(M, order), M.shape[::-1], block=M.known_block), order


def transposed_arrays(M, order):
    """The row pointers, columns and values of Mᵀ; ``order`` is filled unless it is empty."""
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
    counts = space.xp.zeros(columns + 1, indices.dtype)          # the last: how many are long
    long_rows, placed = space.empty(M.nnz // LONG, indices.dtype), space.empty(2 * M.nnz, indices.dtype)
    kernels.count_columns(M.indices, counts)
    space.add_up(counts[:-1], indptr)
    kernels.place(M.indptr, M.indices, indptr, counts, placed, long_rows)
    kernels.sort(indptr, placed, counts, long_rows, M.shape[0], M.data, indices, data, order)
