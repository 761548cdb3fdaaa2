"""LU factors of a sparse matrix by SuperLU, through SciPy, on a CPU. Demmel, Eisenstat, Gilbert, Li and Liu 1999.

Rows and columns have the order of minimum degree (orderings/minimum_degree.py), and pivots stay on the diagonal down to
a thousandth of their row's largest entry. In this order SuperLU factors Aᵀ, whose columns are the rows of A, and solves
with its transpose. Where diagonal entries are smaller, they wait in the elimination, or rows are exchanged and scaled
(orderings/pivots.py). So the entries of the factors are known, roughly, before SuperLU starts, which nothing can
interrupt. COLAMD with free exchange of rows repairs what fails.

An application: 1 solve with the factors. Storage: the factors.
"""
from __future__ import annotations

import warnings

import numpy as np

from swell.core import forking  # noqa: F401     a fork beside a thread that holds factors leaves an error behind
from swell.core.columns import plain
from swell.core.errors import FactorisationError
from swell.formats.csr import CSRMatrix
from swell.orderings.pivots import WEAK, eliminate_with_pivots, negligible, weak_pivots
from swell.preconditioners.factors import Factors

INDEX = 4               # bytes of an index of SuperLU
ROOM = 1.25             # memory that SuperLU needs for its factors, which it moves as they grow
DEEP = 250              # least flops an entry of the factors for which SuperLU's panels of 20 columns pay; else 2


class SuperLUOperator(Factors):
    """A⁻¹ by SuperLU, factored and applied in double precision.

    ``largest`` and ``ordering``: see `Direct`. ``found``: the complete Elimination of A, if it is known.

    Raises
    ------
    FactorisationError
        If a pivot is exactly zero, or the factors do not fit in memory or exceed ``largest``.
    """

    def __init__(self, A, largest=None, ordering=None, elimination=None):
        super().__init__(A.shape, A.dtype, A.space)
        self._largest, self._ordering, self._elimination = largest, ordering, elimination
        self._made = None, None                  # the `Permuted` A, None for COLAMD, and the factors; replaced together
        self.wide = np.result_type(A.dtype, np.float64)
        self.update(A)

    def update(self, A):
        """Factor a new matrix, and replace the factors; the order is kept as long as the same pivots are weak."""
        if A.indices.dtype != np.int32:
            raise FactorisationError(f"SuperLU takes 32-bit indices, and this matrix has {A.nnz} entries")
        permuted = self._made[0]
        if permuted is None or (permuted.weak(A.data) != permuted.weak_at_first).any() or permuted.lacks(A):
            permuted = self._analyse(A)
        self._A, self.repairs = A, ()
        try:
            self._made = permuted, self._by_columns() if permuted is None else self._by_rows(permuted)
        except FactorisationError as error:
            if permuted is None or not error.singular:
                raise
            self.repair("a pivot on the diagonal vanished")

    @property
    def loose(self) -> CSRMatrix | None:
        """A, if the factors have their pivots on the diagonal although other entries of a row may be up to a thousand
        times larger; None with full pivoting."""
        return None if self._made[0] is None else self._A

    def _analyse(self, A):
        """Return the `Permuted` matrix in the order of minimum degree, or None if COLAMD is to order the columns.

        Raises FactorisationError if the factors would exceed ``largest`` entries, or A is structurally singular."""
        colamd = self._ordering == "colamd"
        if colamd and not self._largest:
            return None
        elimination, match, self._elimination = self._elimination, None, None
        if elimination is None:
            elimination, match = eliminate_with_pivots(A, self._largest or np.inf)
        if not elimination.cost.complete or self._largest and self._largest < elimination.cost.entries:
            raise FactorisationError(f"the factors would have more than {self._largest} entries, too many to be tried "
                                     "unasked: method='direct' tries it")
        # SuperLU cannot be interrupted, and writes to the terminal when memory ends.
        A.space.check_fits(ROOM * elimination.cost.entries * (self.wide.itemsize + INDEX),
                           f"{elimination.cost.entries:.0f} entries of L and U", "use an iterative method")
        return None if colamd else Permuted(A, elimination, match)

    def _by_rows(self, p):
        """Return SciPy's SuperLU object of the transpose of a `Permuted` matrix, with pivots on the diagonal."""
        from scipy.sparse import csc_array
        data = p.values(self._A.data).astype(self.wide, copy=False)
        matrix = csc_array((data, p.indices, p.indptr), shape=self.shape)
        matrix.has_canonical_format = True       # to SciPy: SuperLU does not need sorted columns
        return _splu(matrix, {"permc_spec": "NATURAL", "diag_pivot_thresh": WEAK, "options": {"SymmetricMode": True},
                              "relax": 1, "panel_size": p.panel})

    def _by_columns(self):
        """Return SciPy's SuperLU object of A in the order of COLAMD, with the largest pivot of each column."""
        return _splu(self._A.to_scipy().tocsc().astype(self.wide, copy=False), {"relax": 1})

    def repair(self, why):
        """Factor anew, by COLAMD with full pivoting."""
        self._made = None, self._by_columns()    # the next matrix is analysed anew
        self.repairs = (f"{why}: the factorisation was repeated by COLAMD with full pivoting",)

    def apply(self, x, out, alpha=1, beta=0):
        x, (p, factors) = plain(x).T.astype(self.wide, copy=False), self._made     # one column of x, or k of them
        y = factors.solve(x) if p is None else p.columns.backward(factors.solve(p.rows.forward(x), "T"))
        self.space.combine(alpha, y.T, beta, out)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        x, (p, factors) = plain(x).T.astype(self.wide, copy=False), self._made
        # A⁻ᴴ x = conj(A⁻ᵀ conj(x))
        y = factors.solve(x, "H") if p is None else p.rows.backward(factors.solve(p.columns.forward(x.conj()))).conj()
        self.space.combine(alpha, y.T, beta, out)

    @property
    def nbytes(self):
        return self._made[1].nnz * (self.wide.itemsize + INDEX)

    def describe(self):
        p, factors = self._made
        order = "COLAMD" if p is None else "minimum degree"
        if p is not None and (p.rows.order != p.columns.order).any():
            order += ", rows exchanged and scaled"
        return f"Direct() by SuperLU, {order}, {factors.nnz} entries in the factors"


