"""Base of all preconditioners: a frozen settings object whose ``build(A)`` is the only setup."""
from __future__ import annotations

from abc import ABC, abstractmethod


class Preconditioner(ABC):
    """Settings of a preconditioner.

    Attributes
    ----------
    problem : str
        The class of matrices it is for.
    cost : str
        Cost of an application.
    hermitian_only : bool
        True if it is for Hermitian matrices alone; others are refused.
    kinds : str
        Kinds of data types that it takes: "f" for real, "c" for complex.
    as_given : bool
        True if it must see the system as it was given, without ordering and scaling.
    across_ranks : bool
        True if, of a matrix in parts, it takes the whole; others are built on each rank's diagonal block.
    from_entries : bool
        True if it is built from the entries of A. What the user brought is not: it needs no entries, and it stays
        when A takes new values.
    method : str or None
        Name of the method, with the same fields, that solves with this preconditioner alone. Its settings may be given
        in the method's place.
    against_scaling : str
        Why a scaling usually harms it, for a note; empty if it does not.
    idle : tuple of Idle
        Fields that have no effect on some devices or matrices; the operator's notes say so.
    """

    problem: str
    cost: str
    hermitian_only = False
    kinds = "fc"
    as_given = False
    across_ranks = False
    from_entries = True
    method = None
    against_scaling = ""
    idle = ()

    @abstractmethod
    def build(self, A):
        """The operator M ≈ A⁻¹ for a matrix in CSR (of the space where it is to be used)."""
