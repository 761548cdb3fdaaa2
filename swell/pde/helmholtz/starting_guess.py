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

Several right-hand sides: each combines its own solutions only, so that it starts where it would alone. Products and
launches serve all of them together.
"""
import numpy as np

from swell.core.columns import Columns, plain
from swell.core.sharing import Widening
from swell.core.space import accumulator
from swell.solving.together import MAX_COLUMNS

NOISE = 50              # eigenvalues of WᴴW up to NOISE · eps · (the largest) are dropped
STEPS = 2               # passes of the minimisation


class StartingGuess:
    """The last solutions of a sweep, and the starting vector from them.

    Parameters
    ----------
    space : Space
        For several right-hand sides, a space of as many columns; vectors are then `Columns`.
    most : int
        Maximum number of kept solutions.
    """

    def __init__(self, space, most):
        self.space, self.most, self._added = space, most, 0
        space.reserve_sums(most)

    def add(self, x):
        """Keep a solution (a vector of the space), scaled to norm 1; it replaces the oldest one.

        A zero column beside others is kept as it is, and adds nothing to its starting vector."""
        norms = np.asarray(self.space.norms(x)[0]) if self.most else np.zeros(1)
        if not norms.any():
            return
        if not self._added:
            self._X, self._W = (self.space.buffer((self.most, self.space.padded(x.size)), x.dtype) for _ in range(2))
        divisors = np.where(norms == 0, 1, norms).astype(x.dtype)
        slot = self._X[self._added % self.most, :x.size]
        slot[...] = x / (self.space.from_host(divisors[:, None]) if norms.ndim else divisors[()])
        self._added += 1

    def of(self, A, b):
        """Return a starting vector x₀ for A x = b, with the smallest residual in the span of the kept solutions; None
        if there are none."""
        m = min(self._added, self.most)
        if not m:
            return None
        kernels, scalar = self.space.kernels("swell.preconditioners", "deflation", b.dtype), accumulator(b.dtype)
        X, W = self._X[:m, :b.size], self._W[:m, :b.size]        # one vector in each row
        adjoint = self.space.buffer((m, m), scalar)              # the lower triangle of WᵀW̄, which eigh reads
        adjoint.fill(0)
        for k in range(m):
            A.apply(X[k], W[k])
            kernels.dots(W[:k + 1], W[k], adjoint[k, :k + 1], True)
        values, vectors = np.linalg.eigh(self._summed(adjoint).conj())
        kept = values > NOISE * np.finfo(b.dtype).eps * values[..., -1:]
        inverse = np.where(kept, 1 / np.where(kept, values, 1), 0)[..., None]
        r, y, c = self.space.buffer(b.size, b.dtype), self.space.buffer(m, scalar), 0
        r[...] = b
        for _ in range(STEPS):
            kernels.dots(W, r, y, True)
            products = self._summed(y)[..., None]
            more = (vectors @ (inverse * (vectors.conj().swapaxes(-1, -2) @ products)))[..., 0]
            y[...] = self.space.from_host(more)
            kernels.subtract(W, y, r, r, False)
            c = c + more
        r.fill(0)
        y[...] = self.space.from_host(-c)
        kernels.subtract(X, y, r, r, False)
        return r

    def _summed(self, products):
        """Add ``products``, this rank's parts of inner products, over all ranks, in place; return the sums on the
        host."""
        self.space.ranks.allreduce(products)
        return self.space.to_host(products)


class StartingGuesses:
    """The starting vectors for several right-hand sides, in groups that share launches; across ranks, one by one.

    Parameters
    ----------
    A : CSRMatrix or DistributedMatrix
        The sweep's matrix, whose values change in place.
    most : int
        Maximum number of kept solutions of each right-hand side.
    count : int
        Number of right-hand sides.
    """

    def __init__(self, A, most, count):
        width = MAX_COLUMNS if A.space.ranks.single else 1
        self._groups = [(slice(first, min(first + width, count)), *self._group(A, most, min(width, count - first)))
                        for first in range(0, count, width)]

    @staticmethod
    def _group(A, most, width):
        """Return (the `StartingGuess`, the matrix) for ``width`` right-hand sides."""
        if width == 1:
            return StartingGuess(A.space, most), A
        space = A.space.for_columns(width)
        return StartingGuess(space, most), Widening(space)(A)

    def add(self, x, converged):
        """Keep the columns of x, shape (n, count), for which the bool array ``converged`` is true."""
        for group, guess, A in self._groups:
            columns = self._columns(guess.space, x[:, group])
            for j in np.flatnonzero(~converged[group]):
                plain(columns).reshape(-1, columns.size)[j] = 0
            guess.add(columns)

    def of(self, b):
        """Return starting vectors, an array like b of shape (n, count); None if no solution is kept."""
        starts = [guess.of(A, self._columns(guess.space, b[:, group])) for group, guess, A in self._groups]
        if all(x is None for x in starts):
            return None
        x0 = self._groups[0][1].space.xp.zeros_like(b)
        for (group, *_), x in zip(self._groups, starts):
            if x is not None:
                x0[:, group] = plain(x).reshape(-1, x.size).T
        return x0

    @staticmethod
    def _columns(space, vectors):
        """Return ``vectors``, shape (n, columns of the space), as a vector of the space."""
        out = space.buffer(vectors.shape[0], vectors.dtype)
        out[...] = vectors.T if isinstance(out, Columns) else vectors[:, 0]
        return out
