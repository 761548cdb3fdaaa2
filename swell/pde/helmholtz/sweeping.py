"""Sweep: systems A(ω) x = b for one frequency after another, which reuse work of the earlier ones.

All frequencies share the pattern, the format, the ordering and captured graphs (``Solver.update``). They also share the
preconditioner, until its extra iterations cost more than a new setup. Both costs are measured when it is made. If a
solve fails with an old preconditioner, it is repeated with a new one. Earlier solutions, of all right-hand sides, make
a model of A(ω) with few unknowns, which gives the starting vectors (`reduced_model`). Where the matrices are not
symmetric, depend on ω in another way, or lie on several ranks, each right-hand side combines its own solutions
(`starting_guess`).

Several right-hand sides share all of it: one A(ω), one preconditioner, one solve for all columns.
"""
from __future__ import annotations

import numbers
from dataclasses import replace
from typing import Unpack

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError, SwellError, naming
from swell.core.guests import canonical_csr
from swell.core.settings import COMPLEX, real
from swell.core.devices import make_space
from swell.core.stopping import Reason
from swell.inputs import check_monitor
from swell.options import Accepted, OptionsDict
from swell.pde.helmholtz.informed import informed
from swell.pde.helmholtz.reduced_model import ReducedModel
from swell.pde.helmholtz.starting_guess import StartingGuess, StartingGuesses
from swell.pde.helmholtz.system import System
from swell.preconditioners.shifted_laplacian import ShiftedLaplacian
from swell.solving.results import Results

REMEMBERED = 32         # solutions of each right-hand side that the starting guess combines
ROUNDING = 1e-13        # of the largest entry: differences of A and its transpose that assembly leaves
ENDED = Reason.INTERRUPTED, Reason.STOPPED               # ends that the user asked for

OPTIONS = Accepted(without=("M", "block"), rtol=1e-8, device="cpu", dtype="complex128")


