"""Algebraic multigrid for convection and waves: iterations and times beside ILU(0) and beside the choice by itself.

    python benchmarks/convection_multigrid.py systems --data DATA
    python benchmarks/convection_multigrid.py transport --unknowns 1259712 --device cuda
    python benchmarks/convection_multigrid.py cabin --data DATA --frequency 300 --refined 0

DATA is the folder that has matrices/ and car_cabin/ of the real systems. "systems" compares both restrictions on
convection and diffusion. "transport" is atmosmodd~. "cabin" is A = K − k²M + 0.05 i k B with k = 2πf/340 of the real car cabin,
``--refined`` times refined. Seconds are of one run after a first one; every result has a true residual below the
tolerance, or "!".
"""
from __future__ import annotations

import argparse
import gzip
import pathlib
import time

import numpy as np
import scipy.io
import scipy.sparse as sp
from refined_cabin import cabin, refined
from scipy.sparse.csgraph import reverse_cuthill_mckee

import swell
from swell import gallery
from swell.pde import helmholtz

SOUND, ADMITTANCE = 340.0, 0.05                 # speed of sound in m/s; share of the sound that walls absorb
REAL = "foam_hump_U", "Grond4e4", "muelu_condif2", "teko_ns_F", "epb0", "cage10"


def row(A, b, device, rtol=1e-8, maxiter=1000, values=None, **named):
    """Return the cells of one solve: iterations, setup, first solve, again, update + solve seconds."""
    try:
        started = time.perf_counter()
        solver = swell.prepare(A, device=device, rtol=rtol, maxiter=maxiter, **named)
        set_up = time.perf_counter()
        result = solver.solve(b)
        first = time.perf_counter()
        result = solver.solve(b)
        again = time.perf_counter()
        solver.update(A if values is None else values)
        updated = time.perf_counter()
    except (swell.SwellError, ValueError) as error:
        return f"{type(error).__name__}: {str(error)[:70]}"
    mark = "" if result.converged else f"! {result.residual:.0e}" if hasattr(result, "residual") else "!"
    return (f"{result.iterations:5d}{mark:1s} setup {set_up - started:7.3f} first {first - set_up:7.3f} again "
            f"{again - first:7.3f} update {updated - again:7.3f}")


def loaded(data, name):
    with gzip.open(data / "matrices" / f"{name}.mtx.gz") as file:
        A = sp.csr_array(scipy.io.mmread(file))
    A.sum_duplicates()
    return A


def systems(arguments):
    """Yield (name, matrix) of convection and diffusion."""
    for peclet in (0.1, 1.0, 10.0, 100.0):
        yield f"upwind 300², Pe {peclet:g}", gallery.convection_diffusion((300, 300), peclet, "upwind")
        yield f"upwind 40³, Pe {peclet:g}", gallery.convection_diffusion((40,) * 3, peclet, "upwind")
    yield "centred 50³, Pe 1", gallery.convection_diffusion((50,) * 3)
    if arguments.data:
        for name in REAL:
            yield name, loaded(arguments.data, name)


def compare(arguments):
    for name, A in systems(arguments):
        A = sp.csr_array(A)
        b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
        print(f"{name}, n = {A.shape[0]}")
        for method in ("gmres", "bicgstab"):
            for label, M in (("AMG, Pᵀ", swell.AMG()), ("AMG, adjoint", swell.AMG(restriction="adjoint")),
                             ("ILU(0)", "ilu0")):
                print(f"  {method:9s} {label:14s} {row(A, b, arguments.device, precond=M, method=method)}", flush=True)


def transport(arguments):
    side = round(arguments.unknowns ** (1 / 3))
    A = sp.csr_array(gallery.convection_diffusion((side,) * 3))
    b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
    print(f"atmosmodd~, n = {A.shape[0]}")
    for label, named in (("compile", {"method": "gmres", "precond": "amg"}),
                         ("AMG", {"method": "gmres", "precond": "amg"}),
                         ("AMG", {"method": "bicgstab", "precond": "amg"}),
                         ("AMG, adjoint", {"method": "gmres", "precond": swell.AMG(restriction="adjoint")}),
                         ("ILU(0)", {"method": "gmres", "precond": "ilu0"}),
                         ("ILU(0)", {"method": "bicgstab", "precond": "ilu0"}), ("by itself", {})):
        print(f"  {named.get('method', ''):9s} {label:14s} {row(A, b, arguments.device, **named)}", flush=True)


def waves(arguments):
    mesh = cabin(arguments.data / "car_cabin")
    for _ in range(arguments.refined):
        mesh = refined(mesh)
    problem = helmholtz.Helmholtz(mesh, helmholtz.Medium(1.0, 1.0), {"boundary": helmholtz.Impedance(1.0)})
    K, M, B = (sp.csr_array(matrix) for matrix in problem.matrices)
    order = reverse_cuthill_mckee(sp.csr_matrix(K), symmetric_mode=True)
    K, M, B = (sp.csr_array(matrix[order][:, order]) for matrix in (K, M, B))
    for matrix in (K, M, B):
        matrix.sum_duplicates()                  # also sorts the columns
    k = 2 * np.pi * arguments.frequency / SOUND
    A = sp.csr_array(K - k**2 * M + 1j * ADMITTANCE * k * B)
    mass = k**2 * M
    b = np.zeros(A.shape[0], complex)
    b[1234] = 1.0
    print(f"car cabin at {arguments.frequency:g} Hz, n = {A.shape[0]}, k = {k:.2f}")
    inner = {"amg": swell.AMG(), "ilu0": "ilu0", "ilu0 sweeps": swell.ILU0(solve="sweeps")}
    named = {f"shifted {shift:g}, {name}": swell.ShiftedLaplacian(shift=shift, inner=M, mass=mass)
             for name, M in inner.items() for shift in (0.5, 1.0)}
    named |= {"amg of A": swell.AMG(), "ilu0": "ilu0"}
    for label, M in named.items():
        for method in arguments.methods:
            print(f"  {method:15s} {label:24s} {row(A, b, arguments.device, 1e-6, 1500, precond=M, method=method)}",
                  flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("systems", "transport", "cabin"))
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--unknowns", type=int, default=125_000)
    parser.add_argument("--frequency", type=float, default=300.0)
    parser.add_argument("--refined", type=int, default=0)
    parser.add_argument("--methods", nargs="*", default=["gmres", "idrs", "cocg"])
    arguments = parser.parse_args()
    if arguments.part == "cabin" and arguments.data is None:
        parser.error("cabin needs --data, the folder that has car_cabin/ of the real systems")
    {"systems": compare, "transport": transport, "cabin": waves}[arguments.part](arguments)


if __name__ == "__main__":
    main()
