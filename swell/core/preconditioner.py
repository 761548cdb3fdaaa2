"""Base of all preconditioners: a frozen settings object whose ``build(A)`` is the only setup."""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from swell.core.settings import Idle


class Preconditioner(ABC):
    """Settings of a preconditioner.

    Attributes
    ----------
    problem : str
        The class of matrices for which it is meant.
    cost : str
        Cost of an application.
    hermitian_only : bool
        True if it accepts Hermitian matrices only.
    kinds : str
        Kinds of data types that it accepts: "f" for real, "c" for complex.
    as_given : bool
        True if it must be built for the original system, without ordering and scaling.
    beside_nullspace : bool
        True if, though built for the original system, it works for a singular one whose null space is named.
    across_ranks : bool
        True if it is built from the whole distributed matrix; others are built from each rank's diagonal block.
    from_entries : bool
        True if it is built from the entries of A. False for the user's own preconditioner: it needs no entries, and
        stays unchanged when A takes new values.
    method : str or None
        Name of the method, with the same fields, that solves with this preconditioner alone. ``method=`` also accepts
        these settings.
    against_scaling : str
        The reason why a scaling usually harms it, for a note; empty if it does not.
    idle : tuple of Idle
        Fields that have no effect on some devices or matrices; the operator's notes say so.
    """

    problem: str
    cost: str
    hermitian_only = False
    kinds = "fc"
    as_given = False
    beside_nullspace = False
    across_ranks = False
    from_entries = True
    method: str | None = None
    against_scaling = ""
    idle: tuple[Idle, ...] = ()

    def restricted(self, A, rows):
        """Return the settings for a part of A. Only settings with an array for the rows of A differ there.

        ``A`` is a CSRMatrix or a DistributedMatrix. ``rows`` takes a host array of this rank's rows of A, shape (rows,
        k), and returns the rows of the part."""
        return self

    @abstractmethod
    def build(self, A):
        """Return a new operator M ≈ A⁻¹ for a CSRMatrix A, in the space of A."""
