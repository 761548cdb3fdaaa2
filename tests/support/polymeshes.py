"""Meshes for tests of finite volumes, and the files of OpenFOAM that hold them."""
import gzip

import numpy as np
from tests.support.cases import rng

from swell.pde import fvm

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
