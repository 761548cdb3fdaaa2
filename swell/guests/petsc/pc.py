"""PC: a preconditioner of swell as a PETSc PC, which works on PETSc's own vectors."""
from swell import inputs
from swell.core.errors import InputError
from swell.core.registry import resolve
from swell.core.settings import describe
from swell.guests.petsc import ranks, views
from swell.guests.petsc.common import agreed, enter, leave, options, write

FLEXIBLE = ("fgmres", "pipefgmres", "gcr", "pipegcr", "fcg", "pipefcg", "fbcgs", "fbcgsr", "richardson", "preonly")


class PC:
    """A preconditioner of swell for any KSP of PETSc.

    Parameters
    ----------
    precond : str or settings object
        As in `swell.solve`; option ``-pc_swell_precond``. The default is ILU(0), like PETSc's own default.
    device : str
        "cpu" or "cuda"; option ``-pc_swell_device``.
    dtype : str, optional
        The type to compute in, such as "float32"; option ``-pc_swell_dtype``. PETSc's scalar type by default.

    Raises
    ------
    SwellError
        At setup, on all ranks, if the setup fails on any rank.

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
            self.reset()                         # the next setup starts from scratch

    def setUp(self, pc):
        P, what = pc.getOperators()[1], "setting up swell's preconditioner"
        with agreed(P.comm, what):
            settings = resolve("precond", self.precond)
            if settings is None:
                raise InputError(f"precond={self.precond!r} leaves swell nothing to do: name one, or say -pc_type none")
        if settings.across_ranks and P.comm.size > 1:
            with ranks.agreed(P.comm):
                self._set_up(P, settings)
        else:
            with agreed(P.comm, what):
                self._set_up(views.local(P), settings)

    def _set_up(self, mat, settings):
        """Set up the preconditioner ``settings`` for the Mat ``mat``, or update it if the pattern is equal. ``mat``:
        this rank's diagonal block; or, for settings that work across ranks, the whole Mat: then all ranks call it
        together."""
        across_ranks = mat.comm.size > 1 and settings.across_ranks
        if not across_ranks and not mat.getSize()[0]:            # a rank without rows
            self.reset()
            return
        pattern = views.pattern(mat)
        if across_ranks:
            same = all(ranks.of_all(mat.comm, pattern == self._pattern))
            A = ranks.new_values(mat, self._A) if same else self._spread(mat)
        else:
            same, A = pattern == self._pattern, inputs.read_matrix(mat, self.device, self.dtype).A
        if not A.has_entries:
            raise InputError(f"a Mat of type {mat.getType()} has no entries, which swell's preconditioners need: give "
                             "a matrix with entries as P of KSP.setOperators(A, P)")
        if same:
            with A.space.active(A.shape[0]):
                self._A.update(A)
                self._M.update(self._A)
            return
        self.reset()
        with A.space.active(A.shape[0]):
            self._M = settings.build(A)
        self._A, self._space, rows = A, A.space, A.space.ranks.local_rows(A.shape[0])
        self._direct = A.space.name == "cpu" and A.dtype == views.scalar_type()
        if not self._direct:
            self._r, self._z = (A.space.empty(rows, A.dtype) for _ in range(2))
        self._pattern, self._block = pattern, mat          # keeping the Mat keeps its handle from being reused

    def _spread(self, mat):
        """Return the whole Mat as a DistributedMatrix. All ranks call it together."""
        if self.dtype is not None:
            raise InputError(f"-pc_swell_dtype {self.dtype} with -pc_swell_precond {self.precond} across ranks: leave "
                             "the type out, or take a preconditioner of each rank's own diagonal block, such as ilu0")
        return ranks.matrix(mat, self.device)

    def preSolve(self, pc, ksp, b, x):
        """Raise InputError if the preconditioner varies from step to step and the KSP is not a flexible method; called
        by PETSc before a solve."""
        if self._M is not None and self._M.variable and ksp.getType() not in FLEXIBLE:
            raise InputError(f"{self._M.describe()} varies from step to step, which -ksp_type {ksp.getType()} does not "
                             "allow: use -ksp_type fgmres")

    def apply(self, pc, x, y):
        if self._M is not None:
            self._transfer(self._M.apply, x, y)

    def applyTranspose(self, pc, x, y):
        """Write y = Mᵀ x; x and y are Vecs. In complex arithmetic Mᵀ x is the conjugate of Mᴴ applied to the conjugate
        of x."""
        if self._M is None:
            return
        if views.scalar_type().kind != "c":
            self._transfer(self._M.apply_adjoint, x, y)
            return
        conjugate = x.duplicate()
        x.copy(conjugate)
        conjugate.conjugate()
        self._transfer(self._M.apply_adjoint, conjugate, y)
        y.conjugate()

    def _transfer(self, apply, x, y):
        """Call ``apply(source, target)`` for the Vecs x (read) and y (written): on PETSc's arrays directly, or through
        vectors of the space."""
        source, target = x.getArray(readonly=True), y.getArray()
        with self._space.active(source.size):
            if self._direct:
                apply(source, target)
                return
            self._space.from_host(source, out=self._r)
            apply(self._r, self._z)
            target[...] = self._space.to_host(self._z)

    def reset(self, pc=None):
        """Drop the setup; called by PETSc."""
        self._M = self._A = self._space = self._pattern = self._block = self._r = self._z = None

    def view(self, pc, viewer):
        size = pc.comm.size
        single_rank = self._A is None or self._A.space.ranks.single
        each = [f"block Jacobi: each of {size} ranks its own diagonal block; rank 0's is"]
        lines = each if size > 1 and single_rank else []
        if self._M is None:
            what = self.precond if isinstance(self.precond, str) else describe(self.precond)
            lines.append(f"swell: {what} on {self.device}, not set up")
        else:
            n, name = self._A.shape[0], self._A.dtype.name
            with self._space.active(n):
                lines.append(f"swell: {self._M.describe()}, {n} unknowns, {name}, {self._space.describe()}")
            lines += [f"note: {note}" for note in self._M.notes]
        write(viewer, lines)
