"""Views of PETSc's matrices and vectors: NumPy arrays over the same memory. petsc4py is imported at its first use.

Shared memory: the array of a Vec; row pointers, columns and values of an AIJ, BAIJ or SBAIJ matrix; the values of a
dense one. petsc4py's own ``getValuesCSR`` and ``getRowIJ`` copy. This module therefore calls PETSc's C functions, in
the library that petsc4py itself is linked to. Not shared: BAIJ stores its blocks by columns, and SBAIJ only its upper
triangle, so the conversion to CSR makes new arrays. The conversion of PETSc's 64-bit indices to 32 bits also does.

Across ranks, PETSc stores a rank's rows as swell does: a diagonal block, the other entries with compressed columns, and
the numbers of these columns, in a BAIJ of block columns. The parts of AIJ and BAIJ are views: PETSc converts nothing.
SBAIJ is refused: if its diagonal blocks store their upper triangles only, PETSc 3.18 converts it to a wrong matrix.

The views are read-only, keep their PETSc object alive, and are valid until its pattern changes.
"""
from __future__ import annotations

import ctypes
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.core.guests import Guest

MATRIX_FREE = ("shell", "python", "mffd")
SPREAD = ("mpiaij", "mpibaij")          # how the names of the types begin that are read on several ranks


class PETSc(Guest):
    """Mats and Vecs of one rank, on the host. x is returned as a Vec."""

    def dtype_of(self, value, name):
        return scalar_type()

    def read_matrix(self, A):
        return matrix(A)

    def block_size(self, A):
        return block_size(A)

    def read_vector(self, v, name):
        return vector(v, name)

    def give_back(self, x, like):
        return vector_like(like, x)


@functools.cache
def _library():
    """Return libpetsc (ctypes), found through petsc4py's extension module, which is linked to it."""
    from petsc4py import PETSc
    return ctypes.CDLL(PETSc.__file__)


def _call(name, mat, *arguments):
    """Call PETSc's C function ``name`` on a Mat, with ctypes arguments; raise InputError if it returns an error
    code."""
    code = getattr(_library(), name)(ctypes.c_void_p(mat.handle), *arguments)
    if code:
        raise InputError(f"PETSc's {name} ended with error {code} for a Mat of type {mat.getType()}")


def set_type(function, handle, kind):
    """Set the type of a PC or KSP to ``kind`` (bytes) by PETSc's C function ``function``, such as PCSetType, unless
    PETSc is finalised. ``handle``: the object's address."""
    from petsc4py import PETSc
    if not PETSc.Sys.isFinalized():
        getattr(_library(), function)(ctypes.c_void_p(handle), ctypes.c_char_p(kind))


def scalar_type() -> np.dtype:
    """Return the NumPy type of PETSc's scalars, for which PETSc was configured."""
    from petsc4py import PETSc
    return np.dtype(PETSc.ScalarType)


def _view(address, count, dtype, owner):
    """Return a read-only array of ``count`` numbers at ``address``, memory that belongs to ``owner``; the array keeps
    ``owner`` alive."""
    if not count:
        return np.empty(0, dtype)
    memory = (ctypes.c_char * (count * np.dtype(dtype).itemsize)).from_address(address)
    memory.owner = owner                         # the array keeps its owner alive
    array = np.frombuffer(memory, dtype)
    array.flags.writeable = False
    return array


def vector(v, name="b"):
    """Return the entries of a Vec of one rank, as a read-only array over its memory; ``name``: the Vec in messages."""
    if v.comm.size > 1:
        raise InputError(f"{name} is a Vec spread over {v.comm.size} ranks: expected one of one rank; across ranks use "
                         "swell as a KSP, -ksp_type python -ksp_python_type swell.guests.petsc.KSP")
    return v.getArray(readonly=True)


def vector_like(v, x):
    """Return a new Vec like ``v`` that holds a copy of x, an array on the host."""
    if x.dtype.kind == "c" and scalar_type().kind != "c":
        raise InputError(f"the solution is {x.dtype.name} and this PETSc is built for {scalar_type().name}: give b as "
                         "an array (b.array), or use a PETSc with complex scalars")
    new = v.duplicate()
    new.getArray()[...] = x
    return new


