"""SciPy's names and conventions for existing code: change the import, and nothing else.

    from swell.scipy_like import cg, gmres, bicgstab, minres, tfqmr, qmr      # instead of scipy.sparse.linalg
    from swell.scipy_like import spsolve, splu, factorized

The arguments and the result have SciPy's meaning. In ``(x, info)``, ``info`` is 0 if the returned x satisfies
‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol). It is positive (the iterations done) if x does not, and negative after a breakdown.
``x0="Mb"`` starts from M b. A callback costs the forming of x in each iteration. New code gets more from `swell.solve`:
a reason in words, the history, several right-hand sides, a choice of every part.

swell differs from SciPy in these ways:

- Every function tests the true residual b − A x, with the returned x. SciPy's minres and tfqmr test estimates.
- gmres, bicgstab, tfqmr and qmr are preconditioned on the right. Residual norms are norms of b − A x, in callbacks too.
- A solve that stagnates ends before ``maxiter``, and gmres lengthens its cycles before it gives up.
- An iteration of tfqmr is two of SciPy's steps. ``maxiter`` and ``info`` count SciPy's; a callback gets every other x.
- minres and cg refuse a matrix that is not Hermitian, and minres takes complex ones.
- rtol = atol = 0 is an error: only a zero residual would do.
- spsolve warns if x does not solve the system, and ``splu(A).solve`` raises an error. SciPy notes a zero pivot only.
"""
from swell.core.lazy import public as _public

__getattr__, __dir__, __all__ = _public(__name__, {
    "cg": "symmetric", "minres": "symmetric",
    "gmres": "general", "bicgstab": "general", "tfqmr": "general", "qmr": "general",
    "spsolve": "direct", "splu": "direct", "factorized": "direct",
})
