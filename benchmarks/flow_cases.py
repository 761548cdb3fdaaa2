"""Writes OpenFOAM cases of laminar flow, solves them by `swell flow`, and prints the numbers beside published ones.

    python benchmarks/flow_cases.py cavity --reynolds 400 --cells 128 --into cases
    python benchmarks/flow_cases.py cylinder --reynolds 20 --cells 48 --into cases
    python benchmarks/flow_cases.py cylinder --reynolds 100 --cells 64 --into cases --device cuda --dt 0.001
    python benchmarks/flow_cases.py step --reynolds 800 --cells 64 --into cases
    python benchmarks/flow_cases.py hump --reynolds 500 --data ../shared/data/openfoam --into cases
    python benchmarks/flow_cases.py room --reynolds 50 --data ../shared/data/openfoam --into cases

The case is written to a new folder, such as cases/cavity_400_128. Options that this script does not know go on to
`swell flow`. --write ends after writing.

cavity    a square with a moving lid: Ghia, Ghia and Shin, J. Comput. Phys. 48 (1982) 387, tables I and II.
cylinder  in a channel: Schäfer and Turek 1996, steady 2D-1 (Re 20) and periodic 2D-2 (Re 100).
step      a channel that doubles its height: Gartling, Int. J. Numer. Meth. Fluids 11 (1990) 953, Re 800.
hump      OpenFOAM's mesh of a wall-mounted hump, 0.128 high, of very flat cells.
room      a ventilated room of 16 × 32 × 8 m: twenty square inlets of side 0.52, six outlets, polyhedral cells.
"""
from __future__ import annotations

import argparse
import pathlib
import shutil

import numpy as np

from swell.cli import main as swell_command
from swell.display.figure import png
from swell.pde import fvm
from swell.report import flow as report
from swell.report.section import section

# Ghia, Ghia and Shin: u at the heights Y of the vertical centre line, v at the places X of the horizontal one.
Y = np.array([1, .9766, .9688, .9609, .9531, .8516, .7344, .6172, .5, .4531, .2813, .1719, .1016, .0703, .0625, .0547,
              0])
X = np.array([1, .9688, .9609, .9531, .9453, .9063, .8594, .8047, .5, .2344, .2266, .1563, .0938, .0781, .0703, .0625,
              0])
U = {100: [1, .84123, .78871, .73722, .68717, .23151, .00332, -.13641, -.20581, -.21090, -.15662, -.10150, -.06434,
           -.04775, -.04192, -.03717, 0],
     400: [1, .75837, .68439, .61756, .55892, .29093, .16256, .02135, -.11477, -.17119, -.32726, -.24299, -.14612,
           -.10338, -.09266, -.08186, 0],
     1000: [1, .65928, .57492, .51117, .46604, .33304, .18719, .05702, -.06080, -.10648, -.27805, -.38289, -.29730,
            -.22220, -.20196, -.18109, 0]}
V = {100: [0, -.05906, -.07391, -.08864, -.10313, -.16914, -.22445, -.24533, .05454, .17527, .17507, .16077, .12317,
           .10890, .10091, .09233, 0],
     400: [0, -.12146, -.15663, -.19254, -.22847, np.nan, -.44993, -.38598, .05186, .30174, .30203, .28124, .22965,
           .20920, .19713, .18360, 0],              # the printed v at x = 0.9063 lies far off its neighbours: left out
     1000: [0, -.21388, -.27669, -.33714, -.39188, -.51550, -.42665, -.31966, .02526, .32235, .33075, .37095, .32627,
            .30353, .29012, .27485, 0]}
DIAMETER, HEIGHT = 0.1, 0.41                                                    # of the cylinder, of its channel
PUBLISHED = {20: {"c_D": (5.57, 5.59), "c_L": (0.0104, 0.0110), "pressure difference": (0.1172, 0.1176)},
             100: {"largest c_D": (3.22, 3.24), "largest c_L": (0.99, 1.01), "Strouhal number": (0.295, 0.305)}}
NO_SLIP, OPEN, MIRROR = "type noSlip;", "type zeroGradient;", "type slip;"
ZERO = "type fixedValue; value uniform 0;"
EMPTY = "type empty;"