class Side:
    """The rows of a matrix, or its columns, in another order and scaled.

    Attributes
    ----------
    order, place : int arrays, shape (n,)
        Row ``order[i]`` becomes row i; row i becomes row ``place[i]``.
    factors : array, shape (n,), or None
        What each row, in its old place, is multiplied by; None: by 1.
    """

    def __init__(self, order, factors):
        self.order, self.factors, self.place = order, factors, np.empty_like(order)
        self.place[order] = np.arange(order.size)

    def forward(self, x):
        """Scale and order the rows of x, shape (n,) or (n, k)."""
        return self._scaled(x)[self.order]

    def backward(self, x):
        """Undo the order, and scale."""
        return self._scaled(x[self.place])

    def _scaled(self, x):
        return x if self.factors is None else (self.factors * x.T).T


class Permuted:
    """A with rows and columns in the order of an elimination, and scaled, in CSR: R A C.

    Parameters
    ----------
    A : CSRMatrix
    found : Elimination
        Of A, or of A with its rows exchanged.
    match : Matching or None
        The exchange, and the factors of the scaling.

    Attributes
    ----------
    rows, columns : Side
    indptr, indices : int arrays
        The row pointers and columns.
    weak_at_first : bool array, shape (n,)
        Rows with weak pivots in this order, for A.
    panel : int or None
        Columns that SuperLU updates together; None leaves that to it.
    """

    def __init__(self, A, elimination, match=None):
        order = elimination.order()
        if match is None:
            self.rows = self.columns = Side(order, None)
        else:
            self.rows = Side(np.argsort(match.column)[order], match.row_factors)
            self.columns = Side(order, match.column_factors)
        order = self.rows.order
        self._entries = None if match is None else match.entries
        ends = A.indptr if self._entries is None else np.searchsorted(self._entries, A.indptr)
        lengths = np.diff(ends)[order]
        self.indptr = np.zeros_like(A.indptr)
        np.cumsum(lengths, out=self.indptr[1:])
        self._source = np.repeat(ends[:-1][order] - self.indptr[:-1], lengths) + np.arange(ends[-1])
        if self._entries is not None:
            self._source = self._entries[self._source]
        columns = A.indices[self._source]
        self.indices = self.columns.place.astype(A.indices.dtype)[columns]
        self._factors = None if match is None else (
            np.repeat(match.row_factors[order], lengths) * match.column_factors[columns])
        self.weak_at_first = np.zeros(A.shape[0], bool) if match is None else self.weak(A.data)
        self.panel = None if elimination.cost.flops > DEEP * elimination.cost.entries else 2

    def lacks(self, A):
        """True if an entry that was left out as negligible is not so for the new values of A."""
        if self._entries is None:
            return False
        counts = ~negligible(A.indptr, A.indices, abs(A.data))
        counts[self._entries] = False
        return bool(counts.any())

    def weak(self, data):
        """Return a bool array of the rows with weak pivots for A's values ``data``."""
        return weak_pivots(self.indptr, self.indices, abs(self.values(data)))[0]

    def values(self, data):
        """Return the values for A's values ``data``."""
        data = data[self._source]
        return data if self._factors is None else data * self._factors


def _splu(matrix, settings):
    """Return SciPy's SuperLU object of a matrix; ``settings`` are keyword arguments of splu. Raises FactorisationError
    for a zero pivot, or too little memory."""
    from scipy.sparse.linalg import MatrixRankWarning, splu
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MatrixRankWarning)
            return splu(matrix, **settings)
    except RuntimeError as error:
        raise FactorisationError(f"SuperLU met a zero pivot ({error}): the matrix is singular", True) from None
    except MemoryError:
        raise FactorisationError(f"SuperLU ran out of memory on {matrix.shape[0]} unknowns") from None
