"""``.npz`` archives: SciPy's sparse matrices, the raw arrays of sparse matrices, and dense arrays.

SciPy's archives state their format. In others, ``data``, ``indices`` and ``indptr`` are a matrix in CSR, and ``data``,
``row`` and ``col`` one in coordinates; ``shape`` may be there. The arrays of several matrices have a prefix each, as in
``K_data``, ``K_indices``, ``K_indptr``.
"""
import math
import re
import zipfile

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.core.settings import shown
from swell.io import contents, files
from swell.io.canonical import canonical_csr, check_indices, check_numeric
from swell.io.npy import AGAIN

INDICES = {"indices", "indptr", "row", "col", "coords", "offsets"}
MATRIX = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords", "offsets", "_is_array")
COPIES = 3              # copies of a matrix in memory while it is read: as stored, as CSR, in double precision

_PART = re.compile(r"(?:(.+)[_./])?(data|indices|indptr|row|col|shape)")


def read_matrix(path, name):
    """Read a matrix; see `swell.io.read_matrix_with_notes`."""
    with files.damage_explained(path, AGAIN):
        names = _names(path)
        if "format" not in names:
            return contents.read_matrix(path, _contents(path, names), name)
        if name is not None:
            raise InputError(f"{path} holds one matrix, as SciPy stores it, which has no name, and name={shown(name)} "
                             "came: leave it out.")
        check_headers(path, check_members(path, [part for part in MATRIX if part in names], COPIES))
        A = sp.load_npz(path)
        if A.ndim != 2:
            raise InputError(f"{path} holds a sparse array of shape {A.shape}, expected a matrix. Reshape it.")
        files.check_shape(path, A.shape, A.data.size)
        check_indices(A)
    check_numeric(path, A.dtype)
    return canonical_csr(path, A.tocoo() if A.format == "dia" else A)     # the nnz of dia counts padding


def read_vector(path, name):
    """Read an array; see `swell.io.read_vector`."""
    with files.damage_explained(path, AGAIN):
        names = _names(path)
        if "format" in names:
            raise InputError(f"{path} holds a sparse matrix, as SciPy stores it, expected a vector. Write the vector "
                             "with numpy.save.")
        return contents.read_vector(path, _contents(path, names), name)


def block_size(path):
    """Return the size of the square blocks of a SciPy BSR matrix in the archive; None for others, and for size 1."""
    with files.damage_explained(path, AGAIN):
        with np.load(path, allow_pickle=False) as archive:
            if "format" not in archive.files or archive["format"].item() not in (b"bsr", "bsr"):
                return None
        with zipfile.ZipFile(path) as archive, archive.open("data.npy") as stream:
            _, rows, columns = array_header(stream)[0]
        return rows if rows == columns and rows > 1 else None


def _names(path):
    """Return the names of the archive's arrays."""
    with np.load(path, allow_pickle=False) as archive:
        return archive.files


def _contents(path, names):
    """Return the matrices and arrays of an archive that is not SciPy's: a dict from name to `Stored`."""
    headers = _headers(path, names)
    groups = {}
    for key in headers:
        if part := _PART.fullmatch(key):
            groups.setdefault(part[1], {})[part[2]] = key
    stored, taken = {}, set()
    for prefix, keys in groups.items():
        if {"data", "indices", "indptr"} <= keys.keys() or {"data", "row", "col"} <= keys.keys():
            stored["data" if prefix is None else prefix] = _sparse(path, keys, headers)
            taken.update(keys.values())
    for key in headers.keys() - taken:
        stored[key] = contents.Stored(headers[key][0], False, lambda key=key: _arrays(path, [key], 1)[0])
    return dict(sorted(stored.items()))


def _headers(path, names):
    """Return a dict from the name of each array to (shape, dtype); nothing is decompressed but the headers."""
    with zipfile.ZipFile(path) as archive:
        members = {name: f"{name}.npy" for name in names if f"{name}.npy" in archive.NameToInfo}
        headers = {}
        for name, member in members.items():
            with archive.open(member) as stream:
                headers[name] = array_header(stream)
        return headers


