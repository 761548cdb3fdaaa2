"""Writer of OpenFOAM meshes: constant/polyMesh in binary, with labels of 32 bits and scalars of 64."""
from __future__ import annotations

import re

import numpy as np

from swell.core.errors import InputError
from swell.io.files import as_path

LABEL, SCALAR = np.dtype("<i4"), np.dtype("<f8")
WORD = re.compile(r"[\w.:+-]+")


def write_polymesh(mesh, case, entries=None, lists=None):
    """Write a mesh into a case.

    Parameters
    ----------
    mesh : Mesh
    case : str or path-like
        The case's folder, created if missing. Files of a mesh in its constant/polyMesh are replaced.
    entries : dict of str to dict, optional
        Patch name → further entries of the patch in the file boundary.
    lists : dict of str to int array, optional
        File name → list of integers to write beside the mesh.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    folder = as_path(case) / "constant" / "polyMesh"
    files = {"points": _list("vectorField", (len(mesh.points), mesh.points, SCALAR)),
             "faces": _list("faceCompactList", (mesh.n_faces + 1, mesh.face_ptr, LABEL),
                            (mesh.face_points.size, mesh.face_points, LABEL)),
             "boundary": _boundary(mesh.patches, entries or {}),
             **{name: _list("labelList", (values.size, values, LABEL))
                for name, values in {"owner": mesh.owner, "neighbour": mesh.neighbour, **(lists or {})}.items()}}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, (kind, form, content) in files.items():
            (folder / name).write_bytes(_header(name, kind, form) + content)
    except OSError as error:
        raise InputError(f"{error.filename or folder} cannot be written ({error.strerror}): name another "
                         "folder") from None


def _header(name, kind, form):
    """Return the header of an OpenFOAM file as bytes; ``name``: the object, ``kind``: its class, ``form``: "binary" or
    "ascii"."""
    says = {"version": "2.0", "format": form, "arch": '"LSB;label=32;scalar=64"', "class": kind,
            "location": '"constant/polyMesh"', "object": name}
    return "\n".join(["FoamFile", "{", *_entries(says, 4), "}", "", ""]).encode()


def _list(kind, *parts):
    """Return (class, format, content) of a file of binary lists; ``parts``: (count, values, type) of each list,
    ``kind``: the class."""
    content = [b"%d\n" % count + (b"(" + np.asarray(values).astype(form).tobytes() + b")" if count else b"") + b"\n"
               for count, values, form in parts]
    return kind, "binary", b"\n".join(content)


def _boundary(patches, entries):
    """Return (class, format, content) of the file boundary, which lists ``patches``; ``entries``: patch name → dict of
    further entries."""
    lines = [str(len(patches)), "("]
    for patch in patches:
        says = {"type": patch.kind, "nFaces": patch.size, "startFace": patch.start}
        says |= {"neighbourPatch": _word(patch.neighbour)} if patch.neighbour else {}
        says |= entries.get(patch.name, {})
        lines += [f"    {_word(patch.name)}", "    {", *_entries(says, 8), "    }"]
    return "polyBoundaryMesh", "ascii", "\n".join([*lines, ")", ""]).encode()


def _entries(says, indent):
    """Return the lines "key value;" of the dict ``says``, indented by ``indent`` spaces."""
    return [f"{' ' * indent}{key} {value};" for key, value in says.items()]


def _word(name):
    """Return a name as OpenFOAM writes it: in quotes unless it is one word."""
    return name if WORD.fullmatch(name) else f'"{name}"'
