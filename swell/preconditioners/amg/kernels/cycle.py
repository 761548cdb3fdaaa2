"""The matrices of a cycle, and its products, on the CPU, threads sharing the rows; see balancing.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import njit, prange

from swell.core.compiled import parallel
from swell.preconditioners.amg.slots import State

COARSE = int(State.COARSE)


@parallel
def l1_scales(indptr, data, omega, scales):
    """scales[i] = √(ω / Σⱼ |aᵢⱼ|); 1 for an empty row."""
    for i in prange(scales.size):
        moduli = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            moduli += abs(data[k])
        scales[i] = np.sqrt(omega / moduli) if moduli > 0 else 1.0


@parallel
def smoothing_matrix(indptr, indices, data, scales, out):
    """out = the values of S = I − D A D with D = diag(scales)."""
    for i in prange(scales.size):
        own = scales[i]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[k])
            out[k] = (1.0 if np.uint64(i) == j else 0.0) - own * data[k] * scales[j]


@parallel
def balance(indptr, indices, data, fine, coarse, out):
    """out = the values of diag(fine)⁻¹ P diag(coarse); 0 in rows with fine[i] = 0."""
    for i in prange(fine.size):
        for k in range(indptr[i], indptr[i + 1]):
            out[k] = data[k] / fine[i] * coarse[indices[k]] if fine[i] > 0 else 0.0


@parallel
def smoothed_interpolation(indptr, indices, data, p_indptr, p_indices, p_data, fine, coarse, out):
    """out = the values of Q = (D⁻¹ P − D A P) D_c on the pattern of A P, which contains P's pattern."""
    for i in prange(fine.size):
        at = p_indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            value = 0.0
            if at < p_indptr[i + 1] and p_indices[at] == indices[k]:
                value = p_data[at] / fine[i] if fine[i] > 0 else 0.0
                at += 1
            out[k] = (value - fine[i] * data[k]) * coarse[indices[k]]


@parallel
def drop_rounding(state, numbers, indptr, indices, data, c_indptr, c_indices, c_data, singular, scales):
    """scales = 0 for a coarse row whose diagonal entry on the next level is at most ``singular`` times the entry here.
    """
    for i in prange(state.size):
        if state[i] == COARSE:
            row = numbers[i]
            own = diagonal_entry(i, indptr, indices, data)
            if abs(diagonal_entry(row, c_indptr, c_indices, c_data)) <= singular * own:
                scales[row] = 0.0


@njit(cache=True)
def diagonal_entry(i, indptr, indices, data):
    """Return aᵢᵢ, 0 if it is not stored."""
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] == i:
            return data[k]
    return 0.0


@parallel(fastmath={"reassoc", "contract", "nsz"})
def shared_rows(indptr, indices, data, x, alpha, beta, z, y):
    """y = alpha A x + beta z, A in CSR; beta = 0 never reads z, which may be y."""
    for i in prange(indptr.size - 1):
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[np.int64(indices[k])]
        y[i] = alpha * total + (beta * z[i] if beta != 0 else y.dtype.type(0))


@parallel(fastmath={"reassoc", "contract", "nsz"})
def rows_product(indptr, indices, data, width, x, y):
    """y = the product of a CSR matrix with the ``width`` columns of x, whose rows are contiguous."""
    for i in prange(indptr.size - 1):
        for c in range(width):
            total = y.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                total += data[k] * x[np.int64(indices[k]) * width + c]
            y[i * width + c] = total


@parallel(fastmath={"reassoc", "contract", "nsz"})
def correct(indptr, indices, data, q_indptr, q_indices, q_data, width, b, coarse, x):
    """x = b + S b + Q coarse, ``width`` columns each."""
    for i in prange(indptr.size - 1):
        for c in range(width):
            total = x.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                total += data[k] * b[np.int64(indices[k]) * width + c]
            for k in range(q_indptr[i], q_indptr[i + 1]):
                total += q_data[k] * coarse[np.int64(q_indices[k]) * width + c]
            x[i * width + c] = b[i * width + c] + total


@parallel(fastmath={"reassoc", "contract", "nsz"})
def dense_product(matrix, width, x, y):
    """y = the product of a square matrix, row after row, with the columns of x, whose rows are contiguous."""
    n = x.size // width
    for i in prange(n):
        for c in range(width):
            total = y.dtype.type(0)
            for j in range(n):
                total += matrix[i * n + j] * x[j * width + c]
            y[i * width + c] = total
