"""The public interface: ``solve`` and ``prepare``.

A call's steps: validate -> choose (the user's names, or the advisor's chain) -> transform, format, precondition
(``Prepared``) -> iterate -> true residual -> ``Result``. If a choice of the advisor fails, the solver tries the next.
"""
from __future__ import annotations

import math
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from swell import inputs
from swell.core.configuration import Configuration
from swell.core.cpu import SERIAL
from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.core.registry import resolve
from swell.core.settings import shown
from swell.core.stopping import Stopping
from swell.preconditioners.user import resolve_preconditioner
from swell.solving.progress import check_progress, live_line
from swell.solving.result import Result
from swell.solver import Solver
from swell.transforms.nullspace import resolve_nullspace

ALL_GPUS = "cuda:all"


def solve(A, b, *, method=None, precond=None, M=None, scaling=None, ordering=None, format=None, nullspace=None,
          smoother=None, device=None, dtype=None, block=None, x0=None, rtol=None, atol=0.0, maxiter=None, stopping=None,
          monitor=None, together=None, progress=False) -> Result | Any:
    """Solve A x = b.

    If no method is named, an advisor analyses A and chooses one. If that choice fails, it tries the next one.

    Parameters
    ----------
    A : square matrix, n × n
        SciPy or CuPy sparse of any kind, a dense array, a torch tensor, a JAX array, BCOO or BCSR, a PETSc Mat, a
        sparse array of pydata, ``(data, indices, indptr)``, any array with DLPack or ``__cuda_array_interface__``, a
        ``LinearOperator``, or one of swell's own formats.
    b : array, shape (n,) or (n, k)
        Several columns are solved together if that is predicted to be faster, else one by one; the result says which.
    method, precond, scaling, ordering, format : str or settings object, optional
        A name in the registry (``swell.names("method")``), with settings as in ``"gmres(restart=50)"``, or an object:
        ``swell.GMRES(restart=50)``.
    M : callable, LinearOperator or matrix, optional
        Your own preconditioner, an approximate inverse of A, as in SciPy. Give M or ``precond``, not both. If the
        method needs a self-adjoint M, as cg does, two applications at setup measure that, and a note names an M that is
        not.
    nullspace : "constants", array of shape (n,) or (n, k), or NullSpace, optional
        A basis of the null space of a singular A. The solver checks that b is compatible (or projects it, with
        ``NullSpace(..., project=True)``), and returns the x of least norm.
    smoother : str or settings object, optional
        For cg: sweeps before it and between its iterations, ``CG(before=..., between=..., every=...)``.
    device : {"cpu", "cuda", "cuda:1", "cuda:all"}, optional
        Where to solve; by default where the data is. "cuda:all" distributes the rows of A over all GPUs of this
        machine, and x is a NumPy array.
    dtype : {"float32", "float64", "complex64", "complex128"}, optional
        Convert A to this type first.
    block : int, optional
        Block size: consecutive rows that belong together, such as the unknowns of a mesh point. A part's own block size
        takes precedence. Default: SciPy's and PETSc's block size, or the dense blocks found in A.
    x0 : array like b, optional
        Starting vectors; not modified.
    rtol, atol, maxiter
        Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), computed with A, b and the returned x, and certain in spite
        of rounding. The default rtol is 1e-8, and 1e-5 in float32 and complex64. ``maxiter`` limits the
        iterations; by default n, but at least 1000 and at most 20 000.
    stopping : Stopping, optional
        All stopping settings at once, instead of ``rtol``, ``atol`` and ``maxiter``.
    monitor : callable, optional
        ``monitor(iteration, relative_residual)``, of columns together the largest; a true answer stops the solve.
    together : bool, optional
        Solve for all columns at once, or one by one, whatever is predicted to be faster.
    progress : bool
        Show a live line with the iteration and the residual, in a terminal or a notebook; elsewhere nothing.

    Returns
    -------
    Result or Results
        ``Results``, to a type checker ``Any``, if b has two dimensions. x is the same kind of array as b.

    Raises
    ------
    InputError
        For input that cannot be solved as given; the message says what to do.
    MissingDependency
        If the GPU or a library is missing.

    Examples
    --------
    >>> import numpy as np, swell
    >>> A = swell.gallery.poisson2d(30)
    >>> r = swell.solve(A, np.ones(900), method="cg", scaling="jacobi")
    >>> r.converged
    True
    """
    with _agreed(A):
        inputs.check_monitor(monitor, together)
        check_progress(progress)
        named = _named(method, precond, M, scaling, ordering, format, nullspace, smoother)
        stopping = _stopping(stopping, rtol, atol, maxiter)
        if device == ALL_GPUS:
            solver = _on_all_gpus(A, dtype, inputs.dtype_of(b), block, named, stopping)
            return solver.solve(b, x0, monitor, together, progress=progress)
        given, rhs, guess = inputs.read_system(A, b, x0, device, dtype, block, _search_below(named.method), named.parts)
        stopping = stopping.for_type(given.A.dtype)
        with live_line(progress, monitor, stopping, given.space) as monitor:
            return Solver(given, named, stopping)._solve_all(rhs, guess, monitor, b, together)


