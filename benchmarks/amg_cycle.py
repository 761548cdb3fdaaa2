"""Where a cycle of algebraic multigrid spends its time: each launch, the cycle, an iteration of CG, and a solve.

    python benchmarks/amg_cycle.py gallery:ecology2~ gallery:poisson3d:2097152 landscape_1m.npz

For a product whose rows are shared by lanes (amg/shared_rows.py), the last columns are its times with half and with
twice the lanes.

A launch of the cycle is repeated in a CUDA graph; so is the cycle. Repeated launches find in the second-level cache what
fits there, and overlap as launches of a graph do: their sum is a lower bound. "An iteration" is a captured graph of CG
over its iterations, "idle" the same graph after the judge has spoken: what the end of a solve costs.
"""
from __future__ import annotations

import time

import numpy as np
from ic0_on_gpu import replayed
from kernel_times import Hold, launches, parser, set_constants
from rich.console import Console
from rich.table import Table

import swell
from swell.bench.amg import on_device, right_hand_side
from swell.cli import source
from swell.core.devices import make_space
from swell.core.slots import Flag
from swell.core.stopping import Stopping

LAUNCHES, CYCLES, REPEAT = 50, 8, 9


def measure(space, name, A, precond="amg"):
    """Print the launches and times of CG with a multigrid ``precond`` on one system."""
    solver = swell.prepare(on_device(space, A), device=space.device_name, method="cg", precond=precond,
                           stopping=Stopping(rtol=1e-8))
    space, b = solver.space, right_hand_side(space, A)
    solver.solve(b)
    prepared, wall = solver._prepared[0], []
    for _ in range(REPEAT):
        start = time.perf_counter()
        result = solver.solve(b)
        wall.append(time.perf_counter() - start)
    M, n = solver.M.operator, A.shape[0]
    found = []
    with space.active():
        r, z, dots = b.copy(), space.empty(n, np.float64), space.empty(2, np.float64)
        with launches(space, False, found.append):
            M.apply_dots(r, z, r, dots)
    table = Table("launch of the cycle", "rows", "µs", "MB", "GB/s", "lanes", "µs, half", "µs, twice")
    each = [time_of(space, launch) for launch in found]
    for launch, took in zip(found, each):
        table.add_row(launch.name, str(rows_of(launch)), f"{took:.2f}", f"{1e-6 * launch.bytes:.3f}",
                      f"{1e-3 * launch.bytes / took:.0f}", *with_other_lanes(space, launch))
    cycle = replayed(space, lambda: M.apply_dots(r, z, r, dots), CYCLES, REPEAT)
    iterations, busy, idle = in_graph(space, prepared)
    levels = ", ".join(f"{level.A.shape[0]} {type(part).__name__}"
                       for level, part in zip(M.hierarchy.levels, M.inner.levels))
    print(f"{name}: {n} rows; {levels}, {M.hierarchy.last.shape[0]}")
    Console(width=160).print(table)
    print(f"cycle: {len(found)} launches, {cycle:.1f} µs, their sum {sum(each):.1f}; an iteration: {busy:.1f} µs, idle "
          f"{idle:.1f}, {iterations} a graph; solve: {result.iterations} iterations, {1e3 * np.median(wall):.3f} ms, "
          f"{1e3 * np.median(wall) - 1e-3 * busy * result.iterations:.3f} beside them", flush=True)


def time_of(space, launch, arguments=None):
    """Microseconds of a launch, with other ``arguments`` if they are given."""
    return replayed(space, lambda: launch.kernel(*(arguments or launch.arguments)), LAUNCHES, REPEAT)


def with_other_lanes(space, launch):
    """The lanes of a shared row, and the times with half and with twice as many; empty texts for other launches."""
    names = [p.name for p in launch.kernel.signature.parameters]
    if "lanes" not in names or "shared_rows" not in launch.name:
        return "", "", ""
    at, values = names.index("lanes"), list(launch.arguments)
    lanes, found = values[at], []
    for other in (lanes // 2, 2 * lanes):
        values[at] = other
        found.append(f"{time_of(space, launch, tuple(values)):.2f}" if 1 <= other <= 32 else "")
    return str(lanes), *found


def rows_of(launch):
    """Elements of the array that a launch is for."""
    names = [p.name for p in launch.kernel.signature.parameters]
    return launch.arguments[names.index(launch.kernel.signature.launch["array"])].size


def in_graph(space, prepared):
    """(iterations of a captured graph of CG, µs of an iteration there, µs of one after the judge has spoken)."""
    loop, iteration, events = prepared.loop, prepared.iteration, [space.xp.cuda.Event() for _ in range(2)]
    hold, busy, idle = Hold(space), [], []
    with space.active():
        for times, stop in ((busy, 0), (idle, 1)):
            for _ in range(REPEAT):
                prepared.x.fill(0)
                loop.begin(0.0, 1e300, 0)
                iteration.start(True)
                if stop:
                    space.stream.synchronize()
                    space.host_context["flags"][0, Flag.STOP] = 1
                    space.send_context()
                hold()
                hold()
                events[0].record(space.stream)
                loop._graph.launch(space.stream)
                events[1].record(space.stream)
                loop.end()
                if not stop:
                    iterations = loop.iterations
                times.append(1e3 * space.xp.cuda.get_elapsed_time(*events))
    return iterations, *(float(np.median(t)) / iterations for t in (busy, idle))


if __name__ == "__main__":
    command = parser(__doc__.splitlines()[0])
    given = command.parse_args()
    set_constants(given.set)
    for system in given.systems:
        measure(make_space("cuda"), system, source.read_system(system)[0])
