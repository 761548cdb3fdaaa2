"""Elimination of a subdomain's interior: a factorisation that is dense in its blocks.

The rows of the interior are in fronts (fronts.py), eliminated one after the other. With C coupling the rows below a
front to it, and C' the front to these:

    positive definite (Cholesky):     D = L Lᴴ,   E = L⁻¹ Cᴴ,    A_below ← A_below − Eᴴ E
    every other matrix (LU):          D = P L U,  E = D⁻¹ C',    A_below ← A_below − C E

where D is the front's matrix. On a CPU fronts are from nested dissection (dissection.py): for a cube of m³ dofs about
m⁶ operations and m⁴ log m entries. On a GPU they are layers, each coupled only to its two neighbours (layers.py): 7/3
m⁷ operations and 2 m⁵ entries, but in few large blocks. Subdomains with the same interior share its factors.

LU exchanges rows within a front only. So a singular D ends it, although A_II may be regular; a nearly singular A_II is
a resonance (`Elimination.resonance`).
"""
from __future__ import annotations

import warnings

import numpy as np

from swell.core.errors import FactorisationError
from swell.preconditioners.bddc.fronts import fronts_of, subtract

INDEFINITE = "BDDC: the interior of a subdomain is not positive definite, and so A is not"
LOST = 1e-13            # a pivot below this times the diagonal entry is rounding, and so is such an eigenvalue
SMALL_PIVOT = 1e-6      # with a pivot below this the least eigenvalue is computed: a null vector v leaves a last pivot
                        # of about eps / |vₙ|²
PROBES, STEPS = 4, 3    # vectors and steps of the inverse iteration that looks for a resonance


def adjoint(X):
    """Return Xᴴ; of a real X a view, with which NumPy computes products Xᴴ X in half the time."""
    return X.conj().T if X.dtype.kind == "c" else X.T


class Elimination:
    """The factors of one interior.

    Parameters
    ----------
    A : CSRMatrix
        A_II, its rows in the order of the fronts.
    ends : int host array, shape (fronts + 1,)
        The first row of each front, and the number of rows.
    definite : bool
        Take Cholesky: A_II is Hermitian, and expected to be positive definite.
    fronts : Tree or Chain, optional
        The result of `fronts_of`, if it is known.

    Attributes
    ----------
    factors : list of Cholesky or PivotedLU
        The factors of each front's D, in double precision.
    E, C : lists of device arrays, shapes (s, b) and (b, s)
        For each front of s rows and b rows below.

    Raises
    ------
    FactorisationError
        If A_II is not positive definite with ``definite``; else, if a D is singular.
    """

    def __init__(self, A, ends, definite=True, fronts=None):
        self.space, self.A, self.ends, self.definite = A.space, A, ends, definite
        self.fronts = fronts = fronts or fronts_of(A, ends)
        self.factors, self.E, self.C = [], [], []
        kind, updates, diagonal = Cholesky if definite else PivotedLU, [None] * len(self), abs(A.diagonal())
        for k, F in enumerate(fronts.matrices(A, definite)):
            for child in fronts.children[k]:
                subtract(self.space, F, fronts.into[child], fronts.into[child], updates[child], definite)
                updates[child] = None
            s = int(ends[k + 1] - ends[k])
            one = kind(self.space, F[:s, :s])
            E = one.left(adjoint(F[s:, :s]) if definite else F[:s, s:])
            C = adjoint(E) if definite else F[s:, :s].copy()
            if E.size:
                updates[k] = C @ E
                updates[k] -= F[s:, s:]
            for of, part in zip((self.factors, self.E, self.C), (one, E, C), strict=True):
                of.append(part)
        if definite and len(self):
            xp = self.space.xp
            pivots = xp.concatenate([one.L.diagonal() for one in self.factors])
            least = float((abs(pivots) ** 2 / diagonal).min())  # sync
            if not least > LOST or least <= SMALL_PIVOT and self._least(diagonal ** 0.5) <= LOST:
                raise FactorisationError(INDEFINITE)

    def __len__(self):
        return len(self.ends) - 1

    def solve(self, r):
        """Return A_II⁻¹ r, a new device array; r has shape (n, k)."""
        r, parts, below, y = r.copy(), list(map(slice, self.ends[:-1], self.ends[1:])), self.fronts.below, []
        for k, part in enumerate(parts):
            y.append(self.factors[k].left(r[part].copy(order="F")))
            r[below[k]] -= self.C[k] @ y[k]
        for k in reversed(range(len(self))):
            r[parts[k]] = self.factors[k].back(y[k] - self.E[k] @ r[below[k]])
        return r

    def _least(self, scale):
        """Return the least eigenvalue of A_II with its diagonal, the square of the device array ``scale``, scaled to 1.

        A singular A_II may have pivots above `LOST` by chance, where its null vector is small; its eigenvalue is not.
        """
        return self._next_to_zero(1, STEPS - 1, lambda v: scale[:, None] * self.solve(scale[:, None] * v))[0]

    def resonance(self):
        """Return (λ, v): the size of the eigenvalue of A_II next to zero, by a few steps of inverse iteration, and its
        vector, an array of shape (n,)."""
        return self._next_to_zero(PROBES, STEPS, self.solve)

    def _next_to_zero(self, count, steps, solve):
        """Return (λ, v) as `resonance` for the inverse ``solve``, by ``steps`` steps from ``count`` random vectors."""
        xp, n = self.space.xp, int(self.ends[-1])
        v = self.space.from_host(np.random.default_rng(0).standard_normal((n, count)).astype(self.A.dtype))
        for _ in range(steps):
            v /= xp.sqrt((abs(v) ** 2).sum(axis=0))
            v = solve(v)
        sizes = self.space.to_host(xp.sqrt((abs(v) ** 2).sum(axis=0)))  # sync
        k = int(sizes.argmax())
        return 1 / sizes[k], v[:, k] / sizes[k]


