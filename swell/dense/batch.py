"""Solution with the factors of many matrices of one size, from ``factor_batch``: trsm for all of them at once.

A GPU makes two calls of cuBLAS, each for all matrices; a single matrix takes the call for large matrices. A CPU solves
one matrix after the other.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError, InputError
from swell.dense.products import CUBLAS, addresses, layout


def solve_batch(factors, B):
    """Solve A X = B for each of m matrices.

    Parameters
    ----------
    factors : list of LUFactors
        The result of one call of ``factor_batch``.
    B : device array in the factors' space, shape (m, n, k)
        In the factors' type. It is not changed.

    Returns
    -------
    device array, shape (m, n, k)

    Raises
    ------
    InputError
        If B has another shape or type.
    FactorisationError
        If factors no longer represent A, or X is not finite; ``error.index`` is the number of the matrix.
    """
    if not factors:
        raise InputError("factors is an empty list: expected the result of factor_batch")
    one = factors[0]
    if B.ndim != 3 or B.shape[:2] != (len(factors), one.n) or B.dtype != one.dtype:
        raise InputError(f"B has shape {tuple(B.shape)} and dtype {B.dtype.name}: expected ({len(factors)}, {one.n}, "
                         f"k) and {one.dtype.name}")
    space = one.space
    X = np.empty(B.shape, B.dtype) if space.name == "cpu" else None
    for k, each in enumerate(factors):
        try:
            each.require_useful()
            if X is not None:
                X[k] = each.solve(B[k])
        except FactorisationError as error:
            raise FactorisationError(f"matrix {k} of {len(factors)}: {error}", error.singular, k) from None
    if X is not None:
        return X
    with space.active():
        xp = space.xp
        order = xp.stack([each.order for each in factors])
        X = xp.empty((len(factors), B.shape[2], one.n), B.dtype).transpose(0, 2, 1)         # column-major
        X[...] = xp.take_along_axis(B, order[:, :, None], axis=1)
        _substitute(factors, X)
        # In two steps, since CuPy would reduce each matrix to one number with a single block of threads.
        finite = space.to_host(xp.isfinite(X).all(axis=1).all(axis=1))  # sync
    if not finite.all():
        k = int(finite.argmin())
        why = "; ".join(factors[k].notes) or f"its entries overflow {X.dtype.name}"
        raise FactorisationError(f"matrix {k} of {len(factors)}: the solution is not finite; {why}", index=k)
    return X


def _substitute(factors, X):
    """Solve L Y = X, then U X = Y, by cuBLAS, in place in X, shape (m, n, k). ``factors``: list of m LUFactors."""
    import cupy
    from cupy.cuda import cublas, device
    one, (count, n, columns) = np.array(1, X.dtype), X.shape
    (op, distance), unit = layout(factors[0].lu), factors[0].unit
    letter = CUBLAS[X.dtype.char]
    for lower in (True, False):
        as_lower = lower == (op == cublas.CUBLAS_OP_N)           # cuBLAS reads a row-major matrix as its transpose
        head = (device.get_cublas_handle(), cublas.CUBLAS_SIDE_LEFT,
                cublas.CUBLAS_FILL_MODE_LOWER if as_lower else cublas.CUBLAS_FILL_MODE_UPPER, op,
                cublas.CUBLAS_DIAG_UNIT if unit == ("L" if lower else "U") else cublas.CUBLAS_DIAG_NON_UNIT, n, columns,
                one.ctypes.data)
        if count == 1:
            getattr(cublas, f"{letter}trsm")(*head, factors[0].lu.data.ptr, distance, X.data.ptr, n)
            continue
        lu = cupy.array([each.lu.data.ptr for each in factors], np.uint64)
        getattr(cublas, f"{letter}trsmBatched")(*head, lu.data.ptr, distance, addresses(X).data.ptr, n, count)