def pattern(A) -> tuple:
    """Return an identifier of a Mat's pattern: if two identifiers are equal, row pointers and columns are equal."""
    state = ctypes.c_int64()
    _call("MatGetNonzeroState", A, ctypes.byref(state))
    return A.handle, state.value


def local(A):
    """Return this rank's diagonal block, a Mat of one rank that shares A's memory; a sequential A itself."""
    return A.getDiagonalBlock() if A.getType().startswith("mpi") else A


def block_size(A) -> int | None:
    """Return the block size of a Mat; None instead of 1, the size of Mats without blocks."""
    size = A.getBlockSize()
    return size if size > 1 else None


def matrix(A):
    """View a Mat of one rank as a SciPy matrix over its memory; or, if it has no entries, as a SciPy LinearOperator.

    Parameters
    ----------
    A : petsc4py.PETSc.Mat
        Of type AIJ, BAIJ, SBAIJ or dense, in any implementation; or shell, python or mffd.

    Raises
    ------
    InputError
        For other types, for a matrix that is not assembled, and for one on several ranks.
    """
    kind = A.getType()
    if A.comm.size > 1:
        raise InputError(f"A is a Mat of type {kind} spread over {A.comm.size} ranks: expected one of one rank; across "
                         "ranks use swell as a KSP, -ksp_type python -ksp_python_type swell.guests.petsc.KSP, or "
                         "give A.getDiagonalBlock()")
    if kind in MATRIX_FREE:
        return _matrix_free(A)
    _check_assembled(A)
    A = local(A)
    stem = A.getType().removeprefix("seq")
    for start, read in (("aij", _aij), ("baij", _baij), ("sbaij", _sbaij), ("dense", _dense)):
        if stem.startswith(start):
            return read(A)
    raise InputError(f"A is a Mat of type {kind}: expected aij, baij, sbaij, dense or, without entries, "
                     f"{', '.join(MATRIX_FREE)}; convert it with A.convert('aij')")


def _check_assembled(A):
    if not A.isAssembled():
        raise InputError("A is not assembled: call A.assemble() first")


