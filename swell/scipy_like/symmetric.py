"""SciPy's calls for Hermitian matrices: ``cg`` and ``minres``."""
import numpy as np

from swell.core.errors import InputError
from swell.preconditioners.user import products
from swell.scipy_like.call import flat, info, inverse, limit, rows, solved, with_x


def cg(A, b, x0=None, *, rtol=1e-5, atol=0.0, maxiter=None, M=None, callback=None):
    """Conjugate gradients for a Hermitian positive definite A, like ``scipy.sparse.linalg.cg``.

    Parameters
    ----------
    A : sparse matrix, array or LinearOperator, shape (n, n)
    b : array, shape (n,) or (n, 1)
    x0 : array or "Mb", optional
        Starting vector, which is not modified; zero by default. "Mb": M b, or b without an M.
    rtol, atol : float
        Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol).
    maxiter : int, optional
        Iteration limit; 10 n by default (at most a million).
    M : sparse matrix, array, LinearOperator, factors, hierarchy or Solver, optional
        An approximate inverse of A. ``spilu(A)`` and a hierarchy of PyAMG need no wrapping.
    callback : callable, optional
        Called as ``callback(x)`` after every iteration; forming x costs up to two passes over it.

    Returns
    -------
    x : array, shape (n,)
    info : int
        0: converged. Positive: not converged, the number of iterations done. Negative: breakdown.

    Raises
    ------
    InputError
        If `swell.solve` refuses the input.

    Examples
    --------
    >>> import numpy as np, swell
    >>> from swell.scipy_like import cg
    >>> x, info = cg(swell.gallery.poisson2d(20), np.ones(400))
    >>> info
    0
    """
    x, result = solved("cg", A, b, x0, rtol, atol, limit(maxiter, 10 * rows(A)), M, with_x(callback))
    return x, info(result)


def minres(A, b, x0=None, *, rtol=1e-5, shift=0.0, maxiter=None, M=None, callback=None, show=False, check=False):
    """Minimal residuals for a Hermitian A, definite or not, like ``scipy.sparse.linalg.minres``. Arguments that differ
    from `cg`:

    Parameters
    ----------
    rtol : float
        Converged means ‖b − A x‖₂ ≤ rtol ‖b‖₂. SciPy compares an estimate of ‖b − A x‖ with rtol ‖A‖ ‖x‖.
    shift : float
        Solve (A − shift I) x = b.
    maxiter : int, optional
        Iteration limit; 5 n by default.
    show : bool
        Print swell's result.
    check : bool
        Test M, and an A without entries, for symmetry, by products with one vector. An A with entries is always tested.
    """
    rhs = flat(b)
    if shift:
        A = _shifted(A, shift)
    if check:
        _require_symmetric("A", products(A)[0], rhs)
        if M is not None:
            _require_symmetric("M", inverse(M)[0], rhs)
    x, result = solved("minres", A, b, x0, rtol, 0.0, limit(maxiter, 5 * rows(A)), M, with_x(callback))
    if show:
        print(result)
    return x, info(result)


def _shifted(A, shift):
    """A − shift I, of the same kind as A, or as a LinearOperator."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import aslinearoperator
    if sp.issparse(A):
        return A - shift * sp.eye_array(rows(A), format="csr")
    if isinstance(A, np.ndarray):
        return A - shift * np.eye(rows(A))
    return aslinearoperator(A) - shift * aslinearoperator(sp.eye_array(rows(A)))


def _require_symmetric(name, product, y):
    """Raise InputError if (w, w) and (y, A w) differ, with w = A y for the operator ``product``. SciPy's test."""
    w = product(y)
    first, second = np.vdot(w, w).real, np.vdot(y, product(w))
    eps = np.finfo(w.dtype).eps
    if abs(first - second) > (first + eps) * eps ** (1 / 3):
        raise InputError(f"{name} is not symmetric: (A y, A y) = {first:.6g} and (y, A A y) = {second:.6g} for y = b; "
                         "use gmres")
