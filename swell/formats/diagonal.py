"""The diagonal that smoothers, scalings and Jacobi divide by."""
from __future__ import annotations

from swell.core.errors import InputError


def nonzero_diagonal(A, owner):
    """Return the diagonal of A. Raises InputError if one of its entries is zero or missing.

    ``owner``: the caller's name, for the message, which also names the first such row."""
    d, facts = A.diagonal(), A.diagonal_block.facts(search=False)
    if facts.zero_diagonal:
        raise InputError(f"{owner} divides by the diagonal, and {facts.zero_diagonal} of {d.size} diagonal entries are "
                         f"zero (the first in row {facts.first_zero}): use method='direct', or bring large entries "
                         "onto the diagonal, by A[order] x = b[order] with order = swell.transversal(A)")
    return d
