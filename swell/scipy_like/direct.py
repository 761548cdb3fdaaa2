"""SciPy's calls by a factorisation: ``spsolve``, ``splu`` and ``factorized``.

Each solve tests b − A x, and refines x if need be, to ‖b − A x‖ ≤ 1e-12 ‖b‖ or to rounding.
"""
from __future__ import annotations

import warnings
from functools import cached_property
from typing import Unpack

import numpy as np

from swell.api import prepare
from swell.core.errors import FactorisationError, InputError, NotConverged
from swell.core.stopping import Stopping
from swell.options import Accepted, OptionsDict
from swell.preconditioners.direct import Direct
from swell.scipy_like.call import common_dtype
from swell.solving import few_rows

STOPPING, DIRECT = Stopping(rtol=1e-12), Direct()
OPTIONS = Accepted(rtol=STOPPING.rtol)
ORDERS = {"COLAMD": None, "MMD_AT_PLUS_A": "minimum_degree"}
TRANS = "N", "T", "H"


@OPTIONS.shown
def spsolve(A, b, permc_spec=None, use_umfpack=True, **options: Unpack[OptionsDict]):
    """Solve A x = b by factors, like ``scipy.sparse.linalg.spsolve``.

    Parameters
    ----------
    A : sparse matrix or array, shape (n, n)
    b : array or sparse matrix, shape (n,) or (n, k)
    permc_spec : {"COLAMD", "MMD_AT_PLUS_A"}, optional
        The order of elimination. "COLAMD", SciPy's default, which programs pass on, and None: swell chooses;
        ``method=swell.Direct(ordering="colamd")`` insists on it.
    use_umfpack : bool
        Without meaning: swell never calls UMFPACK.
    options
        See `swell.Options`.

    Returns
    -------
    x : array
        Of the shape of b, but (n,) for (n, 1), and sparse for a sparse b of several columns: SciPy's rules. It is NaN
        if A has no factors.

    Warns
    -----
    MatrixRankWarning
        SciPy's class: A has no factors, since it is singular.
    UserWarning
        x does not solve the system, or A is singular to working precision. SciPy is silent.

    Examples
    --------
    >>> import numpy as np, swell
    >>> from swell.scipy_like import spsolve
    >>> A = swell.gallery.convection_diffusion((20, 20))
    >>> x = spsolve(A, np.ones(400))
    >>> bool(np.allclose(A @ x, 1))
    True
    """
    sparse = hasattr(b, "toarray")
    rhs = b.toarray() if sparse else b if hasattr(b, "ndim") and not isinstance(b, np.matrix) else np.asarray(b)
    single = rhs.ndim == 1 or rhs.shape[1] == 1
    rhs = rhs.reshape(-1) if single else rhs
    if single and not options and (small := _small(A, permc_spec)) and (x := _solved(*small, rhs)) is not None:
        return x
    solver = _prepared(A, rhs, permc_spec, options)
    try:
        x = solver @ rhs
    except NotConverged as error:
        x = error.result.x
        if solver.M is not None and solver.M.failure is not None:
            from scipy.sparse.linalg import MatrixRankWarning
            warnings.warn(f"A has no factors, and x is NaN: {solver.M.failure}", MatrixRankWarning, stacklevel=2)
            x[...] = np.nan
        else:
            warnings.warn(str(error), UserWarning, stacklevel=2)
    return type(b)(x) if sparse and not single else x


@OPTIONS.shown
def splu(A, permc_spec=None, **options: Unpack[OptionsDict]) -> "Factors":
    """Factor A, like ``scipy.sparse.linalg.splu``.

    Parameters
    ----------
    A : sparse matrix or array, shape (n, n)
    permc_spec : {"COLAMD", "MMD_AT_PLUS_A"}, optional
        The order of elimination. "COLAMD", SciPy's default, which programs pass on, and None: swell chooses;
        ``method=swell.Direct(ordering="colamd")`` insists on it.
    options
        See `swell.Options`. SuperLU's own settings are refused: swell chooses pivots itself.

    Returns
    -------
    Factors
        With SciPy's ``solve(b, trans)`` and ``shape``; ``.solver`` is the prepared Solver.

    Raises
    ------
    RuntimeError
        If A has no factors, as in SciPy: a `FactorisationError`.
    """
    small = None if options else _small(A, permc_spec)
    return Factors(*small) if small else Factors(None, None, _prepared(A, A, permc_spec, options))


@OPTIONS.shown
def factorized(A, **options: Unpack[OptionsDict]):
    """Return a function b → x that solves A x = b by factors of A, like ``scipy.sparse.linalg.factorized``. The options
    and the errors are those of `splu`, and of `Factors.solve`.

    Parameters
    ----------
    A : sparse matrix or array, shape (n, n)
    options
        See `swell.Options`.
    """
    return splu(A, **options).solve


class Factors:
    """The factors of a matrix, with the interface of SciPy's ``SuperLU``; made by `splu`.

    Attributes
    ----------
    solver : Solver
        For a matrix of few rows it is prepared when it is first needed: if one kernel's check does not confirm x, or
        if b has many columns.
    shape : (int, int)
    """

    def __init__(self, A, factors, solver=None):
        self._A, self._factors = A, factors      # of few rows; else None
        if solver is not None:
            self.solver, self._A = solver, solver.A
            if solver.M is not None and solver.M.failure is not None:
                raise solver.M.failure
        self.shape = self._A.shape

    @cached_property
    def solver(self):
        return _prepared(self._A, self._A, None, {})

    def solve(self, b, trans="N"):
        """Return the x of A x = b, Aᵀ x = b ("T") or Aᴴ x = b ("H"), in the shape of b.

        Raises
        ------
        NotConverged
            If x does not solve the system; SciPy would be silent.
        """
        if trans not in TRANS:
            raise InputError(f"trans={trans!r}: expected one of {', '.join(TRANS)}")
        if self._factors is not None and (x := _solved(self._A, self._factors, b, trans)) is not None:
            return x
        b = b if hasattr(b, "ndim") else np.asarray(b)
        if trans == "N":
            return self.solver @ b
        if trans == "H" or self.solver.dtype.kind != "c":
            return self.solver.rmatmat(b)
        return self.solver.rmatmat(b.conj()).conj()


def _solved(A, factors, b, trans="N"):
    """Return the x of a system of few rows, or None if a Solver must decide; see `few_rows.solved`."""
    return few_rows.solved(A, factors, b, STOPPING, trans)


def _small(A, permc_spec):
    """Return (A, its factors) for a matrix of few rows as it is; None for others, and without factors."""
    if ORDERS.get(permc_spec, permc_spec) is not None or (A := few_rows.read(A)) is None:
        return None
    try:
        return A, DIRECT.build(A)
    except FactorisationError:                   # a Solver finds it again, and says why
        return None


def _prepared(A, b, permc_spec, options):
    """Return the Solver for A, by factors unless ``options`` name another method; ``b``: an array of b's type."""
    if permc_spec is not None and permc_spec not in ORDERS:
        raise InputError(f"permc_spec={permc_spec!r}: expected one of {', '.join(ORDERS)}, or None: swell chooses")
    chosen = {"method": Direct(ordering=ORDERS.get(permc_spec)), "dtype": common_dtype(A, b), **options}
    return prepare(A, **OPTIONS.read(chosen).keywords())
