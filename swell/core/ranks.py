"""Ranks hold parts of a space's vectors and agree on errors. Here one rank holds whole vectors."""
from __future__ import annotations

from contextlib import nullcontext


class Ranks:
    """The one rank of a space on one device. `ConnectedRanks` overrides every method.

    Attributes
    ----------
    single : bool
        False if other ranks have parts of the vectors too: a kernel's sum is then this rank's part only.
    """

    single = True

    def local_rows(self, n: int) -> int:
        """Return this rank's number of entries of a vector of length n: n on one device."""
        return n

    def allreduce(self, scalars):
        """Add up ``scalars`` over all ranks that share the vectors, in place; nothing to do on one device.

        Kernels, ``dots`` and ``apply_dots`` compute the sums of one rank."""

    def allgather(self, value) -> list:
        """Return the ``value`` of every rank, in order; on one device, a list of the one value."""
        return [value]

    def max(self, value: float) -> float:
        """Return the largest ``value`` of all ranks; the number itself on one device."""
        return max(self.allgather(value))

    def require_equal(self, value, what: str):
        """Raise InputError on every rank unless all ranks give an equal value. ``what`` names it in the message."""

    def agreed(self):
        """A context whose error on one rank is raised on all of them; on one device, errors are raised as they are."""
        return nullcontext()

    def deferred_errors(self):
        """Return a context in which ranks iterate. On one device, errors are raised as they are.

        An error of a user's function on one rank waits until all ranks reach the end of the block; then all raise it.
        """
        return nullcontext()

    def guarded(self, M):
        """Return M, this rank's preconditioner or None, such that its errors wait for the end of `deferred_errors`."""
        return M

    def said(self, texts: list[str]) -> list[str]:
        """Merge the texts of all ranks, place by place, into texts that hold for all ranks; returns a list as long."""
        return texts

    def said_notes(self, notes: list[str]) -> list[str]:
        """Return the notes of all ranks in one list; on one device ``notes`` itself."""
        return notes
