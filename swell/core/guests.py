"""Guests: the libraries whose matrices and vectors users bring, each one row of a table.

A guest is found by the module of an object's class, so that nothing is imported until one of its objects turns up. Rows
name classes as text, as in `swell.core.registry`. An object that no row knows goes to NumPy and SciPy.
"""
from __future__ import annotations

import functools
import importlib
from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

TABLE = {
    "cupy": "swell.guests.cupy:CuPy",
    "cupyx": "swell.guests.cupy:CuPy",
    "torch": "swell.guests.torch:Torch",
    "jax": "swell.guests.jax:JAX",
    "jaxlib": "swell.guests.jax:JAX",
    "petsc4py": "swell.guests.petsc.views:PETSc",
}
HOME = "swell.guests.scipy:SciPy"


class Given(NamedTuple):
    """A matrix in CSR as a library converts it.

    Attributes
    ----------
    csr : CSR matrix of SciPy or CuPy
    entries : int
        The number that the original stores. ``csr`` has fewer where the conversion summed duplicates.
    shared : bool
        True if it may share arrays with the original.
    block : int
        The size of the original's square blocks, 0 where it has none.
    """

    csr: object
    entries: int
    shared: bool
    block: int = 0


class Guest(ABC):
    """A library whose objects swell reads, where they lie if that can be, and in whose kind it gives x back."""

    def device_of(self, given) -> str:
        """The device where an object lives, "cpu" or "cuda:k"."""
        return "cpu"

    def dtype_of(self, given, name) -> np.dtype:
        """The type of an object's numbers; ``name`` is for the message of an error."""
        return given.dtype

    @abstractmethod
    def read_matrix(self, A):
        """A as an array or a sparse matrix of NumPy, SciPy or CuPy, or as their LinearOperator."""

    def block_size(self, A) -> int | None:
        """The block size that a matrix came with; None where it has none, or is not known to have."""
        return None

    @abstractmethod
    def read_vector(self, v, name):
        """One vector, or several as columns, as an array of NumPy or CuPy."""

    def give_back(self, x, like):
        """x, a fresh array of NumPy or CuPy, as the kind of vector that ``like`` is."""
        return x


class ArrayLibrary(Guest):
    """NumPy with SciPy, or CuPy: the libraries in whose arrays all others are read."""

    def read_matrix(self, A):
        return A

    def check(self, A, quick=False):
        """Raise InputError for a sparse matrix whose arrays contradict each other.

        With ``quick`` the indices of a CSR matrix of 32 bits are not looked at: the pass over its entries will do so.
        """

    @abstractmethod
    def csr(self, A) -> "Given":
        """A in CSR; columns may still be in disorder, stored twice or out of range."""

    @abstractmethod
    def summed(self, csr):
        """A copy of a CSR matrix, its columns sorted and its duplicates summed."""


def guest_of(given) -> Guest:
    """The guest to which an object belongs; NumPy and SciPy if no other."""
    roots = (cls.__module__.split(".")[0] for cls in type(given).__mro__)      # users derive from PETSc's classes
    return _loaded(next((TABLE[root] for root in roots if root in TABLE), HOME))


@functools.cache
def _loaded(row) -> Guest:
    module, name = row.split(":")
    return getattr(importlib.import_module(module), name)()
