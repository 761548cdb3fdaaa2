"""Seconds of an outer iteration of SIMPLE on 1, 2, 4, ... ranks: a cavity of N x N x N cells, or an OpenFOAM case.

    python benchmarks/flow_ranks.py 64
    mpiexec -n 4 python benchmarks/flow_ranks.py 128 --device cuda
    mpiexec -n 4 python benchmarks/flow_ranks.py cases/room_50 --device cuda

Each rank makes its slab of the cavity alone. Of a case it reads its part, or takes its part of the whole. Rank 0 prints
one JSON object: the median over the iterations after the first three, what the linear solvers took, and the residuals,
which must agree with one rank.
"""
from __future__ import annotations

import argparse
import json
import statistics
import time
from dataclasses import replace

from swell import distributed
from swell.distributed.launcher import launched
from swell.distributed.partition import consecutive
from swell.pde import fvm
from swell.pde.fvm.part_mesh import joined

SETUP = 3               # iterations that compile kernels, set solvers up and capture graphs


def slab(n, ranks):
    """Return this rank's slab of the cube of n x n x n cells, a PartMesh; the whole cube without ranks."""
    if ranks is None:
        return fvm.box((n, n, n))
    rank, size = ranks.rank, ranks.size
    low, high = map(int, consecutive(n, size)[rank:rank + 2])
    mesh = fvm.box((n, n, high - low), (0, 0, low / n), (1, 1, high / n))
    patches, beyond = [], {}
    for patch in mesh.patches:
        other = {"zmin": rank - 1, "zmax": rank + 1}.get(patch.name, -1)
        if 0 <= other < size:
            name = f"procBoundary{rank}to{other}"
            patches += [replace(patch, size=0), replace(patch, name=name, kind="processor")]
            beyond[name] = other
        else:
            patches.append(patch)
    return joined(replace(mesh, patches=tuple(patches)), beyond, ranks)


def held(device):
    """GiB that CuPy's pool holds on rank 0; None on a CPU."""
    if device == "cpu":
        return None
    import cupy
    return round(cupy.get_default_memory_pool().total_bytes() / 2**30, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", help="N, or the folder of a case")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--reynolds", type=float, default=100.0, help="of the cavity")
    parser.add_argument("--pressure-precond", default="amg")
    parser.add_argument("--share-gpus", action="store_true")
    given = parser.parse_args()
    ranks = distributed.init(share_gpus=given.share_gpus) if launched() > 1 else None
    began = time.perf_counter()
    if given.what.isdecimal():
        rest, lid = fvm.Dirichlet((0.0, 0.0, 0.0)), fvm.Dirichlet((1.0, 0.0, 0.0))
        flow, start = fvm.Flow(slab(int(given.what), ranks), {"ymax": lid, "*": rest}, 1 / given.reynolds), None
    else:
        case = fvm.read_case(given.what, ranks=ranks)
        flow, start = case.flow, case.start
    times = [time.perf_counter()]
    found = flow.solve(fvm.SIMPLE(maxiter=given.iterations, rtol=1e-12, pressure_precond=given.pressure_precond),
                       given.device, start, lambda *_: times.append(time.perf_counter()), ranks=ranks)
    steps = [after - before for before, after in zip(times, times[1:])]
    if ranks is None or ranks.rank == 0:
        print(json.dumps({
            "what": given.what, "device": given.device, "ranks": 1 if ranks is None else ranks.size,
            "cells": found.cells, "seconds": round(statistics.median(steps[SETUP:] or steps), 5),
            "fastest": round(min(steps), 5), "first": round(steps[0], 3), "mesh": round(times[0] - began, 2),
            "GiB": held(given.device), "linear iterations": found.linear_iterations,
            "residuals": found.residuals[-1].tolist()}), flush=True)


if __name__ == "__main__":
    main()
