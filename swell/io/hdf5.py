"""HDF5 files as Matlab 7.3 and PETSc write them, and other arrays in HDF5, by h5py.

A group with the attribute ``MATLAB_sparse`` is a sparse matrix in CSC: ``jc`` are the pointers of its columns, ``ir``
the rows, ``data`` the values; the attribute is the number of rows. PETSc's MatLoad reads the same layout. Matlab stores
a dense array with its dimensions reversed and the attribute ``MATLAB_class``. A Vec of PETSc is a dataset; complex
numbers have one dimension more, of size 2, and the attribute ``complex``. Every other dataset is an array as it lies.
Matlab and PETSc store no mark for a Vec with a block size b: its dataset has the shape (n / b, b).

Sources: PETSc, src/mat/impls/aij/seq/hdf5/aijhdf5.c and src/vec/vec/impls/mpi/pdvec.c; MATLAB, MAT-File Versions.
"""
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError, MissingDependency
from swell.io import contents, files
from swell.io.canonical import check_indices

AGAIN = "write it again, from Matlab with save -v7.3"
COPIES = 3              # copies of an array in memory while it is read: as stored, as CSR, in double precision

_NUMBERS = {"double", "single", "logical", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}
_MOST_OBJECTS = 10_000


def read_matrix(path, name):
    """Read a matrix; see `swell.io.read_matrix_with_notes`."""
    with _opened(path) as file:
        return contents.read_matrix(path, _contents(path, file), name)


def read_vector(path, name):
    """Read an array; a row becomes a vector. See `swell.io.read_vector`."""
    with _opened(path) as file:
        x = contents.read_vector(path, _contents(path, file), name)
    return x.ravel() if x.ndim == 2 and x.shape[0] == 1 else x


@contextmanager
def _opened(path):
    """Return a context that opens the file `path` by h5py; errors on a damaged file become an `InputError`."""
    try:
        import h5py
    except ImportError as error:
        raise MissingDependency(f"{path} is an HDF5 file, which h5py reads ({error}): pip install "
                                "'swell[files]'") from None
    with files.damage_explained(path, AGAIN), h5py.File(path, "r") as file:
        yield file


def _contents(path, file):
    """Return the matrices and arrays of an open file: a dict from name to `Stored`.

    Names are the paths inside the file; in Matlab's files dots join them, as in ``Problem.A``."""
    import h5py
    stored, inside, seen = {}, [], 0
    separator = "." if file.userblock_size else "/"

    def visit(name, item):
        nonlocal seen
        seen += 1
        if seen > _MOST_OBJECTS:
            raise InputError(f"{path} holds more than {_MOST_OBJECTS} objects: write the matrix or the vector alone")
        if name.startswith(("#refs#", "#subsystem#")) or any(name.startswith(group) for group in inside):
            return
        if isinstance(item, h5py.Group) and "MATLAB_sparse" in item.attrs:
            inside.append(f"{name}/")
            stored[name.replace("/", separator)] = _sparse(path, item)
        elif isinstance(item, h5py.Dataset) and _numeric(item):
            stored[name.replace("/", separator)] = _dense(path, item)

    file.visititems(visit)
    return stored


def _numeric(dataset):
    """True for a dataset of real or complex numbers that is no text, cell, or empty array of Matlab."""
    kind = dataset.attrs.get("MATLAB_class", b"double")
    kind = kind.decode() if isinstance(kind, bytes) else kind
    return (dataset.shape is not None and kind in _NUMBERS and not dataset.attrs.get("MATLAB_empty", 0)
            and (dataset.dtype.kind in "biufc" or _pair(dataset.dtype)))


def _pair(dtype):
    """True for a compound type of real and imaginary part, as Matlab stores complex numbers."""
    return dtype.names is not None and set(dtype.names) == {"real", "imag"}


def _values(path, dataset):
    """Read a dataset as real or complex numbers."""
    files.check_memory(path, COPIES * dataset.size * dataset.dtype.itemsize, f"an array of shape {dataset.shape}")
    values = dataset[()]
    if not _pair(values.dtype):
        return values
    both = np.empty(values.shape, np.complex128)
    both.real, both.imag = values["real"], values["imag"]
    return both


def _sparse(path, group):
    """Return the `Stored` for a group ``jc``, ``ir``, ``data``; without entries Matlab writes ``jc`` alone."""
    pointers = group.get("jc")
    rows = int(np.ravel(group.attrs["MATLAB_sparse"])[0])
    if pointers is None or len(pointers.shape) != 1 or not pointers.shape[0]:
        raise InputError(f"{path}: the sparse matrix {group.name} has no pointers jc: {AGAIN}")
    shape = rows, pointers.shape[0] - 1

    def read():
        entries = group["data"].size if "data" in group else 0
        files.check_shape(path, shape, entries)
        indptr = _values(path, pointers).astype(np.int64)
        index, data = ((_values(path, group["ir"]).astype(np.int64), _values(path, group["data"])) if entries else
                       (np.empty(0, np.int64), np.empty(0)))
        A = sp.csc_matrix((data, index, indptr), shape=shape)
        check_indices(A)
        return A
    return contents.Stored(shape, True, read)


def _dense(path, dataset):
    """Return the `Stored` for a dataset: Matlab's with reversed dimensions, PETSc's with complex numbers in pairs."""
    shape, marks = dataset.shape, dataset.attrs
    if "MATLAB_class" in marks:
        return contents.Stored(shape[::-1], False, lambda: _values(path, dataset).T)
    pairs = bool(marks.get("complex", False)) and shape[-1:] == (2,)
    steps = bool(marks.get("timestepping", False))
    if pairs:
        shape = shape[:-1]
    if steps:
        shape = shape[1:]

    def read():
        if steps and dataset.shape[0] != 1:
            raise InputError(f"{path}: {dataset.name} holds {dataset.shape[0]} time steps, expected one vector: write "
                             "one of them alone")
        values = _values(path, dataset)
        values = values[..., 0] + 1j * values[..., 1] if pairs else values
        return values.reshape(shape)
    return contents.Stored(shape, False, read)
