"""Solves inside JAX programs: differentiable in A's values and in b, under ``jit``, ``vmap`` and ``grad``.

`solve` takes a matrix; `prepare` reads its pattern once and returns a function of (values, b). `swell.jax.lineax` has a
solver and a sparse operator for lineax. JAX is imported by the first call.
"""
from __future__ import annotations

from typing import Unpack

from swell.autodiff.options import Options
from swell.core.errors import MissingDependency
from swell.options import Accepted, OptionsDict

OPTIONS = Accepted(Options, without=("together", "keep_preconditioner", "on_failure"))


@OPTIONS.shown
def solve(A, b, *, has_aux=False, **options: Unpack[OptionsDict]):
    """Solve A x = b inside a JAX program.

    Forward and reverse derivatives of any order, in A's values and in b, are solves with A and Aᵀ. A setup is kept for
    each pattern with its options, for the patterns used last; new values update it.

    Parameters
    ----------
    A : BCOO, BCSR, or dense array, n × n
        The indices must be concrete, not traced: close over them, and pass the values. Duplicates are summed, and
        padding is ignored. A dense A has n² values, and all of it may be traced. SciPy's CSR, CSC, COO and BSR are
        taken, too.
    b : array, shape (n,) or (n, k)
    has_aux : bool
        Return (x, info). ``info.iterations`` and ``info.residual`` are arrays, with an entry for each column.
    options
        See `swell.Options`. x has the type ``dtype``, too. Solves with Aᵀ use the relative tolerance alone. Forward
        mode and second derivatives solve with A for small right-hand sides too, to the same tolerances: leave ``atol``
        at 0 there.

    Returns
    -------
    x : array of b's shape, or (x, info)

    Raises
    ------
    InputError
        For a traced or unsupported pattern, wrong shapes, and a tolerance that the type cannot reach.
    MissingDependency
        If JAX is missing.
    jax.errors.JaxRuntimeError
        If a solve does not converge; JAX raises it when the result is used. The message has the reason.
    """
    _require_jax()
    from swell.jax.linear_solve import prepared
    from swell.jax.pattern import read_matrix
    pattern, values = read_matrix(A)
    return prepared(pattern, OPTIONS.read(options))(values, b, has_aux)


@OPTIONS.shown
def prepare(A, **options: Unpack[OptionsDict]):
    """Read the pattern of A once, and return a function ``f(values, b, has_aux=False)``; `solve` documents the rest.

    Parameters
    ----------
    A : BCOO, BCSR, dense array, or SciPy matrix
        Its values are not used.

    Returns
    -------
    Prepared
        ``f(values, b)`` solves with ``values`` in the order of ``A.data``; for a dense A they have the shape (n, n).
        The setup lasts as long as f, or as a program compiled with it.
    """
    _require_jax()
    from swell.jax.linear_solve import Prepared
    from swell.jax.pattern import read_matrix
    return Prepared(read_matrix(A)[0], OPTIONS.read(options))


def _require_jax():
    """Raise MissingDependency, with the line that installs JAX, if it is missing."""
    try:
        import jax  # noqa: F401
    except ImportError as error:
        raise MissingDependency(f"swell.jax needs JAX ({error}): pip install 'swell[jax]'") from None
