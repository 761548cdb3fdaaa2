"""The public interface: ``solve`` and ``prepare``.

A call's steps: validate -> choose (what the user named, or the advisor's choices) -> transform, format, precondition
(``Prepared``) -> iterate -> true residual -> ``Result``. If a choice of the advisor fails, the solver tries the next.
"""
from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any, Unpack

from swell import inputs
from swell.core.compilation import spent
from swell.core.cpu import SERIAL
from swell.core.operator import LinearOperator
from swell.options import Accepted, OptionsDict
from swell.solving.progress import check_progress, live_line
from swell.solving.result import Result
from swell.solver import Solver

ALL_GPUS = "cuda:all"
OPTIONS = Accepted()


@OPTIONS.shown
def solve(A, b, *, x0=None, monitor=None, together=None, progress=False,
          **options: Unpack[OptionsDict]) -> Result | Any:
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
    x0 : array like b, optional
        Starting vectors; not modified.
    monitor : callable, optional
        ``monitor(iteration, relative_residual)``, of columns together the largest; a true answer stops the solve.
    together : bool, optional
        Solve for all columns at once, or one by one, whatever is predicted to be faster.
    progress : bool
        Show a live line with the iteration and the residual, in a terminal or a notebook; elsewhere nothing.
    options
        See `swell.Options`.

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
        chosen = OPTIONS.read(options)
        inputs.check_monitor(monitor, together)
        check_progress(progress)
        named, stopping = chosen.configuration, chosen.criterion
        if chosen.device == ALL_GPUS:
            return _on_all_gpus(A, chosen, inputs.dtype_of(b)).solve(b, x0, monitor, together, progress=progress)
        since = spent()
        system, rhs, guess = inputs.read_system(A, b, x0, chosen.device, chosen.dtype, chosen.block,
                                                _search_below(named.method), named.parts)
        stopping = stopping.for_type(system.A.dtype)
        with live_line(progress, monitor, stopping, system.space) as monitor:
            return Solver(system, named, stopping, since=since)._solve_all(rhs, guess, monitor, b, together)


@OPTIONS.shown
def prepare(A, *, b_like=None, adapt=True, **options: Unpack[OptionsDict]) -> "Solver":
    """Set up a Solver: do all the work that does not depend on b, once.

    If no method is named, the Solver remembers how many iterations each choice took. It spreads the cost of a setup
    over the solves so far. Later solves may then make another choice.

    Parameters
    ----------
    A : square matrix, n × n
        As `solve` takes it.
    b_like : array, optional
        A right-hand side, or an array of the same type on the same device. It tells whether b will be complex, and on
        which device.
    adapt : bool
        False: all solves choose as the first did.
    options
        See `swell.Options`.

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
        chosen = OPTIONS.read(options)
        named, stopping = chosen.configuration, chosen.criterion
        b_dtype, b_device = (None, "cpu") if b_like is None else (inputs.dtype_of(b_like), inputs.device_of(b_like))
        if chosen.device == ALL_GPUS:
            return _on_all_gpus(A, chosen, b_dtype)
        since = spent()
        matrix = inputs.read_matrix(A, chosen.device, chosen.dtype, b_dtype, b_device, chosen.block,
                                    _search_below(named.method), named.parts)
        return Solver(matrix, named, stopping, adapt, since)


def _agreed(A):
    """Return a context for a call with A: where A is in parts, an error of one rank is raised on all of them."""
    return A.space.ranks.agreed() if isinstance(A, LinearOperator) else nullcontext()


def _search_below(method) -> float:
    """Number of rows below which the entries of A are tested for symmetry; infinite if the advisor chooses."""
    if method is None:
        return math.inf
    return SERIAL if method.self_adjoint_only else 0


def _on_all_gpus(A, options, b_dtype):
    from swell.distributed.all_gpus import SolverOnAllGPUs
    return SolverOnAllGPUs(A, options.dtype, b_dtype, options.configuration,
                           lambda matrix: Solver(matrix, options.configuration, options.criterion), block=options.block)
