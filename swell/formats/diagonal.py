"""The diagonal that smoothers, scalings and Jacobi divide by."""
from __future__ import annotations

from swell.core.errors import InputError


def nonzero_diagonal(A, owner):
    """Return the diagonal of A. Raises InputError if one of its entries is zero or missing.

    ``owner``: the caller's name, for the message, which also names the first such row."""
    d, facts = A.diagonal(), A.diagonal_block.facts(search=False)
    if facts.zero_diagonal:
        remedy = remove_empty(A, A.data != 0) if A.space.ranks.single else ""
        remedy = remedy or ("use method='direct', or bring large entries onto the diagonal, by A[order] x = b[order] "
                            "with order = swell.transversal(A)")
        raise InputError(f"{owner} divides by the diagonal, and {facts.zero_diagonal} of {d.size} diagonal entries are "
                         f"zero (the first in row {facts.first_zero}): {remedy}")
    return d


def remove_empty(A, there, named="row {}".format) -> str:
    """Return what to do about the first empty row or column of A, a CSRMatrix; "" if there is none.

    No order of the rows helps against either.

    Parameters
    ----------
    there : bool array or slice
        Which of A's entries count.
    named : callable
        Takes a row number, returns its name for the message.
    """
    for what, numbers in (("{}", A.rows()), ("the column of {}", A.indices)):
        empty = A.space.xp.ones(A.shape[0], bool)
        empty[numbers[there]] = False
        first, count = A.space.find_true(empty)  # sync
        if count:
            return (f"{what.format(named(first))} is empty, so that A is singular and no order of rows helps: take the "
                    "equation and the unknown out, or put a 1 on the diagonal")
    return ""
