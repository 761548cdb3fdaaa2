"""Meshes for tests of finite volumes, and the files of OpenFOAM that hold them."""
import gzip

import numpy as np
from cases import rng

from swell.pde import fvm
from swell.pde.fvm.mesh import turned_round
from swell.pde.fvm.submesh import points_of

BANNER = r"""/*--------------------------------*- C++ -*----------------------------------*\
  =========                 |
  \\      /  F ield         | OpenFOAM: // the banner has both kinds of comment
\*---------------------------------------------------------------------------*/
"""
RULE = "// * * * * * * * * * * * * * * * * * * * * //\n\n"
CLASSES = {"points": "vectorField", "faces": "faceList", "owner": "labelList", "neighbour": "labelList",
           "boundary": "polyBoundaryMesh"}


def header(name, form="ascii", arch="LSB;label=32;scalar=64", kind=None):
    """The head of a file."""
    return (f"{BANNER}FoamFile\n{{\n    version     2.0;\n    format      {form};\n    arch        \"{arch}\";\n"
            f"    class       {kind or CLASSES[name]};\n    location    \"constant/polyMesh\";\n    object      {name};\n"
            f"}}\n{RULE}").encode()


def texts(mesh):
    """The files of a mesh in text."""
    split = np.split(mesh.face_points, mesh.face_ptr[1:-1])
    entries = {
        "points": ["({} {} {})".format(*map(repr, map(float, p))) for p in mesh.points],
        "faces": [f"{len(face)}({' '.join(map(str, face))})" for face in split],
        "owner": map(str, mesh.owner), "neighbour": map(str, mesh.neighbour),
        "boundary": [f"    {p.name}\n    {{\n        type {p.kind};\n        inGroups List<word> 1(wall);\n"
                     f"        nFaces {p.size};\n        startFace {p.start};\n    }}" for p in mesh.patches],
    }
    counts = {"points": mesh.n_points, "faces": mesh.n_faces, "owner": mesh.n_faces, "neighbour": mesh.n_internal,
              "boundary": len(mesh.patches)}
    return {name: header(name) + f"{counts[name]}\n(\n".encode() + "\n".join(lines).encode() + b"\n)\n\n" + RULE.encode()
            for name, lines in entries.items()}


def binaries(mesh, label=32, scalar=64, order="<"):
    """The files of a mesh in binary."""
    integer, real = f"{order}i{label // 8}", f"{order}f{scalar // 8}"
    arch = f"{'LSB' if order == '<' else 'MSB'};label={label};scalar={scalar}"

    def raw(values, count, dtype):
        return f"{count}\n".encode() + (b"(" + np.asarray(values).astype(dtype).tobytes() + b")" if count else b"")

    lists = {"points": raw(mesh.points, mesh.n_points, real),
             "faces": raw(mesh.face_ptr, mesh.n_faces + 1, integer) + b"\n\n\n"
             + raw(mesh.face_points, mesh.face_points.size, integer),
             "owner": raw(mesh.owner, mesh.n_faces, integer),
             "neighbour": raw(mesh.neighbour, mesh.n_internal, integer)}
    files = {name: header(name, "binary", arch, "faceCompactList" if name == "faces" else None) + body + b"\n\n"
             + RULE.encode() for name, body in lists.items()}
    return {**files, "boundary": texts(mesh)["boundary"].replace(b"ascii", b"binary")}


def write(folder, files, packed=False, case=True):
    """Write them into a folder, as a case or as a bare polyMesh."""
    inside = folder / "constant" / "polyMesh" if case else folder
    inside.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if packed and name != "boundary":
            (inside / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (inside / name).write_bytes(content)
    return folder


def skewed(shape=(9, 8, 7)):
    """A box whose points are moved, so that faces are neither orthogonal nor plane."""
    mesh = fvm.box(shape)
    inner = ((mesh.points > 1e-9) & (mesh.points < mesh.points.max(0) - 1e-9)).all(axis=1)
    points = mesh.points + 0.15 / max(shape) * inner[:, None] * rng().uniform(-1, 1, mesh.points.shape)
    return fvm.Mesh.from_faces(points, mesh.face_ptr, mesh.face_points, mesh.owner, mesh.neighbour, mesh.patches)


def decompose(mesh, of_cell, folder, form=texts):
    """Write a mesh as decomposePar does, cells by ``of_cell``, each part in a form; the cells of each part."""
    cells = [np.flatnonzero(of_cell == k) for k in range(of_cell.max() + 1)]
    first, second = of_cell[mesh.owner[:mesh.n_internal]], of_cell[mesh.neighbour]
    for rank, own in enumerate(cells):
        number = np.full(mesh.n_cells, -1)
        number[own] = np.arange(own.size)
        chosen = [np.flatnonzero((first == rank) & (second == rank))]
        patches, at = [], chosen[0].size
        for patch in mesh.patches:
            faces = np.arange(patch.start, patch.start + patch.size)
            chosen.append(faces[of_cell[mesh.owner[faces]] == rank])
            patches.append((fvm.Patch(patch.name, at, chosen[-1].size, patch.kind), None))
            at += chosen[-1].size
        for other in range(len(cells)):
            faces = np.flatnonzero(((first == rank) & (second == other)) | ((first == other) & (second == rank)))
            if other != rank and faces.size:
                chosen.append(faces)
                patches.append((fvm.Patch(f"procBoundary{rank}to{other}", at, faces.size, "processor"), other))
                at += faces.size
        faces = np.concatenate(chosen)
        ptr, points = points_of(mesh, faces)
        turned = of_cell[mesh.owner[faces]] != rank
        points = turned_round(ptr, points, np.flatnonzero(turned))
        owner = np.where(turned, mesh.neighbour[np.minimum(faces, mesh.n_internal - 1)], mesh.owner[faces])
        used, points = np.unique(points, return_inverse=True)
        part = fvm.Mesh(mesh.points[used], ptr, points, number[owner], number[mesh.neighbour[chosen[0]]],
                        tuple(patch for patch, _ in patches))
        files = form(part)
        for patch, other in patches:
            if other is not None:
                files["boundary"] = files["boundary"].replace(
                    f"    {patch.name}\n    {{\n".encode(),
                    f"    {patch.name}\n    {{\n        myProcNo {rank};\n        neighbProcNo {other};\n".encode())
        write(folder / f"processor{rank}", files)
    return cells
