"""Reduced model of A(ω): its Galerkin projection onto earlier solutions of a sweep, of every right-hand side.

V holds an orthonormal basis of the real and imaginary parts of the solutions. With Aᵣ(ω) = Vᵀ A(ω) V the model's answer
is x₀ = V Aᵣ(ω)⁻¹ Vᵀ b, a starting vector for every column of b. Below a frequency a cavity has finitely many modes.
Their span is soon complete, and near a source the answer varies slowly with ω. So the model's residual falls faster
than any power of the number of solutions (reduced basis method: Quarteroni, Manzoni and Negri 2016, chapters 3 and 7).

A is a polynomial of degree 2 in ω, and A = Aᵀ. Three terms of Aᵣ are kept, and a new frequency needs only two products
with n rows, Vᵀ b and V c. New solutions cost three products for each direction, and n m multiplications for each pair
of directions. Memory: m real vectors, and the products with the newest ones.

Differs from the textbook: real and imaginary parts are separate directions, so that the span is closed under
conjugation: conj(x(ω)) is the solution at −ω. A full basis keeps the span of the latest half of the solutions.
"""
import numpy as np

from swell.core.columns import plain
from swell.core.sharing import Widening

NEW = 1e-6              # directions below this fraction of a solution's norm are noise of the solver
TOGETHER = 8            # directions that A multiplies at once, at most
MAX_DIRECTIONS = 256    # directions: a dense solve of this size takes the host some milliseconds


class ReducedModel:
    """The projection of a sweep's A(ω), and the starting vectors from it.

    Parameters
    ----------
    system : System
        On one rank, with A = Aᵀ and no part that varies otherwise than as a polynomial in ω.
    most : int
        Maximum number of solutions; there are twice as many directions, `LARGEST` at most.
    count : int
        Number of right-hand sides.
    """

    def __init__(self, system, most, count):
        self.system, self.space, self.most = system, system.space, min(2 * most, MAX_DIRECTIONS)
        self.xp, self._real = self.space.xp, np.zeros(0, system.dtype).real.dtype
        self._V, self._terms, self._latest = None, None, []
        several = self.space.for_columns(min(TOGETHER, 2 * count))
        self._A = Widening(several)(system.A)
        self._v, self._w = (several.buffer(system.A.shape[0], system.dtype) for _ in range(2))

    def __len__(self):
        """Number of directions."""
        return 0 if self._V is None else len(self._V)

    def of(self, omega, b):
        """Return starting vectors for A(ω) x = b, b of shape (n, k), an array of the space; None without solutions, or
        at a frequency where Aᵣ is singular."""
        if not len(self):
            return None
        m, t = len(self), omega / self._scale
        zero, odd, even = self._terms[:, :m, :m]
        try:
            c = np.linalg.solve(zero + t * (odd + t * even), self.space.to_host(self._times(self._V, b)))
        except np.linalg.LinAlgError:
            return None
        return self._times(self._V.T, self.space.from_host(np.ascontiguousarray(c, self.system.dtype)))

    def no_worse(self, x0, b):
        """Set the columns of x0 to zero whose residual exceeds ‖b‖, and return x0. Near a resonance of the model its
        answer may be far off, since A is indefinite. A must have the values of this frequency."""
        off = self.xp.linalg.norm(b.T - self._images(x0.T), axis=1)
        x0[:, ~(off <= self.xp.linalg.norm(b, axis=0))] = 0
        return x0

    def _times(self, V, x):
        """Return V x for a real V and a complex x of shape (n, k)."""
        return (V @ self.xp.ascontiguousarray(x).view(self._real)).view(x.dtype)

    @staticmethod
    def room(system, most):
        """Return the bytes that the directions and their products take at most."""
        real, n = system.dtype.itemsize // 2, system.space.ranks.local_rows(system.A.shape[0])
        return (3 * min(2 * most, MAX_DIRECTIONS) + 4 * TOGETHER) * n * real

    def add(self, x):
        """Keep the solutions x, an array of the space of shape (n, k)."""
        if not self.most or not x.shape[1]:
            return
        xp = self.xp
        rows = xp.ascontiguousarray(xp.concatenate((x.real.T, x.imag.T))[:self.most])
        if len(self) + len(rows) > self.most:
            self._compress()
        sizes = np.sqrt(self.space.to_host((rows * rows).sum(1)))
        rows = rows[self.space.from_host(np.flatnonzero(sizes))] * xp.asarray(1 / sizes[sizes > 0])[:, None]
        new, noise = rows, max(NEW, 10 * np.finfo(self._real).eps)
        for least in (noise, 0.0):               # once more, for orthogonality to rounding
            if len(self):
                new = new - (new @ self._V.T) @ self._V
            values, vectors = np.linalg.eigh(self.space.to_host(new @ new.T))
            order = np.flatnonzero(values > least ** 2)[::-1][:self.most - len(self)]
            if not order.size:
                break
            new = xp.asarray((vectors[:, order] / np.sqrt(values[order])).T.astype(self._real)) @ new
        else:
            self._extend(new)
        if len(self):
            self._latest.append(self.space.to_host(self._V @ rows.T))

    def _extend(self, new):
        """Add orthonormal rows to V, and their products to the three terms of Aᵣ."""
        system, now = self.system, self.system.omega
        old = len(self)
        self._V = new if self._V is None else self.xp.concatenate((self._V, new))
        if self._terms is None:
            self._scale, self._terms = now or 1.0, np.zeros((3, self.most, self.most), complex)
        products = []
        for omega in (0.0, self._scale, -self._scale):
            system.form(omega)
            products.append(self.space.to_host(self._times(self._V, self._images(new).T)))
        system.form(now)
        zero, plus, minus = products
        for whole, term in zip(self._terms, (zero, (plus - minus) / 2, (plus + minus) / 2 - zero)):
            whole[:len(self), old:len(self)], whole[old:len(self), :old] = term, term[:old].T

    def _images(self, new):
        """Return A v for each row v of ``new``, as rows."""
        images = self.xp.empty(new.shape, self.system.dtype)
        v, w = map(plain, (self._v, self._w))
        for first in range(0, len(new), len(v)):
            rows = new[first:first + len(v)]
            v[:len(rows)] = rows
            v[len(rows):] = 0
            self._A.apply(self._v, self._w)
            images[first:first + len(v)] = w[:len(rows)]
        return images

    def _compress(self):
        """Keep the span of the latest solutions alone, with half of the directions."""
        latest, width = [], 0
        for coefficients in reversed(self._latest):
            if width + coefficients.shape[1] > self.most // 2:
                break
            padded = np.zeros((len(self), coefficients.shape[1]))
            padded[:len(coefficients)] = coefficients
            latest.append(padded)
            width += coefficients.shape[1]
        if not latest:
            self._V, self._terms, self._latest = None, None, []
            return
        U, s, _ = np.linalg.svd(np.hstack(latest), full_matrices=False)
        U = U[:, s > NEW * s[0]][:, :self.most // 2]
        self._V = self.xp.asarray(U.T.astype(self._real)) @ self._V
        kept, whole = U.shape[1], self._terms[:, :len(U), :len(U)]
        self._terms[:, :kept, :kept] = U.T @ whole @ U
        self._latest = [U.T @ one for one in reversed(latest)]
