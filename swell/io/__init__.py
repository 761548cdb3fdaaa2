"""Read matrices and vectors from files, and write vectors to files.

The content of a file decides its format; an extension that contradicts it is an error. Every reader is imported at its
first use, so that `import swell.io` costs nothing.

==================  =========================================  =========================================
format              extensions                                 module
==================  =========================================  =========================================
Matrix Market       ``.mtx``, ``.mm`` (+ ``.gz .bz2``)         `swell.io.matrix_market`
Harwell-Boeing      ``.rb .hb .rua .rsa .cua`` (+ ``.gz``) …   `swell.io.harwell_boeing`
Matlab, Octave      ``.mat``                                   `swell.io.matlab`, 7.3: `swell.io.hdf5`
HDF5                ``.h5`` or any unknown one                 `swell.io.hdf5`
SciPy, NumPy        ``.npz``, ``.npy``                         `swell.io.npz`, `swell.io.npy`
PETSc binary        ``.petsc`` or any unknown one              `swell.io.petsc`
numbers             ``.txt`` or any unknown one                `swell.io.text` (vectors only)
==================  =========================================  =========================================
"""
import importlib
import logging

from swell.core.errors import InputError

__all__ = ["block_size", "read_matrix", "read_matrix_with_notes", "read_vector", "write_vector"]

_NAMED = ("npz", "matlab", "hdf5")        # their files hold several matrices and vectors, each with a name


def read_matrix(path, name=None):
    """Read a sparse matrix.

    Changes of the stored entries, such as duplicates that were summed, go to the logger ``swell.io``;
    `read_matrix_with_notes` returns them.

    Parameters
    ----------
    path : str or path-like
        Matrix Market, Harwell-Boeing, Matlab ``.mat``, HDF5, ``.npz``, ``.npy`` (2-D) or PETSc binary file.
    name : str, optional
        The matrix to read from a ``.mat``, HDF5 or ``.npz`` file that holds several.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (m, n)
        float64 or complex128; int32 indices if they fit; indices sorted, duplicates summed. NaN and Inf are kept.

    Raises
    ------
    InputError
        If there is no such file, its format is unknown or contradicts its extension, it is damaged, or it holds
        several matrices and `name` chooses none of them.
    MissingDependency
        For an HDF5 file without h5py.
    OutOfMemory
        If the file is valid, but its matrix is larger than the free memory.
    """
    A, notes = read_matrix_with_notes(path, name)
    for note in notes:
        logging.getLogger("swell.io").info("%s: %s", path, note)
    return A


def read_matrix_with_notes(path, name=None):
    """Read a sparse matrix; return it with sentences on changes of its stored entries.

    Parameters
    ----------
    path, name
        As in `read_matrix`, which also lists the errors.

    Returns
    -------
    A : scipy.sparse.csr_matrix
    notes : list of str
        Sentences for the user, such as "12 duplicate entries were summed".
    """
    from swell.io import files
    path = files.regular_file(path)
    kind = files.identify(path)
    if kind is files.Kind.TEXT:
        raise InputError(f"{path} is {kind.value}, which cannot hold a sparse matrix for swell. "
                         f"Expected {files.MATRIX_FORMATS}; write the matrix with scipy.io.mmwrite. "
                         f"{files.OTHER_CODES}")
    return _read(path, kind, name, "read_matrix")


def read_vector(path, name=None):
    """Read a vector, or several vectors as the columns of an array.

    Parameters
    ----------
    path : str or path-like
        Matrix Market (array or coordinate), ``.npy``, ``.npz``, ``.mat``, HDF5, PETSc Vec, text with one row a line, or
        the right-hand side in a Harwell-Boeing file.
    name : str, optional
        The array to read from a ``.mat``, HDF5 or ``.npz`` file that holds several.

    Returns
    -------
    x : numpy.ndarray, shape (n,) or (n, k)
        float64 or complex128. A single column is returned with shape (n,), and so is a row of ``.mat`` or HDF5.

    Raises
    ------
    InputError, MissingDependency, OutOfMemory
        As in `read_matrix`.
    """
    from swell.io import files
    path = files.regular_file(path)
    return files.as_vector(path, _read(path, files.identify(path), name, "read_vector"))


def _read(path, kind, name, function):
    """Call ``read_matrix`` or ``read_vector``, as `function` says, of the module for this kind of file."""
    module = kind.name.lower()
    read = getattr(importlib.import_module(f"swell.io.{module}"), function)
    if module in _NAMED:
        return read(path, name)
    if name is not None:
        raise InputError(f"{path} is {kind.value}, in which nothing has a name, and name={name!r} came: leave it out.")
    return read(path)


def block_size(path, name=None):
    """Return the block size recorded with a matrix file, an int; None if there is none.

    For a PETSc binary file the ``.info`` file beside it has the size; for BSR in ``.npz``, it is the blocks' shape.

    Parameters
    ----------
    path, name
        As in `read_matrix`.
    """
    from swell.io import files
    path = files.regular_file(path)
    kind = files.identify(path)
    if kind is files.Kind.PETSC:
        from swell.io import petsc
        return petsc.block_size(path)
    if kind is files.Kind.NPZ and name is None:
        from swell.io import npz
        return npz.block_size(path)
    return None


def write_vector(path, x):
    """Write a vector, or several vectors as columns; the file appears complete or not at all.

    Parameters
    ----------
    path : str or path-like
        Ends in ``.npy`` (binary, exact), ``.mtx`` (Matrix Market array) or ``.txt`` (one row a line). Text has enough
        digits to restore every float64 value exactly.
    x : array_like, shape (n,) or (n, k)
        Real or complex.

    Raises
    ------
    InputError
        If the extension is unknown, the folder does not exist or is not writable, or `x` has another type or shape.
    """
    from swell.io import files
    path = files.as_path(path)
    x = files.as_vector(path, x)
    extension = path.suffix.lower()
    if extension == ".npy":
        from swell.io import npy
        writer = npy.write
    elif extension == ".mtx":
        from swell.io import matrix_market
        writer = matrix_market.write_dense
    elif extension == ".txt":
        from swell.io import text
        writer = text.write_numbers
    else:
        raise InputError(f"Cannot write {path}: the extension is {extension or 'missing'}. "
                         "End the name in .npy, .mtx or .txt.")
    files.write_atomically(path, lambda stream: writer(stream, x))
