"""The coarsest level: a dense inverse of the last matrix.

The time of a level of a few hundred rows would be latency only; one dense product ends the hierarchy early. A problem
without boundary values has a singular matrix on every level, this one too. Elimination leaves out a row whose pivot is
rounding: G = [A₁₁⁻¹ 0; 0 0], a symmetric generalised inverse, A G A = A. For a preconditioned Krylov method G is as
good as the pseudo-inverse: with both, A^½ G A^½ is the same projection.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import FactorisationError

SINGULAR = 1e-11        # a pivot of at most this times its row's diagonal entry is rounding
INDEFINITE = 1e-8       # a pivot below minus this times its row's diagonal entry proves A indefinite
PANEL = 16              # pivots that a GPU eliminates in a step, as in kernels/dense.cu


class DenseInverse:
    """x = G b by one dense product; G is a generalised inverse of D A D with D = diag(scales).

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
        """Invert anew for new values of A and ``scales``, into the stored inverse."""
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
        space.synchronize()                      # a product may read the inverse before the preceding kernel has ended

    def solve(self, b, x):
        """Write x = G b."""
        self._kernels.dense_product(self.inverse, 1, b, x)

    @property
    def nbytes(self):
        return self.inverse.nbytes
