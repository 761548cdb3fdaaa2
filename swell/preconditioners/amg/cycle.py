"""The V-cycle, an operator for balanced vectors: x = M b with M ≈ (D A D)⁻¹ and D = diag(√(ω / dᵢ)).

Balancing takes the smoother's diagonal into the matrices. With S = I − D A D and P̃ = D⁻¹ P D_c a smoothing step is
x = S x + b: a product, as everything here is. A V(1, 1) cycle from x = 0 is, on each level,

    r = S b,   b_c = P̃ᵀ r,   (coarse cycle: x_c),   x = b + P̃ x_c,   x = b + S x:

four products. S, P̃ and P̃ᵀ are stored in single precision by default; their entries lie near 1. A GPU has
them in SELL, a CPU in CSR, which is as fast there and needs no layout.
M is symmetric, and positive definite where A is, since the eigenvalues of D A D lie in (0, ω] with ω < 2.

A polynomial of higher degree (smoother.py) takes ``degree`` products with S before and after.
"""
from __future__ import annotations

import numpy as np

from swell.core.operator import LinearOperator
from swell.formats.csr import CSR
from swell.formats.sell import SELL
from swell.preconditioners.amg.coarsest import SINGULAR, DenseInverse
from swell.preconditioners.amg.smoother import relaxation, scales, steps


class VCycle(LinearOperator):
    """A V-cycle over the levels of a hierarchy.

    Attributes
    ----------
    scale : float64 array, shape (n,)
        D of the finest level.
    """

    spd = hermitian = symmetric = self_adjoint = True
    scratch = ("_b", "_x", "_r", "_z")

    def __init__(self, hierarchy, dtype):
        A = hierarchy.matrices[0]
        super().__init__(A.shape, np.dtype(dtype), A.space)
        self.hierarchy, s = hierarchy, hierarchy.settings
        self.steps, self._omega = steps(s.smoother, s.degree), relaxation(s.smoother, s.degree)
        self._kernels = self.space.kernels("swell.preconditioners.amg", "cycle", np.float64)
        self._scales = self._balancing()
        self._store()
        sizes = [M.shape[0] for M in hierarchy.matrices]
        self._b, self._r = ([self.space.empty(n, dtype) for n in sizes] for _ in range(2))
        self._x, self._z = ([self.space.empty(n if s.degree > 1 else 0, dtype) for n in sizes] for _ in range(2))

    @property
    def scale(self):
        return self._scales[0]

    def _balancing(self):
        """D of each level. It is 0 where a coarse diagonal entry is rounding: there a part of the problem without
        boundary values has shrunk to one row, which no coarse correction may reach."""
        h = self.hierarchy
        found = [scales(A, self._omega) for A in h.matrices]
        for level, scale in zip(h.levels, found[1:]):
            scale[abs(level.RAP.C.diagonal()) <= SINGULAR * level.coarse_diagonal()] = 0
        return found

    def _values(self, level, k):
        """(S, P̃, P̃ᵀ) of one level in CSR, in the cycle's precision."""
        fine, coarse = self._scales[k:k + 2]
        P = level.P.with_values(self.space.empty(level.P.nnz, self.dtype))
        divisors = self.space.xp.where(fine > 0, fine, np.inf)
        self._kernels.balance(P.indptr, P.indices, level.P.data, divisors, coarse, P.data)
        return self._smoothing(level.A, fine), P, level.R.with_values(P.data[level.order])

    def _smoothing(self, A, scale):
        S = A.with_values(self.space.empty(A.nnz, self.dtype))
        self._kernels.smoothing_matrix(A.indptr, A.indices, A.data, scale, S.data)
        return S

    def _store(self):
        """The operators of each level, and the solver of the coarsest."""
        h, stored = self.hierarchy, (CSR() if self.space.name == "cpu" else SELL()).build
        self._levels = [tuple(stored(M) for M in self._values(level, k)) for k, level in enumerate(h.levels)]
        self._dense = DenseInverse(h.last, self._scales[-1], self.dtype) if h.dense else None
        self._last = None if h.dense else stored(self._smoothing(h.last, self._scales[-1]))

    def update(self, A):
        self.hierarchy.update(A)
        h = self.hierarchy
        for old, new in zip(self._scales, self._balancing()):
            old[...] = new
        for k, level in enumerate(h.levels):
            for old, new in zip(self._levels[k], self._values(level, k)):
                old.update(new)
        if self._dense is None:
            self._last.update(self._smoothing(h.last, self._scales[-1]))
        else:
            self._dense.renew(h.last, self._scales[-1])

    def apply(self, x, out, alpha=1, beta=0):
        if alpha == 1 and beta == 0:
            self._cycle(0, x, out)
        else:
            self._cycle(0, x, self._b[0])
            self.space.axpby(alpha, self._b[0], beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self.apply(x, out, alpha, beta)

    def _cycle(self, k, b, x):
        """x = the cycle from level k on, of b. Below the finest level b and x are one vector."""
        if k == len(self._levels):
            return self._end(b, x)
        if len(self.steps) > 1:
            return self._polynomial_cycle(k, b, x)
        (S, P, R), r, coarse = self._levels[k], self._r[k], self._b[k + 1]
        S.apply(b, r)                                                          # r = S b
        R.apply(r, coarse)                                                     # b_c = P̃ᵀ r
        self._cycle(k + 1, coarse, coarse)
        P.apply_plus(coarse, b, r)                                             # x = b + P̃ x_c
        S.apply_plus(r, b, x)                                                  # x = b + S x

    def _end(self, b, x):
        """The coarsest level."""
        r = self._r[-1]
        self.space.copy(b, r)
        if self._dense is not None:
            self._dense.solve(r, x)                                            # x = (D A D)⁺ b
        elif len(self.steps) > 1:
            self._relax(self._last, -1, r, x, zero=True)
        else:
            self._last.apply_plus(r, r, x)                                     # x = b + S b

    def _polynomial_cycle(self, k, b, out):
        """The same with polynomials of higher degree."""
        (S, P, R), x, r, coarse = self._levels[k], self._x[k], self._r[k], self._b[k + 1]
        self._relax(S, k, b, x, zero=True)
        self._residual(S, b, x, r)
        R.apply(r, coarse)                                                     # b_c = P̃ᵀ r
        self._cycle(k + 1, coarse, coarse)
        P.apply(coarse, x, 1, 1)                                               # x = x + P̃ x_c
        self._relax(S, k, b, x, zero=False)
        self.space.copy(x, out)

    def _relax(self, S, k, b, x, zero):
        """The smoother's steps on Ã x = b, Ã = I − S; from x = 0, which is not read, if ``zero``."""
        space, r, z = self.space, self._r[k], self._z[k]
        if zero:
            space.copy(b, r)
            x.fill(0)
        else:
            self._residual(S, b, x, r)
        for step, (a, c, beta) in enumerate(self.steps):
            if step:
                space.axpy(-1, z, r)
                S.apply(z, r, 1, 1)                                            # r = r − Ã z
            space.axpby(c, r, a, z)                                            # z = a z + c r
            space.axpy(beta, z, x)                                             # x = x + β z

    def _residual(self, S, b, x, r):
        """r = b − Ã x."""
        self.space.copy(b, r)
        self.space.axpy(-1, x, r)
        S.apply(x, r, 1, 1)

    @property
    def nbytes(self):
        stored = sum(M.nbytes for level in self._levels for M in level)
        end = self._last if self._dense is None else self._dense
        vectors = sum(v.nbytes for group in (self._b, self._x, self._r, self._z, self._scales) for v in group)
        return self.hierarchy.nbytes + stored + end.nbytes + vectors
