"""SciPy's calls for any square matrix: ``gmres``, ``bicgstab``, ``tfqmr`` and ``qmr``."""
import warnings

from swell.core.errors import InputError
from swell.krylov.gmres import GMRES
from swell.scipy_like.call import info, inverse, limit, rows, solved, with_residual, with_x

TYPES = ("x", "pr_norm", "legacy")


def bicgstab(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None):
    """BiCGSTAB for any square A, like ``scipy.sparse.linalg.bicgstab``. Arguments and results as in `cg`."""
    x, result = solved("bicgstab", A, b, x0, rtol, atol, limit(maxiter, 10 * rows(A)), M, with_x(callback))
    return x, info(result)


def gmres(A, b, x0=None, *, rtol=1e-5, atol=0.0, restart=None, maxiter=None, M=None, callback=None,
          callback_type=None):
    """Restarted GMRES for any square A, like ``scipy.sparse.linalg.gmres``. Arguments that differ from `cg`:

    Parameters
    ----------
    restart : int, optional
        Iterations in a cycle; 20 by default.
    maxiter : int, optional
        Limit of cycles, and ``info`` counts cycles; by default 10 n iterations. As in SciPy, both count iterations if
        there is a callback of type "legacy".
    callback : callable, optional
        Called as ``callback(relative_residual)`` after every iteration, or as ``callback(x)`` after every cycle.
    callback_type : {"x", "pr_norm", "legacy"}, optional
        "x": the callback gets x. "pr_norm" and "legacy": it gets the residual. SciPy's default is "legacy", with a
        warning.
    """
    if callback is not None and callback_type is None:
        warnings.warn("gmres called without specifying `callback_type`: 'legacy' is taken, as by SciPy, and maxiter "
                      "counts iterations; name 'legacy', 'pr_norm' or 'x'", DeprecationWarning, stacklevel=2)
    kind = "legacy" if callback_type is None else callback_type
    if kind not in TYPES:
        raise InputError(f"callback_type={callback_type!r}: expected one of {', '.join(TYPES)}")
    n = rows(A)
    cycle = max(min(20 if restart is None else restart, n), 1)
    unit = 1 if callback is not None and kind == "legacy" else cycle
    most = limit(None if maxiter is None else maxiter * unit, 10 * n)
    monitor = None if callback is None else with_x(callback) if kind == "x" else with_residual(callback)
    x, result = solved(GMRES(restart=cycle), A, b, x0, rtol, atol, most, M, monitor)
    return x, info(result, -(-result.iterations // unit))


def tfqmr(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None, show=False):
    """Transpose-free QMR for any square A, like ``scipy.sparse.linalg.tfqmr``. Arguments that differ from `cg`:

    Parameters
    ----------
    maxiter : int, optional
        Limit of SciPy's steps, of which an iteration has two; min(10 n, 10 000) by default.
    callback : callable, optional
        Called as ``callback(x)`` after every second step.
    show : bool
        Print SciPy's line on convergence and steps.
    """
    steps = min(10 * rows(A), 10_000) if maxiter is None else maxiter
    x, result = solved("tfqmr", A, b, x0, rtol, atol, limit(-(-steps // 2), 0), M, with_x(callback))
    done = min(2 * result.iterations, steps)
    if show:
        print("TFQMR: Linear solve " + (f"converged due to reach TOL iterations {done}" if result.converged else
                                        f"not converged due to reach MAXIT iterations {done}"))
    return x, info(result, done)


def qmr(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M1=None, M2=None, callback=None):
    """QMR for any square A with an adjoint, like ``scipy.sparse.linalg.qmr``. Arguments that differ from `cg`:

    Parameters
    ----------
    M1, M2 : as M, optional
        Left and right preconditioner, with adjoints: ``M1 A M2`` is near the identity. swell applies M = M2 M1 on the
        right, and tests b − A x.
    """
    sides = [M for M in (M1, M2) if M is not None]
    M = _Both(M1, M2, A.shape) if len(sides) == 2 else sides[0] if sides else None
    x, result = solved("qmr", A, b, x0, rtol, atol, limit(maxiter, 10 * rows(A)), M, with_x(callback))
    return x, info(result)


class _Both:
    """M2 M1, as a linear operator."""

    def __init__(self, M1, M2, shape):
        (self._first, first_adjoint), (self._second, second_adjoint) = inverse(M1), inverse(M2)
        self.shape, self.rmatvec = shape, None
        if first_adjoint is not None and second_adjoint is not None:
            self.rmatvec = lambda r: first_adjoint(second_adjoint(r))

    def matvec(self, r):
        """Return M2 M1 r."""
        return self._second(self._first(r))
