"""Costs of the parts of a solve on each kind of device: kernels' calls, and nanoseconds an entry and a row.

The constants were fitted to solves of the systems of ``swell bench auto`` and ``swell bench amg``, on a machine that
copies at `Costs.reference` bytes a second (benchmarks/notes/choice.md). A machine's own copy speed scales them
(machine.py).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from swell.core.cpu import SERIAL

COMPLEX = 1.9           # times the cost of real numbers, for entries and rows
THREAD_POWER = 0.7      # T threads are as fast as T to this power, where a kernel uses them
MULTIGRID = "amg", "smoothed_aggregation"       # preconditioners whose iterations hardly grow with n


class Cost(NamedTuple):
    """Calls of kernels, and nanoseconds for each entry of A, for each row, and for the square of each row's length.

    ``serial``: only one thread does the work."""

    calls: float
    entry: float = 0.0
    row: float = 0.0
    serial: bool = False
    square: float = 0.0


@dataclass(frozen=True)
class Costs:
    """The tables of one kind of device.

    Attributes
    ----------
    reference : float
        Bytes a second that a copy reads and writes on the machine where the constants were measured.
    power : float
        If a machine's copy is f times as fast, the seconds of entries and rows are divided by f to this power. It is
        below 1 where indices and latencies count beside bytes.
    call : float
        Seconds of a kernel's call.
    solve, product, direct : Cost
        The checks, facts, format, norms and true residual of any solve; a product; the part of a factorisation that
        does not depend on its factors.
    methods : dict
        Method → (products and applications of M an iteration, cost of the rest of an iteration).
    setups, applied : dict
        Preconditioner or scaling → cost of its setup, and of an application.
    difficulty, elastic_difficulty : float
        Factors on the iterations that a well-behaved system takes with a Krylov method, and on those of an elastic
        body. A CPU starts without: there an attempt that is given up has cost little beside multigrid's setup. On a GPU
        that setup takes as long as some hundred iterations, and few systems behave that well.
    unsymmetric : float
        Factor on the setup of AMG for a matrix that is not symmetric.
    multigrid_from : int
        Least number of unknowns for which multigrid is a choice; for fewer it saves little.
    further_entry, further_calls : float
        Cost of each further right-hand side in one solve, as shares of the first one's cost of entries and of calls.
    """

    reference: float
    power: float
    call: float
    solve: Cost
    product: Cost
    direct: Cost
    methods: dict
    setups: dict
    applied: dict
    difficulty: float
    elastic_difficulty: float
    unsymmetric: float
    multigrid_from: int
    further_entry: float
    further_calls: float

    def further(self, cost) -> Cost:
        """Return the Cost of a product or an application for each further right-hand side in one solve."""
        return cost._replace(calls=cost.calls * self.further_calls, entry=cost.entry * self.further_entry)

    def seconds(self, cost, A, machine) -> float:
        """Return the predicted seconds of ``cost``, a Cost, for the CSRMatrix A on ``machine``, a Machine."""
        scale = (COMPLEX if A.dtype.kind == "c" else 1.0) * self.scale(machine)
        if not cost.serial and A.shape[0] >= SERIAL:
            scale /= machine.threads ** THREAD_POWER
        work = cost.entry * A.nnz + cost.row * A.shape[0]
        if cost.square:
            spread = A.facts(search=False).row_spread
            work += cost.square * (1 + spread**2) * A.nnz**2 / max(A.shape[0], 1)
        return cost.calls * self.call + 1e-9 * scale * work

    def scale(self, machine) -> float:
        """Return how many times slower ``machine`` is than the machine on which the costs were measured."""
        return (self.reference / machine.copy) ** self.power


CPU = Costs(
    reference=16e9, power=0.5, call=3e-6,
    solve=Cost(270, 14, 20), product=Cost(1.5, 0.75, 1), direct=Cost(500, 20, 150, True),
    methods={
        "cg": (1, Cost(1, 0, 3)), "minres": (1, Cost(2, 0, 5)), "cocg": (1, Cost(1, 0, 3)),
        "bicgstab": (2, Cost(5, 0, 3)), "gmres": (1, Cost(4, 0, 16)),
    },
    setups={
        "none": Cost(0), "jacobi": Cost(20, 10, 10), "ic": Cost(60, 1, 60, True, 1.0),
        "ilu": Cost(80, 15, 60, True, 0.5),
        "shifted_laplacian": Cost(120, 150, 150, True, 1.0), "amg": Cost(300, 85, 600),
        "smoothed_aggregation": Cost(300, 110, 0),
    },
    applied={
        "none": Cost(0), "jacobi": Cost(0.5, 0, 0.7), "ic": Cost(4, 1.4, 1, True), "ilu": Cost(3, 1.2, 1, True),
        "shifted_laplacian": Cost(5, 3, 3, True), "amg": Cost(12, 2, 45),
        "smoothed_aggregation": Cost(40, 3.5, 35),                   # the default W-cycle with steps of degree 2
    },
    difficulty=1.0, elastic_difficulty=1.0, unsymmetric=3.0, multigrid_from=4_000, further_entry=0.6, further_calls=1.0)

# A triangular solve takes a step for each level; meshes have about √n levels, and a cost a row stands for them. cuDSS
# spends most of its time on its analysis, so `direct` has a cost for entries and rows.
CUDA = Costs(
    reference=4.4e12, power=1.0, call=2.5e-6,
    solve=Cost(1100, 0.08, 0.2), product=Cost(1, 0.0046, 0.001),
    direct=Cost(5000, 50, 4000),
    methods={
        "cg": (1, Cost(3.2, 0, 0.005)), "resident_cg": (0, Cost(1.7, 0.0031, 0.02)), "minres": (1, Cost(5, 0, 0.012)),
        "cocg": (1, Cost(5, 0, 0.005)), "bicgstab": (2, Cost(7, 0, 0.012)), "gmres": (1, Cost(10, 0, 0.08)),
    },
    setups={
        "none": Cost(0), "jacobi": Cost(20, 0, 0.1), "ic": Cost(3000, 2, 0, False, 1.0),
        "ilu": Cost(3000, 2, 0, False, 1.0),
        "shifted_laplacian": Cost(5000, 5, 0, False, 2.0), "amg": Cost(2200, 0.2, 6.5),
        "smoothed_aggregation": Cost(3500, 2.0, 0),
    },
    applied={
        "none": Cost(0), "jacobi": Cost(0.2, 0, 0.001), "ic": Cost(100, 0, 2.5), "ilu": Cost(100, 0, 2.5),
        "shifted_laplacian": Cost(150, 0, 5), "amg": Cost(50, 0.004, 0.17),
        "smoothed_aggregation": Cost(60, 0.018, 0.04),
    },
    difficulty=2.0, elastic_difficulty=4.0, unsymmetric=2.0, multigrid_from=2_000,
    further_entry=0.7, further_calls=0.05)
RESIDENT, BISECTED = Cost(0, 0, 1), Cost(1000, 0, 20)            # setup of resident_cg, of consecutive rows or bisected

COSTS = {"cpu": CPU, "cuda": CUDA}


class Factorisation(NamedTuple):
    """Seconds of a sparse factorisation on a CPU: for each entry of A, for each entry of the LU factors in the order of
    minimum degree, and for each operation that computes them. Packages with other factors use the same counts."""

    entry: float
    factor: float
    flop: float


# Package → real or complex → its seconds (benchmarks/notes/direct.md, sparse_cholesky.md). `Costs.direct` has SuperLU's
# seconds for entries of A; RSLAB's analysis takes more. RSLAB dissects large graphs, which saves operations.
FACTORISATIONS = {
    "superlu": {"f": Factorisation(0.0, 48e-9, 0.85e-10), "c": Factorisation(0.0, 60e-9, 2.5e-10)},
    "rslab": {"f": Factorisation(220e-9, 42e-9, 0.1e-10), "c": Factorisation(250e-9, 45e-9, 0.1e-10)},
}
