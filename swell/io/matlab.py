"""Matlab's ``.mat`` files of versions 5 to 7, which Octave and SciPy write too, by SciPy's reader.

Version 7.3 is HDF5: see `swell.io.hdf5`. A variable that is a struct contributes its fields, as ``Problem.A`` in the
files of the SuiteSparse collection.

Source: MATLAB, MAT-File Format, MathWorks. A file is a header of 128 bytes and a list of elements, one a variable. An
element is two integers of 32 bits, type and number of bytes, and its content, which may be compressed by zlib.
"""
import io
import zlib

import numpy as np
import scipy.io
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.io import contents, files
from swell.io.canonical import check_indices

AGAIN = "save it again with Matlab's save or scipy.io.savemat"
COPIES = 4              # copies of a variable in memory while it is read: its bytes, its arrays, CSR, double precision

_HEADER, _COMPRESSED, _MATRIX = 128, 15, 14
_TYPES = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}          # integers, floating-point numbers and texts
_PLAIN = range(4, 16)                                          # classes: text, sparse, and arrays of numbers
_NUMBERS = {"sparse", "double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u")
                                                        for bits in (8, 16, 32, 64))}
_DEPTH = 8              # deepest struct in a struct


def read_matrix(path, name):
    """Read a matrix; see `swell.io.read_matrix_with_notes`."""
    with files.damage_explained(path, AGAIN):
        return contents.read_matrix(path, _contents(path, name), name)


def read_vector(path, name):
    """Read an array; a row becomes a vector. See `swell.io.read_vector`."""
    with files.damage_explained(path, AGAIN):
        x = contents.read_vector(path, _contents(path, name), name)
    return x.ravel() if x.ndim == 2 and x.shape[0] == 1 else x


def _contents(path, name):
    """Return the matrices and arrays of the file, a dict from name to `Stored`; structs other than the one that `name`
    names are not read."""
    stored = {}
    for (variable, shape, kind), place in zip(scipy.io.whosmat(path), _places(path)):
        if kind in _NUMBERS:
            stored[variable] = contents.Stored(shape, kind == "sparse", lambda v=variable, p=place: _load(path, v, *p))
        elif kind == "struct" and (name is None or name.partition(".")[0] == variable):
            stored.update(_fields(variable, _load(path, variable, *place), _DEPTH))
    return stored


def _places(path):
    """Return the offset of each variable's tag, and the variable's bytes when decompressed, without reading it.

    A compressed element is decompressed up to its first 8 bytes, which state the size."""
    places, end = [], path.stat().st_size
    with open(path, "rb") as stream:
        order, position = _order(stream.read(_HEADER)), _HEADER
        while position + 8 <= end:
            stream.seek(position)
            kind, size = (int(number) for number in np.frombuffer(stream.read(8), f"{order}u4"))
            place, position = position, position + 8 + size
            if position > end:
                raise InputError(f"{path} is truncated: {size} bytes are declared at byte {position - size - 8}, and "
                                 f"the file has {end}. Fetch or copy it again.")
            if kind == _COMPRESSED:
                packed, head = size, zlib.decompressobj().decompress(stream.read(min(size, 1024)), 8)
                size = int(np.frombuffer(head, f"{order}u4")[1])
                if size > files.MAX_DEFLATE * packed:
                    raise InputError(f"{path}: a variable of {size} bytes is declared, which {packed} compressed bytes "
                                     f"cannot hold. Fetch the file again, or {AGAIN}.")
            places.append((place, size))
    return places


def _load(path, variable, place, size):
    """Load one variable, of `size` bytes, by SciPy. `place`: its tag's offset in the file.

    SciPy's compiled reader crashes on data of an unknown type. So the elements of the variable are checked first, and
    SciPy gets a file in memory with this variable alone."""
    files.check_memory(path, COPIES * size, f"a variable {variable} of {size} bytes")
    with open(path, "rb") as stream:
        header = stream.read(_HEADER)
        stream.seek(place)
        tag = stream.read(8)
        order = _order(header)
        kind, stored = (int(number) for number in np.frombuffer(tag, f"{order}u4"))
        content = stream.read(stored)
    element = zlib.decompress(content) if kind == _COMPRESSED else tag + content
    _check(memoryview(element)[8:], order, _DEPTH)
    return _checked(scipy.io.loadmat(io.BytesIO(header + element), variable_names=[variable])[variable])


def _order(header):
    """Return the byte order of the file, by its header: "<" or ">"."""
    return "<" if header.endswith(b"IM") else ">"


def _check(content, order, depth):
    """Raise `ValueError` unless the content of a matrix element is a sequence of elements of known types.

    Cells and structs hold matrices; arrays of numbers, characters and sparse matrices hold none."""
    position, numbers = 0, False
    while position < len(content):
        if position + 8 > len(content):
            raise ValueError("an element ends within its tag")
        kind, size = (int(number) for number in np.frombuffer(content[position:position + 8], f"{order}u4"))
        start = position + 8
        if kind >> 16:                           # a small element: type, size and up to 4 bytes in the tag
            kind, size, start = kind & 0xFFFF, kind >> 16, position + 4
        end = start + size
        if end > len(content) or start == position + 4 and size > 4:
            raise ValueError(f"an element of {size} bytes does not fit into its variable")
        if position == 0 and size >= 4:
            numbers = int(np.frombuffer(content[start:start + 4], f"{order}u4")[0]) & 0xFF in _PLAIN
        if kind == _MATRIX and not numbers and depth:
            _check(content[start:end], order, depth - 1)
        elif kind not in _TYPES:
            raise ValueError(f"an element has type {kind}, which is unknown or has no place there")
        position = position + 8 if start == position + 4 else start + -(-size // 8) * 8


def _checked(value):
    """Return a value; `ValueError` if it is a sparse matrix with an index outside its shape."""
    if sp.issparse(value):
        check_indices(value)
    return value


def _fields(prefix, value, depth):
    """Return the matrices and arrays inside a struct, named ``prefix.field``, as a dict from name to `Stored`."""
    if sp.issparse(value):
        return {prefix: contents.Stored(value.shape, True, lambda: _checked(value))}
    if value.dtype.names is None:
        if value.dtype.kind not in "biufc" or value.ndim != 2:
            return {}
        return {prefix: contents.Stored(value.shape, False, lambda: value)}
    if value.size != 1 or not depth:             # an array of structs
        return {}
    stored = {}
    for field in value.dtype.names:
        inner = value[field].item()
        if isinstance(inner, np.ndarray) or sp.issparse(inner):
            stored.update(_fields(f"{prefix}.{field}", inner, depth - 1))
    return stored
