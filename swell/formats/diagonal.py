"""The diagonal that smoothers, scalings and Jacobi divide by."""
from __future__ import annotations

from swell.core.errors import InputError


def nonzero_diagonal(A, owner):
    """The diagonal of A. Raises InputError, naming ``owner`` and the first zero, if an entry is zero or missing."""
    d, facts = A.diagonal(), A.diagonal_block.facts(search=False)
    if facts.zero_diagonal:
        raise InputError(f"{owner} divides by the diagonal, and {facts.zero_diagonal} of {d.size} diagonal entries are "
                         f"zero (the first in row {facts.first_zero}): use method='direct', or bring large entries "
                         "onto the diagonal, by A[order] x = b[order] with order = swell.transversal(A)")
    return d
