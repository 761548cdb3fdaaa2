"""The coarsest level: a dense inverse of the last matrix.

A level of a few hundred rows would be latency and nothing else; one dense product ends the hierarchy early. The matrix
of a problem without boundary values is singular down to here. Elimination leaves out a row whose pivot is rounding:
G = [A₁₁⁻¹ 0; 0 0], a symmetric generalised inverse, A G A = A. Preconditioned by it a Krylov method sees what the
pseudo-inverse would show it, A^½ G A^½, a projection.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError

SINGULAR = 1e-11        # of a row's diagonal entry: a pivot at or below it is rounding
INDEFINITE = 1e-8       # of a row's diagonal entry: a negative pivot beyond it is not
PANEL = 16              # pivots that a GPU eliminates in a step, as in kernels/dense.cu


class DenseInverse:
    """x = G b, G a generalised inverse of D A D, D = diag(scales), by one dense product.

    Raises
    ------
    FactorisationError
        If A has a clearly negative eigenvalue.
    """

    def __init__(self, A, scales, dtype):
        self.space = A.space
        self.inverse = A.space.empty(A.shape[0]**2, dtype)
        self._kernels = A.space.kernels("swell.preconditioners.amg", "cycle", dtype)
        self.update(A, scales)

    def update(self, A, scales):
        """Take new values of A, in place."""
        space, n = self.space, A.shape[0]
        dense, work = space.empty(n * n, np.float64), space.empty((1 + 2 * PANEL) * n, np.float64)
        worst, record = space.empty(1, np.float64), space.xp.zeros(1, np.int64)
        kernels = space.kernels("swell.preconditioners.amg", "dense", np.float64)
        kernels.scatter(A.indptr, A.indices, A.data, scales, dense)
        kernels.invert(dense, work[:n], work[n:], SINGULAR, worst, record)
        if n and float(worst[0]) < -INDEFINITE:  # sync
            raise FactorisationError("AMG needs a positive definite matrix, and elimination on its coarsest level has "
                                     f"a pivot of {float(worst[0]):.2e} of its diagonal entry: use precond='ilu0' with "
                                     "method='gmres', or method='direct'")
        self.inverse[...] = dense
        space.synchronize()                      # a product reads the inverse before the kernel before it has ended

    def solve(self, b, x):
        """x = G b."""
        self._kernels.dense_product(self.inverse, 1, b, x)

    @property
    def nbytes(self):
        return self.inverse.nbytes
