"""Prepared: a setup, the buffers of its solves, and the method bound to both."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from swell.core.compilation import Stopwatch, timed
from swell.core.registry import name_of
from swell.core.sharing import Shareable
from swell.core.workspace import Workspace
from swell.krylov.method import System
from swell.solving import summary
from swell.preconditioners.factors import Factors
from swell.solving.adjoint import AdjointSetup
from swell.solving.few_rows import is_small, solved
from swell.solving.result import Result
from swell.solving.measure import Goal, Measure, read_b
from swell.solving.setup import Setup
from swell.solving.solve import Solve

FEW = 12                # stored vectors; methods with short recurrences have fewer


class Prepared(Shareable):
    """A system that is set up, and can be solved for one right-hand side at a time.

    Parameters
    ----------
    A : SystemMatrix or matrix-free LinearOperator
        The original matrix, used for the true residual.
    configuration : Configuration
    stopping : Stopping
    kept : LinearOperator or None
        The user's matrix in one of swell's formats, used unconverted.

    Attributes
    ----------
    setup : Setup
    loop : Loop
    iteration : Iteration
        The method bound to the system and the buffers.
    b, x : arrays
        Right-hand side and solution of the transformed system.
    b0, x0 : arrays
        Right-hand side and solution of the original system; without transforms the same arrays as b and x.
    exact_b : array
        The caller's b in double precision; b0 itself in a double system. `read_b` sets it.
    measure : Measure
        Computes the quality of an x.
    companions : dict
        (number of right-hand sides, method or None) → its `Together`. Binding the method again discards it, and so
        does an update that its copies cannot follow.
    """

    def __init__(self, A, configuration, stopping, kept=None):
        self._use(Setup(A, configuration, stopping, kept), stopping)

    def _use(self, setup, stopping):
        """Allocate the buffers for ``setup``, and bind its method to them."""
        self.setup, self.stopping, self.space = setup, stopping, setup.space
        self._adjoint = None
        timings, watch = setup.timings, Stopwatch()
        with timed(timings, "workspace", self.space), self.space.ranks.agreed():
            self._allocate()
        timings["setup"] += timings["workspace"]
        timings["compile"] += watch.compiled

    def shared(self, sharing, method=None):
        """Return a copy for ``sharing.space`` with its own buffers; matrices and factors stay shared.

        ``method``: settings that replace the method's."""
        made = object.__new__(Prepared)
        made.setup, made.stopping, made.space = sharing(self.setup), self.stopping, sharing(self.space)
        made._adjoint = None
        if method is not None:
            made.setup.configuration = replace(made.setup.configuration, method=method)
        made._allocate()
        return made

    def adjoint(self) -> "Prepared":
        """The adjoint system Aᴴ x = b, made at the first call: it shares all parts, and has buffers of its own.

        Raises
        ------
        InputError
            If a part has no adjoint.
        """
        if self._adjoint is None:
            made = object.__new__(Prepared)
            made._use(AdjointSetup(self.setup), self.stopping)
            self._adjoint = made
        elif self._adjoint_stale:
            self._adjoint.setup = AdjointSetup(self.setup)
            self._adjoint._bind()
        self._adjoint_stale = False
        return self._adjoint

    def _allocate(self):
        """Allocate the buffers of a run as attributes and bind the method to them; OutOfMemory if they do not fit."""
        self.check_fits(self.setup.configuration.method)
        rows, dtype = self.space.ranks.local_rows(self.setup.A.shape[0]), self.setup.A.dtype
        self.workspace = Workspace(self.space)
        self.b, self.x, self.r0 = (self.workspace.array(name, rows, dtype) for name in ("b", "x", "r0"))
        self.b0, self.x0 = self.b, self.x
        if self.setup.transforms:
            self.b0, self.x0 = (self.workspace.array(name, rows, dtype) for name in ("b0", "x0"))
        self.measure = Measure(self.setup.A, self.setup.norm_A, self.space, self.workspace, self.r0)
        self._bind()

    def _bind(self):
        """Create the loop and the iteration: the method bound to the system and buffers. No graph is captured yet."""
        s = self.setup
        self.companions = {}
        self.loop = self.space.loop(self.stopping, s.A.shape[0])
        self.iteration = self.bound(s.configuration.method, self.workspace, self.loop)
        self._bound, self._description = s.launched, None

    def bound(self, method, workspace, loop):
        """Return the iteration: ``method`` bound to the system and to ``loop``. Its buffers come from ``workspace``."""
        s = self.setup
        applied = s.configuration.precond        # None if the method has an inner operator of its own
        M = s.M if applied is None or applied.across_ranks else self.space.ranks.guarded(s.M)
        return method.bind(System(s.matrix, M, self.b, self.x, s.weights, workspace, loop, s.S))

    def use_preconditioner(self, M):
        """Replace the preconditioner by ``M``, and bind the method again."""
        self.setup.use_preconditioner(M)
        self._description, self._adjoint_stale = None, True
        self._bind()

    def read_b(self, b) -> tuple:
        """Copy the right-hand side ``b``, of the host or this space, into b0; return (‖b‖₂, ‖b‖∞).

        InputError as in `measure.read_b`."""
        self.exact_b, norm, largest = read_b(self.space, self.workspace, b, self.b0)
        return norm, largest

    def b0_changed(self):
        """Copy b0 to ``exact_b``, after an incompatible part of b0 was removed."""
        if self.exact_b is not self.b0:
            self.exact_b[...] = self.b0

    def check_fits(self, method):
        """Raise OutOfMemory unless x, b and the vectors that ``method`` stores fit into free memory."""
        n, dtype = self.setup.A.shape[0], self.setup.A.dtype
        columns = self.space.columns
        several = f" with {columns} right-hand sides" if columns > 1 else ""
        self.space.check_fits(columns * self.space.ranks.local_rows(n) * dtype.itemsize * (5 + method.stored),
                              f"{name_of('method', type(method))} on {n} unknowns{several}",
                              ("use a smaller restart, a method that stores fewer vectors (method='bicgstab'), or "
                               if method.stored > FEW else "use ") + "dtype='float32'")

    def update(self, A, keep_preconditioner=False):
        """Update everything to the values of a matrix of the same pattern; keep buffers and captured graphs.

        ``keep_preconditioner``: do not rebuild it. If the new values need a scaling that had no effect on the old ones,
        the whole setup is repeated.
        """
        if self.setup.scaling_missing(A):
            return self.__init__(A, self.setup.chosen, self.stopping)
        self.setup.update(A, keep_preconditioner)
        self.measure.update(self.setup.norm_A)
        self._description, self._adjoint_stale = None, True
        if self.space.ranks.max(self._bound != self.setup.launched):         # M is new or gone, or launches other work
            self._bind()
        self.companions = {k: together for k, together in self.companions.items() if together.update()}

    def update_from(self, original):
        """Take over the findings of an update of ``original``, whose arrays this copy shares."""
        for name in self.setup.findings:
            setattr(self.setup, name, getattr(original.setup, name))
        self.measure.update(self.setup.norm_A)
        self._description = None

    def stop_by(self, stopping):
        """Replace the `Stopping` settings by ``stopping``. If more than tolerances differ, bind the method again."""
        same = replace(stopping, rtol=self.stopping.rtol, atol=self.stopping.atol,
                       relative_to=self.stopping.relative_to) == self.stopping
        self.stopping, self._description = stopping, None
        if not same:
            self._bind()
        for together in self.companions.values():
            together.prepared.stop_by(stopping)
        if self._adjoint is not None:
            self._adjoint.stop_by(stopping)

    def run(self, b, x0=None, monitor=None, watch=None) -> Result:
        """Solve for one right-hand side b, an array of shape (n,) on the host or in this space; return the Result.

        ``x0``, such an array or None (zero), is the starting vector. ``monitor(iteration, relative_norm)`` may be None,
        or a `SolutionMonitor`, which gets the buffer of x.

        ``watch(norm, threshold)`` is called after each residual norm; if it returns True, the run ends as OVERTAKEN.
        """
        solve = Solve(self, b, monitor, watch)
        solve.run(x0)
        return solve.result()

    def solved_at_once(self, b) -> bool:
        """``x0 = M b``; return True if this x solves the system to the tolerance, by the true residual, as a direct
        method's first step does. For one right-hand side b, of the host or this space."""
        if self.setup.M is None or self.setup.nullspace is not None:
            return False
        norm, largest = self.read_b(b)
        if not 0 < norm < np.inf:
            return False
        self.precondition()
        goal = Goal(self.stopping.threshold(norm), norm, largest)
        quality = self.measure.of(self.x0, self.exact_b, [goal])[0]
        return quality.confirms(goal.threshold) and not quality.small_rows_unsolved(goal)

    def small_solved(self, b, adjoint=False):
        """Return M b, or Mᴴ b, if M has factors of a small A, and the true residual confirms this x; else None."""
        s = self.setup
        if s.transforms or not (isinstance(s.M, Factors) and is_small(s.A)):
            return None
        return solved(s.A, s.M, b, self.stopping, "H" if adjoint else "N")

    def precondition(self, adjoint=False):
        """``x0 = M b0``, or Mᴴ b0, for the preconditioner in the caller's rows and scaling: R M L, or Lᴴ Mᴴ Rᴴ."""
        M, transforms = self.setup.M, self.setup.transforms
        transforms = [transform.adjoint() for transform in transforms] if adjoint else transforms
        self.transform("forward_b", self.b0, self.b, transforms)
        M.expect(self.space.norms(self.b)[0])
        (M.apply_adjoint if adjoint else M.apply)(self.b, self.x)
        self.transform("backward_x", self.x, self.x0, transforms[::-1])

    def transform(self, step, source, out, transforms):
        """Apply the method ``step`` (such as "forward_b") of all transforms in order to ``source``; write ``out``.

        ``source`` and ``out`` are different arrays if there are transforms; neither is r0, which is overwritten. A
        transform never writes to its source: the steps alternate between ``out`` and r0, and the last writes ``out``.
        """
        for remaining, transform in zip(reversed(range(len(transforms))), transforms):
            target = self.r0 if remaining % 2 else out
            getattr(transform, step)(source, target)
            source = target

    def describe(self) -> list[str]:
        """The nested configuration, one line for each part."""
        return list(self.description.configuration)

    @property
    def description(self) -> summary.Description:
        """The parts of a result that describe this setup; equal for every right-hand side."""
        if self._description is None:
            self._description = summary.description(self)
        return self._description
