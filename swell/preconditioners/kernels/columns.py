"""Triangular solves with a sparse factor for many right-hand sides at once, which SuperLU does one after the other.

On a CPU only: a GPU's direct solver does it itself.
"""
from __future__ import annotations

from numba import njit, prange

WIDTH = 64              # columns that a thread takes along with every entry of the factor: 512 bytes of a row of X


@njit(cache=True, parallel=True, fastmath={"contract"})
def solve_columns(lower_ptr, lower_rows, lower, upper_ptr, upper_rows, upper, X):
    """X = U⁻¹ L⁻¹ X, X by rows; L and U by sorted columns, the diagonal of L first, that of U last in its column."""
    n, m = X.shape
    for part in prange(-(-m // WIDTH)):
        a, b = part * WIDTH, min((part + 1) * WIDTH, m)
        for j in range(n):
            for k in range(lower_ptr[j] + 1, lower_ptr[j + 1]):
                i, value = lower_rows[k], lower[k]
                for c in range(a, b):
                    X[i, c] -= value * X[j, c]
        for j in range(n - 1, -1, -1):
            last = upper_ptr[j + 1] - 1
            scale = 1 / upper[last]
            for c in range(a, b):
                X[j, c] *= scale
            for k in range(upper_ptr[j], last):
                i, value = upper_rows[k], upper[k]
                for c in range(a, b):
                    X[i, c] -= value * X[j, c]
