"""Smoothing by a polynomial of higher degree (smoother.py): ``degree`` products with S before and after."""
from __future__ import annotations

from swell.preconditioners.amg.four_products import FourProducts


class Relaxation:
    """The smoother's steps on Ã x = b, Ã = I − S.

    Parameters
    ----------
    S : LinearOperator
    steps : list of (float, float, float)
        The result of `smoother.steps`.
    """

    scratch = ("r", "_z")

    def __init__(self, S, steps):
        self.S, self.steps, self.space = S, steps, S.space
        self.r, self._z = (self.space.empty(S.shape[0], S.dtype) for _ in range(2))

    def start(self, b, x):
        """Write x: the result of the steps from x = 0; the old x is never read. Overwrites ``self.r``."""
        self.space.copy(b, self.r)
        x.fill(0)
        self._run(x)

    def resume(self, b, x):
        """Change x in place by the steps, from the given x. Overwrites ``self.r``."""
        self.residual(b, x)
        self._run(x)

    def _run(self, x):
        """Do the steps: change x and ``self.r``, the residual of x, in place."""
        space, r, z = self.space, self.r, self._z
        for step, (a, c, beta) in enumerate(self.steps):
            if step:
                space.axpy(-1, z, r)
                self.S.apply(z, r, 1, 1)                                       # r = r − Ã z
            space.axpby(c, r, a, z)                                            # z = a z + c r
            space.axpy(beta, z, x)                                             # x = x + β z

    def residual(self, b, x):
        """Write ``self.r`` = b − Ã x."""
        self.space.copy(b, self.r)
        self.space.axpy(-1, x, self.r)
        self.S.apply(x, self.r, 1, 1)

    @property
    def nbytes(self):
        return self.r.nbytes + self._z.nbytes


class Polynomial:
    """One level with a polynomial smoother; see `Relaxation` for ``steps``, `FourProducts` for the other parameters."""

    scratch = ("_x",)

    def __init__(self, level, fine, coarse, dtype, steps):
        self._products = FourProducts(level, fine, coarse, dtype)
        self._relaxation = Relaxation(self._products.S, steps)
        self._x = level.A.space.empty(fine.size, dtype)

    def update(self):
        """Recompute the stored matrices, in place, for new values of the `Level`."""
        self._products.update()

    def descend(self, b, coarse):
        """Write the next level's right-hand side to ``coarse``, from this level's right-hand side b. Keeps this level's
        x for `ascend`."""
        self._relaxation.start(b, self._x)
        self._relaxation.residual(b, self._x)
        self._products.R.apply(self._relaxation.r, coarse)                     # b_c = P̃ᵀ r

    def ascend(self, b, coarse, x):
        """Write x, this level's result for the right-hand side b; ``coarse`` is the next level's result. `descend` ran
        before."""
        x_before = self._x
        self._products.P.apply(coarse, x_before, 1, 1)                         # x = x + P̃ x_c
        self._relaxation.resume(b, x_before)
        self._relaxation.space.copy(x_before, x)

    @property
    def nbytes(self):
        return self._products.nbytes + self._relaxation.nbytes + self._x.nbytes
