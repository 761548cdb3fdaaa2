"""Divide a mesh into parts, one for each rank of mpiexec; write part k to a folder processor<k>.

    swell decompose mesh.msh --parts 4 --out case
    mpiexec -n 4 swell fvm case --patch-bc inlet=1 ... --out p.pvtu

The parts are nearly equal in size, with few faces between them. The folders are as OpenFOAM's decomposePar writes them.
If the folder to write is the case itself, and the case has U and p, they are divided too, as swell flow needs:

    swell decompose cavity --parts 4 --out cavity
    mpiexec -n 4 swell flow cavity --out flow.pvtu
"""
from __future__ import annotations

from pathlib import Path

from swell.core.errors import InputError

HELP = "divide a mesh into parts, one for each rank"


def add_arguments(parser):
    """Add the arguments of ``swell decompose``."""
    parser.add_argument("MESH", help="OpenFOAM case or polyMesh folder, a mesh file that meshio reads, or box:NX,NY,NZ")
    parser.add_argument("--parts", type=int, required=True, metavar="N", help="number of parts, one for each rank")
    parser.add_argument("--out", required=True, metavar="CASE", help="the folder to write: a new one, or an OpenFOAM "
                        "case itself")


def run(arguments) -> int:
    """Read the mesh, divide it, write and describe the parts; return the exit status."""
    if arguments.parts < 1:
        raise InputError(f"--parts {arguments.parts}: expected 1 or more, as many as there will be ranks")
    import numpy as np

    from swell.cli.fvm import read_case
    from swell.distributed.partition import load_balance
    from swell.pde.fvm import decompose
    from swell.pde.fvm import read_case as flow_case
    path, command = Path(arguments.MESH), "fvm"
    if path.is_dir() and path.resolve() == Path(arguments.out).resolve() and any(
            field for name in ("U", "U.gz") for field in path.glob(f"*/{name}")):
        command, case = "flow", flow_case(path, laminar=True)
        mesh, cells = case.mesh, case.decompose(arguments.parts)
    else:
        mesh = read_case(arguments.MESH, None)
        cells = decompose(mesh, arguments.parts, arguments.out)
    part = np.empty(mesh.n_cells, np.int64)
    for rank, members in enumerate(cells):
        part[members] = rank
    sides = part[np.stack([mesh.owner[:mesh.n_internal], mesh.neighbour])]
    between = np.bincount(sides[:, sides[0] != sides[1]].ravel(), minlength=arguments.parts)
    for rank, members in enumerate(cells):
        print(f"{arguments.out}/processor{rank}: {members.size} cells, {between[rank]} faces to other parts")
    print(f"load balance {load_balance([members.size for members in cells]):.3f} (1 is even); next: mpiexec -n "
          f"{arguments.parts} swell {command} {arguments.out} ...")
    return 0
