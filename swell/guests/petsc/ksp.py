"""KSP: swell's solve as a PETSc KSP, with tolerances, monitors and reasons translated both ways."""
from __future__ import annotations

from contextlib import nullcontext

from swell.api import prepare
from swell.core.errors import InputError
from swell.core.stopping import Reason, Stopping
from swell.guests.petsc import ranks, views
from swell.guests.petsc.common import enter, flag, leave, options, write
from swell.transforms.nullspace import NullSpace

# KSPConvergedReason, by number: the names in petsc4py differ between versions.
RTOL, ATOL = 2, 3
CODES = {
    Reason.RUNNING: 0, Reason.CONVERGED: RTOL, Reason.MAXITER: -3, Reason.DIVERGED: -4, Reason.BREAKDOWN: -5,
    Reason.STAGNATED: -5, Reason.FALSE_CONVERGENCE: -5, Reason.ATTAINABLE_ACCURACY: -5, Reason.SINGULAR: -5,
    Reason.NONFINITE: -9, Reason.INDEFINITE: -10, Reason.NOT_FACTORED: -11, Reason.STOPPED: -5, Reason.INTERRUPTED: -5,
    Reason.OVERTAKEN: -5, Reason.OUT_OF_MEMORY: -11,
}
REASONS = {             # the inverse, for a solve that did not converge; all other codes mean BREAKDOWN
    0: Reason.RUNNING, -3: Reason.MAXITER, -4: Reason.DIVERGED, -8: Reason.INDEFINITE, -9: Reason.NONFINITE,
    -10: Reason.INDEFINITE, -11: Reason.NOT_FACTORED,
}
DEFAULT_PCS = (None, "none", "ilu", "icc", "bjacobi", "eisenstat")     # PETSc's own choices if the user named none


def reason_of(ksp) -> Reason:
    """Return the ``Reason`` why the last solve of a KSP, swell's or PETSc's, ended; ``reason_of(ksp).sentence`` has
    advice.

    It is CONVERGED only if ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol). If PETSc judged by another norm and this test fails, it
    is FALSE_CONVERGENCE.
    """
    context = ksp.getPythonContext() if ksp.getType() == "python" else None
    if isinstance(context, KSP) and context.result is not None:
        return context.result.reason
    code = ksp.getConvergedReason()
    if code <= 0:
        return REASONS.get(code, Reason.BREAKDOWN)
    b, (rtol, atol, _, _) = ksp.getRhs(), ksp.getTolerances()
    r = b.duplicate()
    ksp.getOperators()[0].mult(ksp.getSolution(), r)
    r.aypx(-1, b)
    return Reason.CONVERGED if r.norm() <= max(rtol * b.norm(), atol) else Reason.FALSE_CONVERGENCE


