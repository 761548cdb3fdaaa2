"""Multigrid on elastic bodies: iterations, setup, first and later solves, update; on a GPU also each launch of a cycle.

    python benchmarks/elasticity.py [--device cuda] [--launches] [--choices NAMES] [--repeat 5] [--out FILE] BODY ...

BODY, each held at one end, POISSON being 0.3 by default:

    plate:M[:POISSON]               2 M² triangles
    tets:M[:POISSON]                a cube of 6 M³ tetrahedra
    hexes:M[:POISSON]               a cube of M³ trilinear hexahedra
    beam:M[:POISSON]                8 x 1 x 1, of 48 M³ tetrahedra
    jumps:M:RATIO                   as tets, with 4³ blocks whose moduli are spread over RATIO
    slab:M[:HEIGHT]                 M x M x 2 trilinear hexahedra, 1 x 1 x HEIGHT each
    FILE[:POISSON[:REFINED]]        tetrahedra of a mesh file (needs meshio), each cut into eight REFINED times
    quadratic:FILE[:POISSON]        the same of degree 2, with ten nodes each (needs scikit-fem)

or gallery:NAME[:UNKNOWNS], a matrix file, or poisson3d:M, without coordinates. The matrix lies on the device, as a CuPy
matrix for a GPU. Times are medians, from the matrix to the solver and from b to x, at a true relative residual of 1e-8.
b is random; with ``--exact`` b = A x for a random x: rounding forbids 1e-8 for random b on thin slabs.
With ``--repeat`` 5 or more the first run, which may compile, does not count. ``--launches`` adds what
benchmarks/amg_cycle.py prints of the first choice.
"""
from __future__ import annotations

import argparse
import itertools
import json
import pathlib

import numpy as np
import scipy.sparse as sp
from whole_solves import append, on_device, right_hand_side, timed

import swell
from swell import gallery
from swell.core.devices import make_space

AGGREGATES = {"W2": {}, "W3": {"degree": 3}, "V2": {"cycle": "V"}, "V3": {"cycle": "V", "degree": 3}}
PLAIN = {"constants": swell.SmoothedAggregation(), "classical": swell.AMG(), "ic0": "ic0", "auto": None}
CHOICES = [*AGGREGATES, *PLAIN]


def box(shape, size, poisson, ratio=1.0):
    """A body of triangles or tetrahedra; with a ``ratio``, 4³ blocks have random moduli between 1 and this."""
    points, cells = gallery.box_mesh(shape, size)
    blocks = np.minimum(4 * points[cells].mean(axis=1) / np.array(size), 3.99).astype(int)
    young = ratio ** np.random.default_rng(0).random((4,) * len(shape))[tuple(blocks.T)]
    return gallery.elastic_body(points, cells, points[:, 0] == 0, young, poisson)


def hexahedra(shape, size, poisson=0.3):
    """A box of trilinear elements, held at x = 0, by Kronecker products of the matrices of a line."""
    points, widths = gallery.box_mesh(shape, size)[0], [side / m for side, m in zip(size, shape)]
    ends = [sp.diags_array(np.r_[1.0, np.full(m - 1, 2.0), 1.0]) for m in shape]
    beside = [sp.diags_array([np.ones(m)] * 2, offsets=[-1, 1]) for m in shape]
    mass = [(2 * e + s) * (h / 6) for e, s, h in zip(ends, beside, widths)]
    stiff = [(e - s) / h for e, s, h in zip(ends, beside, widths)]
    slope = [sp.diags_array([np.r_[-0.5, np.zeros(m - 1), 0.5], np.full(m, 0.5), np.full(m, -0.5)],
                            offsets=[0, 1, -1]) for m in shape]                # ∫ φᵢ' φⱼ, the transpose of ∫ φᵢ φⱼ'

    def derivatives(a, b):
        """∫ ∂ₐφᵢ ∂ᵦφⱼ."""
        x, y, z = (stiff[k] if k == a == b else slope[k].T if k == a else slope[k] if k == b else mass[k]
                   for k in range(3))
        return sp.kron(sp.kron(x, y), z, format="csr")

    first, second = poisson / ((1 + poisson) * (1 - 2 * poisson)), 1 / (2 * (1 + poisson))     # Lamé's constants
    shear = second * sum(derivatives(a, a) for a in range(3))
    blocks = [[first * derivatives(a, b) + second * derivatives(b, a) + (shear if a == b else 0 * shear)
               for b in range(3)] for a in range(3)]
    free = np.flatnonzero(points[:, 0] > 0)
    rows = (free[:, None] + len(points) * np.arange(3)).ravel()
    A = sp.bmat(blocks, format="csr")[rows][:, rows]
    return ((A + A.T) / 2).tobsr((3, 3)).tocsr(), points[free]                 # whole blocks, as elements assemble them


def held(basis, poisson):
    """Matrix and positions of the free nodes of a body of any elements, held at the lower end of its longest side."""
    import skfem as fe
    from skfem.models.elasticity import lame_parameters, linear_elasticity
    K = fe.asm(linear_elasticity(*lame_parameters(1.0, poisson)), basis)
    places, first = basis.doflocs.T, np.ptp(basis.doflocs, axis=1).argmax()
    node = np.unique(np.round(places / np.ptp(places) * 1e8), axis=0, return_inverse=True)[1].reshape(-1)
    along = places[:, first]
    order = np.argsort(node, kind="stable")                                    # the unknowns of a node, consecutive
    rows = order[along[order] > along.min() + 1e-6 * np.ptp(along)]
    A = K[rows][:, rows].tocsr()
    return ((A + A.T) / 2).tocsr(), places[rows[::3]]


