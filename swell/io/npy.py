"""NumPy arrays in ``.npy`` files."""
import numpy as np

from swell.core.errors import InputError
from swell.io import files
from swell.io.canonical import check_numeric, dense_to_csr

AGAIN = "write it again with scipy.sparse.save_npz or numpy.save"


def read_matrix(path):
    """Read a 2-D array as a sparse matrix; see `swell.io.read_matrix_with_notes`."""
    values = read_vector(path)
    if values.ndim != 2:
        raise InputError(f"{path} holds an array of shape {values.shape}, expected a matrix (m, n). Reshape it.")
    check_numeric(path, values.dtype)
    return dense_to_csr(path, values)


def read_vector(path):
    """Read the array as it is."""
    with files.damage_explained(path, AGAIN):
        # With mmap_mode a file shorter than its header says is an error; without it np.load would first allocate.
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        files.check_memory(path, stored.nbytes, f"an array of {stored.nbytes} bytes")
        return np.array(stored)


def write(stream, x):
    """Write the array x to the open binary `stream`."""
    np.save(stream, x, allow_pickle=False)
