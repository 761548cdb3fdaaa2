"""getrf: LU with full partial pivoting by the device's library, LAPACK through SciPy or cuSOLVER. The unit diagonal is
in L.

The other decomposers are compared with it. Storage: the factors, column-major. Many matrices on a GPU: one call of
cuBLAS factors all of them, up to BATCHED rows each. cuSOLVER factors larger ones one after the other; its speed grows
with their size. On a CPU LAPACK factors one after the other.
"""
from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
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
        """Decompose ``work.matrix`` in place on a GPU; write ``work.pivots``. With a null pointer for them it does not
        pivot."""
        import cupy
        from cupy.cuda import cublas, device
        from cupy_backends.cuda.libs import cusolver
        n, letter, pivots = work.n, CUBLAS[work.dtype.char], self.pivoting == "full"
        info = cupy.empty(work.count, np.int32)
        if work.count > 1 and n <= BATCHED:
            at = addresses(work.matrix)
            getattr(cublas, f"{letter}getrfBatched")(device.get_cublas_handle(), n, at.data.ptr, n,
                                                     work.pivots.data.ptr if pivots else 0, info.data.ptr, work.count)
        else:
            handle = device.get_cusolver_handle()
            size = getattr(cusolver, f"{letter}getrf_bufferSize")(handle, n, n, work.lu.data.ptr, n)
            scratch = cupy.empty(size, work.dtype)
            for lu, chosen in zip(work.lu.reshape(work.count, -1), work.pivots.reshape(work.count, -1), strict=True):
                getattr(cusolver, f"{letter}getrf")(handle, n, n, lu.data.ptr, n, scratch.data.ptr,
                                                    chosen.data.ptr if pivots else 0, info.data.ptr)
        if pivots:
            work.pivots -= 1                     # the library counts from one, as in Fortran