@dataclass(frozen=True)
class _Part:
    """A sequential matrix inside the Mat ``whole``, which it keeps alive."""

    handle: int
    whole: Any

    def getType(self):
        return self.whole.getType().replace("mpi", "seq", 1)

    def getBlockSize(self):
        return self.whole.getBlockSize()

    def getSize(self):
        from petsc4py import PETSc
        sizes = (np.ctypeslib.as_ctypes_type(PETSc.IntType) * 2)()
        _call("MatGetSize", self, ctypes.byref(sizes, 0), ctypes.byref(sizes, ctypes.sizeof(sizes) // 2))
        return tuple(sizes)


def parts(A):
    """This rank's rows of a Mat on several ranks, as views.

    Parameters
    ----------
    A : petsc4py.PETSc.Mat
        Of type AIJ or BAIJ.

    Returns
    -------
    block : scipy.sparse.csr_matrix, or bsr_matrix of a BAIJ
        The diagonal block.
    rest : scipy.sparse.csr_matrix, or bsr_matrix of a BAIJ
        The other entries, with columns numbered from 0.
    columns : array
        The numbers of these columns in A, ascending; of a BAIJ a new array, since PETSc has a number a block.

    Raises
    ------
    InputError
        For other types, and for a matrix that is not assembled.
    """
    from petsc4py import PETSc
    kind = A.getType()
    if not kind.startswith(SPREAD):
        raise InputError(f"A is a Mat of type {kind} on {A.comm.size} ranks: expected aij or baij; assemble it as one "
                         "of these, or use swell as a preconditioner of each rank's diagonal block, -pc_type python "
                         "-pc_python_type swell.guests.petsc.PC")
    _check_assembled(A)
    name, read, size = ("AIJ", _aij, 1) if kind.startswith("mpiaij") else ("BAIJ", _baij, A.getBlockSize())
    block, rest, columns = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    _call(f"MatMPI{name}GetSeq{name}", A, *(ctypes.byref(out) for out in (block, rest, columns)))
    block, rest = (read(_Part(part.value, A)) for part in (block, rest))
    columns = _view(columns.value, rest.shape[1] // size, np.dtype(PETSc.IntType), A)
    return block, rest, columns if size == 1 else (columns[:, None] * size + np.arange(size)).reshape(-1)


def _rows(A, blocked):
    """Return (row pointers, columns) of a sequential matrix, as views; with ``blocked`` of its blocks. For an AIJ
    ``blocked`` must be False: PETSc would combine equal rows."""
    from petsc4py import PETSc
    integer = np.dtype(PETSc.IntType)
    index = np.ctypeslib.as_ctypes_type(integer)
    count, ia, ja, done = index(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    arguments = (index(0), ctypes.c_int(0), ctypes.c_int(blocked),             # symmetric: no
                 *(ctypes.byref(out) for out in (count, ia, ja, done)))
    _call("MatGetRowIJ", A, *arguments)
    if not done.value:
        raise InputError(f"PETSc does not show the rows of a Mat of type {A.getType()}: convert it with "
                         "A.convert('aij')")
    rows = count.value
    indptr = _view(ia.value, rows + 1, integer, A)
    indices = _view(ja.value, int(indptr[-1]) if rows else 0, integer, A)
    _call("MatRestoreRowIJ", A, *arguments)      # the arrays belong to the matrix and stay valid
    return indptr if rows else np.zeros(1, integer), indices


def _values(A, get, restore, count):
    """Return a view of the ``count`` values of a sequential matrix; ``get`` and ``restore`` name PETSc's functions."""
    address = ctypes.c_void_p()
    _call(get, A, ctypes.byref(address))
    values = _view(address.value, count, scalar_type(), A)
    _call(restore, A, ctypes.byref(address))
    return values


def _aij(A):
    """Return a view of a sequential AIJ as SciPy CSR."""
    import scipy.sparse as sp
    indptr, indices = _rows(A, blocked=False)
    values = _values(A, "MatSeqAIJGetArrayRead", "MatSeqAIJRestoreArrayRead", indices.size)
    return sp.csr_matrix((values, indices, indptr), shape=A.getSize(), copy=False)


def _blocks(A, name):
    """Return a view of the stored blocks of a Mat as a SciPy BSR matrix; ``name``: "SeqBAIJ" or "SeqSBAIJ"."""
    import scipy.sparse as sp
    indptr, indices = _rows(A, blocked=True)
    size = A.getBlockSize()
    values = _values(A, f"Mat{name}GetArray", f"Mat{name}RestoreArray", indices.size * size * size)
    blocks = values.reshape(-1, size, size).transpose(0, 2, 1)                 # PETSc stores blocks by columns
    return sp.bsr_matrix((blocks, indices, indptr), shape=A.getSize(), copy=False)


def _baij(A):
    """Return a view of a sequential BAIJ as SciPy BSR."""
    return _blocks(A, "SeqBAIJ")


def _sbaij(A):
    """Return a sequential SBAIJ, copied to SciPy CSR with both triangles."""
    import scipy.sparse as sp
    upper = sp.triu(_blocks(A, "SeqSBAIJ").tocsr(), format="csr")
    strict = sp.triu(upper, k=1, format="csr")
    hermitian = strict.dtype.kind == "c" and all(A.isHermitianKnown())         # (known, true)
    return (upper + (strict.conj() if hermitian else strict).T).tocsr()


def _dense(A):
    """Return a view of a sequential dense matrix as a NumPy array."""
    return A.getDenseArray(readonly=True)


def _matrix_free(A):
    """Return a SciPy LinearOperator that calls PETSc's products with A and Aᴴ."""
    from scipy.sparse.linalg import LinearOperator
    right, left = A.createVecs()

    def multiply(product, source, target):
        def applied(x):
            source.getArray()[...] = x.reshape(-1)
            product(source, target)
            return target.getArray(readonly=True).copy()
        return applied

    return LinearOperator(A.getSize(), matvec=multiply(A.mult, right, left),
                          rmatvec=multiply(A.multHermitian, left, right), dtype=scalar_type())
