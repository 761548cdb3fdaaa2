"""A level of the V(1, 1) cycle by four products, each of which reads its matrix once:

    r = S b,   b_c = R̃ r,   (coarse levels: x_c),   y = b + P̃ x_c,   x = b + S y.

On large levels no other form reads fewer bytes. A GPU stores the three matrices in SELL, or in CSR if rows are few and
long (shared_rows.py). A CPU stores them in CSR, which is as fast there and needs no conversion.
"""
from __future__ import annotations

from swell.preconditioners.amg.balancing import interpolation, restriction, smoothing_matrix
from swell.preconditioners.amg.shared_rows import stored


class FourProducts:
    """One level of the cycle, with the balanced matrices of `balancing.py`.

    Parameters
    ----------
    level : Level
    fine, coarse : float64 arrays
        The diagonals of D on this level and on the next one.
    dtype : numpy.dtype
        Type of the cycle's matrices and vectors.
    adjoint : bool
        True for the level of the adjoint cycle.
    """

    scratch = "b_coarse", "x_coarse", "_r"

    def __init__(self, level, fine, coarse, dtype, adjoint=False):
        self.level, self.fine, self.coarse, self.dtype, self._adjoint = level, fine, coarse, dtype, adjoint
        self.space = level.A.space
        self.S, self.P, self.R = self.matrices = [stored(M) for M in self._values()]
        self._make_vectors()

    def _make_vectors(self):
        """Make the next level's vectors, and r."""
        self.b_coarse, self.x_coarse, self._r = (self.space.empty(scale.size, self.dtype)
                                                 for scale in (self.coarse, self.coarse, self.fine))

    def _values(self):
        """Return S, P̃ and R̃, new matrices in CSR; balancing.py defines them. For the adjoint: Sᴴ, R̃ᴴ and P̃ᴴ."""
        level, scales = self.level, (self.fine, self.coarse, self.dtype)
        S, P = smoothing_matrix(level.A, self.fine, self.dtype), interpolation(level.P, *scales)
        R = restriction(level.R, *scales) if level.order is None else level.R.with_values(P.data[level.order])
        return [M.transpose(conjugate=True) for M in (S, R, P)] if self._adjoint else (S, P, R)

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level`, ``fine`` and ``coarse``."""
        for old, new in zip(self.matrices, self._values()):
            old.update(new)

    def adjoint(self):
        return FourProducts(self.level, self.fine, self.coarse, self.dtype, adjoint=True)

    def down(self, b, x, again):
        if again:
            self.space.copy(b, self._r)
            self.space.axpy(-1, x, self._r)
            self.S.apply(x, self._r, 1, 1)                                     # r = b − x + S x
        else:
            self.S.apply(b, self._r)                                           # r = S b, of x = b
        self.R.apply(self._r, self.b_coarse)                                   # b_c = R̃ r

    def up(self, b, x, again):
        self.P.apply_plus(self.x_coarse, x if again else b, self._r)           # y = x + P̃ x_c
        self.S.apply_plus(self._r, b, x)                                       # x = b + S y

    @property
    def nbytes(self):
        return sum(part.nbytes for part in (*self.matrices, self.b_coarse, self.x_coarse, self._r))
