"""getrf: LU with full partial pivoting by the device's library, LAPACK through SciPy or cuSOLVER. The unit diagonal is
in L.

The other decomposers are compared with it. Storage: the factors, column-major. Many matrices on a GPU: one call of
cuBLAS factors all of them, up to BATCHED rows each. cuSOLVER factors larger ones one after the other; its speed grows
with their size. Its 64-bit functions (cusolver.py) take n² > 2³¹. On a CPU LAPACK factors one after the other.
"""
from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.dense import cusolver
from swell.dense.decomposer import Decomposer
from swell.dense.factors import DoolittleFactors
from swell.dense.products import CUBLAS, addresses

BATCHED = 512           # most rows for one cuBLAS call on many matrices: a guess until it is measured


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
            raise InputError(f"Getrf(pivoting={self.pivoting!r}): expected 'full' or 'none'; GEM, CM, PCM and ICM have "
                             "conditional pivoting")

    def supports_batches(self, space):
        return space.name == "cuda"

    def decompose(self, work):
        if work.space.name == "cuda":
            self._on_device(work)
            return work.n, None
        if self.pivoting == "none":
            raise InputError("Getrf(pivoting='none') runs on a GPU only, since LAPACK always pivots: take "
                             "GEM(pivoting='none')")
        from scipy.linalg import lu_factor
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # LAPACK warns of a zero pivot, which raises an error later
            work.matrix[0], work.pivots[...] = lu_factor(work.matrix[0], overwrite_a=True, check_finite=False)
        return work.n, None

    def _on_device(self, work):
        """Decompose ``work.matrix`` in place on a GPU; write ``work.pivots``. Without an array for them the library
        does not pivot."""
        count, n, chosen = work.count, work.n, work.pivots if self.pivoting == "full" else None
        if count == 1 or n > BATCHED:
            cusolver.getrf(work.lu.reshape(count, -1), None if chosen is None else chosen.reshape(count, -1))
            return
        import cupy
        from cupy.cuda import cublas, device
        at, info = addresses(work.matrix), cupy.empty(count, np.int32)
        getattr(cublas, f"{CUBLAS[work.dtype.char]}getrfBatched")(
            device.get_cublas_handle(), n, at.data.ptr, n, 0 if chosen is None else chosen.data.ptr, info.data.ptr,
            count)
        if chosen is not None:
            chosen -= 1                          # the library counts from one, as in Fortran
