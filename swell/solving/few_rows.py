"""Systems of few rows on a CPU, solved by factors: there the records of a solve would take longer than its numbers.

One call of a kernel measures b − A x (``formats/kernels/few_rows.cpp``), and x is taken only if the rules of
`solving/measure.py` confirm it. Refinement goes on as long as it halves the residual. In all other cases, such as a NaN
or weak pivots, the caller does a whole solve, which says what is wrong.
"""
from __future__ import annotations

import math

import numpy as np

from swell.core.cpu import SERIAL, CpuSpace
from swell.core.library import native_kernels
from swell.formats.csr import CSRMatrix
from swell.formats.transpose import transposed_arrays
from swell.solving.measure import EPS, NORM_RANGE, ROUNDING, ROWS_FACTOR, uncertain

MOST_COLUMNS = 8        # more are solved together
TYPES = "dD"            # a narrower type needs b in double precision, too


def is_small(A) -> bool:
    """True if A is a CSRMatrix that `solved` takes: double precision, on a CPU, with fewer rows than `SERIAL`."""
    return (isinstance(A, CSRMatrix) and A.space.name == "cpu" and A.space.columns == 1 and A.dtype.char in TYPES
            and A.shape[0] < SERIAL)


def solved(A, factors, b, stopping, trans="N"):
    """Return x with A x = b, Aᵀ x = b ("T") or Aᴴ x = b ("H"), or None if a whole solve must decide.

    Parameters
    ----------
    A : CSRMatrix
        One that `is_small`.
    factors : Factors
        Of A.
    b : array, shape (n,) or (n, k)
    stopping : Stopping
    """
    if type(b) is not np.ndarray or b.shape[:1] != A.shape[:1] or b.dtype != A.dtype and not np.can_cast(
            b.dtype, A.dtype):
        return None
    if b.ndim == 2 and b.shape[1] <= MOST_COLUMNS:
        x = np.empty(b.shape, A.dtype)
        for j in range(b.shape[1]):
            column = solved(A, factors, b[:, j], stopping, trans)
            if column is None:
                return None
            x[:, j] = column
        return x
    if b.ndim != 1:
        return None
    b = np.ascontiguousarray(b, A.dtype)
    x, r, before = _applied(factors, b, trans), np.empty_like(b), math.inf
    while True:
        right, residual = _judged(A, b, x, r, stopping, trans)
        if right:
            return x
        if not 0 < residual <= 0.5 * before:     # and for NaN
            return None
        x, before = x + _applied(factors, r, trans), residual


def _applied(factors, b, trans):
    """Return A⁻¹ b, A⁻ᵀ b or A⁻ᴴ b by the factors."""
    x = np.empty_like(b)
    if trans == "N":
        factors.apply(b, x)
        return x
    factors.apply_adjoint(b if trans == "H" else b.conj(), x)
    return x if trans == "H" else x.conj()


def _judged(A, b, x, r, stopping, trans) -> tuple[bool, float]:
    """Write b − A x into r. Return (True if it is certain that ‖b − A x‖₂ meets the tolerance, and each row, too;
    ‖b − A x‖₂, NaN if no refinement can help)."""
    measure = native_kernels("swell.formats", "few_rows").measure
    arguments = A.indptr, A.indices, A.data, trans != "N", trans == "H", b, x, r
    enough = ROWS_FACTOR * stopping.rtol
    bb, rr, tt, most_x, rows = measure(*arguments, False, enough)
    norm, precise = math.sqrt(bb), False
    if not NORM_RANGE[0] < norm < NORM_RANGE[1] or not most_x < math.inf:
        return False, math.nan
    threshold, floor = stopping.threshold(norm), ROUNDING * EPS * math.sqrt(tt)
    if uncertain(math.sqrt(rr), threshold, floor):
        precise, (_, rr, *_, rows) = True, measure(*arguments, True, enough)
    residual = math.sqrt(rr)
    return (residual <= threshold and threshold >= floor * (EPS if precise else 1)
            and rows <= ROWS_FACTOR * threshold / norm), residual


def read(A):
    """Return A, a matrix of SciPy's in CSR or CSC, as a CSRMatrix with arrays of its own, if it `is_small`; None for
    anything else, and if its arrays are not in order, which `inputs` mends or refuses."""
    kind, shape = getattr(A, "format", None), getattr(A, "shape", ())
    arrays = [getattr(A, name, None) for name in ("indptr", "indices", "data")]
    if (kind not in ("csr", "csc") or len(shape) != 2 or shape[0] != shape[1] or shape[0] >= SERIAL
            or any(type(array) is not np.ndarray or array.ndim != 1 for array in arrays) or A.dtype.char not in TYPES):
        return None
    try:
        sound = native_kernels("swell.formats", "few_rows").is_sound(*arrays)
    except TypeError:                            # arrays with gaps, or of another type of indices
        return None
    if not sound or arrays[0].size != shape[0] + 1:
        return None
    if kind == "csr":
        return CSRMatrix(CpuSpace(), *(array.copy() for array in arrays), shape)
    T = CSRMatrix(CpuSpace(), *arrays, shape)
    return CSRMatrix(T.space, *transposed_arrays(T, arrays[1][:0]), shape)
