"""What a cycle reads, computed on the CPU, threads sharing the rows; see cycle.py and smoother.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import njit, prange


@njit(parallel=True, cache=True)
def l1_scales(indptr, data, omega, scales):
    """scales[i] = √(ω / Σⱼ |aᵢⱼ|); 1 for an empty row."""
    for i in prange(scales.size):
        moduli = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            moduli += abs(data[k])
        scales[i] = np.sqrt(omega / moduli) if moduli > 0 else 1.0


@njit(parallel=True, cache=True)
def smoothing_matrix(indptr, indices, data, scales, out):
    """The values of S = I − D A D with D = diag(scales)."""
    for i in prange(scales.size):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            out[k] = (1.0 if i == j else 0.0) - scales[i] * data[k] * scales[j]


@njit(parallel=True, cache=True)
def balance(indptr, indices, data, fine, coarse, out):
    """The values of diag(fine)⁻¹ P diag(coarse)."""
    for i in prange(fine.size):
        for k in range(indptr[i], indptr[i + 1]):
            out[k] = data[k] / fine[i] * coarse[indices[k]]


@njit(parallel=True, cache=True, fastmath={"reassoc", "contract", "nsz"})
def dense_product(matrix, width, x, y):
    """y = the product of a square matrix, row after row, with the columns of x, whose rows are contiguous."""
    n = x.size // width
    for i in prange(n):
        for c in range(width):
            total = y.dtype.type(0)
            for j in range(n):
                total += matrix[i * n + j] * x[j * width + c]
            y[i * width + c] = total