def _arrays(path, names, copies):
    """Read and return the arrays with these names; see `check_members`."""
    check_members(path, names, copies)
    with np.load(path, allow_pickle=False) as archive:
        return [archive[name] for name in names]


def _sparse(path, keys, headers):
    """Return a `Stored` for the raw arrays of a matrix in CSR or in coordinates.

    `keys`: from "data", "indptr", … to the array's name. `headers`: of all arrays, as `_headers` returns them."""
    parts = ("indices", "indptr") if "indptr" in keys else ("row", "col")
    check_headers(path, {part: headers[key] for part, key in keys.items()})
    names, notes = [keys[part] for part in ("data", *parts)], []
    if "shape" in keys:
        shape = tuple(int(size) for size in _arrays(path, [keys["shape"]], 1)[0])
    elif "indptr" in keys:
        shape = (headers[keys["indptr"]][0][0] - 1,) * 2
    else:
        shape = (max(int(index.max(initial=-1)) for index in _arrays(path, names[1:], COPIES)) + 1,) * 2
    if "shape" not in keys:
        notes.append(f"no shape is stored: {shape[0]} x {shape[1]} was taken")

    def read():
        files.check_shape(path, shape, math.prod(headers[keys["data"]][0]))
        data, *index = _arrays(path, names, COPIES)
        kind, arrays = (sp.csr_matrix, (data, *index)) if "indptr" in keys else (sp.coo_matrix, (data, index))
        A = kind(arrays, shape=shape)
        check_indices(A)
        return A
    return contents.Stored(shape, True, read, tuple(notes))


def check_members(path, names, copies):
    """Check the sizes of an archive's arrays before they are decompressed, as a protection against zip bombs.

    Parameters
    ----------
    names : list of str
        The arrays that will be read.
    copies : int
        Copies of each array that will be in memory.

    Returns
    -------
    dict of str to (shape, dtype)

    Raises
    ------
    InputError
        If the file is too small for the declared size of a member.
    ValueError
        If a member is too small for the declared shape of its array.
    OutOfMemory
        If all copies exceed the free memory.
    """
    total, headers = 0, {}
    with zipfile.ZipFile(path) as archive:
        for name in names:
            member = archive.getinfo(f"{name}.npy")
            packed = min(member.compress_size, path.stat().st_size)
            if (member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
                    or member.file_size > files.MAX_DEFLATE * packed):
                raise InputError(f"{path}: the array {name!r} is declared with {member.file_size} bytes, which "
                                 f"{packed} bytes as NumPy compresses them cannot hold. Fetch the file again, or write "
                                 "it again with numpy.savez.")
            total += member.file_size
            files.check_memory(path, copies * total, f"arrays of {total} bytes")
            with archive.open(member) as stream:
                headers[name] = shape, dtype = array_header(stream)
                if math.prod(shape) * dtype.itemsize > member.file_size:
                    raise ValueError(f"the array {name!r} is said to have the shape {shape}, more than is stored")
    return headers


def check_headers(path, headers):
    """Raise InputError, before arrays are decompressed, unless index arrays hold integers, one for each entry.

    `headers`: from name to (shape, dtype), as `check_members` returns it."""
    for name in sorted(INDICES & headers.keys()):
        shape, dtype = headers[name]
        if dtype.kind not in "iu":
            raise InputError(f"{path}: the array {name!r} has dtype {dtype}, expected integers. Write the matrix again "
                             "with scipy.sparse.save_npz.")
        entries = headers["data"][0][:1]
        if name in ("indices", "row", "col", "coords") and shape[-1:] != entries:
            raise InputError(f"{path}: the array {name!r} has shape {shape} beside {entries[0]} entries. Write the "
                             "matrix again with scipy.sparse.save_npz.")


def array_header(stream):
    """Read (shape, dtype) from the header of an array in NumPy's format."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    return shape, dtype
