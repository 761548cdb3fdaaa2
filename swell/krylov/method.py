"""What every Krylov method is made of: a frozen settings object, and the iteration that it binds to one system."""
from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from swell.core.settings import positive
from swell.core.slots import COLUMNS
from swell.core.space import accumulator
from swell.krylov.slots import Shadow


class System(NamedTuple):
    """What a method iterates on: A x = b in one space, transformed and formatted.

    ``S`` is the smoother that a method may use beside its preconditioner, or None. ``weights`` (float32 vector or None)
    turn the residual of this system into the norm that the judge judges.
    """

    A: object
    M: object
    b: object
    x: object
    weights: object
    workspace: object
    loop: object
    S: object = None


class Counts(NamedTuple):
    """What a run cost."""

    products: int
    preconditioner: int
    reductions: int

    def plus(self, other: "Counts", check: int) -> "Counts":
        """The sum, with ``check`` more products for the true residual."""
        return Counts(self.products + other.products + check, self.preconditioner + other.preconditioner,
                      self.reductions + other.reductions)


class Method(ABC):
    """Settings of a method. Class attributes say what the documentation and the advisor need to know.

    Attributes
    ----------
    problem : str
        The class of matrices it is for.
    cost : str
        Products, preconditioner applications and reductions an iteration.
    vectors : str
        Storage in vectors besides x and b.
    stored : int
        The same as a number, about, for the estimate of memory.
    flexible : bool
        True if the preconditioner may vary from step to step.
    self_adjoint_only : bool
        True if the preconditioner must be its own adjoint (its own transpose, for a method with ``symmetric_only``).
    symmetric_only : bool
        True if A must equal its transpose.
    adjoint : bool
        True if it multiplies with Aᴴ, and with Mᴴ.
    smooths : bool
        True if it has a use for a smoother beside the preconditioner.
    instead_of_smoother : str
        What to do with a smoother otherwise, for the error.
    preconditionable : bool
        True if it can apply a preconditioner.
    regular : bool
        True if the matrix must be regular: of a singular one whose null space is named, the method gets
        ``NullSpaceTransform.regular``.
    unit_vectors : bool
        True if it applies the preconditioner to vectors of norm 1, not only to some of the residual's norm.
    gpu_only : bool
        True if it runs on a GPU only.
    distributed : bool
        True if it runs across ranks: between the kernel that leaves sums and the one that reads them it has them added
        up over the ranks (``space.allreduce``). Each method says how many times an iteration, where it is not once for
        every reduction.
    format : settings object or None
        The storage of the matrix, if the method works on one only.
    few_products : bool
        True if a solve has so few products with A that no other storage than CSR pays.
    inner : Preconditioner or None
        Settings of the operator that the method itself is built around, as refinement is around factors or a smoother.
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
    smooths = False
    instead_of_smoother = "leave smoother out, use it as precond=..., or use method='cg'"
    preconditionable = True
    regular = False
    unit_vectors = False
    gpu_only = False
    distributed = False
    format = None
    few_products = False
    inner = None
    idle = ()

    @abstractmethod
    def bind(self, system: System) -> "Iteration":
        """The iteration for one system: allocates its buffers in the workspace, once."""

    def check(self, A):
        """Raise InputError if the method must not be given this matrix."""

    def check_unsmoothed(self):
        """Raise InputError for settings that have no effect where no smoother is named."""

    def flexible_form(self):
        """Settings of the form of this method that allows a preconditioner that varies, or None."""
        return None

    def longer(self, n: int) -> "Method | None":
        """Settings that keep more vectors for n unknowns, where a run with these stagnates; None where there are none.
        """
        return None

    def window(self, n: int) -> int:
        """Iterations without progress that count as stagnation."""
        return 1000


class Iteration(ABC):
    """A method bound to a system. ``start`` judges the first residual, ``body`` is repeated by the loop driver.

    Attributes
    ----------
    steps : int
        Iterations that one ``body`` does.
    notes : tuple of str
        What the user should know of the runs so far.
    """

    steps = 1
    attempt = 0
    notes = ()

    def __init__(self, system: System):
        self.A, self.M, self.b, self.x, self.weights, self.workspace, self.loop, self.S = system
        self.space = self.A.space
        self.n = self.A.shape[0]                 # of the system; of its vectors there may be a part here
        self.dtype = self.b.dtype
        self.scalar = accumulator(self.dtype)
        if self.weights is None:                 # kernels take an empty array for "all ones"
            self.weights = self.workspace.array("unweighted", 0, "float32")

    def vector(self, name):
        """A named work vector."""
        return self.workspace.array(name, self.b.size, self.dtype)

    def basis(self, name, count, dtype=None):
        """``count`` vectors as the rows of one array, of the system's type unless ``dtype`` names another."""
        rows = self.b.size
        return self.workspace.array(name, (count, self.space.padded(rows)), dtype or self.dtype)[:, :rows]

    def scalars(self, name, count):
        """A named group of scalars that stay where the vectors are: a column of an array [slot][column]."""
        held = self.workspace.array(name, (count, COLUMNS), self.scalar)
        return held[:, 0]

    def dense(self, name, shape):
        """A small array for the dense work of one column, of the same type as scalars."""
        return self.workspace.array(name, shape, self.scalar)

    def first_residual(self, r, zero_guess):
        """r = b − A x; without a product where x = 0."""
        if zero_guess:
            self.space.copy(self.b, r)
        else:
            self.A.residual(self.x, self.b, r)

    def residual_norm2(self, r, out):
        """The ``Norms`` of the residual r."""
        self.space.dots(r, r, out)
        if self.weights.size:
            self.space.weighted_norm2(r, self.weights, out)
        self.space.allreduce(out)

    def ended(self):
        """Across ranks, iteration k is judged during k + 1. True if k was the last."""
        return not self.space.single_rank and self.loop.halted()

    def begun(self, iterations: int) -> int:
        """1 if the deferred judgement cost one extra product, else 0."""
        return int(iterations > 0 and not self.space.single_rank)

    @abstractmethod
    def start(self, zero_guess: bool):
        """Set up the first step from x and judge the first residual."""

    @abstractmethod
    def body(self):
        """One iteration, or one cycle."""

    @abstractmethod
    def counts(self, iterations: int, zero_guess: bool) -> Counts:
        """What that many iterations cost, the start included."""

    def spectrum(self):
        """What the iteration found out about the spectrum, or None."""
        return None

    def run(self, zero_guess: bool, attempt: int = 0):
        """Iterate until the judge has spoken; ``attempt`` counts the restarts of one solve."""
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
    """An iteration with a random shadow vector, another one after each restart of a solve."""

    def __init__(self, system: System, seed: int):
        super().__init__(system)
        self.seed = seed
        self.first = self.loop.kernels("swell.krylov", "shadow", self.dtype)

    def first_shadow(self, r, shadow, p, s, zero_guess):
        """r = b − A x, judged;  shadow = r̂;  p = r;  the slots of ``Shadow``."""
        self.first_residual(r, zero_guess)
        self.space.random(self.seed + self.attempt, shadow)
        self.first.begin(r, shadow, self.weights, p, s)
        self.space.allreduce(part(s, Shadow.SHADOW2, Shadow.NORM2))
        self.first.judge_first(s)


def part(s, first, last):
    """The slots from ``first`` to ``last``, both included."""
    return s[first:last + 1]