class Sweep:
    """Solves (K − ω² M + iω B) x = b for many ω, and for one right-hand side or several at each.

    Parameters
    ----------
    K, M, B : scipy.sparse matrices, n × n
        Stiffness (real), mass and boundary matrices.
    method, precond, ..., dtype
        See `swell.Options`; dtype is "complex128" or "complex64". Without a method, the advisor chooses one at the
        first frequency; where it chooses cocg, and no preconditioner is named, the sweep takes the shifted Laplacian
        by multigrid.
    reuse : bool
        False: every frequency gets a new preconditioner and x₀ = 0.
    remember : int
        Number of earlier solutions of each right-hand side; 0: none. All of them start every right-hand side, within
        256 directions. Where there is no model, each right-hand side combines its own.
    together : bool, optional
        Solve for all columns of b at once, or one by one; by default as is predicted to be faster.
    interface : callable, optional
        ``interface(system)`` returns the `Interface` between subdomains for Schwarz; `Helmholtz` passes one.
    part, free : Part, array, optional
        Across ranks: this rank's part of the dofs, and the free dofs; b and x are then the rank's rows.
    varying : list
        Parts of A(ω) that are no polynomial in ω, as `System` takes them; `Helmholtz` passes them.

    Attributes
    ----------
    setups : int
        Number of preconditioners made so far, with the advisor's first one that multigrid replaced.

    Examples
    --------
    >>> import numpy as np
    >>> from swell import gallery
    >>> from swell.pde import helmholtz
    >>> K, I = gallery.poisson2d(20), gallery.poisson2d(20) * 0 + np.eye(400)
    >>> sweep = helmholtz.Sweep(K, I * (1 - 0.05j), 0.1 * I, method="direct")
    >>> all(sweep.solve(omega, np.ones(400)).converged for omega in (0.5, 0.6, 0.7))
    True
    >>> sweep.solve(0.8, np.eye(400)[:, :16]).x.shape           # 16 sources
    (400, 16)
    """

    @OPTIONS.shown
    def __init__(self, K, M, B, *, reuse=True, remember=REMEMBERED, together=None, interface=None, part=None, free=None,
                 varying=(), **options: Unpack[OptionsDict]):
        chosen = OPTIONS.read(options)
        if str(chosen.dtype) not in COMPLEX:
            raise InputError(f"dtype={chosen.dtype!r}: expected one of {', '.join(COMPLEX)}; A(ω) is complex")
        if not isinstance(remember, numbers.Integral) or isinstance(remember, bool) or remember < 0:
            raise InputError(f"remember={remember!r}: expected a number of earlier solutions, 0 for none")
        if not isinstance(reuse, bool):
            raise InputError(f"reuse={reuse!r}: expected True or False")
        check_monitor(None, together)
        self.reuse, self.together = reuse, together
        if part is None:
            K, M, B = (_read(name, A) for name, A in zip("KMB", (K, M, B)))
        self.n = K.shape[0]
        self.system = _system(K, M, B, chosen.device, chosen.dtype, part, free, varying)
        self.space = self.system.space
        self._remembered = remember if reuse else 0
        self._guess, self._guessed = None, None
        self._reduces = (self.space.ranks.single and self.system.quadratic and self._remembered > 0
                         and symmetric(K, M, B))
        self._make_room(())
        with self.space.active(self.n):
            self._options = replace(chosen, precond=informed(chosen.precond, self.system, interface), device=None)
        self.solver, self._replaced, self.setups = None, False, 0
        free_choice = chosen.method is None and chosen.precond is None
        self._own = free_choice and self.space.ranks.single and self.system.quadratic
        self._serves = False

    def solve(self, omega, b, monitor=None):
        """Solve for one angular frequency ω (1/s).

        Parameters
        ----------
        omega : float
        b : array, shape (n,) or (n, k)
            On the host or on this sweep's device; the result's x is on the device.
        monitor : callable, optional
            See ``swell.solve``.

        Returns
        -------
        Result or Results
            Results, with one result a column, for b of shape (n, k).
        """
        with self.space.active(self.n):
            with self.space.ranks.agreed():
                b = self._checked(omega, b)
            self.space.ranks.require_equal(b.shape[1:], "the number of right-hand sides")
        self._make_room(b.shape[1:])
        with self.space.active(self.n):
            self.system.form(omega)
        kept = self.reuse and self._serves
        self._take_values(kept)
        with self.space.active(self.n):
            x0 = self._start(b)
        result = self.solver.solve(b, x0=x0, monitor=monitor, together=self.together if b.ndim > 1 else None)
        self._learn(result, kept)
        if kept:
            result = self._repeated(result, b, monitor, "a new preconditioner")
        if self._replaced and failures(result):  # multigrid fails here
            self.solver, self._replaced, self._own = None, False, False
            result = self._repeated(result, b, monitor, "the advisor's choice")
        self._remember(result)
        return result

    def _start(self, b):
        """Return the starting vector for b, of its shape, or None."""
        if self._model is not None:
            columns = b.reshape(len(b), -1)
            x0 = self._model.of(self.system.omega, columns)
            return None if x0 is None else self._model.no_worse(x0, columns).reshape(b.shape)
        return self._guess.of(b) if b.ndim > 1 else self._guess.of(self.system.A, b)

    def _repeated(self, result, b, monitor, way):
        """Solve again for the columns that failed, with a new setup; return the Result or Results with the new columns.

        ``way`` names the preconditioner, for a note."""
        before, failed = columns_of(result), failures(result)
        if not failed:
            return result
        self._take_values(False)
        several = isinstance(result, Results)
        part, start = (b[:, failed], result.x[:, failed]) if several else (b[:, None], result.x[:, None].copy())
        hopeless = [i for i, j in enumerate(failed) if self._hopeless(before[j])]
        for i in hopeless:
            start[:, i] = 0
        again = self.solver.solve(part, x0=None if len(hopeless) == len(failed) else start, monitor=monitor,
                                  together=self.together if len(failed) > 1 else None)
        self._learn(again, False)
        for j, r in zip(failed, again):
            r.notes.append(f"repeated with {way}: before, {before[j].reason.name} after {before[j].iterations} "
                           f"iterations, residual {before[j].residual:.1e}")
            if several:
                result.columns[j], result.x[:, j] = r, r.x
        return result if several else again[0]

    def _remember(self, result):
        """Keep the solutions of ``result`` for later starting vectors."""
        results = columns_of(result)
        converged = np.array([r.converged for r in results], bool)
        with self.space.active(self.n):
            x = self.space.xp.asarray(result.x)
            if self._model is not None:
                worked = np.flatnonzero(converged & np.array([r.iterations > 0 for r in results]))
                self._model.add(x.reshape(len(x), -1)[:, self.space.from_host(worked)])
            elif not isinstance(result, Results):
                if converged[0]:
                    self._guess.add(x)
            elif len(results) == self._guessed[0] and converged.any():
                self._guess.add(x, converged)

    def _make_room(self, shape):
        """Make the starting guess for b of shape (n, *shape); solutions of another number of columns are forgotten.

        Raises
        ------
        OutOfMemory
            If there is no room for the solutions.
        """
        if shape == self._guessed:
            return
        self._guess = self._guessed = self._model = None
        count = shape[0] if shape else 1
        several = f" for {count} right-hand sides" if count > 1 else ""
        most = self._remembered * count
        needed = (ReducedModel.room(self.system, most) if self._reduces else
                  2 * most * self.space.ranks.local_rows(self.n) * self.system.dtype.itemsize)
        with self.space.ranks.agreed():
            self.space.check_fits(needed, f"remembering {self._remembered} solutions of {self.n} "
                                  f"unknowns{several}", "give a smaller remember")
        with self.space.active(self.n):
            if self._reduces:
                self._model = ReducedModel(self.system, most, count)
            elif shape:
                self._guess = StartingGuesses(self.system.A, self._remembered, count)
            else:
                self._guess = StartingGuess(self.space, self._remembered)
        self._guessed = shape

    def _checked(self, omega, b):
        """Return b as an array of the space; raise InputError for a bad b or omega."""
        if not real(omega) or not np.isfinite(omega):
            raise InputError(f"omega={omega!r}: expected an angular frequency, a finite number in 1/s")
        rows = self.space.ranks.local_rows(self.n)
        try:
            b = self.space.xp.asarray(b, dtype=self.system.dtype)
        except (TypeError, ValueError):
            raise InputError("b is no array of numbers on the host or on this sweep's device, or its columns differ in "
                             f"length: expected an array of shape ({rows},), or ({rows}, k) for k right-hand sides"
                             ) from None
        if b.ndim not in (1, 2) or b.shape[0] != rows:
            raise InputError(f"b has shape {b.shape}: expected ({rows},), or ({rows}, k) for k right-hand sides, an "
                             "entry for each unknown (across ranks, each of the rank's own)")
        if b.ndim == 2 and not b.shape[1]:
            raise InputError(f"b has shape {b.shape}, no right-hand side: expected a column for each source")
        return b

    @property
    def rows(self):
        """An index of the free dofs whose rows of A this rank has: all of them on one rank."""
        return slice(None) if self.space.ranks.single else self.system.A.rows

    def gather(self, x):
        """Return the values of all free dofs on the host, from x, this rank's part of a solution or of several, shape
        (rows, k). All ranks call it together."""
        A = self.system.A
        if A.space.ranks.single:
            return self.space.to_host(x)
        return A.gather(x) if x.ndim == 1 else np.stack([A.gather(column) for column in x.T.copy()], axis=1)

    def any(self, flag) -> bool:
        """True if ``flag`` is true on any rank."""
        return self.space.ranks.max(float(bool(flag))) > 0

    def _take_values(self, kept):
        """Update the solver with A(ω), and recompute its preconditioner unless ``kept``; the first call makes the
        solver."""
        if self.solver is None:
            from swell.advisor.choose import default_format
            from swell.api import prepare
            if self._options.format is None:
                with self.space.active(self.n):
                    self._options = replace(self._options, format=default_format(self.system.A.diagonal_block))
            self.solver = prepare(self.system.A, **self._options.keywords())
            if self._own and self.solver.choices[0].name("method") == "cocg":
                self._with_multigrid()
        else:
            self.solver.update(self.system.A, keep_preconditioner=kept)
        self.setups += not kept

    def _with_multigrid(self):
        """Replace the advisor's cocg by cocg with the shifted Laplacian by multigrid: a sweep knows ω²M, and makes its
        setup good over many solves. The advisor's setup is freed, and stays only where multigrid has none."""
        from swell.api import prepare
        wave = replace(self._options, method="cocg", precond=informed(ShiftedLaplacian(inner="amg"), self.system))
        try:
            self.solver = prepare(self.system.A, **wave.keywords())
        except SwellError:
            return
        self._replaced, self.setups = True, self.setups + 1

    def _learn(self, result, kept):
        """Decide from a Result or Results whether to keep the preconditioner for the next frequency, and which of the
        advisor's choices to try first. ``kept``: this solve used an old preconditioner.

        Several right-hand sides count by the one with the most iterations. A solve without iterations, as for b = 0,
        tells nothing."""
        results = columns_of(result)
        longest = max(results, key=lambda r: r.iterations)
        if result.converged and all(r.attempts for r in results):  # the advisor's later choice converged: begin with it
            self.solver.prefer(longest.choice)
        if not result.converged or any(r.attempts for r in results):
            self._serves = False
        elif not longest.iterations:
            return
        elif kept:
            self._serves = longest.iterations <= self._fresh + self._worth
        else:
            timings = longest.timings
            setup = timings.get("preconditioner", timings["setup"])
            seconds = sum(r.timings["solve"] for r in results)
            # the maximum over ranks, since all must come to the same decision
            worth = self.space.ranks.max(setup / (seconds / longest.iterations))
            self._fresh, self._worth, self._serves = longest.iterations, worth, True

    @staticmethod
    def _hopeless(result):
        """Return True if the x of a failed solve (``result``) is no better than x = 0."""
        return not np.isfinite(result.residual) or result.residual >= 1