def fixed(values):
    """Return the condition of given velocities: one vector, or an array of shape (faces, 3)."""
    values = np.asarray(values, float)
    if values.ndim == 1:
        return f"type fixedValue; value uniform {vector(values)};"
    return f"type fixedValue; value nonuniform List<vector> {len(values)} ({' '.join(map(vector, values))});"


def vector(u):
    return f"({u[0]:.12g} {u[1]:.12g} {u[2]:.12g})"


def back_flow(u=(0, 0, 0)):
    return f"type inletOutlet; inletValue uniform {vector(u)}; value uniform {vector(u)};"


def write(case, mesh, velocity, pressure, viscosity, control, start=(0, 0, 0)):
    """Write a case.

    Parameters
    ----------
    case : Path
        A folder that does not exist.
    mesh : Mesh, or folder with the files of a polyMesh
    velocity, pressure : dict of str to str
        Patch name or pattern → entries of its condition.
    viscosity : float
    control : str
        Entries of system/controlDict.
    start : tuple of 3 float
    """
    case.mkdir(parents=True)
    if isinstance(mesh, pathlib.Path):
        (case / "constant" / "polyMesh").mkdir(parents=True)
        for path in mesh.iterdir():
            if path.name != "phi.gz":
                shutil.copy(path, case / "constant" / "polyMesh")
    else:
        fvm.write_polymesh(mesh, case)
    for name, kind, dimensions, inside, conditions in (
            ("U", "volVectorField", "0 1 -1 0 0 0 0", vector(start), velocity),
            ("p", "volScalarField", "0 2 -2 0 0 0 0", "0", pressure)):
        sides = "\n".join(f"    {patch} {{ {entries} }}" for patch, entries in conditions.items())
        put(case / "0" / name, kind, f"dimensions [{dimensions}];\ninternalField uniform {inside};\n"
            f"boundaryField\n{{\n{sides}\n}}")
    put(case / "constant" / "transportProperties", "dictionary", f"nu [0 2 -1 0 0 0 0] {viscosity:.12g};")
    put(case / "system" / "controlDict", "dictionary", f"startFrom latestTime;\n{control}")


def put(path, kind, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"FoamFile\n{{\n    version 2.0;\n    format ascii;\n    class {kind};\n    object {path.name};\n}}"
                    f"\n{text}\n")


def cavity(case, reynolds, cells, **_):
    write(case, fvm.box((cells, cells)), {"ymax": fixed((1, 0, 0)), '"(xmin|xmax|ymin)"': NO_SLIP, '"z.*"': EMPTY},
          {'"[xy].*"': OPEN, '"z.*"': EMPTY}, 1 / reynolds, "application simpleFoam;")
    return ["--relax", "0.9", "--scheme", "linear"]


