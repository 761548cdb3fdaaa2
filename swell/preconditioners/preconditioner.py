"""What every preconditioner is: a frozen settings object whose ``build(A)`` is the only setup."""
from __future__ import annotations

from abc import ABC, abstractmethod


class Preconditioner(ABC):
    """Settings of a preconditioner.

    Attributes
    ----------
    problem : str
        The class of matrices it is for.
    cost : str
        What an application costs.
    hermitian_only : bool
        True if it is for Hermitian matrices alone; others are refused.
    kinds : str
        Of the types that it takes: "f" for real and "c" for complex ones.
    as_given : bool
        True if it must see the system as it was given, without ordering and scaling.
    across_ranks : bool
        True if, of a matrix in parts, it takes the whole; others are built on each rank's diagonal block.
    idle : tuple of Idle
        Fields that have no effect on some devices or matrices; the operator's notes say so.
    """

    problem: str
    cost: str
    hermitian_only = False
    kinds = "fc"
    as_given = False
    across_ranks = False
    idle = ()

    @abstractmethod
    def build(self, A):
        """The operator M ≈ A⁻¹ for a matrix in CSR (of the space where it is to be used)."""