def symmetric(*matrices) -> bool:
    """Return True if every square matrix, sparse or dense, equals its transpose to rounding."""
    return all(abs(A - A.T).max() <= ROUNDING * abs(A).max() for A in map(sp.csr_array, matrices) if A.nnz)


def columns_of(result):
    """Return the list of the Result objects in ``result``, a Result or Results."""
    return result.columns if isinstance(result, Results) else [result]


def failures(result):
    """Return the numbers of the columns that failed; an end that the user asked for is no failure."""
    return [j for j, r in enumerate(columns_of(result)) if not r.converged and r.reason not in ENDED]


def _read(name, A):
    """Return A, the user's matrix ``name``, as a CSR matrix of SciPy, its columns sorted and duplicates summed."""
    with naming(name):
        return canonical_csr(A)


def _system(K, M, B, device, dtype, part, free, varying):
    """Return the System of K, M and B on one device, or this rank's PartOfSystem if ``part`` is a Part. ``free``: the
    free dofs; ``varying``: as for `System`."""
    if part is not None:
        from swell.pde.helmholtz.across_ranks import PartOfSystem
        part.take_free(free)
        return PartOfSystem(part, K, M, B, device, dtype, varying)
    space = make_space(device)
    with space.active(K.shape[0]):
        return System(K, M, B, space, dtype, varying)
