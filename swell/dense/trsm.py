"""trsm: two triangular solves by BLAS, or by cuBLAS on a GPU; for a unit diagonal in L and in U. Section 2.1.2 of the
thesis."""
from dataclasses import dataclass

import numpy as np

from swell.dense.products import CUBLAS, layout
from swell.dense.solver import BoundSolver, DenseSolver


@dataclass(frozen=True)
class Trsm(DenseSolver):
    """Two triangular solves by BLAS or cuBLAS."""

    cost = "2 n² a right-hand side, the library's"

    def bind(self, factors, trans):
        return TriangularSolves(self, factors, trans)


class TriangularSolves(BoundSolver):
    """trsm for one matrix."""

    def substitute(self, X):
        solve = self._blas if self.space.name == "cpu" else self._cublas
        X = solve(X, True, self.unit == "L")
        return solve(X, False, self.unit == "U")

    def _blas(self, X, lower, unit):
        """Solve with the lower triangle, else the upper one, by BLAS; ``unit``: it has a unit diagonal. Returns the
        solution; overwrites X."""
        from scipy.linalg import get_blas_funcs
        rows = self.column == 1                  # BLAS reads a row-major matrix as its transpose
        matrix = self.matrix.T if rows else self.matrix
        return get_blas_funcs("trsm", (matrix, X))(1, matrix, X, lower=lower != rows, trans_a=int(rows), diag=int(unit),
                                                   overwrite_b=True)

    def _cublas(self, X, lower, unit):
        """Like ``_blas``, with the same arguments, by cuBLAS: in place in X, which is returned."""
        from cupy.cuda import cublas, device
        call = getattr(cublas, f"{CUBLAS[X.dtype.char]}trsm")
        (op, distance), one = layout(self.matrix), np.array(1, X.dtype)
        lower = lower == (op == cublas.CUBLAS_OP_N)
        call(device.get_cublas_handle(), cublas.CUBLAS_SIDE_LEFT,
             cublas.CUBLAS_FILL_MODE_LOWER if lower else cublas.CUBLAS_FILL_MODE_UPPER, op,
             cublas.CUBLAS_DIAG_UNIT if unit else cublas.CUBLAS_DIAG_NON_UNIT, *X.shape, one.ctypes.data,
             self.matrix.data.ptr, distance, X.data.ptr, self.factors.n)
        return X
