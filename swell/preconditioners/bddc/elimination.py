"""Elimination of a subdomain's interior in layers: a block tridiagonal factorisation, dense in its blocks.

The interior is cut into layers by the distance in its graph from one face of the subdomain (or from one dof). So a
layer is coupled only to its two neighbours. Thin layers are joined. They are eliminated one after the other, with C
coupling the next layer to this one, and C' this one to the next:

    positive definite (Cholesky):     D = L Lᴴ,   E = L⁻¹ Cᴴ,    D ← A_next − Eᴴ E
    every other matrix (LU):          D = P L U,  E = D⁻¹ C',    D ← A_next − C E

where D is the layer's matrix. The layers start or end at a face, whichever gives the least work with the Schur
complement: for a box its smallest face, with as many layers as the box is long. They end there if most of the other
faces are not on the interface, so that few interface dofs are coupled to the first layers.

Cost for layers of s dofs, at the speed of dense products: 7/3 Σ s³ by Cholesky, 14/3 Σ s³ by LU. Storage: 2 Σ s², by LU
3 Σ s². For a cube of m³ dofs this is 7/3 m⁷ and 2 m⁵; nested dissection takes about m⁶ and m⁴ log m. It is more work,
but in few large blocks, on any device. It pays if many subdomains have the same interior, which is then factored once.

LU exchanges rows within a layer only. So a singular D ends it, although A_II may be regular; a nearly singular A_II is
a resonance (`Elimination.resonance`).
"""
from __future__ import annotations

import warnings
from contextlib import nullcontext

import numpy as np

from swell.core.errors import FactorisationError
from swell.dense.products import subtract_product

THIN = {"cpu": 90, "cuda": 200}  # a layer of fewer dofs is joined with the next: products must be worth their launch
INDEFINITE = "BDDC: the interior of a subdomain is not positive definite, and so A is not"
LOST = 1e-13            # a pivot below this times the diagonal entry is rounding, and so is such an eigenvalue
SMALL_PIVOT = 1e-6      # with a pivot below this the least eigenvalue is computed: a null vector v leaves a last pivot
                        # of about eps / |vₙ|²
PROBES, STEPS = 4, 3    # vectors and steps of the inverse iteration that looks for a resonance


class Elimination:
    """The factors of one interior.

    Parameters
    ----------
    A : CSRMatrix
        A_II, its rows in the order of the layers.
    ends : int host array, shape (layers + 1,)
        The first row of each layer, and the number of rows.
    definite : bool
        Take Cholesky: A_II is Hermitian, and expected to be positive definite.

    Attributes
    ----------
    factors : list of Cholesky or PivotedLU
        The factors of each layer's D, in double precision.
    E, C : lists of device arrays, shapes (s, next s) and (next s, s)
        The products with the couplings to the next layer; the last layer has none. With Cholesky C is Eᴴ.

    Raises
    ------
    FactorisationError
        If A_II is not positive definite with ``definite``; else, if a D is singular.
    """

    def __init__(self, A, ends, definite=True):
        self.space, self.A, self.ends, self.definite = A.space, A, ends, definite
        self.factors, self.E, self.C = [], [], []
        blocks, kind = Blocks(A, ends), Cholesky if definite else PivotedLU
        D = blocks.dense(0, ends[0], ends[1]) if len(self) else None
        diagonal, least = abs(A.diagonal()), 1.0
        for k in range(len(self)):
            self.factors.append(kind(self.space, D))
            if definite:
                pivots = abs(self.factors[k].L.diagonal()) ** 2
                least = self.space.xp.minimum(least, (pivots / diagonal[ends[k]:ends[k + 1]]).min())
            if k + 1 < len(self):
                C = blocks.dense(k + 1, *ends[k:k + 2])
                E = self.factors[k].left(C.conj().T if definite else blocks.dense(k, *ends[k + 1:k + 3]))
                C = E.conj().T if definite else C
                D = blocks.dense(k + 1, *ends[k + 1:k + 3])
                subtract_product(self.space, D[None], C[None], E[None])
                self.E.append(E)
                self.C.append(C)
        least = float(least)  # sync
        if not least > LOST or least <= SMALL_PIVOT and self._least(diagonal ** 0.5) <= LOST:
            raise FactorisationError(INDEFINITE)

    def __len__(self):
        return len(self.ends) - 1

    def solve(self, r):
        """Return A_II⁻¹ r, a new device array; r has shape (n, k)."""
        r, parts, y = r.copy(), list(map(slice, self.ends[:-1], self.ends[1:])), []
        for k, part in enumerate(parts):
            y.append(self.factors[k].left(r[part].copy(order="F")))
            if k < len(self) - 1:
                r[parts[k + 1]] -= self.C[k] @ y[k]
        for k in reversed(range(len(self))):
            if k < len(self) - 1:
                y[k] = y[k] - self.E[k] @ r[parts[k + 1]]
            r[parts[k]] = self.factors[k].back(y[k])
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
            watched = nullcontext()
        else:
            from cupyx import errstate
            watched = errstate(linalg="raise")   # else CuPy returns a wrong L without an error
        try:
            with watched:
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
            lower = get_lapack_funcs("potri", (self.L,))(self.L, lower=1)[0]           # a quarter of the work below
            return lower + np.tril(lower, -1).conj().T
        X = self.left(self.space.xp.eye(size, dtype=self.L.dtype, order="F"))
        return X.conj().T @ X

    def _solve(self, B, trans):
        """Return L⁻¹ B, or L⁻ᴴ B with ``trans`` 2; B may be overwritten."""
        if not B.size:
            return B
        if self.space.name == "cpu":
            from scipy.linalg import solve_triangular
        else:
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
            raise FactorisationError("BDDC: a layer in the interior of a subdomain is singular: the interior "
                                     "resonates, or A needs pivots from outside of the layer: take other subdomains")

    def left(self, B):
        """Return D⁻¹ B; B may be overwritten."""
        return self._lu_solve(self._factors, B, overwrite_b=True, check_finite=False) if B.size else B

    def inverse(self, size):
        """Return D⁻¹, a new device array; D has ``size`` rows."""
        return self.left(self.space.xp.eye(size, dtype=self._factors[0].dtype, order="F"))

    def back(self, B):
        """Return B: `left` has divided by both factors."""
        return B


