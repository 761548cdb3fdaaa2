"""One call of SciPy's: it translates the arguments for `swell.solve`, and returns ``(x, info)``."""
from __future__ import annotations

import numbers
from dataclasses import replace

import numpy as np

from swell.api import solve
from swell.core.arrays import checked_dtype
from swell.core.errors import InputError
from swell.core.monitor import SolutionMonitor
from swell.core.stopping import Reason, Stopping
from swell.inputs import dtype_of, read_vector
from swell.preconditioners.user import User, products, resolve_preconditioner

BROKEN = (Reason.BREAKDOWN, Reason.INDEFINITE, Reason.NONFINITE, Reason.DIVERGED, Reason.SINGULAR)
LONGEST = 1_000_000     # largest number of iterations that the history has room for


def solved(method, A, b, x0, rtol, atol, maxiter, M, monitor=None):
    """Solve by ``method`` with SciPy's arguments; return (x, swell's result).

    ``maxiter`` is in iterations of swell's method."""
    n = rows(A)
    b = flat(b)
    if b.ndim != 1:
        raise InputError(f"b has shape {tuple(b.shape)}: expected ({n},) or ({n}, 1); swell.solve takes several")
    result = solve(A, b, method=method, M=M, x0=_start(x0, M, b), monitor=monitor, dtype=common_dtype(A, b),
                   stopping=_stopping(b, rtol, atol, maxiter))
    if result.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt                  # SciPy's callers expect it
    return result.x, result


def info(result, iterations=None) -> int:
    """SciPy's ``info`` for a solve. ``iterations``: done, in SciPy's count; by default in swell's."""
    if result.converged:
        return 0
    if result.reason in BROKEN:
        return -result.reason.code
    return max(result.iterations if iterations is None else iterations, 1)


def with_x(callback):
    """Turn SciPy's ``callback(x)`` into a monitor; None for None. It is not called before the first iteration."""
    return None if callback is None else SolutionMonitor(_after_iterations(lambda residual, x: callback(x)))


def with_residual(callback):
    """Turn SciPy's ``callback(relative_residual)`` into a monitor."""
    return _after_iterations(lambda residual: callback(np.float64(residual)))


def _after_iterations(call):
    """Return a monitor that calls ``call`` once after each iteration; the solve goes on, whatever it returns."""
    last = 0

    def monitor(iteration, *values):
        nonlocal last
        if iteration > last:
            last = iteration
            call(*values)
    return monitor


def rows(A) -> int:
    """The number of rows of A."""
    if not getattr(A, "shape", ()):
        raise InputError(f"A is {type(A).__name__}: expected a matrix, sparse or dense, or a LinearOperator; "
                         "np.array(A) of lists")
    return A.shape[0]


def limit(maxiter, default) -> int:
    """The iteration limit: ``maxiter``, or the default; at most `LONGEST`."""
    return min(default if maxiter is None else maxiter, LONGEST)


def flat(v):
    """Convert a list or an np.matrix to an array, and an array of shape (n, 1) to shape (n,)."""
    v = v if hasattr(v, "ndim") and not isinstance(v, np.matrix) else np.asarray(v)
    return v.reshape(-1) if v.ndim == 2 and v.shape[1] == 1 else v


def inverse(M):
    """Return (r ↦ M r, r ↦ Mᴴ r or None) for the M of a call."""
    preconditioner = resolve_preconditioner(M)
    if not isinstance(preconditioner, User):
        raise InputError(f"M={M!r}: expected a matrix, a LinearOperator or another M of your own; a preconditioner of "
                         "swell's acts in a solve only")
    return products(preconditioner.M)


def _stopping(b, rtol, atol, maxiter) -> Stopping:
    """The stopping settings. SciPy also accepts rtol ≥ 1 and atol = inf, which x = 0 may meet."""
    loose = isinstance(rtol, numbers.Real) and rtol >= 1
    usual = Stopping(rtol=0.5 if loose else rtol, atol=1.0 if atol == np.inf else atol, maxiter=maxiter)
    if not loose and atol != np.inf:
        return usual
    with np.errstate(over="ignore", invalid="ignore"):
        threshold = np.fmax(np.float64(rtol) * float(np.linalg.norm(read_vector(b, b.shape[0], "b"))), atol)
    limits = np.finfo(np.float64)
    return replace(usual, rtol=0.0, atol=float(np.clip(threshold, limits.tiny, limits.max)))


def _start(x0, M, b):
    """The starting vector for SciPy's ``x0``: None, an array or "Mb". Zeros become None, which saves a product."""
    if x0 is None:
        return None
    if isinstance(x0, str):
        if x0 != "Mb":
            raise InputError(f"x0={x0!r}: expected an array, None, or 'Mb', to start from M b")
        return b if M is None else inverse(M)[0](read_vector(b, b.shape[0], "b"))
    x0 = flat(x0)
    return x0 if (x0 != 0).any() else None


def common_dtype(A, b):
    """The type to compute in: like SciPy, the wider of A's and b's types."""
    parts = [checked_dtype(dtype_of(part, name), name) for part, name in ((A, "A"), (b, "b"))
             if getattr(part, "dtype", None) is not None]
    return np.result_type(*parts)
