"""A starting vector from earlier solutions of a sweep: the combination of them with the least residual.

The response varies smoothly with the frequency, or as few resonances do, so that the span of a few solutions nearly
holds the next one (the reduced bases of model reduction, by residual minimisation). With X = (x₁ ... x_m), W = A X:

    x₀ = X c,  c = argmin ‖b − W c‖₂   by W = Q R

Cost: m products and a QR of n × m; memory: 2 m vectors. Never worse than x₀ = 0 in the residual.
"""
from __future__ import annotations

import numpy as np

LEAST = 1e-12           # singular values of R below this share of the largest are noise


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
        """Keep a solution (an array of the space); the oldest gives way."""
        if self.most:
            self._solutions = [*self._solutions[-(self.most - 1):], x] if self.most > 1 else [x]

    def of(self, A, b):
        """x₀ for A x = b, or None where there is nothing to go by."""
        if not self._solutions:
            return None
        xp = self.space.xp
        X = xp.stack(self._solutions, axis=1)
        W = xp.empty_like(X, order="F")
        for k, x in enumerate(self._solutions):
            W[:, k] = A.times(x)
        Q, R = xp.linalg.qr(W)
        small = self.space.to_host(R).astype(complex), self.space.to_host(Q.conj().T @ b).astype(complex)
        c = np.linalg.lstsq(*small, rcond=LEAST)[0]
        return X @ xp.asarray(c.astype(X.dtype))
