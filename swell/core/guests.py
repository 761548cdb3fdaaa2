"""Guests: one class for each other library whose matrices and vectors swell accepts.

`guest_of` finds the guest by the module of an object's class, or a package around it. Rows of the table name guests as
text, as in `swell.core.registry`: a guest is imported when its first object appears. Among objects without a row,
arrays with the CUDA array interface or DLPack go to the guest for protocols, and three arrays in a tuple are a matrix
in CSR. All others go to NumPy and SciPy.
"""
from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from swell.core.arrays import for_kernels
from swell.core.errors import InputError

TABLE = {
    "cupy": "swell.guests.cupy:CuPy",
    "cupyx": "swell.guests.cupy:CuPy",
    "torch": "swell.guests.torch:Torch",
    "jax": "swell.guests.jax:JAX",
    "jaxlib": "swell.guests.jax:JAX",
    "petsc4py": "swell.guests.petsc.views:PETSc",
    "sparse": "swell.guests.pydata_sparse:PydataSparse",
    "pyamg": "swell.guests.pyamg.reader:PyAMG",
    "swell.solver": "swell.guests.solver:Prepared",
    "swell.preconditioning": "swell.guests.solver:Applied",
}
PROTOCOLS = "swell.guests.array_api:ArrayAPI"
TUPLE = "swell.guests.csr_arrays:CSRArrays"
HOME = "swell.guests.scipy:SciPy"


class Given(NamedTuple):
    """A matrix that its library has converted to CSR.

    Attributes
    ----------
    csr : CSR matrix of SciPy or CuPy
    entries : int
        Number of entries that the original stores. ``csr`` has fewer if the conversion summed duplicates.
    shared : bool
        True if ``csr`` may share arrays with the original.
    block : int
        Size of the original's square blocks, 0 if it has none.
    """

    csr: Any
    entries: int
    shared: bool
    block: int = 0


class Guest(ABC):
    """A library: it reads the library's matrices and vectors, without a copy if possible, and converts x back."""

    def device_of(self, value) -> str:
        """Return the device on which ``value``, a user's matrix or vector, lies: "cpu" or "cuda:k"."""
        return "cpu"

    def dtype_of(self, value, name) -> np.dtype:
        """Return the dtype of ``value``, a user's matrix or vector; ``name`` is its name in error messages."""
        return value.dtype

    @abstractmethod
    def read_matrix(self, A):
        """Convert A to an array or a sparse matrix of NumPy, SciPy or CuPy, or to their LinearOperator."""

    def block_size(self, A) -> int | None:
        """The block size that a matrix object states, or None."""
        return None

    @abstractmethod
    def read_vector(self, v, name):
        """Convert a vector, or several as columns, to an array of NumPy or CuPy; ``name`` is for error messages."""

    def read_preconditioner(self, M):
        """Return the user's M, an approximate inverse, as (a function r -> z, a matrix or an object with ``matvec``;
        True if it is not a fixed linear map)."""
        return M, False

    def give_back(self, x, like):
        """Convert x, a fresh array of NumPy or CuPy, to the array type of ``like``."""
        return x


class Preconditioners(Guest):
    """Objects that are preconditioners, and no arrays."""

    def dtype_of(self, value, name):
        return self.read_vector(value, name)

    def read_matrix(self, A):
        return A

    def read_vector(self, v, name):
        raise InputError(f"{name} is a {type(v).__name__}: expected an array; such an object is for M=")


class ArrayLibrary(Guest):
    """NumPy with SciPy, or CuPy: the libraries to whose arrays objects of all others are converted."""

    def read_matrix(self, A):
        return A

    def check(self, A, quick=False):
        """Raise InputError for a sparse matrix whose arrays contradict each other.

        ``quick`` skips the indices of a CSR matrix of 32 bits: the later pass over its entries checks them.
        """

    @abstractmethod
    def csr(self, A) -> "Given":
        """Return A, a sparse matrix, as CSR; its columns may still be unsorted, duplicate or out of range."""

    @abstractmethod
    def summed(self, csr):
        """Return a copy of the CSR matrix with sorted columns and duplicates summed."""


def guest_of(value) -> Guest:
    """Return the `Guest` that reads objects of the library of ``value``; the one for NumPy and SciPy by default."""
    if type(value) is np.ndarray:                # at once: a solve asks some ten times
        return _loaded(HOME)
    rows = (_row(cls.__module__) for cls in type(value).__mro__)               # users derive from PETSc's classes
    return _loaded(next((row for row in rows if row is not None), None) or _row_without_module(value))


def canonical_csr(A):
    """Return the entries of ``A``, a user's matrix of any library, as a CSR matrix of SciPy with arrays as kernels
    read them: columns sorted, duplicates summed. The arrays of ``A`` are not changed; the result may share them.

    Raises
    ------
    InputError
        If ``A`` is no matrix, its arrays contradict each other, or its type is unsupported.
    """
    import scipy.sparse as sp
    A = guest_of(A).read_matrix(A)
    if len(shape := getattr(A, "shape", (0, 0))) != 2:
        raise InputError(f"A has shape {tuple(shape)}: expected a matrix")
    guest = guest_of(A)
    guest.check(A)
    csr = guest.csr(A).csr
    csr = csr.get() if type(csr).__module__.startswith("cupy") else csr
    arrays = (for_kernels(array) for array in (csr.data, csr.indices, csr.indptr))
    csr = sp.csr_matrix(tuple(arrays), shape=csr.shape)          # without the user's flags
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    return csr


@functools.cache
def _row(module) -> str | None:
    """The row of a module or of a package that it lies in, or None."""
    parts = module.split(".")
    names = (".".join(parts[:k]) for k in range(len(parts), 0, -1))
    return next((TABLE[name] for name in names if name in TABLE), None)


def _row_without_module(value) -> str:
    """Return the guest's row for an object whose library is not in the table."""
    if isinstance(value, tuple):
        return TUPLE if len(value) == 3 and all(map(_is_vector, value)) else HOME
    return PROTOCOLS if _has_protocol(value) else HOME


def _is_vector(value) -> bool:
    """True for an array of one dimension, and for an array that does not say its shape."""
    return len(getattr(value, "shape", ())) == 1 or not hasattr(value, "shape") and _has_protocol(value)


def _has_protocol(value) -> bool:
    """True for an array that is not NumPy's and has the CUDA array interface or DLPack."""
    return not isinstance(value, np.ndarray) and (hasattr(type(value), "__dlpack__") or getattr(
        value, "__cuda_array_interface__", None) is not None)


@functools.cache
def _loaded(row) -> Guest:
    module, name = row.split(":")
    return getattr(importlib.import_module(module), name)()
