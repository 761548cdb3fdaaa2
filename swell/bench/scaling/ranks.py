"""Measurements on each rank; ``command`` starts it as ``mpiexec -n P python -m swell.bench.scaling.ranks SETTINGS``.

Rank 0 prints a line of JSON for each record; an error that all ranks agree on is the last line. A time is the maximum
over the ranks, which begin together. For products the median of repeated times counts. For messages, reductions,
copies, iterations and preconditioning steps the minimum counts: other work on a machine only adds to them.
"""
from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import swell
from swell import distributed, gallery
from swell.advisor.choose import default_format
from swell.bench import engine
from swell.bench.block_gmres.cases import RESTART, steps_of_a_restart
from swell.bench.scaling.model import Share, count_shares
from swell.cli.output import as_json
from swell.core.errors import SwellError
from swell.core.registry import resolve
from swell.core.stopping import Stopping
from swell.core.timing import times
from swell.distributed.devices import on_device
from swell.distributed.partition import consecutive, load_balance, owners
from swell.formats.bsr import BSR
from swell.formats.symmetry import hermitian
from swell.orderings.partition import of_matrix

PRODUCTS = 30                          # products timed together, those of a restart, as in figure 10
WINDOW = 5                             # iterations timed together
CYCLES = {"cg": 5, "single_reduction_cg": 50, "gmres(restart=30)": 30}       # iterations after which the work repeats
FIXED = {"gmres(restart=30)": "gmres(restart=30, lengthen=False)"}     # else slow cycles become longer in a run
IN_A_SOLVE = 1500                      # iterations of a solve on a GPU
AT_LEAST = 60                          # iterations of a solve on a CPU, unless 4 cycles are more
MAXITER = 300
TOLERANCES = {"thermal2~": 1e-3}       # relative to the first residual: tables 2 to 4
TOLERANCE = 1e-5                       # for other matrices
SEED = 11
SMALL = 8                              # points along an edge of the tiny system's slabs
MESSAGES = [8 << k for k in range(0, 20, 2)]
REDUCED = [1 << k for k in range(7)]
BURST = 20                             # messages, or reductions, timed together
STAGES = ("pack", "exchange", "local", "rest")
BAD_INPUT = 2


def main(measure) -> int:
    """Measure on the ranks that mpiexec started; return the exit status. The only argument is the settings as JSON.
    ``measure``: yields the records, from the communicator and the settings."""
    settings = json.loads(sys.argv[1])
    try:
        ranks = distributed.init()
        for record in measure(ranks, settings):
            if ranks.rank == 0:
                _print({"ranks": ranks.size, **record})
    except SwellError as error:
        if "ranks" not in locals() or ranks.rank == 0:
            _print({"error": str(error)})
        return BAD_INPUT
    return 0


def _print(record):
    print(as_json(record), flush=True)


def measure(ranks, settings):
    """Yield the records (dicts of results); every rank yields all of them. ``settings``: the dict from ``command``."""
    device = settings["device"]
    _say(ranks, "compiling kernels that are not in the cache")
    with on_device(ranks, device)[0].active():
        warm_up = System("warm-up", "overhead", slab(ranks, SMALL, device), settings)
        list(warm_up.measured())
        _say(ranks, "messages, reductions, copies")
        yield links(warm_up.space)
        yield from System("next to nothing", "overhead", slab(ranks, SMALL, device), settings).iterations()
        for system in systems(ranks, settings):
            yield from system.measured()


def systems(ranks, settings):
    """Yield the Systems: first weak scaling's, then the matrices of strong scaling."""
    device = settings["device"]
    if settings["side"]:
        yield System("Poisson 3D", "weak", slab(ranks, settings["side"], device), settings)
    for name in settings["matrices"]:
        yield System(name, "strong", _from_first(ranks, name, settings, lambda: next(
            engine.matrices(name, settings["scale"]))[1]), settings)
    for path in map(Path, settings["files"]):
        name = path.name.split(".")[0]
        if path.is_dir():
            A = _from_first(ranks, name, settings, lambda: engine.pressure_laplacian(path))
        else:
            _say(ranks, f"{name}: reading")
            A = distributed.read(ranks, path, device=device, partition=settings["partition"], block=settings["block"])
        yield System(name, "strong", A, settings)


def _from_first(ranks, name, settings, make):
    """Let rank 0 call ``make()``, which returns a SciPy matrix; distribute it and return the DistributedMatrix."""
    _say(ranks, f"{name}: generating")
    with ranks.agreed():
        A = make() if ranks.rank == 0 else None
    return distributed.scatter(ranks, A, device=settings["device"], partition=settings["partition"],
                               block=settings["block"])


