"""Sparse matrices in CSR on the emulated device; SciPy does the work."""
from __future__ import annotations

import scipy.sparse

import cupy


class csr_matrix:
    """A matrix in CSR."""

    format, ndim = "csr", 2

    def __init__(self, given, shape=None, dtype=None, copy=False):
        if isinstance(given, cupy.ndarray):
            given = scipy.sparse.csr_matrix(given.get())
        if isinstance(given, tuple):
            self.data, self.indices, self.indptr = (cupy.array(part, copy=copy) for part in given)
            self.shape = shape or (self.indptr.size - 1, int(self.indices.max()) + 1)
        else:
            host = given.get() if isinstance(given, csr_matrix) else scipy.sparse.csr_matrix(given)
            self.data, self.indices, self.indptr = map(cupy.array, (host.data, host.indices, host.indptr))
            self.shape = host.shape
        if dtype is not None:
            self.data = self.data.astype(dtype, copy=False)
        self.has_canonical_format = None

    dtype = property(lambda self: self.data.dtype)
    nnz = property(lambda self: self.data.size)
    device = property(lambda self: self.data.device)

    def get(self, stream=None):
        return scipy.sparse.csr_matrix((self.data.get(), self.indices.get(), self.indptr.get()), self.shape)

    def tocsr(self, copy=False):
        return self.copy() if copy else self

    def copy(self):
        return csr_matrix((self.data, self.indices, self.indptr), self.shape, copy=True)

    def astype(self, dtype, copy=True):
        made = csr_matrix((self.data.astype(dtype, copy=copy), self.indices, self.indptr), self.shape)
        made.has_canonical_format = self.has_canonical_format
        return made

    def sum_duplicates(self):
        host = self.get()
        host.has_canonical_format = False
        host.sum_duplicates()
        self.data, self.indices, self.indptr = map(cupy.array, (host.data, host.indices, host.indptr))

    def toarray(self, order=None):
        return cupy.array(self.get().toarray(order=order))

    def __matmul__(self, other):
        found = self.get() @ other.get()
        return csr_matrix(found) if isinstance(other, csr_matrix) else cupy.array(found)


csr_matrix.__module__ = "cupyx.scipy.sparse"


def issparse(given):
    return isinstance(given, csr_matrix)
