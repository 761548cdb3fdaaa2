"""Solution with the factors of many matrices of one size, from ``factor_batch``.

trsm on a GPU makes two calls of cuBLAS, each for all matrices; a single matrix takes the call for large matrices. Other
solvers, and a CPU, solve one matrix after the other.
"""
import numpy as np

from swell.core.arrays import host_array
from swell.core.errors import FactorisationError, InputError
from swell.core.registry import resolve
from swell.dense.products import CUBLAS, addresses, layout
from swell.dense.trsm import Trsm


class BatchSolver:
    """A dense solver for matrices of one size, op(A) X = B for each.

    Parameters
    ----------
    factors : list of LUFactors
        The result of one call of ``factor_batch``.
    solver : str or DenseSolver
        As in ``LUFactors.solve``.
    trans : {"N", "T", "C"}

    Raises
    ------
    InputError
        If the solver does not take these factors.
    """

    def __init__(self, factors, solver="trsm", trans="N"):
        self.factors, settings = factors, resolve("dense_solver", solver)
        self.each = [settings.build(one, trans) for one in factors]
        self.space, self.trans = factors[0].space, trans
        self._together = self.space.name == "cuda" and len(factors) > 1 and isinstance(settings, Trsm)
        if self._together:
            xp, order = self.space.xp, np.stack([self.space.to_host(one.order) for one in factors])  # sync
            self._order = self.space.from_host((order if trans == "N" else order.argsort(axis=1))[:, :, None])
            self._addresses = xp.asarray(np.array([one.lu.data.ptr for one in factors], np.uint64))

    def apply(self, B):
        """Return X, a new device array; B is a device array of the factors' type, shape (m, n, k). Nothing is checked,
        and trsm reads nothing on the host.

        Raises FactorisationError if IS does not settle; ``error.index`` is the number of the matrix."""
        xp = self.space.xp
        if not B.size:
            return xp.empty(B.shape, B.dtype)
        if not self._together:
            return xp.stack([self._one(k, right) for k, right in enumerate(B)])
        conjugate = self.trans == "C" and B.dtype.kind == "c"
        B = B.conj() if conjugate else B
        X = xp.empty((B.shape[0], B.shape[2], B.shape[1]), B.dtype).transpose(0, 2, 1)      # column-major
        X[...] = xp.take_along_axis(B, self._order, axis=1) if self.trans == "N" else B
        self._substitute(X)
        if self.trans != "N":
            X = xp.take_along_axis(X, self._order, axis=1)
        return X.conj() if conjugate else X

    def _one(self, k, B):
        """Return the solution of system number k."""
        try:
            return self.each[k].apply(B)
        except FactorisationError as error:
            raise FactorisationError(str(error), error.singular, k) from None

    def _substitute(self, X):
        """Solve with both triangles by cuBLAS, in place in X, shape (m, n, k)."""
        from cupy.cuda import cublas, device
        first, one, (count, n, columns) = self.each[0], np.array(1, X.dtype), X.shape
        (op, distance), solve = layout(first.matrix), getattr(cublas, f"{CUBLAS[X.dtype.char]}trsmBatched")
        of_X = addresses(X)
        for part in "LU":
            as_lower = (part == "L") == (op == cublas.CUBLAS_OP_N)       # cuBLAS reads row-major as the transpose
            solve(device.get_cublas_handle(), cublas.CUBLAS_SIDE_LEFT,
                  cublas.CUBLAS_FILL_MODE_LOWER if as_lower else cublas.CUBLAS_FILL_MODE_UPPER, op,
                  cublas.CUBLAS_DIAG_UNIT if first.unit == part else cublas.CUBLAS_DIAG_NON_UNIT, n, columns,
                  one.ctypes.data, self._addresses.data.ptr, distance, of_X.data.ptr, n, count)


def solve_batch(factors, B, solver="trsm", trans="N"):
    """Solve op(A) X = B for each of m matrices.

    Parameters
    ----------
    factors : list of LUFactors
        The result of one call of ``factor_batch``.
    B : device array in the factors' space, shape (m, n, k)
        In the factors' type. It is not changed.
    solver, trans
        As in ``LUFactors.solve``.

    Returns
    -------
    device array, shape (m, n, k)

    Raises
    ------
    InputError
        If B has another shape or type, or the solver does not take these factors.
    FactorisationError
        If factors no longer represent A, X is not finite, or an inexact X is no better than zero; ``error.index`` is
        the number of the matrix.
    """
    if not isinstance(factors, list) or not factors:
        came = "an empty list" if isinstance(factors, list) else f"of type {type(factors).__name__}"
        raise InputError(f"factors is {came}: expected the result of factor_batch")
    one = factors[0]
    B = host_array(B, "B") if one.space.name == "cpu" else B
    if B.ndim != 3 or B.shape[:2] != (len(factors), one.n) or B.dtype != one.dtype:
        raise InputError(f"B has shape {tuple(B.shape)} and dtype {B.dtype.name}: expected ({len(factors)}, {one.n}, "
                         f"k) and {one.dtype.name}")
    space, k = one.space, 0
    try:
        for k, each in enumerate(factors):
            each.require_useful()
        with space.active(one.n):
            bound = BatchSolver(factors, solver, trans)
            try:
                X = bound.apply(B)
            except FactorisationError as error:
                k = error.index
                raise
            # In two steps, since CuPy would reduce each matrix to one number with a single block of threads.
            finite = space.to_host(space.xp.isfinite(X).all(axis=1).all(axis=1))  # sync
        if not finite.all():
            k = int(finite.argmin())
            why = "; ".join(factors[k].notes) or f"its entries overflow {X.dtype.name}"
            raise FactorisationError(f"the solution is not finite; {why}")
        with space.active(one.n):
            for k, each in enumerate(bound.each):
                each.check(B[k], X[k])
    except FactorisationError as error:
        raise FactorisationError(f"matrix {k} of {len(factors)}: {error}", error.singular, k) from None
    return X
