"""The matrices of a cycle, and its products, on the CPU, threads sharing the rows; see balancing.py one folder up."""
from __future__ import annotations

import numpy as np
from numba import prange

from swell.core.compiled import njit, parallel
from swell.preconditioners.amg.kernels.real_part import modulus


@parallel
def l1_scales(indptr, data, omega, scales):
    """Write scales[i] = √(ω / Σⱼ |aᵢⱼ|) for each row of a CSR matrix; 1 for an empty row. ``omega`` is ω."""
    for i in prange(scales.size):
        moduli = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            moduli += modulus(data[k])
        scales[i] = np.sqrt(omega / moduli) if moduli > 0 else 1.0


@parallel
def smoothing_matrix(indptr, indices, data, scales, out):
    """Write ``out``, the values of S = I − D A D on the pattern of A (CSR), with D = diag(``scales``)."""
    for i in prange(scales.size):
        own = scales[i]
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            j = np.uint64(indices[k])
            out[k] = (1.0 if np.uint64(i) == j else 0.0) - own * data[k] * scales[j]


@parallel
def balance(indptr, indices, data, fine, coarse, out):
    """Write ``out``, the values of diag(fine)⁻¹ P diag(coarse) on the pattern of P (CSR); 0 in rows with fine[i] = 0.
    """
    for i in prange(fine.size):
        for k in range(indptr[i], indptr[i + 1]):
            out[k] = data[k] / fine[i] * coarse[indices[k]] if fine[i] > 0 else 0.0


@parallel
def balance_restriction(indptr, indices, data, fine, coarse, out):
    """Write ``out``, the values of diag(coarse) R diag(fine)⁻¹ on R's pattern (CSR); 0 in columns with fine[j] = 0."""
    for i in prange(coarse.size):
        for k in range(indptr[i], indptr[i + 1]):
            own = fine[indices[k]]
            out[k] = coarse[i] * data[k] / own if own > 0 else 0.0


@parallel
def smoothed_interpolation(indptr, indices, data, p_indptr, p_indices, p_data, fine, coarse, out):
    """Write ``out``, the values of Q = (D⁻¹ P − D A P) D_c on the pattern of A P, which contains P's pattern.

    ``indptr``, ``indices``, ``data``: A P in CSR; ``p_...``: P in CSR; ``fine`` and ``coarse``: the diagonals of D and
    D_c."""
    for i in prange(fine.size):
        at = p_indptr[i]
        for k in range(indptr[i], indptr[i + 1]):
            value = 0.0
            if at < p_indptr[i + 1] and p_indices[at] == indices[k]:
                value = p_data[at] / fine[i] if fine[i] > 0 else 0.0
                at += 1
            out[k] = (value - fine[i] * data[k]) * coarse[indices[k]]


@parallel
def drop_rounding(indptr, indices, data, fine, c_indptr, c_indices, c_data, singular, scales):
    """Set scales[r] = 0 for each row r of the next level whose diagonal entry there is at most ``singular`` times
    Σ (pᵢᵣ / fine[i])².

    ``indptr``, ``indices``, ``data``: Pᵀ in CSR. ``fine``: this level's scales, 0 for rows left out. ``c_...``: the
    next level's matrix."""
    for r in prange(scales.size):
        bound = 0.0
        for k in range(indptr[r], indptr[r + 1]):
            own = fine[indices[k]]
            bound += (data[k] / own) ** 2 if own > 0 else 0.0
        if modulus(diagonal_entry(r, c_indptr, c_indices, c_data)) <= singular * bound:
            scales[r] = 0.0


@njit(cache=True)
def diagonal_entry(i, indptr, indices, data):
    """Return aᵢᵢ of a CSR matrix, 0 if it is not stored."""
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] == i:
            return data[k]
    return data.dtype.type(0)


@parallel(fastmath={"reassoc", "contract", "nsz"})
def shared_rows(indptr, indices, data, lanes, x, alpha, beta, gamma, z, w, y):
    """Write y = alpha A x + beta z + gamma w, A in CSR. beta = 0 reads neither z nor w, gamma = 0 never w. y may be z
    or w. ``lanes``: threads of a GPU that share a row."""
    for i in prange(indptr.size - 1):
        total = y.dtype.type(0)
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[np.int64(indices[k])]
        total *= alpha
        if beta != 0:
            total += beta * z[i] + (gamma * w[i] if gamma != 0 else y.dtype.type(0))
        y[i] = total


@parallel(fastmath={"reassoc", "contract", "nsz"})
def rows_product(indptr, indices, data, width, x, y):
    """Write y = A x for a CSR matrix A. x and y have ``width`` columns and are stored row after row."""
    for i in prange(indptr.size - 1):
        for c in range(width):
            total = y.dtype.type(0)
            for k in range(indptr[i], indptr[i + 1]):
                total += data[k] * x[np.int64(indices[k]) * width + c]
            y[i * width + c] = total


@parallel(fastmath={"reassoc", "contract", "nsz"})
def correct(indptr, indices, data, q_indptr, q_indices, q_data, width, b, coarse, x):
    """Write x = b + S b + Q c for CSR matrices S (``indptr``, ``indices``, ``data``) and Q (``q_...``); c is
    ``coarse``. x, b and c have ``width`` columns and are stored row after row."""
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
    """Write y = G x for a square ``matrix`` G. G, x and y are stored row after row; x and y have ``width`` columns."""
    n = x.size // width
    for i in prange(n):
        for c in range(width):
            total = y.dtype.type(0)
            for j in range(n):
                total += matrix[i * n + j] * x[j * width + c]
            y[i * width + c] = total
