"""``Solver``: a system that is set up once and solved as often as needed.

A solve's steps: transform, format, precondition (``Prepared``) -> iterate -> true residual -> ``Result``. If a choice
of the advisor fails, the solver tries the next.
"""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from swell import inputs
from swell.advisor.attempts import try_choices
from swell.advisor.machine import complaints
from swell.advisor.order import Choices
from swell.advisor.several import Task
from swell.core.compilation import spent
from swell.core.configuration import Configuration
from swell.core.errors import DoesNotFit, InputError, OutOfMemory
from swell.core.guests import guest_of
from swell.core.monitor import SolutionMonitor
from swell.core.renamed import renamed
from swell.core.settings import shown
from swell.core.sharing import Sharing
from swell.core.stopping import Reason, Stopping
from swell.core.turn import Turn
from swell.preconditioning import Preconditioning
from swell.solving.adjoint import own_adjoint
from swell.solving.choice_cost import paired
from swell.solving.few_rows import is_small
from swell.solving.inverse import Inverse
from swell.solving.progress import check_progress, live_line
from swell.solving.result import Result
from swell.solving.results import Results
from swell.solving.run import Prepared
from swell.solving.singularity import CompatiblePart, reasons_for_singularity


class Solver(Inverse):
    """A prepared system; made by ``prepare``.

    Threads may share a Solver; their calls run one after the other. To solve at the same time, give each thread a
    ``copy()``. A Solver can be pickled; loading it repeats the setup.

    A Solver on one device is the linear operator A⁻¹ of SciPy and CuPy: ``eigsh(A, sigma=0, OPinv=s)``. Its ``matvec``,
    ``rmatvec``, ``matmat`` and ``s @ b`` raise `NotConverged` if the solve does not converge.

    Attributes
    ----------
    A : CSRMatrix or LinearOperator
        The checked matrix, on the device of the solve.
    choices : list of Configuration
        The choices to try, in order; one entry if a method was named.
    """

    def __init__(self, matrix: inputs.Input, named: Configuration, stopping: Stopping, adapt=True,
                 since: float | None = None):
        since = spent() if since is None else since      # `spent` before the matrix was read
        self.A, self.space, self.notes, self.kept = matrix.A, matrix.space, matrix.notes, matrix.kept
        self.stopping, self._named = stopping.for_type(matrix.A.dtype), named
        self._turn, self._compatible_part = Turn(), CompatiblePart()
        self._prepared, self._stale = {}, set()
        self._arrays_shared = False              # True: copies share the arrays, so nobody may change them
        self._failure: str | None = None         # the error of a failed update; nothing is prepared after it
        with self.space.active(self.A.shape[0]):
            self.notes = [*self.notes, *complaints()]
            if named.method is None:
                self._choose(adapt)
            else:
                self._choices, self._left_out = Choices([self._with_format(named)], adapt), []
                self._prepare_first()
        # Seconds of compiling to read A and to choose, which no setup counts.
        self._compiled = spent() - since - sum(p.setup.timings["compile"] for p in self._prepared.values())

    def _choose(self, adapt, resident=True):
        """Let the advisor choose for the values of A, and set up its first choice. ``resident``: as for `choose`."""
        from swell.advisor.choose import choose
        choices, self._left_out = choose(self.A, self._named, resident)
        self._choices = Choices(choices, adapt)
        try:
            self._prepare_first()
        except DoesNotFit:
            if not resident:
                raise
            self._choose(adapt, resident=False)
            return
        for choice in self.choices[1:2]:         # threads compile its kernels while the first choice runs
            self.space.compile_ahead(choice.parts, self.A.dtype)

    @property
    def choices(self) -> list[Configuration]:
        return self._choices.configurations

    chain = renamed("chain", "choices")

    def _prepare_first(self):
        """Set up the first choice. If it does not fit into memory, and there are others, drop it and try the next."""
        while True:
            try:
                self._prepare(0)
                return
            except OutOfMemory as error:
                if len(self.choices) == 1 or not self._choices.predictions:
                    raise
                self.notes.append(f"{self.choices[0].name('method')} with {self.choices[0].part} does not fit: {error}")
                self._choices = Choices(self.choices[1:], self._choices.adapt)

    def _with_format(self, named):
        """Add a format to a named method: the method's own, else the user's, else the device's default."""
        from swell.advisor.choose import default_format
        own_format = named.method.format
        if own_format is not None and self.A.has_entries:
            if named.format is not None:
                raise InputError(f"{named.name('method')} stores the matrix in its own way: leave format out")
            return replace(named, format=own_format)
        if named.format is not None or self.kept is not None or not self.A.has_entries or named.method.few_products:
            return named
        return replace(named, format=default_format(self.A.diagonal_block))

    @contextmanager
    def _together(self):
        """Take the turn of this Solver. Where A is in parts, all ranks do it together, and an error of one is raised on
        all of them."""
        with self._turn, self.space.ranks.agreed():
            yield

    def _prepare(self, k) -> Prepared:
        if self._failure is not None:
            raise InputError(f"the last update failed ({self._failure}): update with another matrix, or prepare again")
        if k not in self._prepared:
            with self.space.ranks.agreed():            # a caller may go on to the next choice, which all ranks then do
                made = Prepared(self.A, self.choices[k], self.stopping, self.kept)
            self._prepared[k] = made
        elif k in self._stale:
            with self.space.ranks.agreed():
                self._prepared[k].update(self.A)
            self._stale.discard(k)
        return self._prepared[k]

    def solve(self, b, x0=None, monitor=None, together=None, adjoint=False, progress=False) -> Result | Any:
        """Solve A x = b for b of shape (n,) or (n, k). `swell.solve` documents the other arguments.

        ``adjoint=True`` solves Aᴴ x = b with the same setup: transposed factors, a multigrid hierarchy with P and R
        exchanged. The residuals belong to Aᴴ x = b. If A = Aᴴ, or A = Aᵀ, nothing more is set up.

        Raises
        ------
        InputError
            If a part has no adjoint, such as a preconditioner that varies, or a function without ``rmatvec``.
        """
        with self._together():
            inputs.check_monitor(monitor, together)
            check_progress(progress)
            if not isinstance(adjoint, bool):
                raise InputError(f"adjoint={shown(adjoint)}: expected True, to solve with Aᴴ, or False")
            rhs, guess = inputs.read_vectors(self.A, b, x0, finite_later=True)
            with live_line(progress, monitor, self.stopping, self.space) as monitor:
                if not (adjoint and self._own_adjoint() == "symmetric"):
                    return self._solve_all(rhs, guess, monitor, b, together, adjoint)
                guess = None if guess is None else guess.conj()                    # Aᴴ = conj(A)
                if isinstance(monitor, SolutionMonitor):
                    monitor = monitor.converting(lambda x: guest_of(b).give_back(x.conj(), b))
                return _conjugated(self._solve_all(rhs.conj(), guess, monitor, rhs, together), b)

    def _map(self, x, adjoint):
        """Solve for a caller who sees x alone. Factors that solve at once need none of a solve's records: the x is the
        one of `solve`, accepted by the same residual; if it is not, `solve` goes on."""
        small = is_small(self.A)
        if small and x.ndim == 1:
            with self._turn:
                ready = None if self._stale else self._prepared.get(0)
                if ready is not None and (image := ready.small_solved(x, adjoint)) is not None:
                    return image
        elif not (small or adjoint) and x.ndim == 1 and self.choices[0].method.few_products and (
                self.space.ranks.single):
            rhs = inputs.read_vector(x, self.shape[0], "b", space=self.space)
            with self._first_choice() as prepared:
                if prepared.solved_at_once(rhs):
                    return inputs.returned(prepared.x0, self.space, x)
        return super()._map(x, adjoint)

    def require_adjoint(self):
        """Raise InputError unless ``solve(b, adjoint=True)`` can be done; it then takes its time for the setup now."""
        with self._together(), self.space.active(self.A.shape[0]):
            if self._own_adjoint() is None:
                self._prepare(0).adjoint()

    def _own_adjoint(self):
        """Return "hermitian" or "symmetric" if A is known to be so (`own_adjoint`), else None."""
        with self.space.active(self.A.shape[0]):
            return own_adjoint(self.A)

    def _preparing(self, adjoint):
        """The function that sets choice k up: for A, or for Aᴴ."""
        if not adjoint or self._own_adjoint() == "hermitian":
            return self._prepare
        return lambda k: self._prepare(k).adjoint()

    def _solve_all(self, rhs, guess, monitor, b, together=None, adjoint=False) -> Result | Results:
        """Solve for vectors that `inputs` has checked; x is converted to the array type of b."""
        self.space.ranks.require_equal((rhs.shape[1:], guess is not None, together, adjoint),
                                       "the right-hand sides and starting vectors (shape beside the rows, whether "
                                       "there is an x0), together, or adjoint")
        if rhs.ndim == 1:
            result = self._solve_one(rhs, guess, monitor, b, adjoint)
        else:
            with self.space.active(self.A.shape[0]):
                result = Task(self._choices, self._prepared, self._preparing(adjoint), rhs, guess, monitor, b, together,
                              lambda j, x0: self._solve_one(rhs[:, j], x0, monitor, b, adjoint)).solve()
        for first in getattr(result, "columns", [result])[:1]:
            first.timings["compile"] += self._compiled
        return result

    def _solve_one(self, b, x0, monitor, original, adjoint=False) -> Result:
        """Try the choices until a result is final; return the best result."""
        with self.space.active(self.A.shape[0]):
            result = try_choices(self._choices, self._prepared, self._preparing(adjoint), b, x0, monitor, original,
                                 lambda: (b, 0.0) if adjoint else self._compatible_part(self.A, b))
            why = reasons_for_singularity(self.A, b) if result.reason is Reason.SINGULAR and not adjoint else []
        left_out = [] if result.final else self._left_out
        result.notes = self.notes + result.notes + left_out + why
        return result

    def update(self, A, *others, keep_preconditioner=False) -> "Solver":
        """Replace the matrix by one of the same pattern and type. Setups are redone for the new values; buffers stay.

        Parameters
        ----------
        A : matrix
            Of the same pattern and type.
        keep_preconditioner : bool
            Keep the preconditioner of the old values, for matrices that change little. It is then only approximate,
            and may need more iterations. A direct method always factors again.

        If no method was named, and the advisor's choice, such as CG, does not suit the new values, it chooses anew.

        A Solver that shares arrays with copies is set up anew: the copies keep their matrix.

        Raises
        ------
        InputError
            If the pattern, the shape or the type differs, or if copies share the preconditioner to be kept. The
            Solver is then unchanged. If instead the setup fails for the new values, the Solver refuses to solve
            until another update succeeds.
        """
        if others:
            raise InputError(f"update: expected one matrix, got {1 + len(others)} arguments; newton_krylov calls "
                             "update(x, f) of its inner_M: give scipy.sparse.linalg.aslinearoperator(s), or s.M")
        with self._together():
            self.space.ranks.require_equal(keep_preconditioner, "keep_preconditioner")
            with self.space.ranks.agreed():
                matrix = inputs.read_matrix(A, self.space.device_name, self.A.dtype)
                new, old = matrix.A, self.A
                if not (old.has_entries and type(new) is type(old)):
                    raise InputError("update needs matrices with entries, not matrix-free ones, and across ranks a "
                                     "DistributedMatrix: prepare again")
            if self._arrays_shared and (keep_preconditioner or self.kept is not None):
                what = "preconditioner, which is to be kept" if keep_preconditioner else "matrix in a format of its own"
                raise InputError(f"update: copies of this Solver share its {what}; prepare a Solver for each thread")
            with self.space.active(self.A.shape[0]):
                if self._arrays_shared:
                    self.A = old.with_values(old.data.copy())
                    self._prepared, self._stale, self._arrays_shared = {}, set(), False
                with self.space.ranks.agreed():  # a rank whose update is refused must not begin a setup
                    self.A.update(new)
                try:
                    self._update_first(keep_preconditioner)
                except BaseException as error:   # a setup may be half new and half old: use none of them
                    self._prepared, self._stale, self._failure = {}, set(), str(error) or type(error).__name__
                    raise
            return self

    def _update_first(self, keep_preconditioner):
        """Update the first choice's setup to the values of A; the other setups are updated when they are tried."""
        self._failure = None
        self._choices.renew()
        try:
            if 0 in self._prepared:
                self._prepared[0].update(self.A, keep_preconditioner)
        except InputError as error:              # the advisor's choice, such as cg, does not suit the new values
            if self._named.method is not None:
                raise
            self._prepared, self._stale = {}, set()
            self._choose(self._choices.adapt)
            if keep_preconditioner:
                self.notes.append(f"the preconditioner was not kept, since the choice was made anew: {error}")
            return
        self._stale = set(self._prepared) - {0}
        self._prepare(0)

    def stop_by(self, stopping: Stopping) -> "Solver":
        """Use other tolerances from now on, as Newton's method needs them. All setups are kept."""
        with self._together():
            if not isinstance(stopping, Stopping):
                raise InputError(f"stop_by({stopping!r}): expected a swell.Stopping, such as swell.Stopping(rtol=1e-6)")
            self.space.ranks.require_equal(stopping, "when to stop")
            self.stopping = stopping = stopping.for_type(self.A.dtype)
            with self.space.active(self.A.shape[0]):
                for prepared in self._prepared.values():
                    prepared.stop_by(stopping)
            return self

    @property
    def M(self):
        """The first choice's preconditioner, or None if it has none: one cycle of multigrid, one solve with incomplete
        factors. A linear operator of SciPy and CuPy, as in ``lobpcg(A, X, M=s.M)``; ``print(s.M)`` describes it.
        If its factorisation failed, each application raises that error.
        """
        with self._first_choice() as prepared:
            absent = prepared.setup.M is None and prepared.setup.failure is None
        return None if absent else Preconditioning(self, self._first_choice)

    @contextmanager
    def _first_choice(self):
        """Take the turn of this Solver, and yield the Prepared of the first choice."""
        with self._turn, self.space.active(self.A.shape[0]):
            yield self._prepare(0)

    def describe(self) -> list[str]:
        """The first choice, one line for each part, as a printed result shows it."""
        with self._first_choice() as prepared:
            return prepared.describe()

    def __repr__(self):
        A, choices = self.A, [paired(choice.name("method"), choice.part) for choice in self.choices]
        return (f"Solver({A.shape[0]} unknowns, {A.dtype.name}, {self.space.device_name}: {choices[0]}"
                + (f"; then {', '.join(choices[1:])}" if choices[1:] else "") + ")")

    def _repr_html_(self):
        from swell.display.page import fragment
        from swell.solving.cards import of_solver
        return fragment(of_solver(self, self._failure))          # a notebook shows this

    def prefer(self, k) -> "Solver":
        """Try choice k first from now on; useful if the choices before it failed for a similar matrix."""
        with self._together():
            if k not in range(len(self.choices)):
                raise InputError(f"prefer({k!r}): expected the number of a choice, 0 to {len(self.choices) - 1}")
            order = [k, *(other for other in range(len(self.choices)) if other != k)]
            with self.space.active(self.A.shape[0]):
                self._prepare(k)
            # Choices without predictions are tried as they are listed.
            self._choices = Choices([replace(self.choices[old], prediction=None) for old in order])
            self._prepared = {new: self._prepared[old] for new, old in enumerate(order) if old in self._prepared}
            self._stale = {new for new, old in enumerate(order) if old in self._stale}
            return self

    def copy(self) -> "Solver":
        """A Solver for another thread, which may solve at the same time as this one.

        Both share the matrices and the factors. Each has its own buffers and, on a GPU, its own stream. There are two
        exceptions: every thread calls the user's own M, and the factors of cuDSS are computed again, because only one
        thread may use them.

        Raises
        ------
        InputError
            For a system across ranks.
        """
        with self._turn:
            space = self.space.another()
            with space.active(self.A.shape[0]):
                sharing, made = Sharing(space), object.__new__(Solver)
                for name, value in vars(self).items():
                    setattr(made, name, sharing(value))
            self._arrays_shared = made._arrays_shared = True
            return made

    __copy__ = copy

    def __reduce__(self):
        """Pickle the matrix and the user's choices; loading prepares the Solver again."""
        if not self.A.has_entries or not self.space.ranks.single:
            what = "matrix-free" if self.space.ranks.single else "across ranks"
            raise InputError(f"a Solver of a system that is {what} cannot be pickled: prepare it where it is used")
        if self.kept is not None:
            raise InputError("a Solver of a matrix in one of swell's own formats cannot be pickled: prepare from "
                             "A.to_csr().to_scipy(), with format=...")
        with self._turn:
            self._prepare(0)                     # raises if the last update failed
            return _prepared_again, (self.A.to_scipy().copy(), self.space.device_name, self.A.block_size, self._named,
                                     self.stopping, self._choices.adapt)


def _prepared_again(A, device, block, named, stopping, adapt):
    """Prepare the Solver of a pickle."""
    return Solver(inputs.read_matrix(A, device, block=block), named, stopping, adapt)


def _conjugated(result, original):
    """Conjugate all x of a Result or Results, with its attempts; convert them to the array type of ``original``."""
    guest, columns = guest_of(original), [result] if isinstance(result, Result) else result.columns
    held = [result, *columns, *(attempt for column in columns for attempt in column.attempts)]
    for one in {id(one): one for one in held}.values():          # columns may share an attempt
        one.x = guest.give_back(one.x.conj(), original)
    return result
