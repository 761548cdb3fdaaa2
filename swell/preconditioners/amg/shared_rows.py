"""A matrix of the cycle in CSR, whose rows lanes of a GPU share.

Of a medium level a thread a row, as in SELL, makes too few threads, each with a long row: they wait for memory most of
the time. Eight bytes an entry instead of six, but no layout and no padding.
"""
from __future__ import annotations

from swell.core.operator import LinearOperator

ROWS, ENTRIES = 1 << 17, 8      # rows, at most, and entries of a mean row, at least, of a matrix that is stored so


def suits(csr) -> bool:
    """True where lanes should share the rows of a matrix."""
    return csr.space.name == "cuda" and csr.shape[0] <= ROWS and csr.nnz >= ENTRIES * csr.shape[0] > 0


class SharedRows(LinearOperator):
    """``csr`` itself as an operator."""

    def __init__(self, csr):
        super().__init__(csr.shape, csr.dtype, csr.space)
        self.csr, self.nnz = csr, csr.nnz
        self._kernels = csr.space.kernels("swell.preconditioners.amg", "cycle", csr.dtype)

    def _product(self, x, alpha, beta, z, out):
        A, scalar = self.csr, self.dtype.type
        self._kernels.shared_rows(A.indptr, A.indices, A.data, x, scalar(alpha), scalar(beta), z, out)

    def apply(self, x, out, alpha=1, beta=0):
        self._product(x, alpha, beta, out, out)

    def apply_plus(self, x, z, out):
        self._product(x, 1, 1, z, out)

    def update(self, new):
        self.csr.data[...] = new.data

    @property
    def nbytes(self):
        return self.csr.nbytes
