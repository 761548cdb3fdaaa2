"""BDDC on elastic bodies of real meshes, in parts by METIS; and the CPU time of local problems in both forms.

    python benchmarks/bddc_elasticity.py beams.msh plateWithHole3D-1.exo --parts 16,64
    OPENBLAS_NUM_THREADS=1 python benchmarks/bddc_elasticity.py --local 4,6,8

A mesh is read by meshio. Its tetrahedra are steel-like (ν = 0.3), clamped where the coordinate of the longest side is
least; the right-hand side is random. --local: the middle subdomain of an elastic cube of 3³ subdomains with this H/h.
"""
from __future__ import annotations

import argparse
import pathlib
import time

import numpy as np

import swell
from swell import gallery
from swell.pde.elasticity_cube import ElasticityCube
from swell.preconditioners.bddc import local
from swell.preconditioners.bddc.constraints import Constraints
from swell.preconditioners.bddc.interface import Interface
from swell.preconditioners.bddc.problems import eliminations
from swell.preconditioners.bddc.schur import schur
from swell.preconditioners.bddc.symmetry import HERMITIAN
from swell.preconditioners.bddc.unknowns import Unknowns

SETTINGS = {"cef, rigid": {}, "ce, rigid": {"constraints": "ce"}, "c, rigid": {"constraints": "c"},
            "cef, averages": {"near_nullspace": "constants"}}
RUNS = 3


def mesh(path):
    """(points, tetrahedra, clamped) of a file."""
    import meshio
    found = meshio.read(path)
    cells = np.concatenate([block.data for block in found.cells if block.type == "tetra"])
    used, cells = np.unique(cells, return_inverse=True)
    points = found.points[used]
    along = np.ptp(points, axis=0).argmax()
    least = points[:, along].min()
    return points, cells.reshape(-1, 4), points[:, along] <= least + 1e-9 * np.ptp(points[:, along])


def bodies(paths, parts):
    """Print a line for each mesh, number of parts and choice of constraints."""
    for path in paths:
        points, cells, clamped = mesh(path)
        for count in parts:
            pieces, nodes = gallery.elastic_subdomains(points, cells, clamped, count)
            subdomains = swell.Subdomains(pieces)
            A, b = subdomains.assemble(), np.random.default_rng(0).standard_normal(3 * len(nodes))
            for name, settings in SETTINGS.items():
                settings = {"near_nullspace": swell.rigid_body_modes(nodes), **settings}
                bddc = swell.BDDC(subdomains=subdomains, **settings)
                start = f"{pathlib.Path(path).name}, {A.shape[0]} unknowns, {len(subdomains)} subdomains, {name}:"
                try:
                    r = swell.solve(A, b, method="cg", precond=bddc, maxiter=500)
                except swell.InputError as error:
                    print(start, error)
                    continue
                print(start, f"{r.iterations} iterations, {r.reason.name.lower()}, eigenvalues "
                      "{:.4f} to {:.4g}".format(*r.spectrum.extremes))


def local_times(sizes):
    """Print the least CPU seconds of one local problem, for both forms."""
    for m in sizes:
        system = ElasticityCube(m, 3).assemble()
        space = system.A.space
        interface = Interface(system.A, system.subdomains, Unknowns(3, system.cube.near_nullspace))
        constraints = Constraints(interface, "cef").matrix(13)
        S = next(schur(one.A, one.order, one.own, interior.factors(HERMITIAN), HERMITIAN)
                 for interior in eliminations(space, system.subdomains, interface) for one in interior.subdomains
                 if 13 in one.members)
        for averages in ("constraints", "basis"):
            settings, seconds = swell.BDDC(averages=averages), []
            for _ in range(RUNS):
                start = time.process_time()
                local.local_problems(space, settings, [[13]], [S.copy()], [constraints], np.dtype(float), lambda *_: "")
                seconds.append(time.process_time() - start)
            print(f"H/h = {m}, {S.shape[0]} dofs, {len(constraints[0])} constraints, {averages}: {min(seconds):.3f} s")


def main():
    """Read the arguments, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("meshes", nargs="*")
    parser.add_argument("--parts", default="16")
    parser.add_argument("--local", default="")
    arguments = parser.parse_args()
    bodies(arguments.meshes, [int(text) for text in arguments.parts.split(",")])
    local_times([int(text) for text in arguments.local.split(",") if text])


if __name__ == "__main__":
    main()
