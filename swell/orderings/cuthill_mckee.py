"""Cuthill–McKee orderings, which narrow the bandwidth. Cuthill and McKee 1969; reversed, George 1971.

The level-by-level search is SciPy's, on the host; the permutation is applied where the matrix lives.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.transforms.permutation import Permutation


@dataclass(frozen=True)
class ReverseCuthillMcKee:
    """Reverse Cuthill–McKee."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        """Row i of the reordered matrix is row ``order(A)[i]`` of A (a SciPy sparse matrix, n × n)."""
        return reverse_order(A)

    def build(self, A):
        """The permutation for a CSR matrix."""
        return Permutation(A, A.space.from_host(self.order(A.to_scipy())))


@dataclass(frozen=True)
class CuthillMcKee:
    """Cuthill–McKee, not reversed."""

    problem = "any matrix; its pattern is taken as symmetric"
    cost = "none an iteration"

    def order(self, A):
        """Row i of the reordered matrix is row ``order(A)[i]`` of A (a SciPy sparse matrix, n × n)."""
        return reverse_order(A)[::-1].copy()

    def build(self, A):
        """The permutation for a CSR matrix."""
        return Permutation(A, A.space.from_host(self.order(A.to_scipy())))


def reverse_order(A) -> np.ndarray:
    """The reverse Cuthill–McKee order of the pattern of A + Aᵀ."""
    import scipy.sparse as sp
    from scipy.sparse.csgraph import reverse_cuthill_mckee
    pattern = sp.csr_matrix((np.ones(A.nnz, np.int8), A.indices, A.indptr), shape=A.shape)
    return reverse_cuthill_mckee((pattern + pattern.T).tocsr(), symmetric_mode=True)
