"""getrf: LU with full partial pivoting by the device's library, LAPACK through SciPy or cuSOLVER. The unit diagonal is
in L.

What the other decomposers are measured beside. Storage: the factors, column-major.
"""
from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.dense.decomposer import Decomposer
from swell.dense.factors import DoolittleFactors


@dataclass(frozen=True)
class Getrf(Decomposer):
    """LU by LAPACK on a CPU and by cuSOLVER on a GPU.

    Attributes
    ----------
    pivoting : {"full", "none"}
        "none" on a GPU only: LAPACK always pivots.
    """

    pivoting: str = "full"

    cost = "2/3 n³, the library's"
    factors = DoolittleFactors
    order = "F"

    def __post_init__(self):
        if self.pivoting not in ("full", "none"):
            raise InputError(f"Getrf(pivoting={self.pivoting!r}): expected 'full' or 'none'; conditional pivoting is "
                             "that of GEM, CM, PCM and ICM")

    def decompose(self, work):
        if work.space.name == "cuda":
            self._cusolver(work)
            return work.n, None
        if self.pivoting == "none":
            raise InputError("Getrf(pivoting='none') runs on a GPU only, since LAPACK always pivots: take "
                             "GEM(pivoting='none')")
        from scipy.linalg import lu_factor
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # of a zero pivot, which is an error of ours
            work.matrix[...], work.pivots[...] = lu_factor(work.matrix, overwrite_a=True, check_finite=False)
        return work.n, None

    def _cusolver(self, work):
        """In place; without an array for pivots there are none."""
        import cupy
        from cupy.cuda import device
        from cupy_backends.cuda.libs import cusolver
        letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[work.dtype.char]
        n, lu, handle = work.n, work.lu.data.ptr, device.get_cusolver_handle()
        size = getattr(cusolver, f"{letter}getrf_bufferSize")(handle, n, n, lu, n)
        scratch, info = cupy.empty(size, work.dtype), cupy.empty(1, np.int32)
        pivots = work.pivots.data.ptr if self.pivoting == "full" else 0
        getattr(cusolver, f"{letter}getrf")(handle, n, n, lu, n, scratch.data.ptr, pivots, info.data.ptr)
        if self.pivoting == "full":
            work.pivots -= 1                     # from one on, as in Fortran
