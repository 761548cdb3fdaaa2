"""Transform: the base of changes to the system that are undone after the solve, such as scaling and reordering.

A transform replaces A x = b by A' x' = b' with A' = L A R, b' = L b, x = R x'. It is not a preconditioner: the judge
still uses the original residual b − A x = L⁻¹ (b' − A' x').

``forward_b``, ``forward_x`` and ``backward_x`` read one vector and write another: the two never share memory, so a
transform may gather. The caller alternates between two buffers (`Prepared.transform`).
"""
from __future__ import annotations

from abc import ABC, abstractmethod


class Transform(ABC):
    """A change of the system for one matrix; ``build`` of a settings object makes it.

    Attributes
    ----------
    uniform : bool
        True for a scaling by a constant, which would have no effect.
    note : str
        Text that the printed configuration adds to its settings.
    """

    uniform = False
    note = ""

    @abstractmethod
    def matrix(self, A):
        """A' = L A R, for a matrix A of the space."""

    @abstractmethod
    def update(self, A):
        """Recompute L and R in place for another matrix of the same pattern; ``matrix(A)`` then returns its A'."""

    @abstractmethod
    def forward_b(self, b, out):
        """``out = L b``; b and ``out`` share no memory."""

    @abstractmethod
    def forward_x(self, x, out):
        """``out = R⁻¹ x``, for a starting vector; x and ``out`` share no memory."""

    @abstractmethod
    def backward_x(self, x, out):
        """``out = R x``; x and ``out`` share no memory."""

    def adjoint(self) -> "Transform":
        """The transform of Aᴴ, with Rᴴ and Lᴴ in place of L and R: this one, where R = Lᴴ."""
        return self

    def effects(self, A):
        """Lines for the printed configuration about the effect on the matrix; ``A`` is the transformed matrix A'."""
        return []

    def residual_weights(self):
        """Weights w (float32) with ‖b − A x‖² = Σ wᵢ |r'ᵢ|², or None if all are one."""
        return None
