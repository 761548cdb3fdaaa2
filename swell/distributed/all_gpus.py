"""``device="cuda:all"``: all GPUs of this machine from one process, without MPI; one thread (a rank) for each GPU."""
from __future__ import annotations

import weakref
from contextlib import contextmanager, suppress

import numpy as np

from swell import inputs
from swell.core.errors import InputError, SwellError
from swell.core.renamed import renamed
from swell.core.turn import Turn
from swell.distributed.communicator import Broken
from swell.distributed.distribute import scatter
from swell.distributed.matrix import DistributedMatrix
from swell.distributed.threads import Group
from swell.solving.inverse import Inverse
from swell.solving.progress import check_progress, live_line
from swell.solving.results import Results

DEVICE = "cuda:all"


class SolverOnAllGPUs(Inverse):
    """A prepared system whose rows are distributed over GPUs; it has the methods of ``swell.Solver``.

    The threads run during a method's call. Between calls the ranks keep their matrices, factors and communicators.

    Parameters
    ----------
    A, dtype
        As in ``swell.prepare``.
    b_dtype : numpy.dtype or None
        The type of the right-hand sides.
    named : Configuration
        The settings that the caller named.
    solver : callable
        Makes a rank's ``Solver`` from an ``Input`` with the rank's rows.
    block : int, optional
        As in ``swell.prepare``.
    device : {"cuda", "cpu"}
    ranks : int, optional
        Number of ranks; ignored on "cuda", where each GPU is a rank.

    Attributes
    ----------
    A : DistributedMatrix
        The matrix as rank 0 has it.
    choices : list of Configuration
        As in ``Solver``.
    notes : list of str
        Sentences on A, for every result.

    Raises
    ------
    InputError
        For a system that cannot be distributed: a matrix-free A, a DistributedMatrix, a user's M, a null space given by
        vectors.
    MissingDependency
        Without CuPy or a GPU.
    """

    def __init__(self, A, dtype, b_dtype, named, solver, *, block=None, device="cuda", ranks=None):
        if device == "cuda":
            from swell.core.cuda import require_cupy
            ranks = require_cupy()[1]
        if named.name("precond") == "user":
            raise InputError(f"device={DEVICE!r} takes no M: name a precond, or use mpiexec, where M acts on a rank's "
                             "part")
        if named.nullspace is not None and not all(isinstance(basis, str | None) for basis in (named.nullspace.basis,
                                                                                               named.nullspace.left)):
            raise InputError(f"device={DEVICE!r} takes nullspace='constants' alone: use one GPU for other vectors")
        if isinstance(A, DistributedMatrix):
            raise InputError(f"device={DEVICE!r} gives rows to GPUs, and A is in parts already: leave device out; "
                             "across ranks scatter or read A with device='cuda'")
        matrix = inputs.read_matrix(A, "cpu", dtype, b_dtype, block=block)
        if not matrix.A.has_entries:
            raise InputError(f"device={DEVICE!r} needs a matrix with entries, and A is matrix-free: use one GPU")
        self.notes, self._device, self._turn, block = matrix.notes, device, Turn(), matrix.A.block_size
        self._group = Group(max(1, min(ranks, matrix.A.shape[0] // block)))
        closing = weakref.finalize(self, self._group.run, _close)
        closing.atexit = False                   # at exit, communicators close themselves
        whole = matrix.A.to_scipy()
        self._solvers = self._group.run(_prepared, whole, block, device, solver)

    @property
    def A(self):
        return self._solvers[0].A

    @property
    def choices(self):
        return self._solvers[0].choices

    chain = renamed("chain", "choices")

    @property
    def M(self):
        """Rank 0's preconditioner, or None."""
        return self._solvers[0].M

    def solve(self, b, x0=None, monitor=None, together=None, adjoint=False, progress=False):
        """Solve for the right-hand sides b, as ``Solver.solve`` does; return its Result or Results. x is a NumPy array
        with all rows. Rank 0 calls the monitor."""
        with self._exclusive():
            inputs.check_monitor(monitor, together, shows_x=False)
            check_progress(progress)
            n = self.A.shape[0]
            rhs = _host(inputs.read_vector(b, n, "b"))
            guess = None if x0 is None else _host(inputs.read_vector(x0, n, "x0"))
            with live_line(progress, monitor, self._solvers[0].stopping) as monitor:
                result = self._on_ranks(_solve, rhs, guess, monitor, together, adjoint)
            for one in _columns(result):
                one.notes = [*self.notes, *one.notes]
            return result

    def require_adjoint(self):
        """Raise InputError unless ``solve(b, adjoint=True)`` can be done, as ``Solver.require_adjoint`` does."""
        with self._exclusive():
            self._on_ranks(lambda ranks, solver: solver.require_adjoint())

    def update(self, A, *, keep_preconditioner=False):
        """Set a new matrix of equal shape on all ranks, as ``Solver.update`` does; return self.
        ``keep_preconditioner``: do not recompute the preconditioner."""
        with self._exclusive():
            matrix = inputs.read_matrix(A, "cpu", self.A.dtype)
            if not matrix.A.has_entries or matrix.A.shape != self.A.shape:
                raise InputError(f"update: expected a matrix of shape {self.A.shape} with entries; prepare again")
            self._on_ranks(_update, matrix.A.to_scipy(), self._device, keep_preconditioner)
            return self

    def stop_by(self, stopping):
        """Set the stopping criterion (a ``Stopping``) of the next solves on all ranks; return self."""
        with self._exclusive():
            self._on_ranks(lambda ranks, solver: solver.stop_by(stopping))
            return self

    def prefer(self, k):
        """Let the next solves try choice k first on all ranks, as ``Solver.prefer`` does; return self."""
        with self._exclusive():
            self._on_ranks(lambda ranks, solver: solver.prefer(k))
            return self

    def describe(self):
        """Return a text that describes the solver, as ``Solver.describe`` does."""
        with self._exclusive():
            return self._on_ranks(lambda ranks, solver: solver.describe())

    def __repr__(self):
        return f"SolverOnAllGPUs({len(self._solvers)} ranks, of which the first: {self._solvers[0]!r})"

    def _repr_html_(self):
        with self._exclusive():
            return self._solvers[0]._repr_html_()

    def copy(self):
        """Raise InputError: all ranks solve together."""
        raise InputError(f"a Solver on device={DEVICE!r} has no copies for other threads: prepare one for each thread, "
                         "or solve on one GPU")

    __copy__ = copy

    def __reduce__(self):
        raise InputError(f"a Solver on device={DEVICE!r} cannot be pickled: prepare it where it is used")

    @contextmanager
    def _exclusive(self):
        if self._group.within:
            raise InputError("a Solver was called from within its own solve, as by its monitor: use another Solver")
        with self._turn:
            if self._group.failed:
                raise SwellError("an error or Ctrl-C has ended the ranks of this Solver: prepare again")
            yield

    def _on_ranks(self, call, *arguments):
        """Call ``call(communicator, this rank's Solver, *arguments)`` on all ranks; return rank 0's result, or raise an
        error of any rank."""
        answers = self._group.run(_agreed, self._solvers, call, *arguments)
        if isinstance(answers[0], BaseException):
            raise answers[0]
        return answers[0]


def _agreed(communicator, solvers, call, *arguments):
    """Call ``call(communicator, this rank's solver, *arguments)`` on a rank. Return its result; if any rank raises an
    error, return this error on all ranks, so that they can be called again."""
    try:
        try:
            answer = call(communicator, solvers[communicator.rank], *arguments)
            communicator.allgather(None)         # raises an error of another rank
            return answer
        except Broken:
            raise
        except BaseException as error:
            if not getattr(error, "told", False):
                with suppress(Broken):           # too late: the ranks have ended
                    communicator.tell_unasked(error)
            raise
    except BaseException as error:
        if not getattr(error, "told", False):
            raise
        return error


def _prepared(communicator, whole, block, device, solver):
    """Return a rank's Solver. ``whole``: the whole matrix in SciPy's form, read on rank 0 only; ``solver``: a function
    that makes a Solver from an ``Input``."""
    M = scatter(communicator, whole if communicator.rank == 0 else None, device=device, block=block)
    return solver(inputs.Input(M, M.space))


def _solve(communicator, solver, b, x0, monitor, together, adjoint):
    """Solve on a rank; return its Result or Results, with every x gathered to all rows. ``b``, ``x0``: all rows;
    ``solver``: this rank's."""
    A = solver.A
    result = solver.solve(b[A.rows], None if x0 is None else x0[A.rows],
                          None if communicator.rank else monitor, together, adjoint)
    for column in _columns(result):
        for one in (column, *column.attempts):
            one.x = A.gather(one.x)
    if isinstance(result, Results):
        result.x = A.gather(result.x)
    return result


def _update(communicator, solver, whole, device, keep_preconditioner):
    M = scatter(communicator, whole if communicator.rank == 0 else None, device=device, block=solver.A.block_size)
    solver.update(M, keep_preconditioner=keep_preconditioner)


def _close(communicator):
    """Close all communicators between GPUs that were made for this rank's ``communicator``."""
    for _, gpu_communicator in communicator.places.values():
        gpu_communicator.close()


def _columns(result):
    return result.columns if isinstance(result, Results) else [result]


def _host(v):
    return v.get() if hasattr(v, "get") else np.asarray(v)
