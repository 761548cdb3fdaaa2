"""PyAMG: hierarchies as ``M=``, and PyAMG's Krylov methods by swell.

    ml = pyamg.smoothed_aggregation_solver(A)
    swell.solve(A, b, method="cg", M=ml)                     # the V-cycle; ml.aspreconditioner(cycle="W") for another
    from swell.guests.pyamg import cg, bicgstab, gmres, fgmres                   # instead of pyamg.krylov
    x = ml.solve(b, accel=cg, residuals=history)

The functions differ from PyAMG's in two ways. The only criterion is "rr", ‖b − A x‖ ≤ tol ‖b‖, tested with the returned
x. gmres is preconditioned on the right, so its residuals are b − A x.
"""
from swell.core.lazy import public as _public

__getattr__, __dir__, __all__ = _public(__name__, dict.fromkeys(("cg", "bicgstab", "gmres", "fgmres"), "calls"))
