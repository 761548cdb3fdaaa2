"""Prepared: one configuration bound to one matrix. Everything that can be done once is done here, once."""
from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from swell.core.compilation import Stopwatch
from swell.core.errors import FactorisationError, InputError
from swell.core.result import Result
from swell.core.settings import describe, without_effect
from swell.core.sharing import Shareable
from swell.core.stopping import Reason
from swell.core.verdict import ROUNDING, last_word
from swell.core.workspace import Workspace
from swell.krylov.method import Counts, System

RETRIES = 10            # times that a run is resumed from its x
SAFE = 1e-140, 1e140    # norms of b whose squares, and those of residuals far smaller, neither under- nor overflow


BOUND = {"workspace", "b", "x", "b0", "x0", "r0", "loop", "iteration", "_bound"}       # what a run writes to


class Prepared(Shareable):
    """A matrix transformed, formatted, preconditioned, and a method with its buffers; ``run`` only iterates.

    Parameters
    ----------
    A : CSRMatrix or matrix-free LinearOperator
        The original matrix, on which the judge's last word is spoken.
    configuration : Configuration
    stopping : Stopping
    kept : LinearOperator or None
        A matrix of our formats to be used as it is.
    """

    def __init__(self, A, configuration, stopping, kept=None):
        self.A, self.configuration, self.stopping = A, configuration, stopping
        self.space, self.notes, self.timings = A.space, [], {}
        watch = Stopwatch()
        A.check(configuration, stopping)
        with self._timed("transform"):
            system = self._transform(A)
        with self._timed("preconditioner"):
            self._factor(lambda: self._preconditioner(system))
            self.S = self._smoother(system)
        with self._timed("format"), self.space.agreed():
            self.matrix = self._format(system, kept)
        with self._timed("workspace"), self.space.agreed():
            self._check_memory()
            self._allocate()
            self.norm_A = A.norm_inf()
        self._put_into_words()
        self.space.synchronize()
        self.timings |= {"setup": sum(self.timings.values()), "compile": watch.compiled}

    def shared(self, sharing):
        """A copy with buffers of its own; matrices and factors are shared."""
        made = object.__new__(Prepared)
        for name in vars(self).keys() - BOUND:
            setattr(made, name, sharing(getattr(self, name)))
        made._allocate()
        return made

    # -- setup ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _timed(self, part):
        watch = Stopwatch()
        yield
        self.space.synchronize()
        self.timings[part] = watch.seconds

    def _transform(self, A):
        """Apply the null space, ordering, then scaling; each is left out with a note where it would change nothing."""
        self.transforms, self._left_out = [], False
        c = self.configuration
        self.nullspace, self.facts = None, []
        if not A.has_entries:
            for kind in ("nullspace", "ordering", "scaling", "format"):
                if getattr(c, kind) is not None:
                    raise InputError(f"{kind}={c.name(kind)!r} needs a matrix with entries, and A is matrix-free")
            return A
        c.method.check(A)
        for settings in (c.nullspace, c.ordering, c.scaling):
            if settings is None:
                continue
            transform = settings.build(A)
            if settings is c.nullspace:
                self.nullspace = transform
            if settings is c.ordering:
                self.permutation = transform
            if getattr(transform, "uniform", False):
                self._left_out = True
                self.notes.append("the diagonal is constant: Jacobi scaling would change nothing and was left out")
                continue
            A = transform.matrix(A)
            self.transforms.append(transform)
            self.facts += transform.facts(A)
        return A

    def _weights(self):
        weights = (transform.residual_weights() for transform in self.transforms)
        return next((w for w in weights if w is not None), None)

    def _allocate(self):
        """The buffers of a run, and the method bound to them."""
        self.workspace, rows = Workspace(self.space), self.space.share(self.A.shape[0])
        self.b, self.x, self.b0, self.x0, self.r0 = (self.workspace.array(name, rows, self.A.dtype)
                                                     for name in ("b", "x", "b0", "x0", "r0"))
        self._bind()

    def _bind(self):
        """Bind the method to the system; its buffers are those of the workspace, and nothing is captured yet."""
        self.loop = self.space.loop(self.stopping, self.A.shape[0])
        applied = self.configuration.precond     # beside a method that smooths by what it has built itself
        M = self.M if applied is None or applied.across_ranks else self.space.guarded(self.M)
        self.iteration = self.configuration.method.bind(
            System(self.matrix, M, self.b, self.x, self._weights(), self.workspace, self.loop, self.S))
        self._bound = self._launched

    def _factor(self, setup):
        """Set up the preconditioner; a factorisation that fails is an outcome of the solve, not an error."""
        self.failure = None
        try:
            with self.space.agreed():
                self.M = setup()
        except FactorisationError as error:
            self.M, self.failure = None, error

    @property
    def _setup(self):
        """The settings that ``M`` is built from: of the preconditioner, or of a method that is one."""
        c = self.configuration
        return c.method if hasattr(c.method, "build") else c.precond

    def _preconditioner(self, system):
        c, settings = self.configuration, self._setup
        if settings is c.method and c.precond is not None:
            raise InputError(f"{c.name('method')} has no place for a preconditioner: leave precond (or M) out")
        if settings is None:
            return None
        if not c.method.preconditionable and settings is not c.method:
            raise InputError(f"{c.name('method')} applies no preconditioner: leave precond (or M) out, and take "
                             "scaling='jacobi'; or use method='cg'")
        if not system.has_entries and type(settings).__name__ != "User":
            raise InputError(f"{describe(settings)} needs a matrix with entries, and A is matrix-free: give M= as a "
                             "function or LinearOperator")
        if settings.as_given and self.transforms:
            name = "M" if type(settings).__name__ == "User" else c.name("precond")
            out = " and ".join(k for k in ("ordering", "scaling", "nullspace") if getattr(c, k) is not None)
            raise InputError(f"{name} acts on the system as it was given, without ordering and scaling: leave out "
                             f"{out}")
        M = settings.build(self._seen(system))
        if M.variable and not c.method.flexible:
            self._become_flexible()
        if M.self_adjoint is False and c.method.self_adjoint_only:
            kind = "symmetric, M = Mᵀ" if c.method.symmetric_only else "its own adjoint"
            raise InputError(f"{c.name('method')} needs a preconditioner that is {kind}, and {describe(settings)} is "
                             "not: choose its symmetric form, or method='gmres'")
        return M

    def _seen(self, system):
        """What the preconditioner is built from: of a matrix in parts the rank's diagonal block, or all of it."""
        if self.nullspace is not None and self.configuration.method.regular:
            return self.nullspace.regular(system, self.transforms[1:])
        return system if self._setup.across_ranks else system.part_for(self._setup)

    def _become_flexible(self):
        """The method's flexible form takes its place, and the result says so; an error where it has none."""
        c = self.configuration
        flexible = c.method.flexible_form()
        if flexible is None:
            raise InputError(f"the preconditioner varies from step to step, which {c.name('method')} does not allow: "
                             "use method='fgmres'")
        self.configuration = replace(c, method=flexible)
        self.notes.append(f"the preconditioner varies from step to step: {c.name('method')} became "
                          f"{self.configuration.name('method')}")

    def _smoother(self, system):
        c = self.configuration
        if c.smoother is None:
            c.method.check_unsmoothed()
            return None
        if not c.method.smooths:
            instead = "name it within: stationary(smoother=...)" if hasattr(c.method, "smoother") else \
                "leave smoother out, use it as precond=..., or use method='cg'"
            raise InputError(f"{c.name('method')} has no use for a smoother beside its preconditioner: {instead}")
        if not system.has_entries:
            raise InputError(f"smoother={c.name('smoother')!r} needs a matrix with entries, and A is matrix-free")
        without_effect(c.smoother, f"beside {c.name('method')}, which says how many sweeps are done",
                       "set the method's own numbers of sweeps", "sweeps")
        return c.smoother.build(system)

    def _format(self, system, kept):
        c = self.configuration
        if kept is not None and not self.transforms and c.format is None:
            return kept
        return system if c.format is None else system.stored_as(c.format)

    def _check_memory(self):
        """Before the buffers are allocated: say what they need and what there is."""
        method = self.configuration.method
        self.space.check_fits(self.space.share(self.A.shape[0]) * self.A.dtype.itemsize * (5 + method.stored),
                              f"{self.configuration.name('method')} on {self.A.shape[0]} unknowns",
                              "choose a smaller restart, a method with short recurrences (cg, bicgstab), or "
                              "dtype='float32'")

    def update(self, A, keep_preconditioner=False):
        """Take a matrix of the same pattern: new values everywhere, buffers and captured work kept.

        The result is that of a fresh setup, but where the preconditioner shall stay that of earlier values.
        """
        watch = Stopwatch()
        self.A = A
        self.configuration.method.check(A)
        self.facts = []
        for transform in self.transforms:
            transform.update(A)
            A = transform.matrix(A)
            self.facts += transform.facts(A)
        if self.S is not None:
            self.S.update(A)
        if self.M is None or not keep_preconditioner or self._setup is self.configuration.method:
            self._factor(lambda: self._updated_preconditioner(A))
        else:
            self.M.follow(A if self._setup.across_ranks else A.diagonal_block)
        self.matrix.update(A)
        if self._bound != self._launched:        # a factorisation failed, works again, or is applied in another way
            self._bind()
        self.norm_A = self.A.norm_inf()
        self._put_into_words()
        self.space.synchronize()
        self.timings = {"setup": watch.seconds, "compile": watch.compiled}

    def stop_by(self, stopping):
        """Other tolerances; another limit or window binds the method anew."""
        same = replace(stopping, rtol=self.stopping.rtol, atol=self.stopping.atol,
                       relative_to=self.stopping.relative_to) == self.stopping
        self.stopping = stopping
        if not same:
            self._bind()

    @property
    def _launched(self):
        """What the captured work of an iteration depends on, besides addresses that stay."""
        return self.M, 0 if self.M is None else self.M.revision, self.matrix.revision

    def _updated_preconditioner(self, A):
        """The preconditioner for new values; what the user brought stays as it is."""
        if self._setup is not None and self.M is None:           # nothing to keep: the last factorisation failed
            return self._preconditioner(A)
        if self._setup is not None and type(self._setup).__name__ != "User":
            self.M.update(self._seen(A))
        return self.M

    # -- solve ---------------------------------------------------------------------------------------------------

    def run(self, b, x0=None, monitor=None) -> Result:
        """Solve for one right-hand side (an array of shape (n,), of the host or of this space)."""
        watch = Stopwatch()
        space, stopping = self.space, self.stopping
        space.from_host(b, out=self.b0)
        norm_b, self.largest_b = space.norms(self.b0)
        counts = Counts(0, 0, 0)
        norm_b = self._compatible(norm_b)
        if self.largest_b == 0:
            self.x0.fill(0)
            return self._result(watch, Reason.CONVERGED, np.zeros(1), 0.0, 0, 0.0, counts)
        if not SAFE[0] < norm_b < SAFE[1]:
            raise InputError(f"b has entries up to {self.largest_b:.1e}, whose squares leave the range of double "
                             "precision: solve for b divided by that, and multiply x by it")
        self._forward(x0)
        first = norm_b
        if x0 is not None:
            first, counts = self._true_residual()[0], Counts(1, 0, 0)
            if not first < SAFE[1]:
                raise InputError(f"x0 leaves a residual of {first:.1e}, whose square leaves the range of double "
                                 "precision: start from a smaller x0, or from none")
        threshold = stopping.threshold(first if stopping.relative_to == "r0" else norm_b)
        if self.failure is not None:
            residual, error = self._true_residual()
            return self._result(watch, Reason.SINGULAR if self.failure.singular else Reason.NOT_FACTORED,
                                np.array([residual]) / norm_b, residual / norm_b, 0, error, counts, threshold / norm_b)
        history, iterations, last = [], 0, np.inf
        for attempt in range(RETRIES):
            loop, zero_guess = self.loop, x0 is None and attempt == 0
            with space.together():
                loop.begin(threshold, max(norm_b, first), self.configuration.method.window(self.A.shape[0]), iterations,
                           self._scaled(monitor, norm_b))
                self.iteration.run(zero_guess, attempt)
                loop.end()
            if attempt == 0:                     # a resumed solve is short, and knows less of the spectrum
                self.spectrum = self.iteration.spectrum()
            history = [*history[:-1], *loop.history[:loop.iterations + 1]]
            iterations += loop.iterations
            residual, error = self._true_residual()
            counts = counts.plus(self.iteration.counts(loop.iterations, zero_guess), check=1)
            reason = loop.reason
            # A 'converged' that the true residual contradicts, or a breakdown, is resumed while that residual halves.
            if residual <= threshold or reason not in (Reason.CONVERGED, Reason.BREAKDOWN):
                break
            if residual > 0.5 * last or loop.maxiter <= iterations:
                break
            last = residual
        reason = last_word(reason, residual, threshold, norm_b, self.A, self.x0)
        return self._result(watch, reason, np.array(history) / norm_b, residual / norm_b, iterations, error, counts,
                            threshold / norm_b)

    def _compatible(self, norm_b):
        """Check b against the null space; ‖b‖₂, of what is left of it where its incompatible part is taken out."""
        self.run_notes, self.spectrum = [], None
        if self.nullspace is None or self.largest_b == 0:
            return norm_b
        part = self.nullspace.check(self.b0, norm_b, self.stopping.threshold(norm_b))
        if not part:
            return norm_b
        self.run_notes.append(f"a part of {part:.2e} ‖b‖ that no x can produce was taken out of b, as project=True "
                              "asks; residuals are those of the rest")
        rest, self.largest_b = self.space.norms(self.b0)
        if rest <= ROUNDING * np.finfo(self.A.dtype).eps * norm_b:
            self.largest_b = 0                   # nothing is left but rounding: x = 0
        return rest

    @staticmethod
    def _scaled(monitor, norm_b):
        """The user's monitor sees relative residuals."""
        return None if monitor is None else lambda k, norm: monitor(k, norm / norm_b)

    def _forward(self, x0):
        """b and x0 into the transformed system."""
        space = self.space
        if x0 is None:
            self.x.fill(0)
            self.x0.fill(0)
        else:
            space.from_host(x0, out=self.x0)
            self._chain("forward_x", self.x0, self.x, self.transforms)
        self._chain("forward_b", self.b0, self.b, self.transforms)

    def _chain(self, step, source, out, transforms):
        """Apply one direction of every transform, through r0 where there are two."""
        if not transforms:
            self.space.copy(source, out)
        for k, transform in enumerate(transforms):
            target = out if k == len(transforms) - 1 else self.r0
            getattr(transform, step)(source, target)
            source = target

    def _true_residual(self):
        """(‖b − A x‖₂, backward error) with the original matrix; x is left in x0."""
        self._chain("backward_x", self.x, self.x0, self.transforms[::-1])
        self.A.residual(self.x0, self.b0, self.r0)
        norm, largest_r, _, largest_x = self.space.norms(self.r0, self.x0)
        if not np.isfinite(largest_x):           # which a column of zeros may hide from b − A x
            return np.inf, np.nan
        return norm, largest_r / (self.norm_A * largest_x + self.largest_b)

    def _result(self, watch, reason, history, residual, iterations, error, counts, tolerance=0.0):
        self.space.synchronize()
        c = self.configuration
        preconditioner = 0 if self.M is None else self.M.nbytes
        shared = self.matrix is self.A or (self._format_name() == "csr" and not self.transforms)
        stored = 0 if shared else self.A.nbytes
        return Result(
            x=self.x0, reason=reason, iterations=iterations, residual=residual, backward_error=error, history=history,
            method=c.name("method"), precond="none" if hasattr(c.method, "build") else c.name("precond"),
            format=self.words["format"], ordering=c.name("ordering"),
            scaling="none" if self._left_out else c.name("scaling"), device=self.space.device_name,
            dtype=self.A.dtype.name, configuration=self.describe(),
            tolerance=tolerance, products=counts.products, reductions=counts.reductions,
            preconditioner_applications=counts.preconditioner,
            timings={**self.timings, "solve": watch.seconds, "compile": self.timings["compile"] + watch.compiled},
            memory={"matrix": self.matrix.nbytes + stored, "preconditioner": preconditioner,
                    "workspace": self.workspace.nbytes},
            host_reads=self.loop.host_reads,
            notes=self._all_notes(),
            spectrum=self.spectrum, attempts=[])

    def _all_notes(self):
        """Notes of the setup, of the preconditioner, of settings without effect and of this run, each once."""
        from swell.core.summary import idle
        failed = [str(self.failure)] if self.failure else []
        return list(dict.fromkeys((*self.notes, *self.part_notes, *idle(self), *self.run_notes, *failed)))

    def _put_into_words(self):
        """What a result says of what each rank has made for itself, as it is on all of them."""
        from swell.core.summary import words
        self.words, self.part_notes = words(self)

    def _format_name(self):
        return self.matrix.describe().split(",")[0].split(" ")[0] if hasattr(self.matrix, "nnz") else "matrix-free"

    def describe(self) -> list[str]:
        """The nested configuration, one line a part."""
        from swell.core.summary import lines
        return lines(self)

