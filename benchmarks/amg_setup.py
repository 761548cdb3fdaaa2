"""Where the setup of algebraic multigrid spends its time: each part on each level, launches and host reads.

    python benchmarks/amg_setup.py --device cuda gallery:ecology2~ gallery:poisson3d:2097152 landscape_1m.npz

Each part is timed between two synchronisations, in the second of two setups in one process; their sum is more than a setup
takes as a whole, which is timed apart, without them.
"""
from __future__ import annotations

import argparse
import collections
import contextlib
import time
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

import swell
from swell.cli import source
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.preconditioners.amg import balancing, coarsest, cycle, hierarchy

# part: (where it is looked up, its name there)
PARTS = {
    "strong links": (hierarchy, "strong_links"), "PMIS": (hierarchy, "pmis"), "numbers": (hierarchy, "coarse_numbers"),
    "interpolation": (hierarchy, "interpolation"), "transpose": (hierarchy, "transposed"), "A P, R (A P)": (hierarchy, "Product"),
    "scales": (cycle, "balancing"), "levels of four products": (cycle, "FourProducts"),
    "levels of two products": (cycle, "TwoProducts"), "dense inverse": (cycle, "DenseInverse"),
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
            rows = getattr(getattr(first, "A", first), "shape", (0,))[0]
            found[part, rows] += time.perf_counter() - start
            return result
        return call

    with contextlib.ExitStack() as patches:
        for part, (module, name) in PARTS.items():
            patches.enter_context(patch.object(module, name, timed(part, getattr(module, name))))
        yield found


def measure(space, name, repeat):
    """Print the parts of one system's setup."""
    A = source.read_system(name)[0]
    with space.active():
        matrix, settings = CSRMatrix.from_scipy(A, space), swell.AMG()
        matrix.facts(search=True), matrix.norm_inf()
        settings.build(matrix).update(matrix)
        times = collections.defaultdict(list)
        for _ in range(repeat):
            space.synchronize()
            before, start = launches(space), time.perf_counter()
            M = settings.build(matrix)
            times["setup"].append(time.perf_counter() - start)
            launched = launches(space) - before
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


def launches(space):
    return space.launches if space.name == "cuda" else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("systems", nargs="+", help="files, or names of the gallery")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    for system in given.systems:
        measure(make_space(given.device), system, given.repeat)
