"""IS_x(PP): substitution as a fixed-point iteration. Section 2.2.2 and Appendix E of the thesis.

All y_i = (b_i − Σ l_ij y_j) / l_ii are computed at once from the last iterate, until none changes by more than
``tolerance``; then x in the same way. Like ICM's, the iteration is nilpotent: y_i is final one iteration after all
entries before it.

The thesis' solver returned invalid values on some systems. The reason is its test, |old − new| > tolerance, which is
false for a NaN. Iterates may grow like the powers of D⁻¹(L − D) before they settle. If they overflow, inf − inf = NaN.
When all entries that are not final are NaN, nothing "changes", and the iteration ends with NaN. A few more iterations
would have computed these entries anew from finite values. (Hence "the computation of certain values is skipped".) In a
dense factor the first entry that is not final depends on only one such entry. It is ±inf rather than NaN, and keeps the
iteration going. So only sparse systems gave invalid results, eleven of the thesis' twelve. Here an entry has settled if
|old − new| <= tolerance, which is false for a NaN. So the iteration ends after at most n + 1 iterations, with the
result of substitution. If a value is not finite even then, the solution itself overflows, and that is an error.

``form="plain"`` iterates the whole system, as the thesis does, with a host read an iteration. ``form="blocked"``, the
default, takes blocks of x rows one after the other. A matrix product subtracts the contributions of finished blocks. A
block of x by 8 threads iterates x rows of 8 right-hand sides in shared memory, from the first row that is not final.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from swell.core.errors import FactorisationError
from swell.core.settings import one_of, share
from swell.dense.decomposer import check_x, tighter
from swell.dense.products import subtract_product
from swell.dense.solver import BoundSolver, DenseSolver

BLOCK_COLUMNS = 8       # right-hand sides of a block of threads
FORMS = ("blocked", "plain")


@dataclass(frozen=True)
class IS(DenseSolver):
    """Both substitutions by iteration.

    Attributes
    ----------
    x : {8, 16, 32, 64, 128}
        Rows of a block.
    tolerance : float
        Processing tolerance, absolute; 0: exact. A tolerance so large that a solution is no better than zero is an
        error.
    form : {"blocked", "plain"}
        "blocked": blocks of x rows one after the other, the fast form; "plain": the whole system, as in the thesis.
    """

    x: int = 32
    tolerance: float = 0.0
    form: str = "blocked"

    cost = "2 n² a right-hand side, in products, and x iterations a block at worst"

    def __post_init__(self):
        check_x(self, (8, 16, 32, 64, 128))
        share(self, "tolerance")
        one_of(self, "form", FORMS)

    def tightened(self):
        return replace(self, tolerance=tighter(self.tolerance)) if self.tolerance else None

    def bind(self, factors, trans):
        return IterativeSubstitution(self, factors, trans)


class IterativeSubstitution(BoundSolver):
    """IS for one matrix."""

    def __init__(self, settings, factors, trans="N"):
        super().__init__(settings, factors, trans)
        self.kernels = self.space.kernels("swell.dense", "substitution", factors.dtype)
        self._counts = 0, 0

    @property
    def iterations(self):
        """Iterations of the first and the second substitution of the last solution, a tuple of int; (0, 0) before one.
        With blocks, the sum over blocks of the slowest tile's."""
        return tuple(c if isinstance(c, int) else int(self.space.to_host(c).max(axis=1).sum()) for c in self._counts)

    def substitute(self, X):
        substitute = self._blocks if self.settings.form == "blocked" else self._whole
        self._counts = substitute(X, False), substitute(X, True)
        return X

    def check(self, B, X):
        """Raise FactorisationError if X is no better than zero: ‖B − op(A) X‖ is not below ‖B‖, with the factors."""
        if not self.settings.tolerance:
            return
        xp, order = self.space.xp, self.factors.order
        if self.transposed:
            X = X[order]
            B, X = (B.conj(), X.conj()) if self._conjugate else (B, X)
        else:
            B = B[order]
        size = xp.maximum(abs(B).max(axis=0), np.finfo(X.dtype).tiny)   # squares of large numbers would overflow
        errors = xp.linalg.norm((B - self.product(X)) / size, axis=0)
        lost = (errors >= xp.linalg.norm(B / size, axis=0)) & (errors > 0)
        if bool(lost.any()):  # sync
            k = int(xp.argmax(lost))
            raise FactorisationError(f"IS(tolerance={self.settings.tolerance:g}): nothing of right-hand side {k} is "
                                     "left in its solution, which misses it by as much as zero would: take less")

    def _unit(self, backward):
        """Return 1 if the triangle of this substitution has the unit diagonal, else 0."""
        return int(self.unit == ("U" if backward else "L"))

    def _blocks(self, X, backward):
        """Solve L Y = X, or U Y = X if ``backward``, in place in X, in blocks of x rows. Returns the iterations of
        each tile, a device array. Products subtract the contributions of finished blocks."""
        n, x, lu, space = self.factors.n, self.settings.x, self.matrix, self.space
        counts = space.xp.zeros((-(-n // x), -(-X.shape[1] // BLOCK_COLUMNS) + 1), np.int32)
        blocks = range(0, n, x)
        for count, f in zip(counts, reversed(blocks) if backward else blocks):
            g = min(f + x, n)
            done = slice(g, n) if backward else slice(0, f)
            subtract_product(space, X[None, f:g], lu[None, f:g, done], X[None, done])
            self.kernels.settle(self.lu, self.row, self.column, f, g - f, int(backward), self._unit(backward), x,
                                BLOCK_COLUMNS * x, self.settings.tolerance, X.T.reshape(-1), n, X.shape[1], count)
        return counts

    def _whole(self, X, backward):
        """Solve L Y = X, or U Y = X if ``backward``, in place in X, by iterating all rows together. Returns the
        iterations."""
        n, x, m, space = self.factors.n, self.settings.x, X.shape[1], self.space
        b, now = X.T.reshape(-1).copy(), X.T.reshape(-1)
        then, changed = now.copy(), space.empty(1, np.int32)
        tiles = space.empty(-(-n // x) * -(-m // BLOCK_COLUMNS) + 1, np.int32)
        for iteration in range(1, n + 2):
            changed[...] = 0
            self.kernels.sweep(self.lu, self.row, self.column, int(backward), self._unit(backward), b, now, then, x,
                               BLOCK_COLUMNS * x, self.settings.tolerance, n, m, changed, tiles)
            now[...] = then
            if not int(changed[0]):  # sync
                return iteration
        which = "backward" if backward else "forward"
        raise FactorisationError(f"IS: {which} substitution has not settled after {n + 1} iterations, "
                                 f"when all of it must be final: the solution overflows {X.dtype.name}")