def quadratic(path, poisson=0.3):
    """The tetrahedra of a mesh file as elements of degree 2."""
    import skfem as fe
    points, cells = tetrahedra(path)
    mesh = fe.MeshTet(np.ascontiguousarray(points.T), np.ascontiguousarray(cells.T))
    return held(fe.Basis(mesh, fe.ElementVector(fe.ElementTetP2())), float(poisson))


def tetrahedra(path):
    """The points and tetrahedra of a mesh file."""
    import meshio
    mesh = meshio.read(path)
    used, cells = np.unique(mesh.cells_dict["tetra"], return_inverse=True)
    return mesh.points[used], cells.reshape(-1, 4)


def from_file(path, poisson=0.3, refined=0):
    """The tetrahedra of a mesh file, held at the lower end of its longest side."""
    points, cells = tetrahedra(path)
    for _ in range(int(refined)):
        points, cells = cut(points, cells)
    along = points[:, np.ptp(points, axis=0).argmax()]
    return gallery.elastic_body(points, cells, along < along.min() + 1e-6 * np.ptp(along), 1.0, float(poisson))


def cut(points, cells):
    """Each tetrahedron cut into eight, at the midpoints of its edges."""
    pairs = [*itertools.combinations(range(4), 2)]
    edges = np.sort(np.concatenate([cells[:, pair] for pair in pairs]), axis=1)
    edges, places = np.unique(edges, axis=0, return_inverse=True)
    middle = dict(zip(pairs, len(points) + places.reshape(6, -1)))
    corners = [[cells[:, a], *(middle[min(a, b), max(a, b)] for b in range(4) if b != a)] for a in range(4)]
    inner = [[middle[0, 2], middle[1, 3], middle[a], middle[b]]
             for a, b in (((0, 1), (0, 3)), ((0, 3), (2, 3)), ((2, 3), (1, 2)), ((1, 2), (0, 1)))]
    return (np.concatenate([points, points[edges].mean(axis=1)]),
            np.concatenate([np.stack(part, axis=1) for part in corners + inner]))


def body(text):
    """(matrix, coordinates or None) of a name."""
    kind, *numbers = text.split(":")
    if pathlib.Path(kind).suffix in (".msh", ".exo", ".vtk", ".vtu", ".mesh"):
        return from_file(kind, *numbers)
    if kind == "quadratic":
        return quadratic(*numbers)
    if kind not in ("plate", "tets", "hexes", "beam", "jumps", "slab", "poisson3d"):
        from swell.cli import source
        return source.read_system(text)[0].tocsr().astype(float), None
    m, value = int(numbers[0]), float(numbers[1]) if len(numbers) > 1 else 0.3
    height = value if len(numbers) > 1 else 1.0
    cube, unit = (m, m, m), (1.0, 1.0, 1.0)
    return {"plate": lambda: box((m, m), (1.0, 1.0), value), "tets": lambda: box(cube, unit, value),
            "slab": lambda: hexahedra((m, m, 2), (m, m, 2 * height)), "hexes": lambda: hexahedra(cube, unit, value),
            "beam": lambda: box((8 * m, m, m), (8.0, 1.0, 1.0), value), "jumps": lambda: box(cube, unit, 0.3, value),
            "poisson3d": lambda: (gallery.poisson3d(m).tocsr(), None)}[kind]()


def preconditioner(choice, points):
    """Settings for the name of a choice and the coordinates, or None; None for what swell chooses by itself."""
    if choice in AGGREGATES:
        return swell.SmoothedAggregation(coordinates=points, **AGGREGATES[choice])
    return PLAIN[choice]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bodies", nargs="+", metavar="BODY")
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--choices", default="W2,W3,V2", help=f"some of {','.join(CHOICES)}")
    parser.add_argument("--launches", action="store_true", help="each launch of a cycle, on a GPU")
    parser.add_argument("--exact", action="store_true", help="b = A x for a random x")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", help="append a line of JSON for each choice")
    given = parser.parse_args()
    choices = given.choices.split(",")
    if set(choices) - set(CHOICES):
        parser.error(f"--choices {given.choices}: expected some of {','.join(CHOICES)}")
    for name in given.bodies:
        A, points = body(name)
        if given.launches:
            from amg_cycle import measure as cycle
            cycle(make_space(given.device), name, A, preconditioner(choices[0], points))
        b = right_hand_side(A.shape[0])
        A, b = on_device(given.device, A, A @ b if given.exact else b)
        for choice in choices:
            measure(given, name, A, b, choice, preconditioner(choice, points))


def levels(hierarchy):
    """The rows of each level and the operator complexity."""
    return {"rows": [M.shape[0] for M in hierarchy.matrices], "complexity": round(hierarchy.operator_complexity, 2)}


def measure(given, name, A, b, choice, precond):
    """Print and record one choice."""
    def prepare():
        return swell.prepare(A, method=precond and "cg", precond=precond, device=given.device)

    solver, result, times = timed(prepare, A, b, given.device, given.repeat, 2, 5)
    record = {"body": name, "b": "A x" if given.exact else "random", "device": given.device, "n": A.shape[0],
              "nnz": int(A.nnz), "choice": choice,
              "iterations": result.iterations, "reason": result.reason.name,
              **(levels(solver.M.hierarchy) if choice in AGGREGATES or choice in ("constants", "classical") else {}),
              **times}
    print(json.dumps(record), flush=True)
    append(given.out, record)


if __name__ == "__main__":
    main()
