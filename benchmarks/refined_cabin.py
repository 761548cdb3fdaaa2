"""The real cabin on a refined mesh: every hexahedron in eight, for twice the frequency at as many nodes a wavelength.

    python benchmarks/refined_cabin.py FOLDER OUT [--times 1]
    swell bench helmholtz --meshes "" --files OUT --frequencies 600 --methods cocg --preconds none jacobi ilu0

FOLDER has carinterior.mat (car_cabin/ of the real systems); its K.npz, M.npz and B.npz are those of --times 0. OUT
gets them for the finer mesh: 34 306 unknowns become 261 035 by the first time. These are put in the order of Cuthill and
McKee, since scikit-fem puts new points behind all old ones.
"""
from __future__ import annotations

import argparse
import pathlib

import numpy as np
import scipy.io
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from swell.bench import engine
from swell.pde import helmholtz
from swell.pde.helmholtz.meshes import ORDER


def cabin(folder):
    """The mesh as it is published."""
    given = scipy.io.loadmat(folder / "carinterior.mat")["mesh"][0, 0]
    labels, elements = given["Nodes"][:, 0].astype(int), given["Elements"][:, 4:].astype(int)
    number = np.zeros(labels.max() + 1, int)
    number[labels] = np.arange(labels.size)
    return helmholtz.Mesh(given["Nodes"][:, 1:], "hexahedron", number[elements])


def refined(mesh):
    """Every cell in eight, by scikit-fem, its corners in VTK's order again."""
    fine = mesh.fem.refined()
    return helmholtz.Mesh(fine.p.T, "hexahedron", fine.t[np.argsort(ORDER["hexahedron"])].T)


def main():
    """Refine, assemble, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--times", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.times < 0:
        parser.error(f"--times {arguments.times}: expected 0 or more")
    if not (arguments.folder / "carinterior.mat").exists():
        parser.error(f"{arguments.folder} has no carinterior.mat: name the folder car_cabin of the real systems")
    if arguments.out.resolve() == arguments.folder.resolve():
        parser.error(f"{arguments.out} would be overwritten: name another folder")
    mesh = cabin(arguments.folder)
    for _ in range(arguments.times):
        mesh = refined(mesh)
    problem = helmholtz.Helmholtz(mesh, helmholtz.Medium(1.0, 1.0), {"boundary": helmholtz.Impedance(1.0)})
    matrices = problem.matrices
    if arguments.times:
        order = reverse_cuthill_mckee(matrices[0], symmetric_mode=True)
        matrices = [matrix[order][:, order] for matrix in matrices]
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, matrix in zip("KMB", matrices):
        sp.save_npz(arguments.out / f"{name}.npz", matrix, compressed=False)
    engine.tell(f"{len(mesh.cells)} cells, {len(mesh.points)} unknowns in {arguments.out}")


if __name__ == "__main__":
    main()
