"""L D Lᵀ of a symmetric matrix by RSLAB, an optional package under the MIT licence: ``pip install 'swell[direct]'``.

RSLAB factors supernodes: dense blocks of columns with one pattern, by all threads. On large grids in three dimensions
it takes a quarter of SuperLU's time or less, in two dimensions two thirds (benchmarks/notes/sparse_cholesky.md). Thin
factors have no dense blocks, and are SuperLU's. RSLAB's analysis of the pattern comes first and gives the entries and
the memory of the factors, so factors that are too large are refused before they are begun. The bits do not depend on
the number of threads.

Bunch and Kaufman (1977) pivot within a supernode only. A positive definite A needs no more. In an indefinite A a pivot
may be missing there although A is well conditioned, as in mixed finite elements; RSLAB then says that A is singular. So
swell's own choice takes no matrix with weak pivots, and SuperLU factors what RSLAB gives up; ``repairs`` says so.

An application: 1 solve with the factors. Storage: L, about half of the entries of LU factors.
"""
from __future__ import annotations

import importlib.util
import os
from functools import cache

import numpy as np

from swell.core.columns import plain
from swell.core.errors import FactorisationError, InputError, MissingDependency
from swell.core.library import _native
from swell.orderings.pivots import weak_pivots
from swell.preconditioners.factors import Factors

# The analysis compares orderings of minimum degree, minimum fill and Cuthill-McKee; minimum fill is the best of them,
# or near it, and alone takes half the time. Nested dissection joins from 1e9 flops on. Solves by one thread survive a
# fork.
SETTINGS = {"race_candidates": ["amf"], "solve_par_min_work": 2**62}

BLOCKED = 100           # least flops of an LU factorisation, for each entry of its factors, from which dense blocks pay

_users = set()          # ids of the processes that have used RSLAB: this one and its ancestors by fork


@cache
def installed() -> bool:
    """True if RSLAB can be imported."""
    return importlib.util.find_spec("rslab") is not None


def unsuited(A) -> str | None:
    """Return why RSLAB does not factor the CSRMatrix A of a CPU unasked; None if it does."""
    if not installed():
        return "RSLAB is not installed"
    if _users - {os.getpid()}:
        return "this process was forked after its parent had used RSLAB, whose threads do not survive that"
    if not A.facts().symmetric:
        return "A is not symmetric"
    return "diagonal entries are weak pivots" if weak_pivots(A.indptr, A.indices, abs(A.data))[0].any() else None


class RSLABOperator(Factors):
    """A⁻¹ by RSLAB, factored and applied in double precision; by SuperLU if RSLAB fails.

    Parameters
    ----------
    A : CSRMatrix, n × n
        A = Aᵀ, real or complex.
    largest : int
        Entries of L above which the factorisation is refused; 0: never.
    another : callable
        Returns the `Factors` of a CSRMatrix that RSLAB does not factor.

    Raises
    ------
    MissingDependency
        Without RSLAB.
    InputError
        If A is not symmetric.
    FactorisationError
        If the factors exceed ``largest`` or the free memory, or if ``another`` fails.
    """

    def __init__(self, A, largest, another):
        super().__init__(A.shape, A.dtype, A.space)
        if not installed():
            raise MissingDependency("Direct(package='rslab') needs RSLAB: pip install 'swell[direct]', or take "
                                    "package=None")
        if not A.facts().symmetric:
            raise InputError("Direct(package='rslab'): A is not symmetric, expected A = Aᵀ; leave package out")
        self._another, self.wide = another, np.result_type(A.dtype, np.float64)
        self._source = np.flatnonzero(A.indices >= A.rows())       # columns of the lower triangle: rows of the upper
        self._analysis = self._analyse(A, largest)
        self.update(A)

    def _analyse(self, A, largest):
        """Return RSLAB's analysis of the pattern of A. Raises FactorisationError if the factors would be too large."""
        import rslab
        from scipy.sparse import csc_array
        if _users - {os.getpid()}:
            raise FactorisationError("this process was forked after its parent had used RSLAB, whose threads do not "
                                     "survive that: take Direct(package='superlu') here")
        _users.add(os.getpid())
        ends = np.searchsorted(self._source, A.indptr)
        lower = csc_array((np.ones(self._source.size, self.wide), A.indices[self._source], ends), shape=A.shape)
        analysis = rslab.analyze(lower, path="ldlt", threads=_native.threads(), **SETTINGS)
        if largest and analysis.factor_nnz > largest:
            raise FactorisationError(f"the factors would have {analysis.factor_nnz} entries, more than {largest}, too "
                                     "many to be tried unasked: method='direct' tries it")
        needed, free = analysis.memory_plan(self.wide.name)["peak_bytes"], A.space.memory()[0]
        if needed > free:                        # Rust ends the process if memory runs out
            raise FactorisationError(f"the factors need {needed / 2**30:.3g} GiB, and {free / 2**30:.3g} GiB are free")
        return analysis

    def update(self, A):
        """Factor new values of A with the same pattern; the analysis is kept."""
        self._A, self._other, self.repairs = A, None, ()
        if _users - {os.getpid()}:
            self.repair("this process was forked after its parent had used RSLAB, whose threads do not survive that")
        elif not A.facts().symmetric:
            self.repair("the new A is not symmetric")
        else:
            self._factor(A.data[self._source].astype(self.wide, copy=False))

    def _factor(self, values):
        """Factor the ``values`` of the lower triangle, by columns; by SuperLU if a pivot fails."""
        try:
            factors = self._analysis.factor(values)
        except RuntimeError as error:
            return self.repair(f"RSLAB found no pivot ({error})")
        self._definite = factors.inertia == (self.shape[0], 0, 0)
        if factors.n_perturbed:
            return self.repair(f"RSLAB replaced {factors.n_perturbed} pivots")
        self._factors = factors

    @property
    def loose(self):
        """A, if it is not real and positive definite: its pivots were sought in blocks of columns only."""
        if self._other is not None:
            return self._other.loose
        return None if self._definite and self.dtype.kind == "f" else self._A

    def repair(self, why):
        """Factor by SuperLU instead, or repair its factors."""
        if self._other is None:
            self._factors, self._other, why = None, self._another(self._A), f"{why}: SuperLU factored in its place"
            self.repairs = (why,)
        else:
            self._other.repair(why)
            self.repairs += self._other.repairs

    def apply(self, x, out, alpha=1, beta=0):
        if self._other is not None:
            return self._other.apply(x, out, alpha, beta)
        self.space.combine(alpha, self._solve(plain(x).T).T, beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        if self._other is not None:
            return self._other.apply_adjoint(x, out, alpha, beta)
        # A = Aᵀ, so A⁻ᴴ x = conj(A⁻¹ conj(x))
        self.space.combine(alpha, self._solve(plain(x).T.conj()).conj().T, beta, out)

    def _solve(self, b):
        """Return A⁻¹ b for one column of b, or k of them."""
        b = np.ascontiguousarray(b, self.wide)
        return self._factors.solve(b) if b.ndim == 1 else self._factors.solve_many(b)

    @property
    def nbytes(self):
        if self._other is not None:
            return self._other.nbytes
        return self._factors.factor_nnz * self.wide.itemsize + self._analysis.n * 16

    def describe(self):
        if self._other is not None:
            return self._other.describe()
        return f"Direct() by RSLAB, L D Lᵀ, {self._factors.factor_nnz} entries in L"
