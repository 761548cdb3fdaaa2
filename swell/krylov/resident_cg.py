"""Conjugate gradients that stay on the chip: each multiprocessor keeps a part of the vectors for the whole solve.

For A = Aᴴ positive definite, without a preconditioner; a scaling is possible. Predict-and-recompute conjugate
gradients: Chen and Carson 2020, SIAM J. Sci. Comput. 42, with one reduction an iteration.

    q = A p;   σ = (p, q), η = (q, q), δ = (r, q) in one sum;   α = ρ/σ
    x = x + α p;   r = r − α q;   p = r + (ρ'/ρ) p   with the predicted   ρ' = ρ − 2 α Re δ + α² η

The next product also sums ρ = (r, r) directly.

One block stays on each multiprocessor and owns a part of the rows. x and r are in registers. p, with its halo (the
neighbours' rows that the part needs), and q are in shared memory.

An iteration moves the matrix, the boundaries of p and a few sums. The matrix is about 10 bytes an entry off a
constant diagonal; a part of it stays on the chip if there is room. No block waits at a barrier of the grid: each
value travels with the number of its pass. The halo arrives, and the residual is judged, during the product of the
interior rows. For a small system the blocks are one cluster, and values go from shared memory to shared memory. A
smaller system has one block. ``formats/parts.py`` is the storage, ``kernels/resident_cg.cu`` the device code;
measurements are in ``benchmarks/notes/resident_cg.md``.

An iteration: 1 product, 1 reduction that blocks wait for. A launch: ``steps`` iterations. Least traffic: the bytes of
the matrix that are not kept on the chip. Set-up takes longer than cg's, most if rows must be reordered. Storage: x, r
and p between the launches, the boundary of p twice, and the CSR matrix besides the parts. The system must fit on the
multiprocessors: on an H200 1.26 million rows in double, twice as many in single precision, fewer with large halos.

Differs from cg: a residual is judged during the next product, so that the last product is in vain. Each judgement is
the same as in cg; histories agree to rounding until rounding grows. All blocks run at once (a cooperative launch), or
the launch fails. A block that waits some seconds for another gives up with the verdict BREAKDOWN, so that nothing can
hang the device.
"""
from __future__ import annotations

from dataclasses import dataclass

from swell.core.errors import InputError
from swell.core.settings import positive
from swell.formats.parts import WARPS, ResidentParts, ResidentPartsMatrix
from swell.krylov.method import Counts
from swell.krylov.spectrum import LanczosIteration, LanczosMethod
from swell.orderings.bisection import Bisection

BOARD = 16              # words for each block on each of the two boards of sums


@dataclass(frozen=True)
class ResidentCG(LanczosMethod):
    """Conjugate gradients in one kernel that keeps the vectors on the multiprocessors of a GPU.

    Attributes
    ----------
    steps : int
        Iterations of one launch. The host reads the state, calls the monitor and obeys Ctrl-C between two launches.
    """

    steps: int = 128

    problem = "Hermitian positive definite, on a GPU, up to about a million rows; scaling='jacobi' preconditions"
    cost = "1 product, 1 reduction"
    vectors = "2, and the boundary"
    preconditionable = False
    has_adjoint = False                          # its kernel holds A, which equals Aᴴ
    gpu_only = True
    format = ResidentParts(ordering=Bisection())

    def __post_init__(self):
        positive(self, "steps")

    def check(self, A):
        """Raise InputError unless A is on a GPU of compute capability 9.0 or newer, and Hermitian."""
        if A.space.name != "cuda":
            raise InputError(f"resident_cg keeps the multiprocessors of a GPU busy, and this is {A.space.describe()}: "
                             "use method='cg'")
        if not A.space.bulk_copies:
            raise InputError(f"resident_cg needs a GPU of compute capability 9.0 or newer, which {A.space.describe()} "
                             "is not: use method='cg'")
        super().check(A)

    def bind(self, system):
        if not isinstance(system.A, ResidentPartsMatrix):
            raise InputError("resident_cg needs a matrix with entries, which it stores in its own way: use method='cg'")
        return ResidentCGIteration(system, self)


class ResidentCGIteration(LanczosIteration):
    """The loop of the resident CG: one launch is ``steps`` iterations."""

    def __init__(self, system, settings):
        super().__init__(system)
        parts, array = self.A, self.workspace.array
        self.steps = settings.steps
        self.r = self.vector("r")
        self.placed = [array(f"{name} in parts", parts.rows.size, self.dtype) for name in "xrp"]
        self.placed_weights = array("weights in parts", parts.rows.size if self.weights.size else 0, "float32")
        words = 0 if parts.one_cluster else parts.published * (self.dtype.itemsize // 4)
        self.published = array("published", words, "uint64")
        self.board = array("board", 0 if parts.one_cluster else 2 * BOARD * parts.count, "uint64")
        self.passes = array("passes", 1, "int64")
        self.step = self.loop.kernels("swell.krylov", "resident_cg", self.dtype)

    def start(self, zero_guess):
        r = self.b if zero_guess else self.r
        if not zero_guess:
            self.A.residual(self.x, self.b, r)                                 # r = b − A x
        self.step.begin(self.A.rows, self.x, r, self.weights, *self.placed, self.placed_weights, self.published,
                        self.board, self.passes)

    def body(self):
        M = self.A
        self.step.iterate(M.table, M.streams, M.data, M.ends, M.halos, M.diagonal, self.published, self.board,
                          *self.placed, self.placed_weights, self.coefficients, self.passes, M.first, self.steps,
                          M.slots, M.chunk, M.ring, M.kept, M.matrix_bytes < self.space.cache, 32 * (WARPS + 1),
                          M.shared_bytes, M.near, M.count if M.one_cluster else 1)

    def run(self, zero_guess, attempt=0):
        super().run(zero_guess, attempt)
        self.step.leave(self.A.rows, self.placed[0], self.x)

    def counts(self, iterations, zero_guess):
        passes = iterations + 1 if iterations else 0             # the last pass only judges
        return Counts(passes + (not zero_guess), 0, passes + 1)
