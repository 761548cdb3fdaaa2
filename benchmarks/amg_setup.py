"""Where the setup of algebraic multigrid spends its time: each part on each level, launches and host reads.

    python benchmarks/amg_setup.py --device cuda gallery:ecology2~ gallery:poisson3d:2097152 landscape_1m.npz

Each part is timed between two synchronisations, in the second of two setups in one process; their sum is more than a setup
takes as a whole, which is timed apart, without them. ``--kernels`` adds a table of swell's kernels on a GPU, by events
around each launch (kernel_times.py): what is missing from a part's time there is CuPy's copies, launches and host reads.
"""
from __future__ import annotations

import collections
import contextlib
import time
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from kernel_times import launches, parser, set_constants

import swell
from swell.cli import source
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg import balanced_cycle, balancing, classical, coarsest, hierarchy

# part: (where it is looked up, its name there)
PARTS = {
    "strong links": (classical, "strong_links"), "PMIS": (classical, "pmis"), "numbers": (classical, "coarse_numbers"),
    "interpolation": (classical, "interpolation"), "transpose": (hierarchy, "transposed"), "A P, R (A P)": (hierarchy, "Product"),
    "scales": (balanced_cycle, "balancing"), "levels of four products": (balanced_cycle, "FourProducts"),
    "levels of two products": (balanced_cycle, "TwoProducts"), "dense inverse": (coarsest, "DenseInverse"),
}


@contextlib.contextmanager
def parts_timed(space):
    """Seconds by (part, rows of the level)."""
    found = collections.defaultdict(float)

    def timed(part, function):
        def call(first, *given):
            space.synchronize()
            start = time.perf_counter()
            result = function(first, *given)
            space.synchronize()
            found[part, rows_of(first)] += time.perf_counter() - start
            return result
        return call

    with patched(timed):
        yield found


@contextlib.contextmanager
def patched(around):
    """Each part as ``around(part, function)`` makes it."""
    with contextlib.ExitStack() as patches:
        for part, (module, name) in PARTS.items():
            patches.enter_context(patch.object(module, name, around(part, getattr(module, name))))
        yield


def rows_of(first):
    """Rows of the level that a part's first argument belongs to; 0 where it is none."""
    return getattr(getattr(first, "A", first), "shape", (0,))[0]


def measure(space, name, repeat, kernels):
    """Print the parts of one system's setup."""
    A = source.read_system(name)[0]
    with space.active():
        matrix, settings = CSRMatrix.from_scipy(A, space), swell.AMG()
        matrix.facts(search=True), matrix.norm_inf()
        settings.build(matrix).update(matrix)
        times = collections.defaultdict(list)
        for _ in range(repeat):
            space.synchronize()
            before, start = launched_so_far(space), time.perf_counter()
            M = settings.build(matrix)
            times["setup"].append(time.perf_counter() - start)
            launched = launched_so_far(space) - before
            M.update(matrix)                     # the first makes what later ones use
            start = time.perf_counter()
            M.update(matrix)
            times["update"].append(time.perf_counter() - start)
            with parts_timed(space) as found:
                settings.build(matrix)
            for key, seconds in found.items():
                times[key].append(seconds)
    best = {key: 1e3 * min(values) for key, values in times.items()}
    setup, update = best.pop("setup"), best.pop("update")
    print(f"{name}: {A.shape[0]} rows, {A.nnz} entries, {len(M.hierarchy.matrices)} levels; setup {setup:.2f} ms "
          f"({1e6 * setup / A.shape[0]:.1f} a million rows), update {update:.2f} ms ({update / setup:.2f}); "
          f"{launched} launches of swell's kernels", flush=True)
    rows = sorted({rows for _, rows in best}, reverse=True)
    table = Table("ms", *map(str, rows), "all")
    for part in PARTS:
        cells = [best.get((part, n)) for n in rows]
        table.add_row(part, *("" if c is None else f"{c:.2f}" for c in cells), f"{sum(filter(None, cells)):.2f}")
    Console(width=160).print(table)
    if kernels:
        measure_kernels(space, matrix, settings)


def measure_kernels(space, matrix, settings):
    """Print the times of each kernel in a setup, by the level whose part launched it."""
    now, found = [("", 0)], []

    def within(part, function):
        def call(first, *given):
            now.append((part, rows_of(first)))
            try:
                return function(first, *given)
            finally:
                now.pop()
        return call

    with space.active(), patched(within), launches(space, True, lambda launch: found.append((*now[-1], launch))):
        settings.build(matrix)
    times, counts = collections.defaultdict(float), collections.Counter()
    for part, rows, launch in found:
        times[part, launch.name, rows] += launch.milliseconds(space)
        counts[part, launch.name] += 1
    levels = sorted({rows for _, rows, _ in found}, reverse=True)
    table = Table("ms of kernels", "launches", *map(str, levels), "all")
    for (part, name), count in counts.items():
        cells = [times.get((part, name, n)) for n in levels]
        table.add_row(f"{part}: {name}" if part else name, str(count),
                      *("" if c is None else f"{c:.3f}" for c in cells), f"{sum(filter(None, cells)):.3f}")
    table.add_row("all", str(len(found)), *(f"{sum(t for (_, _, m), t in times.items() if m == n):.3f}" for n in levels),
                  f"{sum(times.values()):.3f}")
    Console(width=180).print(table)


def launched_so_far(space):
    return space.launches if space.name == "cuda" else 0


if __name__ == "__main__":
    command = parser(__doc__.splitlines()[0])
    command.add_argument("--device", default="cpu")
    command.add_argument("--repeat", type=int, default=3)
    command.add_argument("--kernels", action="store_true", help="the time of each kernel, too")
    given = command.parse_args()
    set_constants(given.set)
    for system in given.systems:
        measure(make_space(given.device), system, given.repeat, given.kernels)
