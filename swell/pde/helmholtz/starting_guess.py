"""A starting vector from earlier solutions of a sweep: the combination of them with the least residual.

The response varies smoothly with the frequency, or as few resonances do, so that the span of a few solutions nearly
holds the next one (the reduced bases of model reduction, by residual minimisation). With X = (x₁ ... x_m), W = A X:

    x₀ = X c,  c = argmin ‖b − W c‖₂

by the eigenvectors of WᴴW, without those that rounding has made, and once again for the remainder. A QR factorisation
of W would go further down than 10⁻⁷ ‖b‖, but by many small steps. The residual is not above that of x₀ = 0.

Cost: m products, n m² multiplications; memory: 2 m vectors. The kernels are those of deflation, of which each launch
has the inner products of all rows: matrix products of m rows are left to a few multiprocessors by cuBLAS, and on a busy
CPU the threads of a BLAS wait for one another.
"""
from __future__ import annotations

import numpy as np

from swell.core.space import accumulator

NOISE = 50              # eigenvalues of WᴴW below so many roundings of the largest are none
STEPS = 2


class StartingGuess:
    """The last solutions, and what they say of the next.

    Parameters
    ----------
    space : Space
    most : int
        Solutions kept.
    """

    def __init__(self, space, most):
        self.space, self.most, self._added = space, most, 0
        space.reserve_sums(most)

    def add(self, x):
        """Keep a solution (an array of the space), scaled to length 1; the oldest gives way."""
        norm = self.space.norms(x)[0] if self.most else 0
        if not norm:
            return
        if not self._added:
            self._X, self._W = (self.space.empty((self.most, self.space.padded(x.size)), x.dtype) for _ in range(2))
        self._X[self._added % self.most, :x.size] = x / x.dtype.type(norm)
        self._added += 1

    def of(self, A, b):
        """x₀ for A x = b, or None where there is nothing to go by."""
        m = min(self._added, self.most)
        if not m:
            return None
        kernels, scalar = self.space.kernels("swell.preconditioners", "deflation", b.dtype), accumulator(b.dtype)
        X, W = self._X[:m, :b.size], self._W[:m, :b.size]        # a vector a row
        adjoint = self.space.empty((m, m), scalar)               # the half of WᵀW̄ that eigh looks at
        adjoint.fill(0)
        for k in range(m):
            A.apply(X[k], W[k])
            kernels.dots(W[:k + 1], W[k], adjoint[k, :k + 1], True)
        values, vectors = np.linalg.eigh(self._summed(adjoint).conj())
        kept = values > NOISE * np.finfo(b.dtype).eps * values[-1]
        vectors, inverse = vectors[:, kept], 1 / values[kept]
        c, r, y = np.zeros(m, scalar), b.copy(), self.space.empty(m, scalar)
        for _ in range(STEPS):
            kernels.dots(W, r, y, True)
            more = vectors @ (inverse * (vectors.conj().T @ self._summed(y)))
            kernels.subtract(W, self.space.from_host(more, y), r, r, False)
            c += more
        r.fill(0)
        kernels.subtract(X, self.space.from_host(-c, y), r, r, False)
        return r

    def _summed(self, products):
        """Inner products, on the host; those of ranks are added up."""
        self.space.allreduce(products)
        return self.space.to_host(products)
