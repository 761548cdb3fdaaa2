"""Read matrices and vectors from files, and write vectors to files.

The content of a file decides its format; an extension that contradicts it is an error. Every reader is imported at its
first use, so that `import swell.io` costs nothing.

==============  =====================================  =========================================
format          extensions                             module
==============  =====================================  =========================================
Matrix Market   ``.mtx``, ``.mm`` (+ ``.gz .bz2``)     `swell.io.matrix_market`
SciPy, NumPy    ``.npz``, ``.npy``                     `swell.io.npz`
PETSc binary    ``.petsc`` or any unknown one          `swell.io.petsc`
numbers         ``.txt`` or any unknown one            `swell.io.text` (vectors only)
==============  =====================================  =========================================
"""
from swell.core.errors import InputError

__all__ = ["block_size", "read_matrix", "read_vector", "write_vector"]


def read_matrix(path):
    """Read a sparse matrix.

    Parameters
    ----------
    path : str or path-like
        Matrix Market, SciPy ``.npz``, NumPy ``.npy`` (2-D) or PETSc binary file.

    Returns
    -------
    A : scipy.sparse.csr_matrix, shape (m, n)
        float64 or complex128; int32 indices if they fit; indices sorted, duplicates summed. NaN and Inf are kept.
    notes : list of str
        Sentences for the user about changes of the stored entries, such as "12 duplicate entries were summed".

    Raises
    ------
    InputError
        If there is no such file, its format is unknown or contradicts its extension, or it is damaged.
    OutOfMemory
        If the file is valid, but its matrix is larger than the free memory.
    """
    from swell.io import files
    path = files.regular_file(path)
    kind = files.identify(path)
    if kind is files.Kind.MATRIX_MARKET:
        from swell.io import matrix_market
        return matrix_market.read_matrix(path)
    if kind is files.Kind.NPZ:
        from swell.io import npz
        return npz.read_npz_matrix(path)
    if kind is files.Kind.NPY:
        from swell.io import npz
        return npz.read_npy_matrix(path)
    if kind is files.Kind.PETSC:
        from swell.io import petsc
        return petsc.read_matrix(path)
    raise InputError(f"{path} is {kind.value}, which cannot hold a sparse matrix for swell. "
                     f"Expected {files.MATRIX_FORMATS}; write the matrix with scipy.io.mmwrite.")


def block_size(path):
    """Return the block size recorded with a matrix file, an int; None if there is none.

    For a PETSc binary file the ``.info`` file beside it has the size; for BSR in ``.npz``, it is the blocks' shape.

    Parameters
    ----------
    path : str or path-like
        As in `read_matrix`.
    """
    from swell.io import files
    path = files.regular_file(path)
    kind = files.identify(path)
    if kind is files.Kind.PETSC:
        from swell.io import petsc
        return petsc.block_size(path)
    if kind is files.Kind.NPZ:
        from swell.io import npz
        return npz.block_size(path)
    return None


def read_vector(path):
    """Read a vector, or several vectors as the columns of an array.

    Parameters
    ----------
    path : str or path-like
        Matrix Market (array or coordinate), ``.npy``, ``.npz`` with one array, PETSc Vec, or text with one row a line.

    Returns
    -------
    x : numpy.ndarray, shape (n,) or (n, k)
        float64 or complex128. A single column is returned with shape (n,).

    Raises
    ------
    InputError
        As in `read_matrix`.
    """
    from swell.io import files
    path = files.regular_file(path)
    kind = files.identify(path)
    if kind is files.Kind.MATRIX_MARKET:
        from swell.io import matrix_market
        return files.as_vector(path, matrix_market.read_dense(path))
    if kind is files.Kind.NPZ:
        from swell.io import npz
        return files.as_vector(path, npz.read_npz_array(path))
    if kind is files.Kind.NPY:
        from swell.io import npz
        return files.as_vector(path, npz.read_npy_array(path))
    if kind is files.Kind.PETSC:
        from swell.io import petsc
        return petsc.read_vector(path)
    from swell.io import text
    return files.as_vector(path, text.read_numbers(path))


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
        from swell.io import npz
        writer = npz.write_npy
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
