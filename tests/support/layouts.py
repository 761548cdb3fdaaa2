"""The same numbers in every layout that NumPy has, and matrices in the disorder that SciPy allows."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def with_gaps(a):
    return np.repeat(a, 2, axis=-1)[..., ::2]


def reversed_(a):
    every = (slice(None, None, -1),) * a.ndim
    return a[every].copy()[every]


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def not_aligned(a):
    shifted = np.frombuffer(bytearray(a.nbytes + 1), a.dtype, a.size, 1).reshape(a.shape)
    shifted[...] = a
    return shifted


def of_records(a):
    records = np.zeros(a.shape, [("tag", "u1"), ("value", a.dtype)])
    records["value"] = a
    return records["value"]


LAYOUTS = {
    "gaps": with_gaps, "reversed": reversed_, "columns first": lambda a: a.T.copy().T,
    "slice": lambda a: np.pad(a, 1)[(slice(1, -1),) * a.ndim], "read-only": read_only, "not aligned": not_aligned,
    "records": of_records, "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "read-only gaps": lambda a: np.broadcast_to(with_gaps(a), a.shape)}
WHOLE_NUMBERS = "int16", "int64", "uint16", "uint32", "uint64"


def with_arrays(A, **arrays):
    """A copy of a SciPy matrix with some of its arrays (data, indices, indptr) replaced."""
    A = A.copy()
    for name, array in arrays.items():
        setattr(A, name, array)
    return A


def in_disorder(A, lock=False):
    """The same matrix with columns that descend, the first entry of each row in two halves, and index arrays of two
    types. ``lock``: they may only be read."""
    A = sp.csr_array(A)
    rows = [[(A.indices[k], A.data[k]) for k in range(*A.indptr[i:i + 2])][::-1] for i in range(A.shape[0])]
    rows = [[(j, v / 2), (j, v / 2), *others] for (j, v), *others in rows]
    B = sp.csr_array(([v for row in rows for _, v in row], [j for row in rows for j, _ in row],
                      np.cumsum([0, *map(len, rows)])), shape=A.shape)
    B.indices, B.indptr = B.indices.astype(np.int32), B.indptr.astype(np.int64)
    for array in (B.data, B.indices, B.indptr):
        array.flags.writeable = not lock
    return B


def arrays_of(A):
    """Copies of a matrix's arrays."""
    return [array.copy() for array in (A.data, A.indices, A.indptr)]
