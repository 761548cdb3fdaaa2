"""swell inside PETSc, through petsc4py: a preconditioner for PETSc's Krylov methods, and a KSP of its own.

    python app.py -pc_type python -pc_python_type swell.integrations.petsc.PC -pc_swell_precond ilu0(ordering=twisted)
    python app.py -ksp_type python -ksp_python_type swell.integrations.petsc.KSP -ksp_swell_method gmres(restart=50)

Options come from PETSc's database with the object's prefix, at setFromOptions; a misspelt one is an error. Matrices and
vectors are read over PETSc's own memory (`swell.core.petsc` says which are). New values in a matrix of the same pattern
refresh the setup, a new pattern makes a new one. What swell refuses is raised through PETSc with swell's message.

Cost: an application of PC works on PETSc's vectors where they lie; on a GPU, or in another type, it moves two vectors.
A solve by KSP moves b and x once, and all its iterations are swell's: the way to a GPU.

On several ranks PC acts on the rank's own diagonal block, which is block Jacobi. KSP is for one rank.
"""
from __future__ import annotations

from swell import inputs
from swell.api import prepare
from swell.core import petsc
from swell.core.errors import InputError
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.core.stopping import Reason, Stopping
from swell.integrations.petsc_guest import agreed, enter, flag, leave, options, write
from swell.transforms.nullspace import NullSpace

# KSPConvergedReason, by its numbers: petsc4py has named some of them differently over the years.
RTOL, ATOL = 2, 3
CODES = {
    Reason.RUNNING: 0, Reason.CONVERGED: RTOL, Reason.MAXITER: -3, Reason.DIVERGED: -4, Reason.BREAKDOWN: -5,
    Reason.STAGNATED: -5, Reason.FALSE_CONVERGENCE: -5, Reason.ATTAINABLE_ACCURACY: -5, Reason.SINGULAR: -5,
    Reason.NONFINITE: -9, Reason.INDEFINITE: -10, Reason.NOT_FACTORED: -11, Reason.STOPPED: -5, Reason.INTERRUPTED: -5,
}
REASONS = {             # and back, of those that say that it did not converge; what remains is DIVERGED_BREAKDOWN
    0: Reason.RUNNING, -3: Reason.MAXITER, -4: Reason.DIVERGED, -8: Reason.INDEFINITE, -9: Reason.NONFINITE,
    -10: Reason.INDEFINITE, -11: Reason.NOT_FACTORED,
}
FLEXIBLE = ("fgmres", "pipefgmres", "gcr", "pipegcr", "fcg", "pipefcg", "fbcgs", "fbcgsr", "richardson", "preonly")
DEFAULT_PCS = (None, "none", "ilu", "icc", "bjacobi", "eisenstat")     # what PETSc takes where nobody has asked


