"""ConnectedRanks: ranks that a communicator connects, each with consecutive rows of the vectors."""
from __future__ import annotations

from contextlib import contextmanager, suppress

import numpy as np

from swell.core.columns import Columns
from swell.core.operator import Wrapper
from swell.core.ranks import Ranks
from swell.distributed.communicator import Broken
from swell.distributed.words import merged, merged_notes


class ConnectedRanks(Ranks):
    """A communicator, and the range of rows of each rank.

    Parameters
    ----------
    communicator : Communicator
    starts : int64 array, shape (ranks + 1,)
        The first row of each rank, and n.
    local : Space
        This rank's own space.

    Attributes
    ----------
    first, stop : int
        This rank has the rows from ``first`` to ``stop`` − 1.
    failure : BaseException or None
        The first error of a user's function in the last `deferred_errors`.
    """

    single = False

    def __init__(self, communicator, starts, local):
        self.communicator, self.starts, self._local = communicator, starts, local
        self.first, self.stop = int(starts[communicator.rank]), int(starts[communicator.rank + 1])
        self.failure, self._iterating = None, False

    def local_rows(self, n):
        return self.stop - self.first

    def allreduce(self, scalars):
        if isinstance(scalars, Columns):
            self.communicator.allreduce_columns(scalars, self._local)
        else:
            self.communicator.allreduce(scalars)

    def allgather(self, value):
        return self.communicator.allgather(value)

    def require_equal(self, value, what):
        self.communicator.require_equal(value, what)

    def agreed(self):
        return self.communicator.agreed()

    @contextmanager
    def deferred_errors(self):
        """Context manager around iterations, as in `Ranks`. Errors that ``attempted`` kept are raised on all ranks at
        its end. Any other error on one rank alone would leave the others waiting for its numbers: it ends all of
        them."""
        self.failure, self._iterating = None, self.communicator.size > 1
        try:
            yield
        except Broken:
            raise
        except BaseException as error:           # Ctrl-C too: a program may catch it
            if not getattr(error, "told", False):
                with suppress(Broken):           # the other ranks have ended already
                    self.communicator.tell_unasked(error)
            raise
        finally:
            self._iterating = False
        with self.agreed():
            if self.failure is not None:
                raise self.failure

    def guarded(self, M):
        return None if M is None else Guarded(M, self)

    def attempted(self, function, *arguments):
        """Call a user's ``function(*arguments)`` and return its result. Within `deferred_errors`, an error that it
        raises is kept in ``failure``, and True is returned: the rank goes on, since the others wait for its numbers."""
        if not self._iterating:
            return function(*arguments)
        try:
            return function(*arguments)
        except Broken:
            raise
        except BaseException as error:           # Ctrl-C and sys.exit too
            rank = self.communicator.rank
            error.told = False                   # an earlier solve may have raised and sent the same object
            error.add_note(f"raised on rank {rank} of {self.communicator.size}, by a preconditioner or monitor")
            self.failure = self.failure or error
            return True

    def said(self, texts):
        return [merged(of) for of in zip(*self.allgather(texts), strict=True)]

    def said_notes(self, notes):
        return merged_notes(self.allgather(notes))


class Guarded(Wrapper):
    """A preconditioner of this rank's rows that turns an error into NaN, so that all ranks end alike."""

    def __init__(self, inner, ranks):
        super().__init__(inner.shape, inner.dtype, inner.space)
        self.inner, self._ranks = inner, ranks

    def _attempt(self, apply, x, out, *arguments):
        if self._ranks.attempted(apply, x, out, *arguments):
            out.fill(np.nan)

    def apply(self, x, out, alpha=1, beta=0):
        self._attempt(self.inner.apply, x, out, alpha, beta)

    def apply_adjoint(self, x, out, alpha=1, beta=0):
        self._attempt(self.inner.apply_adjoint, x, out, alpha, beta)

    def apply_dots(self, x, out, w, dots):
        self._attempt(self.inner.apply_dots, x, out, w, dots)

    def apply_dot(self, x, out, w, dots):
        self._attempt(self.inner.apply_dot, x, out, w, dots)
