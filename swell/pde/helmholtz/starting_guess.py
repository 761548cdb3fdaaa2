"""A starting vector from earlier solutions of a sweep: the combination of them with the least residual.

The response varies smoothly with the frequency, or as few resonances do, so that the span of a few solutions nearly
holds the next one (the reduced bases of model reduction, by residual minimisation). With X = (x₁ ... x_m), W = A X:

    x₀ = X c,  c = argmin ‖b − W c‖₂

by the eigenvectors of WᴴW, without those that rounding has made, and once again for the remainder. A QR factorisation
of W would go further down than 10⁻⁷ ‖b‖, but by many small steps. The residual is not above that of x₀ = 0.

Cost: m products, n m² multiplications; memory: 2 m vectors.
"""
from __future__ import annotations

import numpy as np

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
        self.space, self.most, self._solutions = space, most, []

    def add(self, x):
        """Keep a solution (an array of the space), scaled to length 1; the oldest gives way."""
        if self.most:
            norm = self.space.norms(x)[0]
            if norm:
                self._solutions = [*self._solutions, x / x.dtype.type(norm)][-self.most:]

    def of(self, A, b):
        """x₀ for A x = b, or None where there is nothing to go by."""
        if not self._solutions:
            return None
        xp, m = self.space.xp, len(self._solutions)
        W = xp.empty((m, b.size), b.dtype)                       # a solution a row
        for k, x in enumerate(self._solutions):
            A.apply(x, W[k])
        adjoint = W.conj()
        # einsum and no matrix product: on a busy CPU the threads of a BLAS waited for one another for seconds
        values, vectors = np.linalg.eigh(self._summed(xp.einsum("ik,jk->ij", adjoint, W)).astype(complex))
        kept = values > NOISE * np.finfo(b.dtype).eps * values[-1]
        vectors, inverse = vectors[:, kept], 1 / values[kept]
        c, r = np.zeros(m, complex), b
        for _ in range(STEPS):
            more = vectors @ (inverse * (vectors.conj().T @ self._summed(xp.einsum("ik,k->i", adjoint, r))))
            r = r - xp.einsum("i,ik->k", xp.asarray(more.astype(b.dtype)), W)
            c += more
        return xp.einsum("i,ik->k", xp.asarray(c.astype(b.dtype)), xp.stack(self._solutions))

    def _summed(self, products):
        """Inner products, on the host; those of ranks are added up."""
        products = self.space.xp.ascontiguousarray(products)
        self.space.allreduce(products)
        return self.space.to_host(products)
