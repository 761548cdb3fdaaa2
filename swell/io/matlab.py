"""Matlab's ``.mat`` files of versions 5 to 7, which Octave and SciPy write too, by SciPy's reader.

Version 7.3 is HDF5: see `swell.io.hdf5`. A variable that is a struct contributes its fields, as ``Problem.A`` in the
files of the SuiteSparse collection.

Source: MATLAB, MAT-File Format, MathWorks. A file is a header of 128 bytes and a list of elements, one a variable. An
element is two integers of 32 bits, type and number of bytes, and its content, which may be compressed by zlib.
"""
import zlib

import numpy as np
import scipy.io
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.io import contents, files
from swell.io.canonical import check_indices
from swell.io.damage import damage_explained

AGAIN = "save it again with Matlab's save or scipy.io.savemat"
COPIES = 4              # copies of a variable in memory while it is read: its bytes, its arrays, CSR, double precision

_HEADER, _COMPRESSED = 128, 15
_NUMBERS = {"sparse", "double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u")
                                                        for bits in (8, 16, 32, 64))}
_DEPTH = 8              # deepest struct in a struct


def read_matrix(path, name):
    """Read a matrix; see `swell.io.read_matrix_with_notes`."""
    with damage_explained(path, AGAIN):
        return contents.read_matrix(path, _contents(path, name), name)


def read_vector(path, name):
    """Read an array; a row becomes a vector. See `swell.io.read_vector`."""
    with damage_explained(path, AGAIN):
        x = contents.read_vector(path, _contents(path, name), name)
    return x.ravel() if x.ndim == 2 and x.shape[0] == 1 else x


def _contents(path, name):
    """Return the matrices and arrays of the file, a dict from name to `Stored`; structs other than the one that `name`
    names are not read."""
    found = {}
    for (variable, shape, kind), size in zip(scipy.io.whosmat(path), _sizes(path)):
        if kind in _NUMBERS:
            found[variable] = contents.Stored(shape, kind == "sparse", lambda v=variable, s=size: _load(path, v, s))
        elif kind == "struct" and (name is None or name.partition(".")[0] == variable):
            found.update(_fields(variable, _load(path, variable, size), _DEPTH))
    return found


def _sizes(path):
    """Return the bytes of each variable, decompressed, without reading the variables.

    A compressed element is decompressed up to its first 8 bytes, which state the size."""
    sizes, end = [], path.stat().st_size
    with open(path, "rb") as stream:
        header = stream.read(_HEADER)
        order = "<" if header.endswith(b"IM") else ">"
        position = _HEADER
        while position + 8 <= end:
            stream.seek(position)
            kind, size = (int(number) for number in np.frombuffer(stream.read(8), f"{order}u4"))
            position += 8 + size
            if position > end:
                raise InputError(f"{path} is truncated: {size} bytes are declared at byte {position - size - 8}, and "
                                 f"the file has {end}. Fetch or copy it again.")
            if kind == _COMPRESSED:
                packed, head = size, zlib.decompressobj().decompress(stream.read(min(size, 1024)), 8)
                size = int(np.frombuffer(head, f"{order}u4")[1])
                if size > files.MAX_DEFLATE * packed:
                    raise InputError(f"{path}: a variable of {size} bytes is declared, which {packed} compressed bytes "
                                     f"cannot hold. Fetch the file again, or {AGAIN}.")
            sizes.append(size)
    return sizes


def _load(path, variable, size):
    """Load one variable, of `size` bytes, by SciPy; the indices of a sparse matrix are checked."""
    files.check_memory(path, COPIES * size, f"a variable {variable} of {size} bytes")
    return _checked(scipy.io.loadmat(path, variable_names=[variable])[variable])


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
    found = {}
    for field in value.dtype.names:
        inner = value[field].item()
        if isinstance(inner, np.ndarray) or sp.issparse(inner):
            found.update(_fields(f"{prefix}.{field}", inner, depth - 1))
    return found
