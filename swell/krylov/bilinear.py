"""Base classes of COCG and COCR: Krylov methods with the bilinear form xᵀ y, which conjugates nothing."""
from abc import abstractmethod
from dataclasses import dataclass

from swell.core.registry import name_of
from swell.formats.symmetry import require_symmetric
from swell.krylov.method import Iteration, Method


@dataclass(frozen=True)
class BilinearMethod(Method):
    """Settings of a method for complex symmetric matrices."""

    problem = "complex symmetric, A = Aᵀ"
    distributed = True
    self_adjoint_only = True
    symmetric_only = True

    def check(self, A):
        if A.has_entries:
            require_symmetric(A, name_of("method", type(self)))


class BilinearIteration(Iteration):
    """The common start of both methods, and their conjugates: a fused product conjugates its first argument."""

    def __init__(self, system, stem, count):
        super().__init__(system)
        self.r, self.p, self.q = self.vector("r"), self.vector("p"), self.vector("q")
        self.z = self.r if self.M is None else self.vector("z")
        self.s = self.scalars(stem, count)
        self.step = self.loop.kernels("swell.krylov", stem, self.dtype)

    def kept(self, name, vector, needed=True):
        """Return (an array for the conjugate of ``vector``, the array to pass to fused products as this conjugate).

        The first is a work array called ``name``. For a real vector, or if ``needed`` is False, the first is empty, and
        the second is ``vector`` itself.
        """
        count = vector.size if needed and self.dtype.kind == "c" else 0
        room = self.workspace.array(name, count, self.dtype)
        return room, room if room.size else vector

    def start(self, zero_guess):
        self.first_residual(self.r, zero_guess)                                # r = b − A x
        if self.M is not None:
            self.M.apply(self.r, self.z)                                       # z = M r
        self.ranks.allreduce(self.begin())
        self.step.judge_first(self.s)

    @abstractmethod
    def begin(self):
        """Set up the first step from r and z. Return the part of ``self.s`` that ranks must add up."""
