"""The coarsest level: a dense inverse of the last matrix.

The time of a level of a few hundred rows would be latency only; one dense product ends the hierarchy early. A problem
without boundary values has a singular matrix on every level, this one too. Elimination leaves out a row whose pivot is
rounding: G = [A₁₁⁻¹ 0; 0 0], a symmetric generalised inverse, A G A = A. For a preconditioned Krylov method G is as
good as the pseudo-inverse: with both, A^½ G A^½ is the same projection.
"""
from __future__ import annotations

import copy
import math

import numpy as np

from swell.core.errors import FactorisationError

# A pivot of at most this times its row's diagonal entry is rounding: 5e-13, 1.2e-12 and 1.5e-11 were found in boxes of
# 24³, 48³ and 64³ cells without boundary values. In single precision, 1/pivot would drown all else in G's products.
# For complex and nonsymmetric matrices it bounds eigenvalues and singular values, relative to the largest.
SINGULAR = 1e-8
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
        dense = space.empty(n * n, A.dtype)
        kernels = space.kernels("swell.preconditioners.amg", "dense", A.dtype)
        kernels.scatter(A.indptr, A.indices, A.data, scales, dense)
        self.inverse[...] = self._inverse(dense, n, kernels)
        space.synchronize()                      # a product may read the inverse before the preceding kernel has ended

    def _inverse(self, dense, n, kernels):
        """Return G, n × n, stored row after row; overwrites ``dense``, the matrix stored likewise."""
        space = self.space
        work, worst = space.empty((1 + 2 * PANEL) * n, np.float64), space.empty(1, np.float64)
        record = space.xp.zeros(1, np.int64)
        kernels.invert(dense, work[:n], work[n:], SINGULAR, worst, record)
        if n and float(worst[0]) < -INDEFINITE:  # sync
            raise FactorisationError("AMG needs a positive definite matrix, and elimination on its coarsest level has "
                                     f"a pivot of {float(worst[0]):.2e} of its diagonal entry: use precond='ilu0' with "
                                     "method='gmres', or method='direct'")
        return dense

    def solve(self, b, x):
        """Write x = G b."""
        self._kernels.dense_product(self.inverse, 1, b, x)

    @property
    def nbytes(self):
        return self.inverse.nbytes


class HermitianInverse(DenseInverse):
    """G for a complex Hermitian matrix: its pseudo-inverse, from eigenvalues."""

    def _inverse(self, dense, n, kernels):
        xp = self.space.xp
        values, vectors = xp.linalg.eigh(dense.reshape(n, n))
        largest = float(abs(values).max()) if n else 0.0  # sync
        if n and float(values[0]) < -INDEFINITE * largest:  # sync
            raise FactorisationError("AMG needs a positive definite Hermitian matrix, and its coarsest level has an "
                                     f"eigenvalue of {float(values[0]):.2e} beside {largest:.2e}: use precond='ilu0' "
                                     "with method='gmres', or method='direct'")
        inverses = xp.where(values > SINGULAR * largest, 1 / xp.where(values == 0, 1, values), 0)
        return ((vectors * inverses) @ vectors.conj().T).reshape(-1)


class GeneralInverse(DenseInverse):
    """G for a matrix without A = Aᴴ, from elimination with partial pivoting; the pseudo-inverse if A is singular."""

    def _inverse(self, dense, n, kernels):
        xp, A = self.space.xp, dense.reshape(n, n)
        if not n:
            return dense
        try:
            G = xp.linalg.inv(A)
            size = float(abs(A).sum(axis=1).max() * abs(G).sum(axis=1).max())  # sync
        except np.linalg.LinAlgError:            # an exact zero pivot
            size = np.inf
        if size <= 1 / SINGULAR:                 # False for NaN too
            return G.reshape(-1)
        U, values, V = xp.linalg.svd(A)
        kept = values > SINGULAR * values[0]
        inverses = xp.where(kept, 1 / xp.where(kept, values, 1), 0)
        return ((V.conj().T * inverses) @ U.conj().T).reshape(-1)

    def adjoint(self):
        """Return a new object that solves with Gᴴ."""
        made, n = copy.copy(self), math.isqrt(self.inverse.size)
        made.inverse = self.inverse.reshape(n, n).conj().T.reshape(-1)         # a copy, row after row
        return made


def inverse_of(symmetry):
    """Return the class that inverts matrices of this `Symmetry`."""
    if symmetry.hermitian:
        return HermitianInverse if symmetry.complex else DenseInverse
    return GeneralInverse
