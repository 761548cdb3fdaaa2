"""SciPy's names and conventions for existing code: change the import, and nothing else.

    from swell.scipy_like import cg, gmres, bicgstab        # instead of scipy.sparse.linalg

The arguments and the result ``(x, info)`` have SciPy's meaning. ``info`` is 0 if the returned x satisfies
‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol). It is positive (the iterations done) if x does not, and negative after a breakdown.
A feature of SciPy that swell lacks raises an error that says so. New code gets more from `swell.solve`: a reason in
words, the history, several right-hand sides, a choice of every part.

swell differs from SciPy in two ways. It preconditions gmres on the right, so the monitored residual is the true one.
It ends a solve that stagnates before ``maxiter``.
"""
from __future__ import annotations

import numpy as np

from swell.api import solve
from swell.core.arrays import checked_dtype
from swell.core.errors import InputError
from swell.core.stopping import Reason, Stopping
from swell.inputs import dtype_of
from swell.krylov.gmres import GMRES

BROKEN = (Reason.BREAKDOWN, Reason.INDEFINITE, Reason.NONFINITE, Reason.DIVERGED, Reason.SINGULAR)
LONGEST = 1_000_000     # largest number of iterations that the history has room for


def cg(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None):
    """Conjugate gradients for a Hermitian positive definite A, like ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    A : sparse matrix, array or LinearOperator, shape (n, n)
    b : array, shape (n,) or (n, 1)
    x0 : array, optional
        Starting vector; zero by default. It is not modified.
    rtol, atol : float
        Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol).
    maxiter : int, optional
        Iteration limit; 10 n by default (at most a million).
    M : sparse matrix, array or LinearOperator, optional
        An approximate inverse of A.
    callback : None
        Must be None: SciPy calls it with the current x, which swell does not form in every iteration.

    Returns
    -------
    x : array, shape (n,)
    info : int
        0: converged. Positive: not converged, the number of iterations done. Negative: breakdown.

    Raises
    ------
    InputError
        If a callback is given, or if `swell.solve` refuses the input.

    Examples
    --------
    >>> import numpy as np, swell
    >>> from swell.scipy_like import cg
    >>> x, info = cg(swell.gallery.poisson2d(20), np.ones(400))
    >>> info
    0
    """
    _no_callback("cg", callback)
    return _solve("cg", A, b, x0, rtol, atol, maxiter, M)


def bicgstab(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None):
    """BiCGSTAB for any square A, like ``scipy.sparse.linalg.bicgstab``. Arguments and results as in `cg`."""
    _no_callback("bicgstab", callback)
    return _solve("bicgstab", A, b, x0, rtol, atol, maxiter, M)


def gmres(A, b, x0=None, *, rtol=1e-5, atol=0.0, restart=None, maxiter=None, M=None, callback=None,
          callback_type=None):
    """Restarted GMRES for any square A, like ``scipy.sparse.linalg.gmres``. Arguments that differ from `cg`:

    Parameters
    ----------
    restart : int, optional
        Iterations in a cycle; 20 by default.
    maxiter : int, optional
        Limit of cycles; by default 10 n iterations. As in SciPy, it limits iterations if there is a callback of type
        "legacy".
    callback : callable, optional
        Called as ``callback(residual)`` with the relative residual norm after every iteration.
    callback_type : {"pr_norm", "legacy"}, optional
        SciPy's default is "legacy". A callback of type "x" is refused: swell does not form x in every cycle.
    """
    if callback_type not in (None, "pr_norm", "legacy") and (callback is not None or callback_type != "x"):
        raise InputError(f"callback_type={callback_type!r}: expected 'pr_norm' or 'legacy'; swell does not form x "
                         "while it iterates, so for x use swell.solve with a monitor that stops, and go on from there "
                         "(x0=)")
    restart = 20 if restart is None else restart
    if maxiter is not None and not (callback is not None and callback_type in (None, "legacy")):
        maxiter = maxiter * min(restart, max(len(b), 1))
    return _solve(GMRES(restart=restart), A, b, x0, rtol, atol, maxiter, M,
                  None if callback is None else _monitor(callback))


def _no_callback(name, callback):
    if callback is not None:
        raise InputError(f"{name}: a callback gets x in SciPy, and swell does not form x in every iteration. For the "
                         "residuals use swell.solve(A, b, monitor=f), which calls f(iteration, relative_residual)")


def _monitor(callback):
    """Turn SciPy's callback into a monitor: called after each iteration, not before the first; its value is ignored."""
    def monitor(iteration, residual):
        if iteration:
            callback(residual)
    return monitor


def _solve(method, A, b, x0, rtol, atol, maxiter, M, monitor=None):
    """Solve by ``method``, with SciPy's arguments and results."""
    n = A.shape[0]
    b, x0 = _flat(b), None if x0 is None else _flat(x0)
    if b.ndim != 1:
        raise InputError(f"b has shape {tuple(b.shape)}: expected ({n},) or ({n}, 1); swell.solve takes several")
    limit = min(10 * n if maxiter is None else maxiter, LONGEST)
    result = solve(A, b, method=method, M=M, x0=x0, monitor=monitor, dtype=_dtype(A, b),
                   stopping=Stopping(rtol=float(rtol), atol=float(atol), maxiter=limit))
    if result.reason is Reason.INTERRUPTED:
        raise KeyboardInterrupt                  # SciPy's callers expect it
    return result.x, _info(result)


def _flat(v):
    """Convert a list to an array, and an array of shape (n, 1) to shape (n,)."""
    v = v if hasattr(v, "ndim") else np.asarray(v)
    return v.reshape(-1) if v.ndim == 2 and v.shape[1] == 1 else v


def _dtype(A, b):
    """The type to compute in: like SciPy, the wider of A's and b's types."""
    parts = [checked_dtype(dtype_of(part, name), name) for part, name in ((A, "A"), (b, "b"))
             if getattr(part, "dtype", None) is not None]
    return np.result_type(*parts)


def _info(result) -> int:
    if result.converged:
        return 0
    if result.reason in BROKEN:
        return -result.reason.code
    return max(result.iterations, 1)
