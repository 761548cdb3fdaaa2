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
SHARED = 0.7            # T threads are taken to be Tˢ times as fast as one, where a kernel uses them


class Cost(NamedTuple):
    """Calls of kernels, and nanoseconds an entry, a row, and a square of a row's length of A; ``serial``: one thread
    does it, however many there are."""

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
        Bytes a second, read and written, by the copy of the machine that the constants are from.
    power : float
        A machine whose copy is f times as fast takes f to minus this power times as long for entries and rows. Below 1
        where indices and latencies count beside bytes.
    call : float
        Seconds of a kernel's call.
    solve, product, direct : Cost
        Checks, facts, format, norms and the true residual of any solve; a product; a factorisation apart from its
        factors.
    methods : dict
        Method → (products and applications of M an iteration, cost of the rest of it).
    setups, applied : dict
        Preconditioner or scaling → cost of its setup, and of an application.
    margin : float
        Seconds that multigrid must save, since a GPU's kernels for it compile for long at their first use.
    multigrid_from : int
        Least number of unknowns for which multigrid contends; for fewer it saves little.
    further_entry, further_calls : float
        Cost of each further right-hand side that is solved with the first: shares of the cost of an entry and of a
        call.
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
    margin: float
    multigrid_from: int
    further_entry: float
    further_calls: float

    def further(self, cost) -> Cost:
        """Return what a product or an application costs for each further right-hand side, beside the first."""
        return cost._replace(calls=cost.calls * self.further_calls, entry=cost.entry * self.further_entry)

    def seconds(self, cost, A, machine) -> float:
        """Return the predicted seconds of ``cost``, a Cost, for the CSRMatrix A on ``machine``, a Machine."""
        scale = (COMPLEX if A.dtype.kind == "c" else 1.0) * self.scale(machine)
        if not cost.serial and A.shape[0] >= SERIAL:
            scale /= machine.threads ** SHARED
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
    margin=0.0, multigrid_from=4_000, further_entry=0.6, further_calls=1.0)

# Triangular solves wait for levels, of which meshes have about √n: rows stand for them. Of cuDSS most is its analysis.
CUDA = Costs(
    reference=4.4e12, power=1.0, call=2.5e-6,
    solve=Cost(1100, 0.08, 0.2), product=Cost(1, 0.0046, 0.001),
    direct=Cost(5000, 50, 4000),
    methods={
        "cg": (1, Cost(3.2, 0, 0.005)), "resident_cg": (0, Cost(1.2, 0.0026, 0)), "minres": (1, Cost(5, 0, 0.012)),
        "cocg": (1, Cost(5, 0, 0.005)), "bicgstab": (2, Cost(7, 0, 0.012)), "gmres": (1, Cost(10, 0, 0.08)),
    },
    setups={
        "none": Cost(0), "jacobi": Cost(20, 0, 0.1), "ic": Cost(3000, 2, 0, False, 1.0),
        "ilu": Cost(3000, 2, 0, False, 1.0),
        "shifted_laplacian": Cost(5000, 5, 0, False, 2.0), "amg": Cost(3400, 0.9, 0),
        "smoothed_aggregation": Cost(4500, 2.5, 0),
    },
    applied={
        "none": Cost(0), "jacobi": Cost(0.2, 0, 0.001), "ic": Cost(100, 0, 2.5), "ilu": Cost(100, 0, 2.5),
        "shifted_laplacian": Cost(150, 0, 5), "amg": Cost(30, 0.015, 0.04),
        "smoothed_aggregation": Cost(60, 0.035, 0.04),
    },
    margin=0.005, multigrid_from=2_000, further_entry=0.7, further_calls=0.05)
RESIDENT, BISECTED = Cost(0, 0, 1), Cost(1000, 0, 20)              # setup of resident_cg: consecutive rows; bisection

COSTS = {"cpu": CPU, "cuda": CUDA}


class Factorisation(NamedTuple):
    """Seconds of a sparse factorisation on a CPU: of an entry of A, of an entry of the LU factors in the order of
    minimum degree, and of an operation of theirs. Packages with other factors go by the same counts."""

    entry: float
    factor: float
    flop: float


# Package → real or complex → its seconds (benchmarks/notes/direct.md, sparse_cholesky.md). SuperLU's time an entry of A
# is in `Costs.direct`; the rest of RSLAB's is its analysis. RSLAB dissects large graphs, which saves operations.
FACTORISATIONS = {
    "superlu": {"f": Factorisation(0.0, 48e-9, 0.85e-10), "c": Factorisation(0.0, 60e-9, 2.5e-10)},
    "rslab": {"f": Factorisation(220e-9, 42e-9, 0.1e-10), "c": Factorisation(250e-9, 45e-9, 0.1e-10)},
}
