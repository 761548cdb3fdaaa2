"""Starting vector from a sweep's earlier solutions: their linear combination with the smallest residual.

The response varies smoothly with the frequency, or follows a few resonances. The span of a few solutions therefore
nearly contains the next one (a reduced basis with residual minimisation). With X = (x₁ ... x_m), W = A X:

    x₀ = X c,  c = argmin ‖b − W c‖₂

c comes from the eigenvectors of WᴴW; eigenvalues at the level of rounding are dropped. A second pass does this again
for the residual. A QR factorisation of W would reach less than 10⁻⁷ ‖b‖, but in many small steps. The residual of x₀ is
at most ‖b‖, the residual of zero.

Cost: m products, n m² multiplications; memory: 2 m vectors. It uses the kernels of deflation, where one launch computes
the inner products with all rows. cuBLAS would leave matrix products of m rows to a few multiprocessors, and on a busy
CPU the threads of a BLAS wait for one another.
"""
from __future__ import annotations

import numpy as np

from swell.core.space import accumulator

NOISE = 50              # eigenvalues of WᴴW up to NOISE · eps · (the largest) are dropped
STEPS = 2               # passes of the minimisation


class StartingGuess:
    """The last solutions of a sweep, and the starting vector from them.

    Parameters
    ----------
    space : Space
    most : int
        Maximum number of kept solutions.
    """

    def __init__(self, space, most):
        self.space, self.most, self._added = space, most, 0
        space.reserve_sums(most)

    def add(self, x):
        """Keep a solution (an array of the space), scaled to norm 1; it replaces the oldest one."""
        norm = self.space.norms(x)[0] if self.most else 0
        if not norm:
            return
        if not self._added:
            self._X, self._W = (self.space.empty((self.most, self.space.padded(x.size)), x.dtype) for _ in range(2))
        self._X[self._added % self.most, :x.size] = x / x.dtype.type(norm)
        self._added += 1

    def of(self, A, b):
        """Return a starting vector x₀ for A x = b, with the smallest residual in the span of the kept solutions; None
        if there are none."""
        m = min(self._added, self.most)
        if not m:
            return None
        kernels, scalar = self.space.kernels("swell.preconditioners", "deflation", b.dtype), accumulator(b.dtype)
        X, W = self._X[:m, :b.size], self._W[:m, :b.size]        # one vector in each row
        adjoint = self.space.empty((m, m), scalar)               # the lower triangle of WᵀW̄, which eigh reads
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
        """Add ``products``, this rank's parts of inner products, over all ranks, in place; return the sums on the
        host."""
        self.space.allreduce(products)
        return self.space.to_host(products)