def slab(ranks, side, device, planes=None):
    """Return Poisson's matrix, distributed, on ``planes`` planes of ``side``² points (default: ``side`` planes a rank);
    each rank makes its own slab of planes."""
    planes = planes or ranks.size * side
    face, starts = side**2, consecutive(planes, ranks.size)
    first, stop = int(starts[ranks.rank]), int(starts[ranks.rank + 1])
    space = on_device(ranks, device)[0]
    with space.active():
        own = gallery.poisson((stop - first, side, side), space.xp)
    below, above = face * (first > 0), face * (stop < planes)           # points in the neighbouring planes
    rows = np.concatenate([np.arange(below), own.shape[0] - above + np.arange(above)])
    ghosts = np.concatenate([first * face - below + np.arange(below), stop * face + np.arange(above)])
    rest = sp.csr_array((np.full(ghosts.size, -1.0), (rows, np.arange(ghosts.size))),
                        shape=(own.shape[0], ghosts.size))
    return distributed.from_parts(ranks, own, rest, ghosts, device=device)


def links(space) -> dict:
    """Measure copies, messages between the first two ranks, and reductions; return the record, a dict."""
    ranks = space.ranks.communicator
    engine.Meter(space.local, 1 << 20)           # compiles the copy
    ranks.allgather(None)                        # so that all ranks copy at the same time
    speeds = ranks.allgather(engine.Meter(space.local).copy_speed)
    return {"benchmark": "scaling links", "copy_bytes_per_second": min(speeds),
            "messages": [(size, _message(space, size)) for size in MESSAGES] if ranks.size > 1 else [],
            "reductions": [(k, _reduction(space, k)) for k in REDUCED] if ranks.size > 1 else []}


def _message(space, size) -> float:
    """Return the seconds of a message of ``size`` bytes: half a round trip between ranks 0 and 1."""
    ranks, entries = space.ranks.communicator, size // 8
    exchanges = []
    for sender in (0, 1):
        sent, received = np.zeros((2, ranks.size), np.int64)
        if ranks.rank == sender:
            sent[1 - sender] = entries
        elif ranks.rank == 1 - sender:
            received[sender] = entries
        outgoing, incoming = (space.xp.zeros(counts.sum()) for counts in (sent, received))
        exchanges.append(ranks.exchange(space.local, outgoing, sent, incoming, received))

    def there_and_back():
        for _ in range(BURST):
            for exchange in exchanges:
                exchange.start()
                exchange.finish()

    return _least(space, there_and_back, 5) / (2 * BURST)


def _reduction(space, count) -> float:
    numbers = space.xp.zeros(count)

    def reduce():
        for _ in range(BURST):
            space.ranks.allreduce(numbers)

    return _least(space, reduce, 5) / BURST


def _together(space, call) -> float:
    """Return the seconds of ``call()`` on this rank, which begins when all ranks are ready."""
    space.synchronize()
    space.ranks.allgather(None)
    start = time.perf_counter()
    call()
    space.synchronize()
    return time.perf_counter() - start


def _least(space, call, repeat) -> float:
    """Return the seconds of ``call()``, the maximum over the ranks and the minimum of ``repeat`` calls.

    On a GPU ``repeat`` calls run in a graph, and the result is the maximum of the ranks' minima.
    """
    if space.name == "cuda":
        return max(space.ranks.allgather(min(times(space, call, repeat))))
    call()
    return float(np.max(space.ranks.allgather([_together(space, call) for _ in range(repeat)]), axis=0).min())


def _say(ranks, text):
    if ranks.rank == 0:
        engine.tell(f"{ranks.size} rank{'s' if ranks.size > 1 else ''}: {text}")