def prepare(A, *, method=None, precond=None, M=None, scaling=None, ordering=None, format=None, nullspace=None,
            smoother=None, device=None, dtype=None, block=None, rtol=None, atol=0.0, maxiter=None, stopping=None,
            b_like=None, adapt=True) -> "Solver":
    """Set up a Solver: do all the work that does not depend on b, once. ``solve`` documents the parameters.

    If no method is named, the Solver remembers how many iterations each choice took. It spreads the cost of a setup
    over the solves so far. Later solves may then make another choice. ``adapt=False``: all choose as the first did.

    ``b_like`` is a right-hand side, or an array of the same type on the same device. It tells whether b will be
    complex, and on which device.

    Returns
    -------
    Solver
        Call ``.solve(b)`` as often as needed, and ``.update(A2)`` for another matrix of the same pattern. For
        device="cuda:all" the object has the methods of a ``Solver``, but refuses ``copy``.

    Examples
    --------
    >>> import numpy as np, swell
    >>> s = swell.prepare(swell.gallery.poisson2d(30), method="cg")
    >>> all(s.solve(np.full(900, k)).converged for k in (1.0, 2.0))
    True
    """
    with _agreed(A):
        named = _named(method, precond, M, scaling, ordering, format, nullspace, smoother)
        stopping = _stopping(stopping, rtol, atol, maxiter)
        b_dtype, b_device = (None, "cpu") if b_like is None else (inputs.dtype_of(b_like), inputs.device_of(b_like))
        if device == ALL_GPUS:
            return _on_all_gpus(A, dtype, b_dtype, block, named, stopping)
        given = inputs.read_matrix(A, device, dtype, b_dtype, b_device, block, _search_below(named.method), named.parts)
        return Solver(given, named, stopping, adapt)


@dataclass(frozen=True, eq=False)
class SolveOptions:
    """The arguments of `solve` that differentiable solves take too; the base of their own options."""

    method: Any = None
    precond: Any = None
    M: Any = None
    scaling: Any = None
    ordering: Any = None
    format: Any = None
    nullspace: Any = None
    smoother: Any = None
    block: int | None = None
    dtype: Any = None
    rtol: float | None = None
    atol: float = 0.0
    maxiter: int | None = None
    stopping: Stopping | None = None

    @property
    def parts(self) -> dict:
        """The arguments that name the method and the parts of a configuration."""
        return {name: getattr(self, name) for name in (
            "method", "precond", "M", "scaling", "ordering", "format", "nullspace", "smoother")}


def relative(stopping) -> Stopping:
    """Return the stopping of a derivative's solves: relative only, since an absolute tolerance turns small gradients
    into zeros.

    Raises
    ------
    InputError
        If ``stopping`` has an absolute tolerance only.
    """
    if stopping.rtol == 0:
        raise InputError(f"rtol=0 with atol={shown(stopping.atol)}: a derivative needs a relative tolerance, since its "
                         "size is unknown; give rtol, too")
    return replace(stopping, atol=0.0)


def _agreed(A):
    """Return a context for a call with A: where A is in parts, an error of one rank is raised on all of them."""
    return A.space.ranks.agreed() if isinstance(A, LinearOperator) else nullcontext()


def _named(method, precond, M, scaling, ordering, format, nullspace, smoother) -> Configuration:
    """The user's choices, checked before the matrix is read: a misspelt name must not cost a conversion."""
    if M is not None and precond is not None:
        raise InputError("both M and precond were given: name one of them")
    parts = {"precond": M if M is not None else precond, "scaling": scaling, "ordering": ordering, "format": format,
             "nullspace": nullspace, "smoother": smoother}
    without = frozenset(kind for kind, part in parts.items() if isinstance(part, str) and part.lower() == "none")
    return Configuration(resolve("method", method), resolve_preconditioner(parts["precond"]),
                         resolve("scaling", scaling), resolve("ordering", ordering), resolve("format", format),
                         resolve_nullspace(nullspace), resolve("smoother", smoother), without=without)


def _stopping(stopping, rtol, atol, maxiter) -> Stopping:
    """The stopping settings, given as one object or as three numbers."""
    if stopping is None:
        return Stopping(rtol=rtol, atol=atol, maxiter=maxiter)
    if not isinstance(stopping, Stopping):
        raise InputError(f"stopping={stopping!r}: expected a swell.Stopping, such as swell.Stopping(rtol=1e-6)")
    if (rtol, atol, maxiter) != (None, 0.0, None):
        raise InputError("stopping was given beside rtol, atol or maxiter: put them all into stopping")
    return stopping


def _search_below(method) -> float:
    """Number of rows below which the entries of A are tested for symmetry; infinite if the advisor chooses."""
    if method is None:
        return math.inf
    return SERIAL if method.self_adjoint_only else 0


def _on_all_gpus(A, dtype, b_dtype, block, named, stopping):
    from swell.distributed.all_gpus import SolverOnAllGPUs
    return SolverOnAllGPUs(A, dtype, b_dtype, named, lambda given: Solver(given, named, stopping), block=block)