class Cholesky:
    """D = L Lᴴ, column-major for BLAS.

    Raises
    ------
    FactorisationError
        If D is not positive definite.
    """

    def __init__(self, space, D):
        self.space = space
        if space.name == "cpu":
            from scipy.linalg import get_lapack_funcs
            self.L, wrong = get_lapack_funcs("potrf", (D,))(np.array(D, order="F"), lower=1, overwrite_a=1)
            if wrong:
                raise FactorisationError(INDEFINITE)
            return
        from cupyx import errstate
        try:
            with errstate(linalg="raise"):       # else CuPy returns a wrong L without an error
                self.L = space.xp.asfortranarray(space.xp.linalg.cholesky(D))
        except np.linalg.LinAlgError:
            raise FactorisationError(INDEFINITE) from None

    def left(self, B):
        """Return L⁻¹ B; B may be overwritten."""
        return self._solve(B, 0)

    def back(self, B):
        """Return L⁻ᴴ B, for B = L⁻¹ R: then it is D⁻¹ R."""
        return self._solve(B, 2)

    def inverse(self, size):
        """Return D⁻¹, a new device array; D has ``size`` rows."""
        if self.space.name == "cpu":
            from scipy.linalg import get_lapack_funcs
            X = get_lapack_funcs("potri", (self.L,))(self.L, lower=1)[0]           # a quarter of the work below
            np.fill_diagonal(X, 0.5 * X.diagonal())
            return X + X.conj().T
        X = self.left(self.space.xp.eye(size, dtype=self.L.dtype, order="F"))
        return X.conj().T @ X

    def _solve(self, B, trans):
        """Return L⁻¹ B, or L⁻ᴴ B with ``trans`` 2; B may be overwritten."""
        if not B.size:
            return B
        if self.space.name == "cpu":
            from scipy.linalg import get_blas_funcs
            return get_blas_funcs("trsm", (self.L,))(1.0, self.L, B, 0, 1, trans, 0, 1)
        from cupyx.scipy.linalg import solve_triangular
        return solve_triangular(self.L, B, trans, lower=True, overwrite_b=True, check_finite=False)


class PivotedLU:
    """P D = L U by the device's library, with exchanges of rows.

    Raises
    ------
    FactorisationError
        If a pivot is zero or not finite.
    """

    def __init__(self, space, D):
        self.space = space
        if space.name == "cpu":
            from scipy.linalg import lu_factor, lu_solve
        else:
            from cupyx.scipy.linalg import lu_factor, lu_solve
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")      # LAPACK warns of a zero pivot, which is an error below
            self._factors, self._lu_solve = lu_factor(D, overwrite_a=True, check_finite=False), lu_solve
        size = abs(space.to_host(self._factors[0].diagonal()))  # sync
        if not (np.isfinite(size).all() and size.all()):
            raise FactorisationError("BDDC: a part of the interior of a subdomain is singular: the interior "
                                     "resonates, or A needs pivots from outside of the part: take other subdomains")

    def left(self, B):
        """Return D⁻¹ B; B may be overwritten."""
        return self._lu_solve(self._factors, B, overwrite_b=True, check_finite=False) if B.size else B

    def inverse(self, size):
        """Return D⁻¹, a new device array; D has ``size`` rows."""
        return self.left(self.space.xp.eye(size, dtype=self._factors[0].dtype, order="F"))

    def back(self, B):
        """Return B: `left` has divided by both factors."""
        return B
