"""The second level of Schwarz across ranks: the near null vectors of each rank's rows. Nicolaides 1987; Mandel 1993.

The balancing form of preconditioners/coarse_space.py. A rank is a subdomain, so the coarse space has few vectors, and
the operator of preconditioners/deflation.py serves, with these vectors U in place of Ritz vectors:

    B = (I − U E⁻¹ Wᵀ) M (I − W E⁻¹ Uᵀ) + U E⁻¹ Uᵀ,    W = A U,    E = Uᵀ A U.

As on one device, a step of Jacobi's method smooths the vectors, u = u − ω D⁻¹ A u: they then reach into other ranks'
rows. An application has two all-reduces more than M, and no product with A.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from swell.core.errors import InputError
from swell.preconditioners.amg.aggregation import OMEGA
from swell.preconditioners.amg.smoother import radius, scales
from swell.preconditioners.deflation import Deflation, DeflationOperator, symmetry
from swell.preconditioners.near_nullspace import checked, independent

MAX_VECTORS = 250       # most vectors of all ranks


class RankCoarseSpace(DeflationOperator):
    """z = B r for a DistributedMatrix and settings of `Schwarz`.

    Raises
    ------
    InputError
        If A is not real and symmetric, or the vectors of all ranks are too many.
    """

    def __init__(self, A, settings):
        if A.dtype.kind == "c" or not symmetry(A)[0]:
            raise InputError(f"Schwarz(coarse='nicolaides') got a matrix of {A.dtype.name}"
                             f"{'' if A.dtype.kind == 'c' else ' that is not symmetric'}: expected a real symmetric "
                             "one; leave coarse out")
        self._modes = independent(_own_modes(A, settings.near_nullspace))
        counts = A.space.ranks.allgather(self._modes.shape[1])
        self._before, count = sum(counts[:A.space.ranks.communicator.rank]), sum(counts)
        if not count <= min(MAX_VECTORS, A.shape[0] // 2):
            raise InputError(f"Schwarz(coarse='nicolaides'): the ranks have {count} near null vectors in all: expected "
                             f"at most {MAX_VECTORS}, and two unknowns for each: give fewer vectors, or take fewer "
                             "ranks")
        one_level = replace(settings, coarse="none", near_nullspace="constants")
        super().__init__(A, Deflation(inner=one_level, vectors=count))

    def _find_vectors(self, A):
        """Set U: this rank's rows have its own vectors, and zeros in all others."""
        rows, count = self._modes.shape
        self._U.fill(0)
        self._U[self._before:self._before + count, :rows] = self.space.xp.asarray(self._modes.T.astype(self._single))
        self._smooth(A)
        self._symmetric = self._conjugate = True
        self.self_adjoint, self._terms = self.inner.self_adjoint, ()

    def _smooth(self, A):
        """Smooth U in place. The products are in double precision, as A U in E is."""
        A = A if A.dtype == np.float64 else A.astype(np.float64)
        weights = scales(A, OMEGA / radius(A, "point"), "point") ** 2          # ω / (λ dᵢ)
        x, product = (self.space.empty(weights.size, np.float64) for _ in range(2))
        for u in self._U[:, :weights.size]:
            x[...] = u
            A.apply(x, product)
            u -= weights * product

    def describe(self):
        return f"{self.inner.describe()}; a coarse space of {len(self._U)} vectors"


def _own_modes(A, near_nullspace):
    """Return the near null vectors in this rank's rows, a float64 host array of shape (rows, k)."""
    rows = A.space.ranks.local_rows(A.shape[0])
    if isinstance(near_nullspace, str):
        size = A.block_size                      # blocks are whole on a rank
        return np.tile(np.eye(size), (-(-rows // size), 1))[:rows]
    return checked(near_nullspace, A, "Schwarz")
