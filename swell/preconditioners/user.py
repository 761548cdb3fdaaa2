"""The user's own preconditioner: a function, a SciPy or CuPy LinearOperator, a sparse or dense matrix."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from swell.core.errors import InputError
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
        xp = A.space.xp
        if hasattr(M, "matvec"):
            return CallableOperator(A.shape, A.dtype, A.space, M.matvec, getattr(M, "rmatvec", None), self.variable,
                                    f"user LinearOperator {type(M).__name__}")
        if shape is not None:                    # a matrix, sparse or dense
            return CallableOperator(A.shape, A.dtype, A.space, lambda x: xp.asarray(M @ x),
                                    lambda x: xp.asarray(M.conj().T @ x), self.variable,
                                    f"user matrix {type(M).__name__}")
        if callable(M):
            name = getattr(M, "__name__", type(M).__name__)
            return CallableOperator(A.shape, A.dtype, A.space, M, None, self.variable, f"user function {name}")
        raise InputError(f"M={M!r}: expected a function r -> z, a LinearOperator or a matrix")


def resolve_preconditioner(choice):
    """Return the settings object of a preconditioner for ``choice``: a name, a settings object, or the user's own M,
    which becomes a `User`. None for no preconditioner."""
    if choice is None or isinstance(choice, (str, type, Preconditioner)):
        return choice if isinstance(choice, User) else resolve("precond", choice)
    return User(choice)
