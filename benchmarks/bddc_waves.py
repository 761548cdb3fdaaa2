"""BDDC, the shifted Laplacian and Schwarz for sound in a cabin: iterations against frequency and number of subdomains.

    python benchmarks/bddc_waves.py FOLDER --frequencies 100 200 300 400 500 --domains 64 128 --directions 0 3 7
    python benchmarks/bddc_waves.py --box 12 --frequencies 100 200 300 --domains 8 27 64 --transmissions neumann robin

FOLDER has carinterior.mat (car_cabin/ of the real systems): 34 306 unknowns, with its impedance of 20 ρc on all walls.
Without FOLDER the cabin is swell's own, by gmsh, or a box of 2 m × 1 m × 1 m
with --box cells along a metre. A point source, GMRES(200) to 1e-6; the times are of one run. A row
"failed" says why in its last column.
"""
from __future__ import annotations

import argparse
import pathlib
import sys

import numpy as np

import swell
from swell.core.compilation import Stopwatch
from swell.pde import helmholtz

SPEED = 340.0


def problem_of(arguments):
    """The Helmholtz problem, with every wall at 20 ρc."""
    if arguments.folder:
        from refined_cabin import cabin
        mesh = cabin(arguments.folder)
    elif arguments.box:
        mesh = helmholtz.box((2 * arguments.box, arguments.box, arguments.box), upper=(2.0, 1.0, 1.0))
    else:
        mesh = helmholtz.car_cabin(arguments.size, "hexahedron")
    return helmholtz.Helmholtz(mesh, helmholtz.Medium(speed=SPEED, density=1.0),
                               {name: helmholtz.Impedance(20 * SPEED) for name in mesh.boundaries})


def choices(problem, arguments, frequency):
    """Yield (name, preconditioner) for all that are compared."""
    waves = 2 * np.pi * frequency / SPEED
    n, points = problem.space.n, problem.space.points
    for domains in arguments.domains:
        for directions in arguments.directions:
            modes = {"near_nullspace": helmholtz.plane_waves(points, waves, directions)} if directions else {}
            for transmission in arguments.transmissions:
                parts = helmholtz.subdomains(problem, frequency, domains, transmission)
                name = f"bddc, {domains} subdomains, {directions} directions, {transmission}"
                yield name, swell.BDDC(subdomains=parts, nodes=np.arange(n), interior=arguments.interior, **modes)
    for inner in arguments.inner:
        yield f"shifted_laplacian, {inner}", swell.ShiftedLaplacian(inner=inner)
        for domains in arguments.domains:
            for transmission in ("dirichlet", "robin", "second_order"):
                yield (f"schwarz, {domains} subdomains, {inner}, {transmission}",
                       swell.Schwarz(domains=domains, inner=inner, transmission=transmission, overlap=2))


def main():
    """Solve, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=pathlib.Path)
    parser.add_argument("--size", type=float, default=0.1)
    parser.add_argument("--box", type=int, default=0)
    parser.add_argument("--frequencies", nargs="+", type=float, default=[100.0, 300.0])
    parser.add_argument("--domains", nargs="*", type=int, default=[64])
    parser.add_argument("--directions", nargs="*", type=int, default=[0, 3])
    parser.add_argument("--transmissions", nargs="+", default=["neumann"])
    parser.add_argument("--interior", default="direct")
    parser.add_argument("--inner", nargs="*", default=["ilu0", "direct"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--maxiter", type=int, default=1000)
    arguments = parser.parse_args()
    problem = problem_of(arguments)
    source = tuple(problem.space.points[problem.space.n // 3])
    print(f"{problem.space.n} unknowns, {problem.finest:.0f} Hz at ten nodes a wavelength; {arguments.device}")
    print("| Hz | preconditioner | iterations | residual | setup s | solve s | notes |\n|---|---|---|---|---|---|---|")
    for frequency in arguments.frequencies:
        for name, precond in choices(problem, arguments, frequency):
            watch = Stopwatch()
            try:
                r = problem.response(source, None, [frequency], method="gmres(restart=200)", precond=precond, rtol=1e-6,
                                     maxiter=arguments.maxiter, device=arguments.device).points[0].result
            except swell.SwellError as error:
                print(f"| {frequency:g} | {name} | failed | | {watch.seconds:.2f} | | {error} |", flush=True)
                continue
            count = r.iterations if r.converged else f"{r.reason.name.lower()} {r.iterations}"
            print(f"| {frequency:g} | {name} | {count} | {r.residual:.1e} | {r.timings['setup']:.2f} | "
                  f"{r.timings['solve']:.2f} | {'; '.join(r.notes)[:160]} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
