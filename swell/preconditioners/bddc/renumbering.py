"""Parts of a matrix with other row and column numbers, on its device; and a search for equal arrays among many."""
from __future__ import annotations

import numpy as np

from swell.core.library import native_kernels
from swell.formats.csr import CSRMatrix

SAMPLE = 512            # entries of an array that are compared before all of them are


def renumbered(A, rows, columns, shape, kept=None):
    """Return a new CSRMatrix with A's entry (i, j) at (rows[i], columns[j]).

    Parameters
    ----------
    A : CSRMatrix
    rows, columns : int device arrays
        New numbers, each once; -1 leaves a row or column out.
    shape : (int, int)
        Shape of the result.
    kept : int device array, optional
        ``A.rows()``, computed once by callers that need several parts on a GPU.
    """
    space, xp = A.space, A.space.xp
    if space.name == "cpu":
        kernels, index = native_kernels("swell.preconditioners.bddc", "renumbering"), A.indices.dtype
        indptr, indices, source = np.empty(shape[0] + 1, index), np.empty_like(A.indices), np.empty_like(A.indices)
        rows = rows[:A.shape[0]]                 # the caller's numbers may go on with ghost rows
        count = kernels.renumber(A.indptr, A.indices, rows.astype(index, copy=False),
                                 columns.astype(index, copy=False), indptr, indices, source)
        return CSRMatrix(space, indptr, indices[:count].copy(), A.data[source[:count]], shape)
    i, j = rows[A.rows() if kept is None else kept], columns[A.indices]
    there = (i >= 0) & (j >= 0)
    i, j, data = i[there], j[there], A.data[there]
    place = i.astype(np.int64) * shape[1] + j
    if space.find_true(place[1:] <= place[:-1])[1]:  # sync: sorted already if both numberings ascend
        order = xp.argsort(place)
        i, j, data = i[order], j[order], data[order]
    ends = xp.arange(shape[0] + 1, dtype=i.dtype)
    indptr = xp.searchsorted(i, ends) if i.size else xp.zeros_like(ends)
    return CSRMatrix(space, indptr, j, data, shape)


def pattern(A):
    """Return a scipy.sparse.csr_array with 1 for each entry of A, which has this format: graphs take no complex values.
    """
    import scipy.sparse as sp
    return sp.csr_array((np.ones(A.nnz, np.int8), A.indices, A.indptr), A.shape)


def numbers(space, rows, n):
    """Return a new device array p of length n: p[i] is the place of i in ``rows``, a host array of row numbers; -1 if i
    is not in it."""
    place = np.full(n, -1, np.int32 if n < 2**31 - 1 else np.int64)
    place[rows] = np.arange(rows.size)
    return space.from_host(place)


def equal(every, space=None):
    """Group equal tuples of arrays. Returns a list of lists: the places in ``every`` of equal tuples, sorted by the
    first place.

    ``every`` is an iterable of tuples of arrays. ``space``: the arrays' space; None for host arrays. Arrays are
    compared in full only if their shapes and a sample of their entries agree."""
    def same(a, b):
        return np.array_equal(a, b) if space is None else not space.find_true((a != b).ravel())[1]  # sync

    by_sample, seen = {}, {}
    for k, arrays in enumerate(every):
        itself = tuple(map(id, arrays))
        if itself in seen:                       # the very same objects
            seen[itself][1].append(k)
            continue
        samples = [array.ravel()[::max(1, array.size // SAMPLE)] for array in arrays]
        key = tuple((array.shape, (sample if space is None else space.to_host(sample)).tobytes())
                    for array, sample in zip(arrays, samples, strict=True))
        alike = by_sample.setdefault(key, [])
        for others, members in alike:
            if all(a is b or same(a, b) for a, b in zip(arrays, others, strict=True)):
                members.append(k)
                break
        else:
            members = [k]
            alike.append((arrays, members))
        seen[itself] = arrays, members           # keeps the arrays, and so their identities
    return sorted((members for alike in by_sample.values() for _, members in alike), key=lambda members: members[0])