class System:
    """One matrix across the ranks."""

    def __init__(self, name, scaling, A, settings):
        self.name, self.scaling, self.settings = name, scaling, settings
        self.given, self.space, self.ranks = A, A.space, A.space.ranks.communicator
        in_blocks = scaling == "strong" and (settings["block"] or 1) > 1       # weak scaling's rows are points
        self.format = BSR() if in_blocks else default_format(A.own)
        self.A = A.stored_as(self.format)
        rows = self.space.ranks.local_rows(A.shape[0])
        self.b, self.y = self.space.empty(rows, A.dtype), self.space.empty(rows, A.dtype)
        self.space.random(SEED, self.b)

    def measured(self):
        """Yield all records (dicts of results) of this matrix."""
        self.say("product")
        yield self.product()
        yield from self.iterations()
        if self.settings["solves"]:
            yield from self.preconditioned()
        if self.scaling == "strong" and self.ranks.size == 1:
            self.say("shares of more ranks")
            yield from self.shares()

    def say(self, what):
        """Print ``what`` as a line of progress, on rank 0."""
        if self.name != "warm-up":
            _say(self.ranks, f"{self.name}: {what}")

    def record(self, kind, measured: dict) -> dict:
        """Return a record of this matrix, a dict, from its kind and a dict of measured fields."""
        return {"benchmark": f"scaling {kind}", "scaling": self.scaling, "matrix": self.name, "n": self.A.shape[0],
                "nnz": self.A.nnz, "block": self.A.block_size, **measured}

    def share(self) -> Share:
        """Return the Share (rows, entries, ghosts, neighbours of a rank) of this matrix on the present ranks."""
        halo = self.A.halo
        mine = (self.space.ranks.local_rows(self.A.shape[0]), int(self.given.row_lengths().sum()),
                max(halo.ghosts.size, int(halo.outgoing.sum())), max(halo.neighbours, np.count_nonzero(halo.incoming)))
        return Share(*(int(most) for most in np.max(self.ranks.allgather(mine), axis=0)))

    # -- figure 10 -----------------------------------------------------------------------------------------------

    def product(self) -> dict:
        """Time products with and without overlap of messages, in turn, and the stages of a product without; return the
        record, a dict."""
        A, products, stages = self.A, {True: [], False: []}, []
        self._stages()                           # a warm-up
        for _ in range(self.settings["repeat"]):
            stages += self._stages()
            for overlap in products:
                A.overlap = overlap
                products[overlap] += self._products()
        A.overlap = True
        largest = {overlap: np.max(self.ranks.allgather(mine), axis=0) for overlap, mine in products.items()}
        of_ranks = np.median(self.ranks.allgather(stages), axis=1)                     # (ranks, stages)
        mean = dict(zip(STAGES, of_ranks.mean(axis=0).tolist()))
        return self.record("product", {
            "format": A.describe(), "rest_bytes": max(self.ranks.allgather(A.remote.matrix_bytes)),
            "seconds": statistics.median(largest[True]), "seconds_without_overlap": statistics.median(largest[False]),
            "least": min(largest[True]), "least_without_overlap": min(largest[False]), **mean,
            "share_of_communication": (mean["pack"] + mean["exchange"]) / sum(mean.values()),
            "load_balance": load_balance(of_ranks[:, STAGES.index("local")]), **_of(self.share())})

    def _products(self) -> list[float]:
        """Return the seconds of each of ``PRODUCTS`` products on this rank; on a GPU, their mean in each replay of a
        graph."""
        self.ranks.allgather(None)
        if self.space.name == "cuda":
            return times(self.space, lambda: self.A.apply(self.b, self.y), PRODUCTS)
        at = [time.perf_counter()]
        for _ in range(PRODUCTS):
            self.A.apply(self.b, self.y)
            at.append(time.perf_counter())
        return np.diff(at).tolist()

    def _stages(self) -> list[list[float]]:
        """Return the seconds of the stages of each product without overlap on this rank, one row a product; on a GPU,
        one row of each stage's minimum."""
        A, halo, clock, found = self.A, self.A.halo, time.perf_counter, []
        stages = (lambda: halo.pack(self.b), lambda: (halo.send(), halo.finish()),
                  lambda: A.local.apply(self.b, self.y), lambda: A.add_rest(self.y))
        self.ranks.allgather(None)
        if self.space.name == "cuda":
            return [[min(times(self.space, stage, PRODUCTS)) for stage in stages]]
        for _ in range(PRODUCTS):
            at = [clock()]
            for stage in stages:
                stage()
                at.append(clock())
            found.append(np.diff(at).tolist())
        return found

    # -- figure 11 -----------------------------------------------------------------------------------------------

    def iterations(self):
        """Yield the records of an iteration without preconditioner, one for each method."""
        symmetric = hermitian(self.given)
        for method in CYCLES:
            if symmetric or method.startswith("gmres"):
                self.say(method)
                yield self.iteration(method)

    def iteration(self, method) -> dict:
        """Time an iteration of a method (its name); return the record, a dict.

        On a CPU, a cycle is divided into windows of ``WINDOW`` iterations. The result is the mean over the windows of
        their minimum times, for one iteration. On a GPU the host sees no single iteration: a whole solve is timed.
        """
        if self.space.name == "cuda":
            return self._solve_over_iterations(method)
        cycle = CYCLES[method]
        phases = cycle // WINDOW
        solver = swell.prepare(self.given, method=FIXED.get(method, method), format=self.format, b_like=self.b,
                               stopping=engine.fixed(max(AT_LEAST, 4 * cycle)))
        before, spans, done = self.ranks.reductions, [[] for _ in range(phases)], 0
        for _ in range(self.settings["solve-repeat"]):
            clock = {}
            self.ranks.allgather(None)
            result = solver.solve(self.b, monitor=lambda k, _: clock.setdefault(k, time.perf_counter()) is None)
            done += result.iterations
            for first in range(0, result.iterations - WINDOW + 1, WINDOW):
                spans[first // WINDOW % phases].append(clock[first + WINDOW] - clock[first])
        reductions = (self.ranks.reductions - before) / max(done, 1)
        # The maximum over the ranks of each window: ranks wait for one another in every iteration.
        parts = [np.max(of_ranks, axis=0) / WINDOW for of_ranks in zip(*self.ranks.allgather(spans))]
        whole = all(part.size for part in parts)
        return self.record("iteration", {
            "method": method, "seconds": float(np.mean([part.min() for part in parts])) if whole else None,
            "median": float(np.mean([np.median(part) for part in parts])) if whole else None, "iterations": done,
            "reductions": reductions, **_of(self.share())})

    def _solve_over_iterations(self, method) -> dict:
        solver = swell.prepare(self.given, method=FIXED.get(method, method), format=self.format, b_like=self.b,
                               stopping=engine.fixed(IN_A_SOLVE))
        results = [solver.solve(self.b) for _ in range(self.settings["solve-repeat"] + 1)][1:]
        seconds = np.max(self.ranks.allgather([r.timings["solve"] / r.iterations for r in results]), axis=0)
        return self.record("iteration", {
            "method": method, "seconds": float(seconds.min()), "median": float(np.median(seconds)),
            "iterations": results[0].iterations, "reductions": results[0].reductions / results[0].iterations,
            **_of(self.share())})

    # -- tables 2 to 4 -------------------------------------------------------------------------------------------

    def preconditioned(self):
        """Yield the records of GMRES(30) with ILU(0) of each rank's diagonal block, block ILU(0) if A has blocks."""
        label, blocks = ("block ILU(0)", "block=None, ") if self.A.block_size > 1 else ("ILU(0)", "")
        named = {f"{label}, {k} sweep{'s' if k > 1 else ''}": f"ilu({blocks}solve='sweeps(count={k}, guard=off)')"
                 for k in self.settings["sweeps"]}
        for label, text in {f"{label}, exact": f"ilu({blocks}solve=exact)", **named}.items():
            self.say(label)
            yield self.solve(label, text)

    def solve(self, label, text) -> dict:
        """Time the preconditioning steps of a restart on each rank, and a whole solve after a warm-up; return the
        record. ``text``: the preconditioner's name for ``swell.solve``, ``label``: its name in tables."""
        ranks, rtol = self.ranks, TOLERANCES.get(self.name, TOLERANCE)
        with ranks.agreed():
            M = resolve("precond", text).build(self.given.diagonal_block)

        ranks.allgather(None)                    # so that all ranks work at the same time
        steps = ranks.allgather(min(steps_of_a_restart(self.space.local, M)))
        stopping = Stopping(rtol=rtol, relative_to="r0", maxiter=MAXITER)
        solver = swell.prepare(self.given, method=FIXED[f"gmres(restart={RESTART})"], precond=text,
                               format=self.format, b_like=self.b, stopping=stopping)
        solver.solve(self.b, monitor=engine.a_few)
        result = solver.solve(self.b)
        seconds = max(ranks.allgather(result.timings["solve"]))
        return self.record("solve", {
            "preconditioner": label, "rtol": rtol, "reason": result.reason.name, "iterations": result.iterations,
            "residual": result.residual, "least": min(steps), "largest": max(steps), "mean": statistics.mean(steps),
            "load_balance": load_balance(steps), "seconds": seconds,
            "setup_seconds": max(ranks.allgather(result.timings["setup"]))})

    # -- for the model -------------------------------------------------------------------------------------------

    def shares(self):
        """Yield records of the Share (rows, entries, ghosts, neighbours of a rank) that this matrix would have on more
        ranks."""
        own, n, block = self.given.own, self.A.shape[0], self.A.block_size
        indptr, indices = map(self.space.to_host, (own.indptr, own.indices))
        for count in self.settings["predicted"]:
            if count > n // block:
                return
            owner = np.repeat(of_matrix(own.block_graph(), count), block) if self.settings["partition"] == "graph" \
                else owners(consecutive(n, count, block), np.arange(n))
            yield self.record("shares", {"of_ranks": count, **_of(count_shares(indptr, indices, owner, count, block))})


def _of(share):
    return {f"share_{name}": value for name, value in asdict(share).items()}


if __name__ == "__main__":
    sys.exit(main(measure))