def reason_of(ksp) -> Reason:
    """Why the last solve of any KSP ended, in swell's words, with its advice: ``print(reason_of(ksp).sentence)``.

    It is CONVERGED only if ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol); where PETSc has judged another norm and this one does not
    confirm it, FALSE_CONVERGENCE.
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


class PC:
    """A preconditioner of swell for any KSP of PETSc.

    Parameters
    ----------
    precond : str or settings object
        As in `swell.solve`; ``-pc_swell_precond``. Without one ILU(0), as PETSc's own default is.
    device : str
        "cpu" or "cuda"; ``-pc_swell_device``.
    dtype : str, optional
        The type in which it works, such as "float32"; ``-pc_swell_dtype``. PETSc's scalar type by default.

    Raises
    ------
    SwellError
        At setup, on all ranks, if one of them could not set up.

    Examples
    --------
    >>> context = PC(precond="ic0")      # pc.setType("python"); pc.setPythonContext(context)
    """

    def __init__(self, precond="ilu0", device="cpu", dtype=None):
        self.precond, self.device, self.dtype = precond, device, dtype
        self.reset()

    def create(self, pc):
        enter(pc, "PCSetType", b"none")

    def destroy(self, pc):
        leave(pc)

    def setFromOptions(self, pc):
        for name, value in options(pc, "pc_swell_", ("precond", "device", "dtype")).items():
            setattr(self, name, value)
            self.reset()                         # the next setup starts over

    def setUp(self, pc):
        P = pc.getOperators()[1]
        with agreed(P.comm, "setting up swell's preconditioner"):
            self._set_up(petsc.local(P))

    def _set_up(self, block):
        pattern = petsc.pattern(block)
        if not block.getSize()[0]:               # a rank without rows
            self.reset()
            return
        given = inputs.read_matrix(petsc.matrix(block), self.device, self.dtype)
        space = given.space
        if not hasattr(given.A, "indptr"):
            raise InputError(f"a Mat of type {block.getType()} has no entries to make a preconditioner from: give one "
                             "that has as the second of KSP.setOperators(A, P)")
        if pattern == self._pattern:
            with self._space.active(block.getSize()[0]):
                self._A.data[...] = given.A.data
                self._A.discard_adjoint()
                self._M.update(self._A)
            return
        self.reset()
        settings = resolve("precond", self.precond)
        if settings is None:
            raise InputError(f"precond={self.precond!r} leaves swell nothing to do: name one, or say -pc_type none")
        with space.active(block.getSize()[0]):
            self._M = settings.build(given.A)
        self._A, self._space, self._settings = given.A, space, settings
        self._direct = space.name == "cpu" and given.A.dtype == petsc.scalar_type()
        if not self._direct:
            self._r, self._z = (space.empty(given.A.shape[0], given.A.dtype) for _ in range(2))
        self._pattern, self._block = pattern, block        # the Mat is kept, so that none can take its place in memory

    def preSolve(self, pc, ksp, b, x):
        if self._M is not None and self._M.variable and ksp.getType() not in FLEXIBLE:
            raise InputError(f"{self._M.describe()} varies from step to step, which -ksp_type {ksp.getType()} does not "
                             "allow: use -ksp_type fgmres")

    def apply(self, pc, x, y):
        if self._M is not None:
            self._transfer(self._M.apply, x, y)

    def applyTranspose(self, pc, x, y):
        """Mᵀ x, the conjugate of Mᴴ applied to the conjugate of x."""
        if self._M is None:
            return
        if petsc.scalar_type().kind != "c":
            self._transfer(self._M.apply_adjoint, x, y)
            return
        conjugate = x.duplicate()
        x.copy(conjugate)
        conjugate.conjugate()
        self._transfer(self._M.apply_adjoint, conjugate, y)
        y.conjugate()

    def _transfer(self, apply, x, y):
        """Apply to PETSc's arrays themselves, or through vectors of the space."""
        source, target = x.getArray(readonly=True), y.getArray()
        with self._space.active(source.size):
            if self._direct:
                apply(petsc.as_kernels_take_it(source), petsc.as_kernels_take_it(target))
                return
            self._space.from_host(source, out=self._r)
            apply(self._r, self._z)
            target[...] = self._space.to_host(self._z)

    def reset(self, pc=None):
        """Forget the setup."""
        self._M = self._A = self._space = self._settings = self._pattern = self._block = self._r = self._z = None

    def view(self, pc, viewer):
        size = pc.comm.size
        lines = [] if size == 1 else [f"block Jacobi: each of {size} ranks its own diagonal block; rank 0's is"]
        if self._M is None:
            what = self.precond if isinstance(self.precond, str) else describe(self.precond)
            lines.append(f"swell: {what} on {self.device}, not set up")
        else:
            n, name = self._A.shape[0], self._A.dtype.name
            with self._space.active(n):
                lines.append(f"swell: {self._M.describe()}, {n} unknowns, {name}, {self._space.describe()}")
            lines += [f"note: {note}" for note in self._M.notes]
        write(viewer, lines)


