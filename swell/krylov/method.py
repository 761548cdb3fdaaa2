"""Base classes of all Krylov methods: `Method` holds settings, `Iteration` runs a method on one system."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from swell.core.settings import positive
from swell.core.space import accumulator
from swell.krylov.slots import Shadow

if TYPE_CHECKING:
    from swell.core.loop import Loop
    from swell.core.operator import LinearOperator
    from swell.core.preconditioner import Preconditioner
    from swell.core.settings import Idle
    from swell.core.workspace import Workspace


class System(NamedTuple):
    """The system A x = b that a method iterates on: in one space, transformed, in its final storage format.

    ``M`` is the preconditioner, or None. ``S`` is an additional smoother, or None. ``weights`` is a float32 vector w or
    None: the judge takes Σ w |r|² as the squared norm of the original system's residual.
    """

    A: LinearOperator
    M: LinearOperator | None
    b: Any
    x: Any
    weights: Any
    workspace: Workspace
    loop: Loop
    S: LinearOperator | None = None


class Counts(NamedTuple):
    """Cost of a run: products with A and Aᴴ, applications of M and Mᴴ, reductions."""

    products: int
    preconditioner: int
    reductions: int

    def plus(self, other: "Counts", check: int) -> "Counts":
        """Return the sum of both costs, a new Counts, and ``check`` more products, which computed the true residual."""
        return Counts(self.products + other.products + check, self.preconditioner + other.preconditioner,
                      self.reductions + other.reductions)


class Method(ABC):
    """Settings of a method. Class attributes describe it for the documentation and the advisor.

    Attributes
    ----------
    problem : str
        The class of matrices that the method solves.
    cost : str
        Products, preconditioner applications and reductions per iteration.
    vectors : str
        Number of stored vectors besides x and b.
    stored : int or float
        Approximate number of these vectors, for the estimate of memory.
    flexible : bool
        True if the preconditioner may vary between steps.
    self_adjoint_only : bool
        True if M must equal Mᴴ (Mᵀ, for a method with ``symmetric_only``).
    symmetric_only : bool
        True if A must equal Aᵀ.
    adjoint : bool
        True if the method multiplies by Aᴴ and Mᴴ.
    has_adjoint : bool
        True if the method solves Aᴴ x = b as well, from adjoint products.
    smooths : bool
        True if the method can use a smoother besides the preconditioner.
    instead_of_smoother : str
        Advice in the error if the method cannot use a smoother.
    preconditionable : bool
        True if the method can apply a preconditioner.
    regular : bool
        True if the matrix must be nonsingular. For a singular matrix with a given null space, the method gets
        ``NullSpaceTransform.regular``.
    unit_vectors : bool
        True if M is applied to vectors of norm 1, not only to vectors about as long as the residual.
    gpu_only : bool
        True if the method runs on a GPU only.
    distributed : bool
        True if the method runs across ranks. It calls ``ranks.allreduce`` between the kernel that writes this rank's
        sums and the kernel that reads the total. A method says so if the calls per iteration are fewer than the
        reductions.
    format : settings object or None
        The storage format of the matrix, if the method works on one only.
    shared_space : bool
        True if several right-hand sides share one Krylov space. Their steps then differ from steps of single solves.
    few_products : bool
        True if a solve has too few products with A to pay for a format other than CSR.
    inner : Preconditioner or None
        Settings of the operator at the core of the method, such as the factors or the smoother of a refinement.
    idle : tuple of Idle
        Fields that have no effect on some devices or matrices; the result notes them.
    """

    problem: str
    cost: str
    vectors: str
    stored = 8
    flexible = False
    self_adjoint_only = False
    symmetric_only = False
    adjoint = False
    has_adjoint = True
    smooths = False
    instead_of_smoother = "leave smoother out, use it as precond=..., or use method='cg'"
    preconditionable = True
    regular = False
    unit_vectors = False
    gpu_only = False
    distributed = False
    format: Any = None
    shared_space = False
    few_products = False
    inner: Preconditioner | None = None
    idle: tuple[Idle, ...] = ()

    @abstractmethod
    def bind(self, system: System) -> "Iteration":
        """Return the iteration for one system, with its buffers allocated in the workspace."""

    def check(self, A):
        """Raise InputError if the method does not accept this matrix."""

    def check_unsmoothed(self):
        """Raise InputError for settings that have no effect without a smoother."""

    def flexible_form(self):
        """Return settings of this method's variant for a varying preconditioner, or None."""
        return None

    def longer(self, n: int) -> "Method | None":
        """Return settings that keep more vectors, to continue a stagnated run with n unknowns, or None."""
        return None

    def window(self, n: int) -> int:
        """Return the number of iterations without progress that counts as stagnation, for n unknowns; 0: no limit."""
        return 1000


