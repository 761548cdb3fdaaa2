"""SciPy sparse matrices in ``.npz`` archives, and NumPy arrays in ``.npz`` and ``.npy``."""
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.io.canonical import canonical_csr, dense_to_csr


def read_npz_matrix(path):
    """Read a matrix that `scipy.sparse.save_npz` wrote; see `swell.io.read_matrix`."""
    with damage_explained(path):
        with np.load(path, allow_pickle=False) as archive:
            names = archive.files
        if "format" in names:
            A = sp.load_npz(path)
            if A.ndim != 2:
                raise InputError(f"{path} holds a sparse array of shape {A.shape}, expected a matrix. Reshape it.")
            _check_indices(A)
    if "format" not in names:
        raise InputError(f"{path} holds the arrays {', '.join(names) or '(none)'} and no SciPy sparse matrix. "
                         "Write the matrix with scipy.sparse.save_npz.")
    _check_numeric(path, A.dtype)
    return canonical_csr(A.tocoo() if A.format == "dia" else A)     # the nnz of dia counts padding


def read_npz_array(path):
    """Read the only array of an ``.npz`` archive."""
    with damage_explained(path), np.load(path, allow_pickle=False) as archive:
        if len(archive.files) != 1:
            raise InputError(f"{path} holds {len(archive.files)} arrays ({', '.join(archive.files)}), expected one. "
                             "Write the vector alone with numpy.save.")
        return archive[archive.files[0]]


def read_npy_matrix(path):
    """Read a 2-D ``.npy`` array as a sparse matrix; see `swell.io.read_matrix`."""
    values = read_npy_array(path)
    if values.ndim != 2:
        raise InputError(f"{path} holds an array of shape {values.shape}, expected a matrix (m, n). Reshape it.")
    _check_numeric(path, values.dtype)
    return dense_to_csr(values)


def read_npy_array(path):
    """Read the array of an ``.npy`` file."""
    with damage_explained(path):
        # A map is made only if the file is as long as its header says; np.load alone would first allocate that much.
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False))


def write_npy(stream, x):
    """Write an array as ``.npy``."""
    np.save(stream, x, allow_pickle=False)


@contextmanager
def damage_explained(path):
    """Turn what NumPy and SciPy raise on damaged files into an `InputError`."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:      # on damage their parsers raise a dozen kinds, tokenize.TokenError among them
        if "allow_pickle" in str(error):
            raise InputError(f"{path} holds Python objects, expected numbers: loading objects could run code. "
                             "Write the array again with dtype=float.") from error
        raise InputError(f"{path} is damaged, truncated or inconsistent ({error}). "
                         "Fetch it again, or write it again with scipy.sparse.save_npz or numpy.save.") from error


def _check_indices(A):
    """Raise `ValueError` where an index lies outside the matrix: compiled code would read past the end."""
    if A.format in ("csr", "csc", "bsr"):
        A.check_format(full_check=True)
    elif A.format == "coo":
        for index, size in zip((A.row, A.col), A.shape):
            if index.min(initial=0) < 0 or index.max(initial=-1) >= size:
                raise ValueError(f"an index lies outside the shape {A.shape}")


def _check_numeric(path, dtype):
    if dtype.kind not in "biufc":
        raise InputError(f"{path} holds values of dtype {dtype}, expected numbers. Write them as float.")
