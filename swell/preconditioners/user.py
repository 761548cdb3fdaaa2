"""The user's own preconditioner: a function, a LinearOperator, a matrix, factors, a hierarchy, or a prepared Solver."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.operator import CallableOperator, LinearOperator
from swell.core.preconditioner import Preconditioner
from swell.core.registry import resolve


@dataclass(frozen=True)
class User(Preconditioner):
    """z = M(r) by the user's own code; its arrays are on the device of the system.

    Attributes
    ----------
    M : callable, LinearOperator or matrix
        An approximate inverse of A.
    variable : bool
        True if M is not a fixed linear map (an inner iteration, for example); then use the method ``fgmres``.
    """

    M: Any
    variable: bool = False

    problem = "the user's choice"
    cost = "the user's choice"
    as_given = True
    from_entries = False

    def build(self, A):
        M = self.M
        shape = getattr(M, "shape", None)
        if shape is not None and tuple(shape) != tuple(A.shape):
            raise InputError(f"M has shape {tuple(shape)}: expected {tuple(A.shape)}, the shape of A")
        if isinstance(M, LinearOperator):
            return M
        return CallableOperator(A.shape, A.dtype, A.space, *products(M), self.variable, words(M))


def products(M):
    """Return (r ↦ M r, r ↦ Mᴴ r or None) for a user's M."""
    if hasattr(M, "matvec"):
        return M.matvec, getattr(M, "rmatvec", None)
    if getattr(M, "shape", None) is not None:    # a matrix, sparse or dense
        adjoint = cache(lambda: M.conj().T)
        return lambda r: M @ r, lambda r: adjoint() @ r
    if callable(M):
        return M, None
    raise InputError(f"M={M!r}: expected a function r -> z, a LinearOperator, a matrix, factors such as spilu's, a "
                     "PyAMG hierarchy, or a prepared Solver")


def words(M) -> str:
    """The words for a user's M in a result's printed configuration."""
    name = type(M).__name__
    if hasattr(M, "matvec"):
        return f"user LinearOperator {name}"
    if getattr(M, "shape", None) is not None:
        return f"user matrix {name}"
    return f"user function {getattr(M, '__name__', name)}"


def resolve_preconditioner(choice):
    """Return the settings object of a preconditioner for ``choice``: a name, a settings object, or the user's own M,
    which becomes a `User`. None for no preconditioner."""
    if choice is None or isinstance(choice, (str, type, Preconditioner)):
        return choice if isinstance(choice, User) else resolve("precond", choice)
    if isinstance(choice, LinearOperator):
        return User(choice)
    return User(*guest_of(choice).read_preconditioner(choice))
