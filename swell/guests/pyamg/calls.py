"""PyAMG's calls: ``cg``, ``bicgstab``, ``gmres`` and ``fgmres`` with its arguments and results."""
import numpy as np

from swell.core.errors import InputError
from swell.krylov.fgmres import FGMRES
from swell.krylov.gmres import GMRES
from swell.scipy_like.call import flat, info, solved, with_x

SMALLEST_NORMAL = np.finfo(float).tiny


def cg(A, b, x0=None, tol=1e-5, criteria="rr", maxiter=None, M=None, callback=None, residuals=None):
    """Conjugate gradients, like ``pyamg.krylov.cg``.

    Parameters
    ----------
    A, b, x0, M, callback
        As `swell.scipy_like.cg` takes them.
    tol : float
        Converged means ‖b − A x‖₂ ≤ tol ‖b‖₂.
    criteria : {"rr"}
        PyAMG's other criteria raise an error.
    maxiter : int, optional
        Iteration limit; 1.3 n + 2 by default.
    residuals : list, optional
        Gets ‖b − A x‖₂ of the start and of every iteration.

    Returns
    -------
    x : array, shape (n,)
    info : int
        0: converged. Positive: not converged, the number of iterations done. Negative: breakdown.
    """
    return _solve("cg", A, b, x0, tol, maxiter, M, callback, residuals, criteria)


def bicgstab(A, b, x0=None, tol=1e-5, criteria="rr", maxiter=None, M=None, callback=None, residuals=None):
    """BiCGSTAB, like ``pyamg.krylov.bicgstab``. Arguments and results as in `cg`."""
    return _solve("bicgstab", A, b, x0, tol, maxiter, M, callback, residuals, criteria)


def gmres(A, b, x0=None, tol=1e-5, restart=None, maxiter=None, M=None, callback=None, residuals=None):
    """GMRES, like ``pyamg.krylov.gmres``. Arguments that differ from `cg`:

    Parameters
    ----------
    restart : int, optional
        Iterations in a cycle. None: one cycle of ``maxiter`` iterations.
    maxiter : int, optional
        Limit of cycles, or of iterations without ``restart``; min(n, 40) by default.
    """
    return _restarted(GMRES, A, b, x0, tol, restart, maxiter, M, callback, residuals)


def fgmres(A, b, x0=None, tol=1e-5, restart=None, maxiter=None, M=None, callback=None, residuals=None):
    """Flexible GMRES, like ``pyamg.krylov.fgmres``. Arguments and results as in `gmres`."""
    return _restarted(FGMRES, A, b, x0, tol, restart, maxiter, M, callback, residuals)


def _restarted(method, A, b, x0, tol, restart, maxiter, M, callback, residuals):
    most = min(A.shape[0], 40) if maxiter is None else maxiter
    cycle = most if restart is None else restart
    return _solve(method(restart=cycle), A, b, x0, tol, most if restart is None else most * cycle, M, callback,
                  residuals)


def _solve(method, A, b, x0, tol, maxiter, M, callback, residuals, criteria="rr"):
    """Solve by ``method`` with PyAMG's arguments; return (x, info)."""
    if criteria != "rr":
        raise InputError(f"criteria={criteria!r}: expected 'rr', ‖b − A x‖ ≤ tol ‖b‖; swell tests no other norm")
    b = flat(b)
    most = int(1.3 * A.shape[0]) + 2 if maxiter is None else maxiter
    x, result = solved(method, A, b, x0, max(tol, SMALLEST_NORMAL), 0.0, most, M, with_x(callback))
    if residuals is not None:
        norm = float(np.linalg.norm(b))
        residuals[:] = (result.history * (norm or 1.0)).tolist()
    return x, info(result)
