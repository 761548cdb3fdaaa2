"""Iterations and times of the preconditioners for Helmholtz problems, one frequency after the other.

    python benchmarks/helmholtz_preconditioners.py --problem box:24 --frequencies 300,900
    python benchmarks/helmholtz_preconditioners.py --problem real --data DATA --frequencies 100,300

Problems: square:N (N² quadrilaterals, 8 m, open at two sides), box:N (N³ hexahedra, 1 m, a floor that takes sound),
cabin:SIZE[:KIND] (the generated one, firewall vibrating, seats that absorb), and the real cabin (--data: the folder
that has car_cabin/), with walls of 1/Z = 0.05/(ρc) as in its description and a point source. Setup and solve are seconds of
one run; iterations are comparable, times are ratios.
"""
from __future__ import annotations

import argparse
import time

from swell.bench import engine
from swell.pde import helmholtz

SCHWARZ = "schwarz(partition=graph,domains={domains},transmission={condition},kind={kind},inner={inner})"
DIRECT = "direct"


def choices(domains):
    """(name, method, precond) of each row of the table."""
    yield from ((name, "cocg", name) for name in ("none", "jacobi", "ilu0", "shifted_laplacian"))
    yield "shifted_laplacian(0.1)", "cocg", "shifted_laplacian(shift=0.1)"
    yield "ilu(level=1)", "cocg", "ilu(level=1)"
    yield "shifted ilu(level=1)", "cocg", "shifted_laplacian(inner=ilu(level=1))"
    for inner in ("ilu0", DIRECT):
        for condition in ("dirichlet", "robin", "second_order", "two_sided")[:2 if inner == "ilu0" else 4]:
            text = SCHWARZ.format(domains=domains, condition=condition, kind="restricted", inner=inner)
            yield f"schwarz {condition}, {inner}", "gmres(restart=300)", text
    for condition in ("dirichlet", "robin"):
        text = SCHWARZ.format(domains=domains, condition=condition, kind="weighted", inner=DIRECT)
        yield f"weighted schwarz {condition}, {DIRECT}", "cocg", text


def problem(name, data):
    """(problem, source, ear)."""
    kind, _, rest = name.partition(":")
    if kind == "square":
        mesh = helmholtz.box((int(rest),) * 2, upper=8.0)
        walls = {"xmax": helmholtz.Absorbing(), "ymin": helmholtz.Absorbing()}
        return helmholtz.Helmholtz(mesh, boundary=walls), "xmin", (0.5, 0.5)
    if kind == "box":
        mesh = helmholtz.box((int(rest),) * 3)
        return (helmholtz.Helmholtz(mesh, helmholtz.Medium(damping=0.01), {"zmin": helmholtz.Impedance(2000)}), "xmin",
                (0.6, 0.5, 0.4))
    if kind == "cabin":
        size, _, shape = rest.partition(":")
        mesh = helmholtz.car_cabin(float(size), shape or "tetra")
        return (helmholtz.Helmholtz(mesh, helmholtz.Medium(damping=0.01), {"seats": helmholtz.Impedance(1500)}),
                "firewall", (0.9, 0.4, 0.9))
    mesh = real(data)
    walls = {"boundary": helmholtz.Impedance(340 * 1.2 / 0.05)}
    return helmholtz.Helmholtz(mesh, helmholtz.Medium(340.0, 1.2), walls), tuple(mesh.points[1234]), mesh.centres[20000]


def real(data):
    """The mesh of the real cabin."""
    import numpy as np
    import scipy.io
    given = scipy.io.loadmat(f"{data}/car_cabin/carinterior.mat")["mesh"][0, 0]
    nodes = given["Nodes"]
    number = np.zeros(int(nodes[:, 0].max()) + 1, int)
    number[nodes[:, 0].astype(int)] = np.arange(len(nodes))
    return helmholtz.Mesh(nodes[:, 1:], "hexahedron", number[given["Elements"][:, 4:].astype(int)])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", default="box:16")
    parser.add_argument("--data", default="../shared/data")
    parser.add_argument("--frequencies", default="300,600")
    parser.add_argument("--domains", type=int, default=32)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rtol", type=float, default=1e-9)
    parser.add_argument("--maxiter", type=int, default=1500)
    parser.add_argument("--only", default="", help="rows whose name contains one of these, split at |")
    parser.add_argument("--without", default="", help="not those whose name contains this")
    arguments = parser.parse_args()
    given, source, ear = problem(arguments.problem, arguments.data)
    for frequency in helmholtz.band(arguments.frequencies):
        rows = []
        for name, method, precond in choices(arguments.domains):
            if not any(part in name for part in arguments.only.split("|")) or (arguments.without and
                                                                               arguments.without in name):
                continue
            start = time.perf_counter()
            response = given.response(source, ear, [frequency], method=method, precond=precond, rtol=arguments.rtol,
                                      maxiter=arguments.maxiter, device=arguments.device, remember=0)
            whole, r = time.perf_counter() - start, response.points[0].result
            rows.append((name, method, r.iterations, r.products, r.reason.name, f"{r.residual:.1e}",
                         f"{r.timings.get('preconditioner', 0):.2f}", f"{r.timings['solve']:.2f}"))
            engine.tell(f"{frequency:g} Hz: " + ", ".join(map(str, rows[-1])) + f" ({whole:.1f} s in all)")
        engine.show(f"{arguments.problem}, {given.space.n} unknowns, {frequency:g} Hz; 10 nodes to {given.finest:.0f} Hz",
                    ("precond", "method", "iterations", "products", "reason", "residual", "setup, s", "solve, s"), rows)


if __name__ == "__main__":
    main()
