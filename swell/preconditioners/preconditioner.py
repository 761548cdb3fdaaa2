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
    """

    problem: str
    cost: str

    @abstractmethod
    def build(self, A):
        """The operator M ≈ A⁻¹ for a matrix in CSR (of the space where it is to be used)."""
