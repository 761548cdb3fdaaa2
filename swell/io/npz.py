"""SciPy sparse matrices in ``.npz`` archives, and NumPy arrays in ``.npz`` and ``.npy``."""
import math
import zipfile
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError, OutOfMemory
from swell.io import files
from swell.io.canonical import canonical_csr, dense_to_csr


INDICES = {"indices", "indptr", "row", "col", "coords", "offsets"}
MATRIX = ("format", "shape", "data", "indices", "indptr", "row", "col", "coords", "offsets", "_is_array")
COPIES = 3              # copies of a matrix in memory while it is read: as stored, as CSR, in double precision


def read_npz_matrix(path):
    """Read a matrix that `scipy.sparse.save_npz` wrote; see `swell.io.read_matrix`."""
    with damage_explained(path):
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
        if "format" in names:
            check_headers(path, check_members(path, [name for name in MATRIX if name in names], COPIES))
            A = sp.load_npz(path)
            if A.ndim != 2:
                raise InputError(f"{path} holds a sparse array of shape {A.shape}, expected a matrix. Reshape it.")
            files.check_shape(path, A.shape, A.data.size)
            _check_indices(A)
    if "format" not in names:
        raise InputError(f"{path} holds the arrays {', '.join(names) or '(none)'} and no SciPy sparse matrix. "
                         "Write the matrix with scipy.sparse.save_npz.")
    _check_numeric(path, A.dtype)
    return canonical_csr(path, A.tocoo() if A.format == "dia" else A)     # the nnz of dia counts padding


def block_size(path):
    """Return the size of the square blocks of a SciPy BSR matrix in the archive; None for others, and for size 1."""
    with damage_explained(path):
        with np.load(path, allow_pickle=False) as archive:
            if "format" not in archive.files or archive["format"].item() not in (b"bsr", "bsr"):
                return None
        with zipfile.ZipFile(path) as archive, archive.open("data.npy") as stream:
            _, rows, columns = array_header(stream)[0]
        return rows if rows == columns and rows > 1 else None


def read_npz_array(path):
    """Read and return the only array of an ``.npz`` archive; InputError for more arrays."""
    with damage_explained(path), np.load(path, allow_pickle=False) as archive:
        if len(archive.files) != 1:
            raise InputError(f"{path} holds {len(archive.files)} arrays ({', '.join(archive.files)}), expected one. "
                             "Write the vector alone with numpy.save.")
        check_members(path, archive.files, 1)
        return archive[archive.files[0]]


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
    for name in INDICES & headers.keys():
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


def read_npy_matrix(path):
    """Read a 2-D ``.npy`` array as a sparse matrix; see `swell.io.read_matrix`."""
    values = read_npy_array(path)
    if values.ndim != 2:
        raise InputError(f"{path} holds an array of shape {values.shape}, expected a matrix (m, n). Reshape it.")
    _check_numeric(path, values.dtype)
    return dense_to_csr(path, values)


def read_npy_array(path):
    """Read the array of an ``.npy`` file."""
    with damage_explained(path):
        # With mmap_mode a file shorter than its header says is an error; without it np.load would first allocate.
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        files.check_memory(path, stored.nbytes, f"an array of {stored.nbytes} bytes")
        return np.array(stored)


def write_npy(stream, x):
    """Write the array x to the open binary `stream` in ``.npy`` format."""
    np.save(stream, x, allow_pickle=False)


@contextmanager
def damage_explained(path):
    """Return a context that turns errors of NumPy and SciPy on the damaged file `path` into an `InputError`."""
    try:
        yield
    except (InputError, OutOfMemory):
        raise
    except Exception as error:      # the parsers raise a dozen kinds of errors, tokenize.TokenError among them
        if "allow_pickle" in str(error):
            raise InputError(f"{path} holds Python objects, expected numbers: loading objects could run code. "
                             "Write the array again with dtype=float.") from error
        raise InputError(f"{path} is damaged, truncated or inconsistent ({error}). "
                         "Fetch it again, or write it again with scipy.sparse.save_npz or numpy.save.") from error


def _check_indices(A):
    """Raise `ValueError` if an index of A, a SciPy matrix, lies outside: compiled code would read past the end."""
    if A.format in ("csr", "csc", "bsr"):
        A.check_format(full_check=True)
    elif A.format == "coo":
        for index, size in zip((A.row, A.col), A.shape):
            if index.min(initial=0) < 0 or index.max(initial=-1) >= size:
                raise ValueError(f"an index lies outside the shape {A.shape}")


def _check_numeric(path, dtype):
    if dtype.kind not in "biufc":
        raise InputError(f"{path} holds values of dtype {dtype}, expected numbers. Write them as float.")