def compare_cavity(found, reynolds, cells, history):
    """The largest difference of each profile from Ghia's table."""
    from scipy.interpolate import CubicSpline
    u, v = (found.start.velocity[:, i].reshape(cells, cells) for i in (0, 1))
    middle = slice((cells - 1) // 2, cells // 2 + 1)
    along = np.concatenate([[0], found.mesh.centres[:cells, 0], [1]])
    u = CubicSpline(along, np.concatenate([[0], u[:, middle].mean(1), [1]]))
    v = CubicSpline(along, np.concatenate([[0], v[middle].mean(0), [0]]))
    for name, profile, at, table in (("u", u, Y, U), ("v", v, X, V)):
        off = abs(profile(at) - table[reynolds])
        print(f"  {name}: largest difference from Ghia {np.nanmax(off):.4f}, at {at[np.nanargmax(off)]}")


def channel_with_cylinder(n):
    """Return the mesh: n cells on each quarter of the circle, n from it to the rectangle around, 3 n columns behind.

    Inner points solve a Laplace equation on the grid of their indices, so that no line bends inside."""
    import meshio
    centre, side = np.array([0.2, 0.2]), np.linspace(0, 1, n + 1)
    corners = np.array([(0.4, 0), (0.4, HEIGHT), (0, HEIGHT), (0, 0)], float)
    outer = np.concatenate([a + (b - a) * side[:-1, None] for a, b in zip(corners, np.roll(corners, -1, axis=0))])
    angle = 2 * np.pi * (np.arange(4 * n) / (4 * n) - 1 / 8)
    circle = centre + DIAMETER / 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    away = np.concatenate([[0], np.cumsum(3 ** (np.arange(n) / n))])[:, None, None]             # last cell/first: 3
    ring = circle + (outer - circle) * away / away[-1]                                         # (n + 1, 4 n, 2)
    number = np.arange(ring.size // 2).reshape(n + 1, 4 * n)
    quads = [quads_of(np.concatenate([number, number[:, :1]], axis=1))]
    along = np.concatenate([[0], np.cumsum(2.5 ** (np.arange(3 * n) / (3 * n)))])
    along = 0.4 + 1.8 * along[1:] / along[-1]
    behind = np.stack(np.meshgrid(along, side * HEIGHT, indexing="ij"), axis=2)
    right = number[-1, :n + 1]
    later = ring.size // 2 + np.arange(behind.size // 2).reshape(3 * n, n + 1)
    columns = np.concatenate([right[None], later])
    quads.append(quads_of(columns))
    closed = np.append(number[0], number[0, 0])
    top, inlet, bottom = (number[-1, k * n:(k + 1) * n + 1] for k in (1, 2, 3))
    bottom = np.append(bottom, number[-1, 0])
    lines = {"cylinder": [closed], "inlet": [inlet], "outlet": [columns[-1]],
             "walls": [top, bottom, columns[:, 0], columns[:, -1]]}
    cells, sets, at = [("quad", np.concatenate(quads))], {}, 0
    edges = {name: np.concatenate([np.stack([path[:-1], path[1:]], axis=1) for path in paths])
             for name, paths in lines.items()}
    cells.append(("line", np.concatenate(list(edges.values()))))
    for name, part in edges.items():
        sets[name] = [np.zeros(0, int), np.arange(at, at + len(part))]
        at += len(part)
    points = np.concatenate([ring.reshape(-1, 2), behind.reshape(-1, 2)])
    steps = 1.48 * np.diff(away.ravel()) / away[-1].item()       # ln(0.22/0.05), to angles of π/2 a quarter
    smooth(points, [(np.concatenate([number, number[:, :1]], axis=1), steps, np.pi / 2 / n),
                    (columns, np.diff(np.append(0.4, along)) / HEIGHT, 1 / n)])
    return fvm.from_meshio(meshio.Mesh(np.pad(points, ((0, 0), (0, 1))), cells, cell_sets=sets))


def smooth(points, blocks):
    """Replace the points that lie on no boundary by the solution of a Laplace equation on the grid.

    ``blocks``: (numbers of the points in rows and columns, steps from row to row, step from column to column)."""
    import scipy.sparse as sp
    count, entries = len(points), []
    for number, rows, column in blocks:
        sizes = np.convolve(rows, [0.5, 0.5])[:, None]
        weights = np.broadcast_to((column / rows)[:, None], number[1:].shape).copy()
        entries += [(number[:-1], number[1:], weights),
                    (number[:, :-1], number[:, 1:], np.broadcast_to(sizes / column, number[:, 1:].shape))]
    i, j, w = (np.concatenate([entry[k].ravel() for entry in entries]) for k in range(3))
    both = np.concatenate([i, j]), np.concatenate([j, i])
    A = sp.coo_matrix((np.concatenate([w, w]), both), (count, count)).tocsr()
    quads = np.concatenate([quads_of(number) for number, _, _ in blocks])
    inner = np.bincount(quads.ravel(), minlength=count) == 4                    # four cells meet there
    L = (sp.diags(np.asarray(A.sum(axis=1)).ravel()) - A).tocsr()[inner]
    points[inner] = sp.linalg.spsolve(L[:, inner].tocsc(), -L[:, ~inner] @ points[~inner])


def quads_of(number):
    """Return the quadrilaterals of a block, shape (k, 4); ``number``: its points, in rows and columns."""
    return np.stack([number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]], axis=2).reshape(-1, 4)


def cylinder(case, reynolds, cells, **_):
    mesh = channel_with_cylinder(cells)
    y = mesh.face_centres[next(p for p in mesh.patches if p.name == "inlet").faces, 1]
    mean = reynolds * 1e-3 / DIAMETER
    u = 1.5 * mean * 4 * y * (HEIGHT - y) / HEIGHT ** 2
    sides = {'"front|back|.*empty.*"': EMPTY}
    write(case, mesh, {"inlet": fixed(u[:, None] * [1, 0, 0]), "outlet": OPEN, '"walls|cylinder"': NO_SLIP, **sides},
          {'"inlet|walls|cylinder"': OPEN, "outlet": ZERO, **sides}, 1e-3,
          "application simpleFoam;" if reynolds < 40 else
          "application pimpleFoam; endTime 8; deltaT 0.002; writeControl runTime; writeInterval 8;")
    steady = ["--relax", "0.9", "--scheme", "linear"] if reynolds < 40 else []
    return ["--forces", "cylinder", "--coefficients", f"{mean:.12g},{DIAMETER}", *steady]


def compare_cylinder(found, reynolds, cells, history):
    """Drag and lift coefficients, and the pressure difference, or the Strouhal number."""
    c = {axis: history[f"cylinder pressure {axis}"] + history[f"cylinder viscous {axis}"] for axis in "xy"}
    if reynolds < 40:
        front, back = (value_at(found, (x, 0.2)) for x in (0.15, 0.25))
        numbers = {"c_D": c["x"][-1], "c_L": c["y"][-1], "pressure difference": front - back}
    else:
        t, lift = history["time"], c["y"]
        ups = np.flatnonzero((lift[:-1] < 0) & (lift[1:] >= 0))
        cross = t[ups] - lift[ups] * (t[ups + 1] - t[ups]) / (lift[ups + 1] - lift[ups])
        if cross.size < 6:
            print(f"  the lift changes its sign upwards {cross.size} times: march on until it is periodic")
            return
        last = t >= cross[-4]
        period = (cross[-1] - cross[-4]) / 3
        numbers = {"largest c_D": c["x"][last].max(), "largest c_L": lift[last].max(),
                   "Strouhal number": DIAMETER / (period * reynolds * 1e-3 / DIAMETER)}
        print(f"  last periods: {np.diff(cross)[-4:].round(5)}")
    for name, value in numbers.items():
        low, high = PUBLISHED.get(reynolds, {}).get(name, (np.nan, np.nan))
        print(f"  {name}: {value:.5g}, published {low} to {high}")


def value_at(found, point):
    """Return the pressure at a point of the plane, from a quadratic fit to the cells around."""
    off = found.mesh.centres[:, :2] - point
    near = np.argsort((off ** 2).sum(1))[:16]
    x, y = off[near].T / abs(off[near]).max()
    terms = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
    return np.linalg.lstsq(terms, found.start.p[near], rcond=None)[0][0]


def step(case, reynolds, cells, **_):
    """Gartling's channel: 30 heights long, the inlet is the upper half of its left side."""
    cells += cells % 2
    mesh = fvm.box((15 * cells // 2, cells), (0, -0.5, 0), (30, 0.5, 1), grading=(4, 1, 1))
    y = mesh.face_centres[next(p for p in mesh.patches if p.name == "xmin").faces, 1]
    u = np.where(y > 0, 24 * y * (0.5 - y), 0)
    write(case, mesh, {"xmin": fixed(u[:, None] * [1, 0, 0]), "xmax": OPEN, '"y.*"': NO_SLIP, '"z.*"': EMPTY},
          {'"xmin|y.*"': OPEN, "xmax": ZERO, '"z.*"': EMPTY}, 1 / reynolds, "application simpleFoam;", (0.5, 0, 0))
    return ["--relax", "0.9", "--scheme", "linear", "--maxiter", "5000"]


def compare_step(found, reynolds, cells, history):
    """Where the wall's friction changes its sign."""
    columns = 15 * (cells + cells % 2) // 2
    u, x = found.start.velocity[:, 0].reshape(-1, columns), found.mesh.centres[:columns, 0]
    for name, row in (("lower", u[0]), ("upper", u[-1])):
        at = np.flatnonzero(row[:-1] * row[1:] < 0)
        where = x[at] - row[at] * (x[at + 1] - x[at]) / (row[at + 1] - row[at])
        print(f"  {name} wall: the flow near it turns at x = {', '.join(f'{v:.3f}' for v in where) or 'none'}")
    print("  Gartling, Re 800: lower 6.10; upper 4.85 and 10.48")


def hump(case, reynolds, data, **_):
    write(case, data / "hump", {"b4-inlet": fixed((1, 0, 0)), "b5-outlet": OPEN, "b6-humpWall": NO_SLIP,
                                "b7-topWall": MIRROR}, {'"b4-inlet|b6-humpWall"': OPEN, "b5-outlet": ZERO,
                                                        "b7-topWall": MIRROR}, 0.128 / reynolds,
          "application simpleFoam;", (1, 0, 0))
    return ["--relax", "0.95", "--rtol", "1e-5"]


def room(case, reynolds, data, **_):
    write(case, data / "ac_room", {"inlet1": fixed((-1, 0, 0)), "inlet2": fixed((1, 0, 0)), '"outlet."': back_flow(),
                                   '".*[Ww]all.*|Machine_heat"': NO_SLIP},
          {'"outlet."': ZERO, '"inlet.|.*[Ww]all.*|Machine_heat"': OPEN}, 0.52 / reynolds, "application simpleFoam;")
    return ["--relax", "0.9", "--rtol", "1e-5", "--cut", "z=3.9"]                # through the inlets


def compare_curve(found, reynolds, cells, history):
    """The residuals of every hundredth iteration."""
    for k in sorted({*range(99, len(history["momentum"]), 100), len(history["momentum"]) - 1}):
        print(f"  iteration {k + 1}: momentum {history['momentum'][k]:.2e}, continuity {history['continuity'][k]:.2e}")
    u = np.linalg.norm(found.start.velocity, axis=1)
    print(f"  largest speed {u.max():.4f}, back flow in {100 * (found.start.velocity[:, 0] < 0).mean():.1f} % of cells")


CASES = {"cavity": (cavity, compare_cavity, 100, 64), "cylinder": (cylinder, compare_cylinder, 20, 32),
         "step": (step, compare_step, 800, 48), "hump": (hump, compare_curve, 500, 0),
         "room": (room, compare_curve, 50, 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     allow_abbrev=False)
    parser.add_argument("case", choices=CASES)
    parser.add_argument("--reynolds", type=float)
    parser.add_argument("--cells", type=int, help="a side of the cavity, a quarter of the circle, the step's channel")
    parser.add_argument("--into", type=pathlib.Path, required=True, help="folder in which the case is written")
    parser.add_argument("--data", type=pathlib.Path, help="folder of the meshes hump and ac_room")
    parser.add_argument("--picture", type=pathlib.Path, help="write the report's picture of speed and pressure, .png")
    parser.add_argument("--write", action="store_true", help="write the case, and do not solve it")
    given, rest = parser.parse_known_args()
    prepare, compare, reynolds, cells = CASES[given.case]
    reynolds, cells = given.reynolds or reynolds, given.cells or cells
    if given.case == "cavity" and reynolds not in U:
        parser.error(f"--reynolds {reynolds:g}: Ghia's tables here are of Re {', '.join(map(str, U))}")
    if given.data is None and not cells:
        parser.error(f"{given.case} needs --data, the folder of its mesh")
    case = given.into / "_".join([given.case, f"{reynolds:g}", *([str(cells)] if cells else [])])
    if case.exists():
        parser.error(f"{case} is there: remove it, or name another folder with --into")
    options = prepare(case=case, reynolds=reynolds, cells=cells, data=given.data)
    command = ["flow", str(case), *options, "--write-case", "--history", str(case / "history.csv"), "--report",
               str(case / "report.html"), *rest]
    print("swell", *command, flush=True)
    if given.write:
        return 0
    status = swell_command(command)
    if status > 1:                               # bad input, or interrupted before there was a flow
        return status
    history = np.atleast_1d(np.genfromtxt(case / "history.csv", delimiter=",", names=True, deletechars="",
                                          replace_space=" "))
    found = fvm.read_case(case, "latest")
    compare(found, reynolds, cells, history)
    if given.picture:
        cut = section(found.mesh, 2, 3.9) if given.case == "room" else section(found.mesh)
        given.picture.write_bytes(png(report.fields(found.start, cut)))
    return status


if __name__ == "__main__":
    raise SystemExit(main())