class Iteration(ABC):
    """A method bound to a system. ``start`` judges the first residual; the loop driver repeats ``body``.

    Attributes
    ----------
    steps : int
        Iterations in one call of ``body``.
    attempt : int
        Restarts of the current solve so far.
    notes : tuple of str
        Remarks for the user about the runs so far.
    """

    steps = 1
    attempt = 0
    notes: tuple[str, ...] = ()

    def __init__(self, system: System):
        self.A, self.M, self.b, self.x, self.weights, self.workspace, self.loop, self.S = system
        self.space, self.ranks = self.A.space, self.A.space.ranks
        self.n = self.A.shape[0]                 # of the whole system; a rank holds a part of each vector
        self.dtype = self.b.dtype
        self.scalar = accumulator(self.dtype)
        if self.weights is None:                 # kernels take an empty array for "all ones"
            self.weights = self.workspace.array("unweighted", 0, "float32")

    def vector(self, name):
        """Return the work vector ``name`` of the workspace: as long as b, in its type, and not initialised."""
        return self.workspace.array(name, self.b.size, self.dtype)

    def basis(self, name, count, dtype=None):
        """Return ``count`` work vectors as the rows of one array, in the type ``dtype`` or else the system's."""
        rows = self.b.size
        return self.workspace.array(name, (count, self.space.padded(rows)), dtype or self.dtype)[:, :rows]

    def scalars(self, name, count):
        """Return ``count`` scalars: the work array ``name``."""
        return self.workspace.array(name, count, self.scalar)

    def dense(self, name, shape):
        """Return the work array ``name`` for small dense matrices, of this shape, in the type of the scalars."""
        return self.workspace.array(name, shape, self.scalar)

    def first_residual(self, r, zero_guess):
        """Set r = b − A x, in place; ``zero_guess`` says that x = 0: then r = b, without a product."""
        if zero_guess:
            self.space.copy(self.b, r)
        else:
            self.A.residual(self.x, self.b, r)

    def residual_norm2(self, r, out):
        """Write both squared norms of the residual r (core.slots.Norms) to ``out``, added up over the ranks."""
        self.space.dots(r, r, out)
        if self.weights.size:
            self.space.weighted_norm2(r, self.weights, out)
        self.ranks.allreduce(out)

    def ended(self):
        """Return True if the preceding iteration was the last. Across ranks it is judged during this one."""
        return not self.ranks.single and self.loop.halted()

    def begun(self, iterations: int) -> int:
        """Return 1 if a run of ``iterations`` iterations took one extra product for a deferred judgement, else 0."""
        return int(iterations > 0 and not self.ranks.single)

    @abstractmethod
    def start(self, zero_guess: bool):
        """Set up the first step from x and test the first residual for convergence; ``zero_guess`` says that x = 0."""

    @abstractmethod
    def body(self):
        """Do ``steps`` iterations or one cycle, in place in x; kernels test each iteration for convergence."""

    @abstractmethod
    def counts(self, iterations: int, zero_guess: bool) -> Counts:
        """Return the cost of this number of iterations, including the start; ``zero_guess`` as in ``start``."""

    def spectrum(self, column=0):
        """Return estimates of the operator's spectrum from the last run (krylov.spectrum.Spectrum), or None.

        ``column``: the right-hand side's number."""
        return None

    def run(self, zero_guess: bool, attempt: int = 0):
        """Iterate on x, in place, until the convergence test stops the run. ``attempt``: restarts of this solve so far.
        ``zero_guess`` says that x = 0."""
        self.attempt = attempt
        self.start(zero_guess)
        capturable = all(part is None or part.capturable for part in (self.A, self.M, self.S))
        self.loop.run(self.body, capturable, self.steps)


@dataclass(frozen=True)
class ShadowMethod(Method):
    """Settings of a method with a random shadow vector, drawn from ``seed``."""

    seed: int = 1

    problem = "any square matrix"
    distributed = True

    def __post_init__(self):
        positive(self, "seed", 0)


class ShadowIteration(Iteration):
    """An iteration with a random shadow vector; each restart of a solve draws a new one."""

    def __init__(self, system: System, seed: int):
        super().__init__(system)
        self.seed = seed
        self.first = self.loop.kernels("swell.krylov", "shadow", self.dtype)

    def first_shadow(self, r, shadow, p, s, zero_guess):
        """Set r = b − A x, ``shadow`` = r̂ (random), p = r and the scalars s of ``slots.Shadow``; test r for
        convergence. ``zero_guess`` says that x = 0."""
        self.first_residual(r, zero_guess)
        self.space.random(self.seed + self.attempt, shadow)
        self.first.begin(r, shadow, self.weights, p, s)
        self.ranks.allreduce(part(s, Shadow.SHADOW2, Shadow.NORM2))
        self.first.judge_first(s)


def part(s, first, last):
    """Return a view of the scalars s: the slots from ``first`` to ``last``, both included."""
    return s[first:last + 1]