class KSP:
    """swell's solve as a KSP of one rank: tolerances, monitors, history and reasons are PETSc's, the rest swell's.

    Converged means ‖b − A x‖₂ ≤ max(rtol ‖b‖₂, atol) by the matrix itself. PETSc's PC is not used, and set to none,
    unless ``precond="petsc"`` asks for it. A null space attached to the matrix is known to swell.

    Parameters
    ----------
    method, precond, scaling, ordering, format, smoother : str or settings object, optional
        As in `swell.solve`; ``-ksp_swell_method`` and so on. Without a method swell's advisor chooses.
    device : str
        "cpu" or "cuda"; ``-ksp_swell_device``.
    report : bool
        Print the result after each solve; ``-ksp_swell_report``.

    Attributes
    ----------
    result : swell.Result or None
        Of the last solve: ``ksp.getPythonContext().result``.
    """

    def __init__(self, method=None, precond=None, scaling=None, ordering=None, format=None, smoother=None, device="cpu",
                 report=False):
        self.method, self.precond, self.scaling, self.ordering = method, precond, scaling, ordering
        self.format, self.smoother, self.device, self.report = format, smoother, device, report
        self.reset()

    def create(self, ksp):
        """What PETSc's views then say of the norm and the side is what swell does."""
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
            self.reset()                         # the next setup starts over

    def setUp(self, ksp):
        self._settle_pc(ksp)
        self._ready(ksp)

    def solve(self, ksp, b, x):
        self._settle_pc(ksp)
        self._ready(ksp)
        norm_b = b.norm()

        def monitor(k, relative):
            ksp.setIterationNumber(k)
            ksp.setResidualNorm(relative * norm_b)
            ksp.logConvergenceHistory(relative * norm_b)
            ksp.monitor(k, relative * norm_b)
            return ksp.getConvergedReason() != 0             # a monitor may end the solve with a reason of its own

        self.result, self._running = None, True
        try:
            result = self._solver.solve(petsc.vector(b), monitor=monitor,
                                        x0=petsc.vector(x).copy() if ksp.getInitialGuessNonzero() else None)
        finally:
            self._running = False
        self.result = result
        x.getArray()[...] = result.x
        ksp.setIterationNumber(result.iterations)
        ksp.setResidualNorm(result.residual * norm_b)
        if result.reason is not Reason.STOPPED:
            ksp.setConvergedReason(self._code(result, norm_b))
        if self.report:
            from petsc4py import PETSc
            PETSc.Sys.Print(str(result), comm=ksp.comm)
        if result.reason is Reason.INTERRUPTED:
            raise KeyboardInterrupt

    def _code(self, result, norm_b):
        atol = self._solver.stopping.atol
        return ATOL if result.converged and result.tolerance * norm_b <= atol * (1 + 1e-12) else CODES[result.reason]

    def solveTranspose(self, ksp, b, x):
        raise InputError("KSPSolveTranspose: swell's KSP solves A x = b only; transpose the matrix, or use swell as a "
                         "preconditioner, whose transpose PETSc's methods apply")

    def buildResidual(self, ksp, work, v):
        """v = b − A x; not while swell iterates, when there is no x."""
        if self._running:
            raise InputError("swell does not form x in every iteration: use -ksp_monitor, whose norms are those of "
                             "b - A x, instead of -ksp_monitor_true_residual")
        ksp.getOperators()[0].mult(ksp.getSolution(), v)
        v.aypx(-1, ksp.getRhs())

    def _ready(self, ksp):
        """Prepare, or bring up to date what has changed since: pattern, null space, values, tolerances."""
        A, P = ksp.getOperators()
        if A.handle != P.handle:
            raise InputError("KSP.setOperators was given two matrices: swell's KSP makes its preconditioner from the "
                             "one that it solves with; for two, use swell as a preconditioner: -pc_python_type "
                             "swell.integrations.petsc.PC")
        stopping, free = self._stopping(ksp), A.getType() in petsc.MATRIX_FREE
        null = A.getNullSpace()
        pattern = petsc.pattern(A), null.handle
        if pattern != self._pattern:
            self.reset()
            self._solver = prepare(petsc.matrix(A), M=self._petsc_pc(ksp, A) if self._borrows else None,
                                   method=self.method, precond=None if self._borrows else self.precond,
                                   scaling=self.scaling, ordering=self.ordering, format=self.format,
                                   smoother=self.smoother, device=self.device, stopping=stopping,
                                   nullspace=_nullspace(A))
            self._pattern, self._mat = pattern, (A, null)    # kept, so that no other can take their place in memory
        elif A.stateGet() != self._state and not free:
            keep = flag(ksp, "ksp_reuse_preconditioner")
            self._state = None                   # an update that fails is tried again
            self._solver.update(petsc.matrix(A), keep_preconditioner=keep)
        self._state = A.stateGet()
        self._solver.stop_by(stopping)

    @property
    def _borrows(self):
        return isinstance(self.precond, str) and self.precond.strip().lower() == "petsc"

    def _petsc_pc(self, ksp, A):
        """PETSc's PC as a function."""
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

    def _settle_pc(self, ksp):
        """PETSc would set up a PC that nobody applies: it becomes none, unless someone has asked for it."""
        from petsc4py import PETSc
        if self._borrows:
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
        """PETSc's tolerances; an error for a test that swell cannot make."""
        from petsc4py import PETSc
        words = PETSc.Options(ksp.getOptionsPrefix() or "")
        if (ksp.getConvergenceTest() is not None or words.getString("ksp_convergence_test", "default") != "default"
                or flag(ksp, "ksp_converged_use_min_initial_residual_norm")):
            raise InputError("swell's KSP knows PETSc's default convergence test only: leave the other one out")
        # PETSc has read these two options before this KSP was made, which has set both since
        norm, side = words.getString("ksp_norm_type", "unpreconditioned"), words.getString("ksp_pc_side", "right")
        if ((norm.lower(), side.lower()) != ("unpreconditioned", "right") or ksp.getPCSide() != PETSc.PC.Side.RIGHT
                or ksp.getNormType() != PETSc.KSP.NormType.UNPRECONDITIONED):
            raise InputError("swell's KSP judges ||b - A x|| and preconditions on the right: leave -ksp_norm_type and "
                             "-ksp_pc_side out")
        rtol, atol, growth, maxiter = ksp.getTolerances()
        initial = flag(ksp, "ksp_converged_use_initial_residual_norm")
        return Stopping(rtol=rtol, atol=atol, maxiter=maxiter, growth=growth, relative_to="r0" if initial else "b")

    def reset(self, ksp=None):
        """Forget the setup and the last result."""
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
    """What is attached to the matrix, or None."""
    from numpy import column_stack, ones
    both = []
    for null in (A.getNullSpace(), A.getTransposeNullSpace()):
        columns = []
        if null.handle:
            if null.hasConstant():
                columns.append(ones(A.getSize()[0]))
            columns += [v.getArray(readonly=True).copy() for v in null.getVecs()]
        both.append(column_stack(columns) if columns else None)
    basis, left = both
    return None if basis is None else NullSpace(basis, left=left)
