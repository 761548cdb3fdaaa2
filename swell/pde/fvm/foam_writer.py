"""Writer of OpenFOAM meshes: constant/polyMesh in binary, with labels of 32 bits and scalars of 64."""
import re

import numpy as np

from swell.core.errors import InputError
from swell.io.files import as_path, write_atomically
from swell.pde.fvm.foam_dictionary import text_of

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
    for name, (kind, form, content) in files.items():
        _write(folder / name, _header(name, kind, form) + content)


def write_field(folder, name, kind, dimensions, values, boundary):
    """Write a field into the folder of a time, in binary.

    Parameters
    ----------
    folder : Path
        Created if missing.
    name, kind, dimensions : str
        The field, its class such as "volScalarField", and its dimensions such as "[0 1 -1 0 0 0 0]".
    values : array, shape (n,) or (n, 3)
    boundary : dict of str to dict
        Patch name, or pattern → its entries, each a list of words, as `FoamDictionary` parses them.

    Raises
    ------
    InputError
        If the folder cannot be written.
    """
    parts = [_header(name, kind, "binary", folder.name), f"dimensions {dimensions};\n\ninternalField ".encode(),
             *_words(["nonuniform", np.asarray(values, float)]), b";\n\nboundaryField\n{\n"]
    for patch, entries in boundary.items():
        parts.append(f"    {_word(patch)}\n    {{\n".encode())
        for key, words in entries.items():
            parts += [f"        {key} ".encode(), *_words(words), b";\n"]
        parts.append(b"    }\n")
    _write(folder / name, b"".join([*parts, b"}\n"]))


def _write(path, content):
    """Write ``content`` into a file, whole or not at all: half a file would be a damaged case. Its folder is made if
    missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{error.filename or path.parent} cannot be written ({error.strerror}): name another "
                         "folder") from None
    write_atomically(path, lambda stream: stream.write(content))


def _words(words):
    """Return the words of an entry as a list of bytes: text, lists in parentheses, and arrays as binary lists."""
    parts = []
    for word in words:
        if isinstance(word, np.ndarray):
            what = b"vector" if word.ndim == 2 else b"scalar"
            parts.append(b"List<%s> %d\n(" % (what, len(word)) + word.astype(SCALAR).tobytes() + b")")
        else:
            parts.append(f"({text_of(word)})".encode() if isinstance(word, list) else str(word).encode())
        parts.append(b" ")
    return parts[:-1]


def _header(name, kind, form, location="constant/polyMesh"):
    """Return the header of an OpenFOAM file as bytes; ``name``: the object, ``kind``: its class, ``form``: "binary" or
    "ascii", ``location``: its folder in the case."""
    says = {"version": "2.0", "format": form, "arch": '"LSB;label=32;scalar=64"', "class": kind,
            "location": f'"{location}"', "object": name}
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
        says |= {"neighbourPatch": _word(patch.neighbour)} if patch.kind == "cyclic" else {}
        says |= entries.get(patch.name, {})
        lines += [f"    {_word(patch.name)}", "    {", *_entries(says, 8), "    }"]
    return "polyBoundaryMesh", "ascii", "\n".join([*lines, ")", ""]).encode()


def _entries(says, indent):
    """Return the lines "key value;" of the dict ``says``, indented by ``indent`` spaces."""
    return [f"{' ' * indent}{key} {value};" for key, value in says.items()]


def _word(name):
    """Return a name as OpenFOAM writes it: in quotes unless it is one word."""
    return name if WORD.fullmatch(name) else f'"{name}"'
