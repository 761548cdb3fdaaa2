"""Factors: the base of complete factorisations, A⁻¹ as an operator, which the method "direct" refines by."""
from __future__ import annotations

from swell.core.operator import LinearOperator


class Factors(LinearOperator):
    """A⁻¹ by complete factors of A.

    Attributes
    ----------
    loose : bool
        True if better factors can be had by `repair`, since the pivots were not the largest.
    repairs : tuple of str
        What `repair` did.
    """

    loose = False
    repairs: tuple[str, ...] = ()
    capturable = False

    def repair(self, why):
        """Replace ``loose`` factors by better ones. ``why`` begins the sentence in ``repairs``."""

    def rounding(self, x, adjoint=False):
        """Of ``loose`` factors: eps ‖|A| |x|‖₂, about the change of A x if the entries of x are rounded; an array for
        `Columns`. With ``adjoint`` for Aᴴ."""
        raise NotImplementedError
