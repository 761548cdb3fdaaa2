"""Iterations of CG with domain decomposition: Schwarz on one level and two, BDDC with multigrid inside.

    python benchmarks/second_level.py [schwarz] [ranks] [bddc]

A random right-hand side, to a true relative residual of 1e-8. Subdomains are parts of the graph (needs pymetis); ranks
are threads with consecutive rows.
"""
from __future__ import annotations

import argparse

import numpy as np

import swell
from swell import distributed, gallery

EXACT = {"kind": "additive", "inner": "direct"}
INTERIORS = "direct", "amg(degree=4, cycle=W)", "amg(degree=2)", "amg", "ic0"
COARSE = "exact", swell.SmoothedAggregation(coarsest=20), swell.AMG(coarsest=20), "ic0"


def body(shape, size):
    """A body clamped at one end and its rigid motions."""
    points, cells = gallery.box_mesh(shape, size)
    A, nodes = gallery.elastic_body(points, cells, points[:, 0] == 0)
    return A, swell.rigid_body_modes(nodes)


def systems():
    """(name, matrix, rigid motions or None)."""
    yield "Poisson, 96²", gallery.poisson2d(96), None
    yield "plate, 48²", *body((48, 48), (1.0, 1.0))
    yield "beam, 64 x 4 x 4", *body((64, 4, 4), (16.0, 1.0, 1.0))


def levels(modes):
    """Names and settings of one level, two with constants, and two with rigid motions."""
    yield "one level", {}
    yield "constants", {"coarse": "nicolaides"}
    if modes is not None:
        yield "rigid motions", {"coarse": "nicolaides", "near_nullspace": modes}


def solved(A, precond):
    """The result of CG."""
    return swell.solve(A, np.random.default_rng(0).standard_normal(A.shape[0]), method="cg", precond=precond)


def show(part, name, what, results):
    """Print a line of iterations; "−" for a solve that did not converge."""
    counts = [str(result.iterations) if result.converged else "−" for result in results]
    print(" | ".join([part, name, what, *counts]), flush=True)


def across_ranks(communicator, A, settings):
    """The result of CG on the ranks."""
    M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
    b = np.random.default_rng(0).standard_normal(A.shape[0])
    return swell.solve(M, b[M.rows], method="cg", precond=swell.Schwarz(**settings))


def schwarz():
    """Schwarz on one device."""
    for name, A, modes in systems():
        for what, more in levels(modes):
            show("schwarz", name, what, [solved(A, swell.Schwarz(domains=k, partition="graph", **EXACT, **more))
                                         for k in (4, 16, 64)])


def ranks():
    """Schwarz across ranks."""
    for name, A, modes in systems():
        for what, more in levels(modes):
            show("ranks", name, what, [distributed.run(k, across_ranks, A, {**EXACT, **more})[0] for k in (2, 4, 8)])


def bddc():
    """BDDC with approximate interiors, and with an approximate coarse problem."""
    for m in (48, 96, 192):
        A = gallery.poisson2d(m)
        show("bddc interior", f"Poisson {m}², 16 subdomains", ", ".join(INTERIORS),
             [solved(A, swell.BDDC(domains=16, interior=interior)) for interior in INTERIORS])
    square, cube, jumping = gallery.poisson2d(96), gallery.poisson3d(24), gallery.jumping_diffusion((24,) * 3)
    for name, A, k in (("Poisson 96²", square, 100), ("Poisson 96²", square, 400), ("Poisson 24³", cube, 200),
                       ("jumping 24³", jumping, 100)):
        show("bddc coarse", f"{name}, {k} subdomains", "exact, aggregation, classical, ic0",
             [solved(A, swell.BDDC(domains=k, coarse=coarse)) for coarse in COARSE])


PARTS = {"schwarz": schwarz, "ranks": ranks, "bddc": bddc}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=[*PARTS], help=f"some of {', '.join(PARTS)}; all by default")
    for part in parser.parse_args().parts:
        if part not in PARTS:
            parser.error(f"{part}: expected some of {', '.join(PARTS)}")
        PARTS[part]()
