"""Factors: the base of complete factorisations, A⁻¹ as an operator, which the method "direct" refines by."""
from __future__ import annotations

from swell.core.operator import LinearOperator
from swell.formats.matrix import Matrix


class Factors(LinearOperator):
    """A⁻¹ by complete factors of A.

    Attributes
    ----------
    loose : Matrix or None
        The factored matrix, if its pivots were not the largest and `repair` gives better factors; else None.
    repairs : tuple of str
        Notes on what `repair` has done.
    """

    loose: Matrix | None = None
    repairs: tuple[str, ...] = ()
    capturable = False

    def repair(self, why):
        """Replace ``loose`` factors by better ones. ``why`` begins the sentence in ``repairs``."""
