"""A matrix of the cycle in CSR; several threads of a GPU, the lanes, share a row.

On a medium level, a thread a row, as in SELL, means too few threads with long rows: they mostly wait for memory. CSR
takes eight bytes an entry instead of six, but needs no conversion and no padding. A launch has exactly the lanes of all
rows.
"""
from __future__ import annotations

from swell.core.operator import LinearOperator
from swell.formats.csr import CSR
from swell.formats.sell import SELL

ROWS, ENTRIES = 1 << 17, 8      # most rows, and least entries a row on average, of a matrix in this form
LOADED, WARP = 3, 32            # entries that a lane loads at a time (sliced.cuh), and the most lanes of a row
THREADS = 1 << 20               # most threads of a launch: some four times what a GPU runs at once


def suits(csr) -> bool:
    """True if several threads of a GPU should share a row of this CSRMatrix: few rows, many entries in each."""
    return csr.space.name == "cuda" and csr.shape[0] <= ROWS and csr.nnz >= ENTRIES * csr.shape[0] > 0


def lanes_of(csr) -> int:
    """The number of lanes that share a row: a power of two, so that each has some three entries on average, or more on
    a level of many rows."""
    lanes = 1
    while lanes < WARP and LOADED * lanes * csr.shape[0] <= csr.nnz and 2 * lanes * csr.shape[0] <= THREADS:
        lanes *= 2
    return lanes


def stored(csr):
    """Return the operator of a matrix of the cycle: shared rows if that suits it, else CSR on a CPU, SELL on a GPU."""
    if suits(csr):
        return SharedRows(csr)
    return (CSR() if csr.space.name == "cpu" else SELL()).build(csr)


class SharedRows(LinearOperator):
    """An operator that multiplies by ``csr``, without a copy; ``lanes`` threads of a GPU share a row."""

    def __init__(self, csr):
        super().__init__(csr.shape, csr.dtype, csr.space)
        self.csr, self.nnz, self.lanes = csr, csr.nnz, lanes_of(csr)
        self._kernels = csr.space.kernels("swell.preconditioners.amg", "cycle", csr.dtype)

    def apply(self, x, out, alpha=1, beta=0):
        self.apply_sum(x, alpha, out, beta, out, 0, out)

    def apply_plus(self, x, z, out):
        self.apply_sum(x, 1, z, 1, z, 0, out)

    def apply_sum(self, x, alpha, z, beta, w, gamma, out):
        """``out = alpha A x + beta z + gamma w``. ``out`` may be the same array as z or w, but not as x."""
        A, scalar = self.csr, self.dtype.type
        factors = scalar(alpha), scalar(beta), scalar(gamma)
        self._kernels.shared_rows(A.indptr, A.indices, A.data, self.lanes, x, *factors, z, w, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.csr.apply_adjoint(x, out, alpha, beta)

    def update(self, new):
        if new.data is not self.csr.data:
            self.csr.data[...] = new.data
        self.csr.discard_adjoint()

    @property
    def revision(self):
        return self.csr.revision

    @property
    def nbytes(self):
        return self.csr.nbytes
