"""Parts of A(ω) that are no polynomial in ω: walls and media given by tables, and perfectly matched layers.

A(ω) = K − ω² M + iω B + Σ V(ω). Each V has a fixed pattern; its values are computed for each frequency on the host.
"""
from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class Varying(ABC):
    """A complex symmetric matrix over all dofs, whose values depend on the frequency.

    Attributes
    ----------
    kind : {"medium", "walls", "layer"}
        What takes energy out of the sound there.
    numbers : scipy.sparse.csr_matrix
        Its pattern; the value of entry k is k + 1.
    """

    def __init__(self, kind, numbers):
        self.kind, self.numbers = kind, numbers

    @abstractmethod
    def values(self, omega) -> np.ndarray:
        """Return the values of the entries at an angular frequency (1/s), complex, shape (nnz,)."""

    def matrix(self, omega):
        """Return the SciPy CSR matrix at an angular frequency (1/s)."""
        csr = self.numbers.astype(complex)
        csr.data[:] = self.values(omega)
        return csr


class Combination(Varying):
    """Σ c(ω) T over constant matrices T.

    Parameters
    ----------
    kind : str
    terms : list of (scipy.sparse.csr_matrix, callable)
        ``callable(ω)`` returns the factor c.
    """

    def __init__(self, kind, terms):
        matrices = [T.tocsr() for T, _ in terms]
        union = sum(abs(T).astype(bool).astype(np.int8) for T in matrices).tocsr()
        super().__init__(kind, numbered(union))
        places, self._factors, self._data = keys(self.numbers), [c for _, c in terms], []
        for T in matrices:
            data = np.zeros(self.numbers.nnz, T.dtype)
            T.sum_duplicates()
            T.eliminate_zeros()
            data[np.searchsorted(places, keys(T))] = T.data
            self._data.append(data)

    def values(self, omega):
        return sum(complex(factor(omega)) * data for factor, data in zip(self._factors, self._data))


def numbered(pattern):
    """Return a CSR matrix with the pattern of ``pattern``, columns sorted; the value of entry k is k + 1."""
    import scipy.sparse as sp
    csr = sp.csr_matrix(pattern)
    csr.sort_indices()
    return sp.csr_matrix((np.arange(1.0, csr.nnz + 1), csr.indices, csr.indptr), csr.shape)


def keys(A):
    """Return the number row · columns + column of each entry of a CSR matrix with sorted columns; they ascend."""
    return np.repeat(np.arange(A.shape[0], dtype=np.int64), np.diff(A.indptr)) * A.shape[1] + A.indices
