"""Writer of VTU files of polyhedra, for ParaView and VisIt; a file is written completely or not at all.

The format is VTK's XML with zlib-compressed data in base64, which every reader of VTU supports. meshio writes polyhedra
too, but needs a Python list of arrays for each cell, and reorders the cells. Here a million cells take seconds.

Source: VTK File Formats (Kitware), sections "UnstructuredGrid" and "Compression"; polyhedra as VTK 5.8 defined them.
"""
from __future__ import annotations

import base64
import sys
import zlib
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from swell.core.arrays import native
from swell.core.errors import InputError
from swell.core.library import native_kernels

POLYHEDRON = 42
BLOCK = 1 << 20         # bytes in a compressed block, before compression
TYPES = {"f4": "Float32", "f8": "Float64", "i4": "Int32", "i8": "Int64", "u1": "UInt8"}


def write_vtu(path, mesh, cell_data=None):
    """Write a mesh and fields on its cells.

    Parameters
    ----------
    path : str or path-like
        Must end in .vtu.
    mesh : Mesh
    cell_data : dict of str to array_like, optional
        Fields by name: real arrays of shape (n,), or (n, k) for vectors and tensors.

    Raises
    ------
    InputError
        For a wrong extension, fields of a wrong shape or type, or a folder that cannot be written.
    """
    from swell.io.files import to_write, write_atomically
    path = to_write(path, ".vtu")
    fields = {name: _field(name, values, mesh.n_cells) for name, values in (cell_data or {}).items()}
    write_atomically(path, lambda stream: _write(stream, mesh, fields))


def write_fields(path, mesh, cell_data):
    """Write a mesh and fields on its cells, as ``write_vtu`` does. Of a PartMesh each rank writes a VTU file of its
    part, and rank 0 the PVTU file ``path``, which lists them; all ranks call it together."""
    from swell.io.files import write_atomically
    if mesh.ranks is None:
        return write_vtu(path, mesh, cell_data)
    path, ranks = Path(path), mesh.ranks
    names = [f"{path.stem}_{rank}.vtu" for rank in range(ranks.size)]
    with ranks.agreed():
        if path.suffix.lower() != ".pvtu":
            raise InputError(f"cannot write {path}: the extension is {path.suffix or 'missing'}, expected .pvtu, for "
                             "each rank writes a file of its part")
        write_vtu(path.with_name(names[ranks.rank]), mesh, cell_data)
        if ranks.rank == 0:
            fields = {name: _field(name, values, mesh.n_cells) for name, values in cell_data.items()}
            write_atomically(path, lambda stream: stream.write(_names(names, mesh, fields).encode()))


def _names(files, mesh, fields) -> str:
    """Return the text of a PVTU file that lists the VTU files ``files``; ``fields``: name → checked array of ``mesh``'s
    cells."""
    def array(name, values):
        columns = f' NumberOfComponents="{values.shape[1]}"' if values.ndim == 2 else ""
        return f'<PDataArray type="{TYPES[values.dtype.str[1:]]}" Name={quoteattr(name)}{columns}/>'

    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    return "\n".join([
        '<?xml version="1.0"?>', f'<VTKFile type="PUnstructuredGrid" version="1.0" byte_order="{order}">',
        '<PUnstructuredGrid GhostLevel="0">', "<PPoints>", array("Points", mesh.points), "</PPoints>",
        "<PCellData>", *(array(*field) for field in fields.items()), "</PCellData>",
        *(f"<Piece Source={quoteattr(name)}/>" for name in files), "</PUnstructuredGrid>", "</VTKFile>", ""])


def _field(name, values, n):
    """Return a field's values as a contiguous array of a type that VTK supports; raise InputError unless they are real
    and there are n."""
    values = native(np.asarray(values))
    if values.dtype.kind not in "biuf":
        raise InputError(f"field {name!r} has the dtype {values.dtype}, expected real numbers; write .real and .imag "
                         "of a complex field as two")
    if values.ndim not in (1, 2) or len(values) != n:
        raise InputError(f"field {name!r} has shape {values.shape}, expected ({n},) or ({n}, k): one value, or one "
                         "row, for each cell")
    wide = {"b": np.uint8, "i": np.int64, "u": np.int64, "f": np.float64}[values.dtype.kind]
    return np.ascontiguousarray(values if values.dtype.str[1:] in TYPES else values.astype(wide))


def _write(stream, mesh, fields):
    """Write the whole VTU file to a binary stream; ``fields``: name → checked array."""
    def line(text):
        stream.write(text.encode() + b"\n")

    order = "LittleEndian" if sys.byteorder == "little" else "BigEndian"
    line('<?xml version="1.0"?>')
    line(f'<VTKFile type="UnstructuredGrid" version="1.0" byte_order="{order}" header_type="UInt64" '
         'compressor="vtkZLibDataCompressor">')
    line("<UnstructuredGrid>")
    line(f'<Piece NumberOfPoints="{mesh.n_points}" NumberOfCells="{mesh.n_cells}">')
    line("<Points>")
    _array(stream, "Points", mesh.points)
    line("</Points>\n<Cells>")
    for name, values in _cells(mesh).items():
        _array(stream, name, values)
    line("</Cells>\n<CellData>")
    for name, values in fields.items():
        _array(stream, name, values)
    line("</CellData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>")


def _cells(mesh) -> dict:
    """Return the arrays of the VTU section <Cells>, by name."""
    kernels = native_kernels("swell.pde.fvm", "polyhedra")
    n = mesh.n_cells
    ptr, faces = np.zeros(n + 1, np.int64), np.empty(mesh.n_faces + mesh.n_internal, np.int32)
    kernels.faces_of_cells(mesh.owner, mesh.neighbour, ptr, faces)
    lengths = np.diff(mesh.face_ptr)
    sides = int(lengths.sum(dtype=np.int64) + lengths[:mesh.n_internal].sum(dtype=np.int64))
    size = n + faces.size + sides
    integer = np.int32 if size <= np.iinfo(np.int32).max else np.int64
    stream, connectivity = np.empty(size, integer), np.empty(sides, integer)
    stream_ends, ends = np.empty(n, integer), np.empty(n, integer)
    used = kernels.polyhedra(mesh.face_ptr, mesh.face_points, mesh.owner, ptr, faces, mesh.n_points, stream,
                             stream_ends, connectivity, ends)
    return {"connectivity": connectivity[:used], "offsets": ends, "types": np.full(n, POLYHEDRON, np.uint8),
            "faces": stream, "faceoffsets": stream_ends}


def _array(stream, name, values):
    """Write ``values`` as the DataArray ``name`` to the binary stream: the sizes of its compressed blocks, then the
    blocks."""
    kind, columns = TYPES[values.dtype.str[1:]], f'NumberOfComponents="{values.shape[1]}" ' if values.ndim == 2 else ""
    stream.write(f'<DataArray type="{kind}" Name={quoteattr(name)} {columns}format="binary">\n'.encode())
    raw = memoryview(values.reshape(-1)).cast("B") if values.size else memoryview(b"")
    blocks = [zlib.compress(raw[start:start + BLOCK], 1) for start in range(0, len(raw), BLOCK)]
    head = [len(blocks), BLOCK, len(raw) % BLOCK, *map(len, blocks)]     # remainder 0: the last block is full
    stream.write(base64.b64encode(np.array(head, np.uint64).tobytes()))
    stream.write(base64.b64encode(b"".join(blocks)))
    stream.write(b"\n</DataArray>\n")