class Blocks:
    """Access to the dense blocks of a matrix whose rows are in layers."""

    def __init__(self, A, ends):
        self.A, self.ends, self._rows = A, ends, A.rows()
        self._at = A.space.to_host(A.indptr[A.space.from_host(ends)]).tolist()  # sync

    def dense(self, k, first, last):
        """Return a new dense device array: the rows of layer k of the matrix, in the columns ``first`` to ``last`` − 1.
        """
        A, some = self.A, slice(*self._at[k:k + 2])
        block = A.space.xp.zeros((int(self.ends[k + 1] - self.ends[k]), int(last - first)), A.dtype)
        columns = A.indices[some]
        there = (columns >= first) & (columns < last)
        block[self._rows[some][there] - self.ends[k], columns[there] - first] = A.data[some][there]
        return block


def layers(A, sides, coupling=None, thin=THIN["cuda"]):
    """Cut the rows of A into layers, each coupled only to the two beside it, with the least work for `Elimination` and
    for the Schur complement (schur.py).

    Returns (order, ends), int arrays: the rows of A sorted by layer; layer k is order[ends[k]:ends[k + 1]].

    Parameters
    ----------
    A : scipy.sparse.csr_array
        With a symmetric pattern.
    sides : iterable of int arrays
        Rows that may be the first layer or, if ``coupling`` is given, the last.
    coupling : scipy.sparse.csr_array, optional
        A row for each interface dof, with an entry for each row of A that is coupled to it.
    thin : int
        A layer of fewer rows is joined with the next.
    """
    best, distances = None, Distances(A)
    for side in ([], *sides):
        block = distances(side)
        sizes, joined, size = np.bincount(block), np.empty(block.max() + 1, np.int64), 0
        for k, more in enumerate(sizes.tolist()):
            joined[k] = joined[k - 1] + (size >= thin) if k else 0
            size = size + more if k and joined[k] == joined[k - 1] else more
        block = joined[block]
        for block in (block,) if coupling is None else (block, block.max() - block):
            sizes = np.bincount(block)
            work = _work(sizes, block, coupling)
            if best is None or work < best[0]:
                best = work, np.argsort(block, kind="stable"), np.concatenate(([0], np.cumsum(sizes)))
    return best[1:]


def _work(sizes, block, coupling):
    """Return the operations for layers of ``sizes`` rows, of which row i is in layer block[i]: a float. The columns of
    W are the interface dofs that are coupled to a layer up to this one; ``coupling`` is as for `layers`."""
    active = np.zeros(sizes.size)
    if coupling is not None and coupling.nnz:
        starts = coupling.indptr[:-1][np.diff(coupling.indptr) > 0]
        met = np.minimum.reduceat(block[coupling.indices], starts)
        active = np.cumsum(np.bincount(met, minlength=sizes.size))
    sizes = sizes.astype(float)
    return float((7 / 3 * sizes ** 3 + 3 * sizes ** 2 * active + sizes * active ** 2).sum())


class Distances:
    """Distances in the graph of A, a scipy.sparse.csr_array, by breadth-first search."""

    def __init__(self, A):
        from scipy.sparse.csgraph import connected_components
        self.A, self.values = A, np.ones(A.nnz + A.shape[0])         # SciPy's graphs have float64 values
        self.count, self.piece = connected_components(A, directed=False)
        self.first = np.unique(self.piece, return_index=True)[1]

    def __call__(self, side):
        """Return each row's distance to the nearest row of ``side``, an int array. In connected components without
        rows of ``side``: the distance to their first row."""
        import scipy.sparse as sp
        from scipy.sparse.csgraph import breadth_first_order
        A, n = self.A, self.A.shape[0]
        others = np.setdiff1d(np.arange(self.count), self.piece[side])
        starts = np.concatenate((np.asarray(side, np.int64), self.first[others]))
        # An additional row, n, leads to all starts.
        links = sp.csr_array((self.values[:A.nnz + starts.size], np.concatenate((A.indices, starts)),
                              np.concatenate((A.indptr, [A.nnz + starts.size]))), shape=(n + 1, n + 1))
        order, before = breadth_first_order(links, n)
        place = np.empty(n + 1, np.int64)
        place[order] = np.arange(n + 1)
        reached_from = place[before[order[1:]]]      # ascends: a level is reached from the preceding level
        distance, begin, end, level = np.empty(n + 1, np.int64), 1, 1, 0
        while begin <= n:
            end = 1 + int(np.searchsorted(reached_from, end, side="left"))
            distance[order[begin:end]] = level
            begin, level = end, level + 1
        return distance[:n]