class KSP:
    """swell's solve as a KSP: tolerances, monitors, history and reasons are PETSc's, the rest is swell's.

    Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol), computed with the matrix A itself. swell does not use PETSc's PC
    and sets it to none, unless ``precond="petsc"`` asks for it. swell uses a null space attached to the matrix.

    On several ranks, each rank solves with its rows, as in `swell.distributed`; the same restrictions hold: no
    ordering, no smoother. Ctrl-C or a monitor on one rank ends the solve on all, at the next tenth iteration.

    Parameters
    ----------
    method, precond, scaling, ordering, format, smoother : str or settings object, optional
        As in `swell.solve`; options ``-ksp_swell_method`` and so on. Without a method swell's advisor chooses.
    device : str
        "cpu" or "cuda"; on several ranks, one GPU for each. Option ``-ksp_swell_device``.
    report : bool
        Print the result after each solve. Option ``-ksp_swell_report``.

    Attributes
    ----------
    result : swell.Result or None
        The result of the last solve: ``ksp.getPythonContext().result``. Its x has this rank's rows.
    """

    def __init__(self, method=None, precond=None, scaling=None, ordering=None, format=None, smoother=None, device="cpu",
                 report=False):
        self.method, self.precond, self.scaling, self.ordering = method, precond, scaling, ordering
        self.format, self.smoother, self.device, self.report = format, smoother, device, report
        self.reset()

    def create(self, ksp):
        """Set the norm type and the PC side of ``ksp`` to those that swell uses, so that PETSc's views are correct;
        called by PETSc."""
        from petsc4py import PETSc
        enter(ksp, "KSPSetType", b"preonly")
        ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
        ksp.setPCSide(PETSc.PC.Side.RIGHT)

    def destroy(self, ksp):
        leave(ksp)

    def setFromOptions(self, ksp):
        from petsc4py import PETSc
        names = ("method", "precond", "scaling", "ordering", "format", "smoother", "device", "report")
        for name, value in options(ksp, "ksp_swell_", names).items():
            if name == "report":
                value = PETSc.Options(ksp.getOptionsPrefix() or "").getBool("ksp_swell_report")
            setattr(self, name, value)
            self.reset()                         # the next setup starts from scratch

    def setUp(self, ksp):
        self._disable_pc(ksp)
        with ranks.agreed(ksp.comm):
            self._ready(ksp)

    def solve(self, ksp, b, x):
        self._disable_pc(ksp)
        norm_b, guess = b.norm(), ksp.getInitialGuessNonzero()
        try:
            with ranks.agreed(ksp.comm):
                self._ready(ksp)
                self.result, self._running = None, True
                result = self._solver.solve(b.getArray(readonly=True), monitor=self._monitor(ksp, norm_b),
                                            x0=x.getArray(readonly=True).copy() if guess else None)
        finally:
            self._running = False
        self.result = result
        x.getArray()[...] = result.x
        ksp.setIterationNumber(result.iterations)
        ksp.setResidualNorm(result.residual * norm_b)
        if result.reason is Reason.STOPPED:      # by a monitor, perhaps of another rank
            self._agree_on_reason(ksp)
        else:
            ksp.setConvergedReason(self._code(result, norm_b))
        if self.report:
            from petsc4py import PETSc
            PETSc.Sys.Print(str(result), comm=ksp.comm)
        if result.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt

    def _monitor(self, ksp, norm_b):
        """Return a monitor for swell that calls PETSc's monitors, which may end the solve by setting a reason.
        ``norm_b``: ‖b‖₂, since swell passes relative residuals.

        All ranks call Python monitors together: an error or a reason of one rank reaches the others before they
        continue.
        """
        comm = ksp.comm if ksp.getMonitor() else None

        def monitor(k, relative):
            if not ksp.getConvergedReason():     # else a monitor has ended the solve already
                ksp.setIterationNumber(k)
                ksp.setResidualNorm(relative * norm_b)
                ksp.logConvergenceHistory(relative * norm_b)
                with nullcontext() if comm is None else ranks.agreed(comm):
                    ksp.monitor(k, relative * norm_b)
                if comm is not None:
                    self._agree_on_reason(ksp)
            return ksp.getConvergedReason() != 0

        return monitor

    @staticmethod
    def _agree_on_reason(ksp):
        """Set the converged reason of ``ksp``, on all ranks, to the first rank's that has one."""
        reasons = ranks.of_all(ksp.comm, int(ksp.getConvergedReason()))
        ksp.setConvergedReason(next(filter(None, reasons), 0))

    def _code(self, result, norm_b):
        """Return PETSc's number (KSPConvergedReason) for the reason of a swell Result; ``norm_b``: ‖b‖₂."""
        atol = self._solver.stopping.atol
        return ATOL if result.converged and result.tolerance * norm_b <= atol * (1 + 1e-12) else CODES[result.reason]

    def solveTranspose(self, ksp, b, x):
        raise InputError("KSPSolveTranspose: swell's KSP solves A x = b only; transpose the matrix, or use swell as a "
                         "preconditioner, whose transpose PETSc's methods apply")

    def buildResidual(self, ksp, work, v):
        """Write b − A x to the Vec v; called by PETSc. Raises InputError while swell iterates, since there is no x
        then."""
        if self._running:
            raise InputError("swell does not form x in every iteration: use -ksp_monitor, which shows the norms of "
                             "b - A x, instead of -ksp_monitor_true_residual")
        ksp.getOperators()[0].mult(ksp.getSolution(), v)
        v.aypx(-1, ksp.getRhs())

    def _ready(self, ksp):
        """Prepare the solver of this object, or update it after changes of the pattern, the null space, the values or
        the tolerances of ``ksp``."""
        A, P = ksp.getOperators()
        if A.handle != P.handle:
            raise InputError("KSP.setOperators was given two matrices: swell's KSP makes its preconditioner from the "
                             "one that it solves with; for two, use swell as a preconditioner: -pc_python_type "
                             "swell.guests.petsc.PC")
        stopping, free = self._stopping(ksp), A.getType() in views.MATRIX_FREE
        null = A.getNullSpace()
        pattern = views.pattern(A), null.handle
        known = ranks.of_all(A.comm, (pattern == self._pattern, A.stateGet() == self._state or free))
        if not all(same for same, _ in known):
            self.reset()
            matrix = ranks.matrix(A, self.device)
            self._solver = prepare(matrix, M=self._petsc_pc(ksp, A) if self._uses_petsc_pc else None,
                                   method=self.method, precond=None if self._uses_petsc_pc else self.precond,
                                   scaling=self.scaling, ordering=self.ordering, format=self.format,
                                   smoother=self.smoother, device=self.device, stopping=stopping,
                                   nullspace=_nullspace(A))
            self._pattern, self._mat = pattern, (A, null)    # keeping both keeps their handles from being reused
        elif not all(same for _, same in known):
            keep = flag(ksp, "ksp_reuse_preconditioner")
            self._state = None                   # if the update fails, the next call repeats it
            self._solver.update(ranks.new_values(A, self._solver.A), keep_preconditioner=keep)
        self._state = A.stateGet()
        self._solver.stop_by(stopping)

    @property
    def _uses_petsc_pc(self):
        """True if swell applies PETSc's PC as its preconditioner."""
        return isinstance(self.precond, str) and self.precond.strip().lower() == "petsc"

    def _petsc_pc(self, ksp, A):
        """Return a function v -> M v that applies PETSc's PC, for ``prepare(M=...)``. A: the Mat."""
        if self.device != "cpu":
            raise InputError(f"precond='petsc' with device={self.device!r}: PETSc's preconditioner works on the host; "
                             "name one of swell's, or device='cpu'")
        pc, (r, z) = ksp.getPC(), A.createVecs()

        def apply(v):
            r.getArray()[...] = v
            pc.apply(r, z)
            return z.getArray(readonly=True).copy()

        apply.__name__ = "PETSc's PC"
        return apply

    def _disable_pc(self, ksp):
        """Set the PC of ``ksp`` to none if the user did not name one: PETSc would set it up, and swell would not apply
        it."""
        from petsc4py import PETSc
        if self._uses_petsc_pc:
            return
        pc = ksp.getPC()
        kind = pc.getType()
        if kind not in DEFAULT_PCS or (kind not in (None, "none")
                                       and PETSc.Options(ksp.getOptionsPrefix() or "").hasName("pc_type")):
            raise InputError(f"the KSP is swell's and its PC is PETSc's {kind}: name one of swell's with "
                             "-ksp_swell_precond and leave -pc_type out, or apply PETSc's: -ksp_swell_precond petsc")
        if kind != "none":
            pc.setType("none")

    def _stopping(self, ksp):
        """Return the Stopping for the tolerances of ``ksp``; raise InputError for a convergence test that swell does
        not have."""
        from petsc4py import PETSc
        words = PETSc.Options(ksp.getOptionsPrefix() or "")
        if (ksp.getConvergenceTest() is not None or words.getString("ksp_convergence_test", "default") != "default"
                or flag(ksp, "ksp_converged_use_min_initial_residual_norm")):
            raise InputError("swell's KSP knows PETSc's default convergence test only: leave the other one out")
        # PETSc read these two options before `create`, which then overwrote both: read them again
        norm, side = words.getString("ksp_norm_type", "unpreconditioned"), words.getString("ksp_pc_side", "right")
        if ((norm.lower(), side.lower()) != ("unpreconditioned", "right") or ksp.getPCSide() != PETSc.PC.Side.RIGHT
                or ksp.getNormType() != PETSc.KSP.NormType.UNPRECONDITIONED):
            raise InputError("swell's KSP judges ||b - A x|| and preconditions on the right: leave -ksp_norm_type and "
                             "-ksp_pc_side out")
        rtol, atol, growth, maxiter = ksp.getTolerances()
        initial = flag(ksp, "ksp_converged_use_initial_residual_norm")
        return Stopping(rtol=rtol, atol=atol, maxiter=maxiter, growth=growth, relative_to="r0" if initial else "b")

    def reset(self, ksp=None):
        """Drop the setup and the last result; called by PETSc."""
        self._solver = self._pattern = self._state = self._mat = self.result = None
        self._running = False

    def view(self, ksp, viewer):
        if self._solver is None:
            write(viewer, [f"swell: method {self.method or 'by the advisor'} on {self.device}, not set up"])
            return
        lines = self._solver.describe() if self.result is None else self.result.configuration
        lines = ["swell: " + lines[0], *lines[1:]]
        if self.result is not None:
            lines.append(f"last solve: {self.result.reason.name}: {self.result.message}")
            lines += [f"note: {note}" for note in self.result.notes]
        write(viewer, lines)


def _nullspace(A):
    """Return the null spaces attached to the Mat A (of A and of Aᵀ) as a NullSpace, or None."""
    from numpy import column_stack, ones
    both = []
    for null in (A.getNullSpace(), A.getTransposeNullSpace()):
        columns = []
        if null.handle:
            if null.hasConstant():
                columns.append(ones(A.getLocalSize()[0]))
            columns += [v.getArray(readonly=True).copy() for v in null.getVecs()]
        both.append(column_stack(columns) if columns else None)
    basis, left = both
    return None if basis is None else NullSpace(basis, left=left)
