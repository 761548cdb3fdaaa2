"""Setup: one configuration applied to one matrix. All work that does not depend on b is done here, once."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from swell.core.compilation import Stopwatch, compiling_for, timed
from swell.core.errors import FactorisationError, InputError
from swell.core.log import LOG
from swell.core.settings import describe, without_effect
from swell.formats.symmetry import estimated_asymmetry
from swell.preconditioners.user import User
from swell.solving import summary
from swell.solving.choice_cost import paired

UNSYMMETRIC = 1e-3      # asymmetry of a user's M above which a note reports it; rounding of single precision is below


class SetUp(ABC):
    """A matrix with its transforms, its preconditioner and its format.

    Attributes
    ----------
    A : LinearOperator
        The original matrix.
    chosen : Configuration
        The configuration before any change by the setup.
    configuration : Configuration
        The configuration that runs: it has the flexible form of the method if the preconditioner needs it.
    transforms : list of Transform
        In the order in which they are applied; a scaling without effect is left out.
    nullspace, permutation : Transform or None
    M, S : LinearOperator or None
        The preconditioner and the smoother.
    matrix : LinearOperator
        The transformed matrix in its format, which the method multiplies with.
    failure : FactorisationError or None
        The error of the factorisation, if it failed; M is then None.
    notes, part_notes : list of str
        Notes on this setup, and the notes of its parts, combined over all ranks.
    descriptions : dict
        Part, such as "matrix" → its description, combined over all ranks.
    norm_A : float
        ‖A‖∞; NaN for a matrix-free A.
    timings : dict
        Seconds of each part and of the whole "setup", without compiling, and seconds of compiling ("compile").
    findings : tuple of str
        Names of the attributes that an update computes anew, besides the values in arrays.
    """

    findings = "effects", "descriptions", "part_notes", "norm_A", "timings"

    @property
    def weights(self):
        """Weights w with which stopping computes the original residual norm from the transformed one; None: all 1."""
        weights = (transform.residual_weights() for transform in self.transforms)
        return next((w for w in weights if w is not None), None)

    @property
    def launched(self):
        """(preconditioner, its revision, the matrix's revision); if it changes, captured CUDA graphs are invalid."""
        return self.M, 0 if self.M is None else self.M.revision, self.matrix.revision

    @property
    @abstractmethod
    def nbytes(self) -> dict:
        """Bytes of the "matrix", original and formatted, and of the "preconditioner"."""


class Setup(SetUp):
    """The setup of A x = b by one configuration.

    Parameters
    ----------
    A : SystemMatrix or matrix-free LinearOperator
    configuration : Configuration
    stopping : Stopping
    kept : LinearOperator or None
        The user's matrix in one of swell's formats, used unconverted.
    """

    def __init__(self, A, configuration, stopping, kept=None):
        self.A, self.configuration, self.chosen = A, configuration, configuration
        self.space, self.notes, self.timings = A.space, [], {}
        purpose = paired(configuration.name("method"), configuration.name("precond"))
        compiling_for(purpose)
        LOG.info("setting up %s for %d unknowns, %s, %s", purpose, A.shape[0], A.dtype.name, self.space.device_name)
        watch = Stopwatch()
        self.space.compile_ahead(configuration.parts, A.dtype)
        A.check(configuration, stopping)
        with timed(self.timings, "transform", self.space):
            system = self._transform(A)
        with timed(self.timings, "preconditioner", self.space):
            self._factor(self._preconditioner, system)
            self.S = self._smoother(system)
        with timed(self.timings, "format", self.space), self.space.ranks.agreed():
            self.matrix = self._format(system, kept)
            self.norm_A = A.norm_inf()
        self.descriptions, self.part_notes = summary.described_parts(self)
        self.timings |= {"setup": sum(self.timings.values()), "compile": watch.compiled}
        LOG.info("set up in %.3g s, and %.2g s for compiling kernels", self.timings["setup"], watch.compiled)
        if self.failure is not None:
            LOG.info("%s failed: %s", configuration.name("precond"), self.failure)

    @property
    def inner(self):
        """The settings from which ``M`` is built: the method's own inner operator, else the preconditioner."""
        c = self.configuration
        return c.precond if c.method.inner is None else c.method.inner

    def _transform(self, A):
        """Apply null space, ordering and scaling to A in this order; record them and return the transformed matrix."""
        c = self.configuration
        self.transforms, self.nullspace, self.permutation, self.effects, self.scaled = [], None, None, [], False
        if not A.has_entries:
            for kind in ("nullspace", "ordering", "scaling", "format"):
                if getattr(c, kind) is not None:
                    raise InputError(f"{kind}={c.name(kind)!r} needs a matrix with entries, and A is matrix-free")
            return A
        c.method.check(A)
        if c.nullspace is not None:
            self.nullspace = c.nullspace.build(A)
            A = self._apply(self.nullspace, A)
        if c.ordering is not None:
            self.permutation = c.ordering.build(A)
            A = self._apply(self.permutation, A)
        if c.scaling is not None:
            scaling = c.scaling.build(A)
            self.scaled = not scaling.uniform
            if self.scaled:
                return self._apply(scaling, A)
            self.notes.append("the diagonal is constant: Jacobi scaling would change nothing and was left out")
        return A

    def _apply(self, transform, A):
        """Apply one transform to A, record it and its effects, and return the transformed matrix."""
        A = transform.matrix(A)
        self.transforms.append(transform)
        self.effects += transform.effects(A)
        return A

    def _factor(self, build, A):
        """Set ``M`` to the value of ``build(A)``; if a factorisation fails, to None, and ``failure`` to its error.

        Such a failure is an outcome of the solve, which does not raise it."""
        self.failure = None
        try:
            with self.space.ranks.agreed():
                self.M = build(A)
        except FactorisationError as error:
            self.M, self.failure = None, error

    def use_preconditioner(self, M):
        """Replace ``M``, and describe the parts anew."""
        self.M = M
        self.descriptions, self.part_notes = summary.described_parts(self)

    def _preconditioner(self, system):
        """Return the preconditioner built for ``system``, the transformed matrix, or None if there is none.

        Raises InputError if the method cannot use it."""
        c, settings = self.configuration, self.inner
        if c.method.inner is not None and c.precond is not None:
            raise InputError(f"{c.name('method')} has no place for a preconditioner: leave precond (or M) out")
        if settings is None:
            return None
        if not c.method.preconditionable and c.method.inner is None:
            raise InputError(f"{c.name('method')} applies no preconditioner: leave precond (or M) out, and take "
                             "scaling='jacobi'; or use method='cg'")
        if settings.from_entries and not system.has_entries:
            owner = c.method if c.precond is None else settings
            raise InputError(f"{describe(owner)} needs a matrix with entries, and A is matrix-free: give M= as a "
                             "function or LinearOperator")
        kinds = ("ordering", "scaling") if settings.beside_nullspace else ("ordering", "scaling", "nullspace")
        out = " and ".join(k for k in kinds if getattr(c, k) is not None)
        if settings.as_given and out and self.transforms:
            name = c.name("precond") if settings.from_entries else "M"
            raise InputError(f"{name} acts on the system as it was given, without ordering and scaling: leave out "
                             f"{out}")
        if self.scaled and settings.against_scaling:
            self.notes.append(f"scaling={c.name('scaling')!r} may cost iterations: {settings.against_scaling}")
        if not (settings.across_ranks or system.space.ranks.single):
            settings = settings.restricted(system, lambda array: array)
        M = settings.build(self._source_matrix(system))
        if isinstance(settings, User) and c.method.self_adjoint_only and M.self_adjoint is None and not M.variable:
            self._measure(M)
        if M.variable and not c.method.flexible:
            self._become_flexible()
        if M.self_adjoint is False and c.method.self_adjoint_only:
            kind = "symmetric, M = Mᵀ" if c.method.symmetric_only else "its own adjoint"
            raise InputError(f"{c.name('method')} needs a preconditioner that is {kind}, and {describe(settings)} is "
                             "not: choose its symmetric form, or method='gmres'")
        return M

    def _measure(self, M):
        """Add a note if the user's M is far from self-adjoint, which the method needs; this applies M twice.

        It is no error: cg may converge all the same, as with an inner iteration or restricted Schwarz as M."""
        c = self.configuration
        symmetric, word = c.method.symmetric_only, "symmetric" if c.method.symmetric_only else "self-adjoint"
        with self.space.ranks.deferred_errors():
            size = estimated_asymmetry(self.space.ranks.guarded(M), self.space, conjugate=not symmetric)
        if size > UNSYMMETRIC:
            self.notes.append(f"M is not {word}, and {c.name('method')} needs that: ‖M − M{'ᵀ' if symmetric else 'ᴴ'}‖ "
                              f"is about {size:.0e} ‖M‖; if the solve is slow or fails, use method='gmres', or "
                              "'fgmres' if M is an inner iteration")

    def _source_matrix(self, system):
        """Return the matrix from which the preconditioner is built.

        It is ``system``, a rank's diagonal block of it, or, for a singular ``system``, a regular matrix made from it.
        """
        if self.nullspace is not None and self.configuration.method.regular:
            return self.nullspace.regular(system, self.transforms[1:])
        return system if self.inner.across_ranks else system.diagonal_block

    def _become_flexible(self):
        """Replace the method in ``configuration`` by its flexible form, and add a note; InputError if it has none."""
        c = self.configuration
        flexible = c.method.flexible_form()
        if flexible is None:
            raise InputError(f"the preconditioner varies from step to step, which {c.name('method')} does not allow: "
                             "use method='fgmres'")
        self.configuration = replace(c, method=flexible)
        self.notes.append(f"the preconditioner varies from step to step: {c.name('method')} became "
                          f"{self.configuration.name('method')}")

    def _smoother(self, system):
        """Return the smoother built for ``system``, the transformed matrix, or None if there is none.

        Raises InputError if the method cannot use it."""
        c = self.configuration
        if c.smoother is None:
            c.method.check_unsmoothed()
            return None
        if not c.method.smooths:
            raise InputError(f"{c.name('method')} has no use for a smoother beside its preconditioner: "
                             f"{c.method.instead_of_smoother}")
        if not system.has_entries:
            raise InputError(f"smoother={c.name('smoother')!r} needs a matrix with entries, and A is matrix-free")
        without_effect(c.smoother, f"beside {c.name('method')}, which says how many sweeps are done",
                       "set the method's own numbers of sweeps", "sweeps")
        return c.smoother.build(system)

    def _format(self, system, kept):
        """Return the matrix for the method's products: the user's (``kept``), or ``system`` in the configured format.
        """
        format = self.configuration.format
        if kept is not None and not self.transforms and format is None:
            return kept
        return system if format is None else system.stored_as(format)

    def scaling_missing(self, A) -> bool:
        """True if scaling was left out because it had no effect, but would have an effect on the values of A."""
        scaling = self.chosen.scaling
        return scaling is not None and not self.scaled and not scaling.build(A).uniform

    def update(self, A, keep_preconditioner=False):
        """Update all parts, in place, to a matrix A of the same pattern.

        The result equals a fresh setup. ``keep_preconditioner``: the preconditioner keeps its old values."""
        watch = Stopwatch()
        self.A = A
        self.configuration.method.check(A)
        self.effects = []
        for transform in self.transforms:
            transform.update(A)
            A = transform.matrix(A)
            self.effects += transform.effects(A)
        if self.S is not None:
            self.S.update(A)
        if self.M is None or not keep_preconditioner or self.configuration.method.inner is not None:
            self._factor(self._updated, A)
        else:
            self.M.keep_for(A if self.inner.across_ranks else A.diagonal_block)
        self.matrix.update(A)
        self.norm_A = self.A.norm_inf()
        self.descriptions, self.part_notes = summary.described_parts(self)
        self.space.synchronize()
        self.timings = {"setup": watch.seconds, "compile": watch.compiled}

    def _updated(self, A):
        """Return the preconditioner, updated in place to A, the transformed matrix; the user's own is unchanged."""
        if self.inner is not None and self.M is None:            # the last factorisation failed: build anew
            return self._preconditioner(A)
        if self.inner is not None and self.inner.from_entries:
            self.M.update(self._source_matrix(A))
        return self.M

    @property
    def nbytes(self):
        shared = self.matrix is self.A or (self.matrix.name == "csr" and not self.transforms)
        return {"matrix": self.matrix.nbytes + (0 if shared else self.A.nbytes),
                "preconditioner": 0 if self.M is None else self.M.nbytes}
