"""PETSc's binary files: Mat (AIJ and dense) and Vec, read without PETSc.

Source: PETSc manual pages of MatLoad and VecLoad. Everything is big-endian. A Mat is: class id 1211216, rows, columns,
nonzeros (-1: dense, by rows), the length of each row, the columns of the entries, the values. A Vec is: class id
1211214, length, values. All integers have 32 or 64 bits, as PETSc was configured; the class id shows which. The file
does not record the type of the scalars. Their size follows from the end of the object: the end of the file, or the
class id of the next object (a matrix and its right-hand side often share a file).
"""
import re
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from swell.core.errors import InputError
from swell.io import files
from swell.io.canonical import canonical_csr, dense_to_csr

_MAT, _VEC = 1211216, 1211214
_MOST_OBJECTS = 10_000
_SCALARS = (np.dtype(">f8"), np.dtype(">c16"), np.dtype(">f4"))      # most likely first


@dataclass(frozen=True)
class _Object:
    """One object of the file: its class, its sizes, and the byte offsets of its parts."""

    classid: int
    integer: np.dtype
    scalar: np.dtype
    sizes: tuple        # (rows, cols, nonzeros) of a Mat, (length,) of a Vec
    start: int          # offset of the data behind the sizes
    values: int         # offset of the scalars
    end: int            # offset behind the object


def read_matrix(path):
    """Read the first Mat of the file; see `swell.io.read_matrix_with_notes`."""
    objects = _objects(path)
    mat = _first(path, objects, _MAT)
    rows, cols, nonzeros = mat.sizes
    files.check_memory(path, 2 * (mat.end - mat.start), f"a matrix of {rows} x {cols}")      # as stored and as CSR
    others = len(objects) - 1
    notes = [f"{others} more PETSc object{'s' * (others > 1)} in the file: not part of the matrix"] if others else []
    if nonzeros == -1:
        A, new_notes = dense_to_csr(path, part(path, mat.scalar, rows * cols, mat.values).reshape(rows, cols))
        return A, notes + new_notes
    lengths = row_lengths(path, mat)
    columns = part(path, mat.integer, nonzeros, mat.start + rows * mat.integer.itemsize)
    if nonzeros and not 0 <= columns.min() <= columns.max() < cols:
        raise InputError(f"{path}: columns range from {columns.min()} to {columns.max()}, outside 0 to {cols - 1}. "
                         "The file is damaged: write it again with MatView.")
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    A = sp.csr_matrix((part(path, mat.scalar, nonzeros, mat.values), columns, indptr), shape=(rows, cols))
    A, new_notes = canonical_csr(path, A)
    return A, notes + new_notes


def block_size(path):
    """Return the block size that MatView wrote to the ``.info`` file beside `path`; None if there is none."""
    info = path.with_name(path.name + ".info")
    if not info.is_file():
        return None
    match = re.search(r"^-\w*matload_block_size\s+(\d{1,9})\s*$", info.read_text("utf-8", "replace"), re.MULTILINE)
    return int(match[1]) if match and int(match[1]) > 1 else None


def row_lengths(path, mat):
    """Return the number of entries in each row of a sparse Mat, int64; `mat`: the Mat's sizes and byte offsets.

    Raises
    ------
    InputError
        If a length is negative, or their sum differs from the header's number of nonzeros.
    """
    lengths = part(path, mat.integer, mat.sizes[0], mat.start).astype(np.int64)
    if lengths.min(initial=0) < 0 or lengths.sum() != mat.sizes[2]:
        raise InputError(f"{path}: the rows have {lengths.sum()} entries in all, but the header announces "
                         f"{mat.sizes[2]}. The file is damaged: write it again with MatView.")
    return lengths


def read_vector(path):
    """Read the first Vec of the file as an array of shape (n,), float64 or complex128; other objects are skipped."""
    vec = _first(path, _objects(path), _VEC)
    files.check_memory(path, 2 * (vec.end - vec.start), f"a vector of {vec.sizes[0]}")
    return files.as_vector(path, part(path, vec.scalar, vec.sizes[0], vec.values))


def first_matrix(path):
    """Return the sizes and byte offsets of the file's first Mat; InputError if there is none."""
    return _first(path, _objects(path), _MAT)


def _objects(path):
    """Return a list of the file's PETSc objects, each with its sizes and byte offsets."""
    size = path.stat().st_size
    objects, position = [], 0
    while position < size:
        objects.append(_object_at(path, position, size))
        position = objects[-1].end
        if len(objects) > _MOST_OBJECTS:
            raise InputError(f"{path} holds more than {_MOST_OBJECTS} PETSc objects, such as empty vectors: write the "
                             "matrix or the vector alone")
    return objects


def _object_at(path, position, size):
    """Return the sizes and byte offsets of the PETSc object at byte `position`, and the type of its scalars.

    `size`: bytes of the file."""
    classid, integer = _classid_at(path, position)
    if classid not in (_MAT, _VEC):
        content = f"a PETSc object of class {classid}" if classid else "no PETSc object"
        raise InputError(f"{path}: at byte {position} there is {content}, "
                         f"expected a Mat ({_MAT}) or a Vec ({_VEC}). Write the file with MatView or VecView alone.")
    count = 3 if classid == _MAT else 1
    start = position + (1 + count) * integer.itemsize
    if start > size:
        raise InputError(f"{path} is truncated: it ends within the sizes at byte {position}. Write or copy it again.")
    sizes = tuple(int(number) for number in part(path, integer, count, position + integer.itemsize))
    dense = count == 3 and sizes[2] == -1
    if min(sizes[:2]) < 0 or sizes[-1] < 0 and not dense:
        raise InputError(f"{path}: the sizes {sizes} at byte {position} are negative. Write or copy the file again.")
    indices = (sizes[0] + sizes[2]) * integer.itemsize if count == 3 and not dense else 0
    scalars = sizes[0] * sizes[1] if dense else sizes[-1]
    values = start + indices
    for scalar in _SCALARS:
        end = values + scalars * scalar.itemsize
        if end == size or end < size and _classid_at(path, end)[0]:
            return _Object(classid, integer, scalar, sizes, start, values, end)
    raise InputError(f"{path}: the object at byte {position} has {scalars} scalars from byte {values} on, which fits "
                     f"neither real nor complex numbers in a file of {size} bytes. "
                     "The file is truncated, or of another precision: write it in double precision, or copy it again.")


def _classid_at(path, position):
    """Return (PETSc class id at byte `position`, dtype of its integers); (0, None) if there is no class id."""
    for integer in (np.dtype(">i4"), np.dtype(">i8")):
        number = np.fromfile(path, integer, 1, offset=position)
        if len(number) and int(number[0]) in files.PETSC_CLASSES:
            return int(number[0]), integer
    return 0, None


def _first(path, objects, classid):
    """Return the first of `objects` with this class id; `InputError` if there is none."""
    for candidate in objects:
        if candidate.classid == classid:
            return candidate
    wanted, writer = ("matrix", "MatView") if classid == _MAT else ("vector", "VecView")
    raise InputError(f"{path} holds no PETSc {wanted}, only {'vectors' if classid == _MAT else 'matrices'}. "
                     f"Write the {wanted} with {writer}.")


def part(path, dtype, count, offset):
    """Read `count` numbers of type `dtype` at byte `offset`; return them in this machine's byte order.

    The caller has checked the file's length."""
    return np.fromfile(path, dtype, count, offset=offset).astype(dtype.newbyteorder("="))
