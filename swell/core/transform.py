"""Transform: what changes the system itself and is undone afterwards, unseen by the user.

A transform replaces A x = b by A' x' = b' with A' = L A R, b' = L b, x = R x'. It is not a preconditioner: the
judge stays on the original residual b − A x = L⁻¹ (b' − A' x').
"""
from __future__ import annotations

from abc import ABC, abstractmethod


class Transform(ABC):
    """A change of the system, bound to one matrix by its settings object's ``build``.

    Attributes
    ----------
    uniform : bool
        True of a scaling that would change nothing.
    note : str
        What the printed configuration says of it, beside its settings.
    """

    uniform = False
    note = ""

    @abstractmethod
    def matrix(self, A):
        """A' = L A R, for a matrix of the space."""

    @abstractmethod
    def update(self, A):
        """Take the values of another matrix of the same pattern, in place; `matrix` then gives its A'."""

    @abstractmethod
    def forward_b(self, b, out):
        """``out = L b``."""

    @abstractmethod
    def forward_x(self, x, out):
        """``out = R⁻¹ x``, for a starting vector."""

    @abstractmethod
    def backward_x(self, x, out):
        """``out = R x``."""

    def facts(self, A):
        """Lines on what it did to the matrix, A by now, for the printed configuration."""
        return []

    def residual_weights(self):
        """Weights w (float32) with ‖b − A x‖² = Σ wᵢ |r'ᵢ|², or None where they are all one."""
        return None
