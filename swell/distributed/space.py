"""DistributedSpace: vectors in parts, one on each rank, in the rank's own space."""
from __future__ import annotations

from contextlib import contextmanager, suppress

import numpy as np

from swell.core.columns import Columns
from swell.core.errors import InputError
from swell.core.operator import Wrapper
from swell.core.space import Space
from swell.distributed.communicator import Broken
from swell.distributed.graph import DistributedGraphLoop
from swell.distributed.loop import DistributedLoop
from swell.distributed.words import merged, merged_notes


class DistributedSpace(Space):
    """A local space, a communicator, and who has which rows.

    Kernels leave the sums of one rank in scalars; ``allreduce`` adds them over all ranks. The spaces for one
    and for several right-hand sides share the communicator; one of them is used at a time.

    Parameters
    ----------
    local : Space
    communicator : Communicator
    starts : int64 array, shape (ranks + 1,)
        The first row of each rank, and n.
    """

    single_rank = False

    def __init__(self, local, communicator, starts):
        super().__init__()
        self._local, self.communicator, self.starts = local, communicator, starts
        self.name, self.xp, self.columns = local.name, local.xp, local.columns
        self.first, self.stop = int(starts[communicator.rank]), int(starts[communicator.rank + 1])
        self.failure, self._iterating = None, False

    # -- of all ranks --------------------------------------------------------------------------------------------

    def local_rows(self, n):
        return self.stop - self.first

    def agreed(self):
        return self.communicator.agreed()

    @contextmanager
    def deferred_errors(self):
        """Context manager around iterations, as in ``Space``. Errors that ``attempted`` kept are raised on all ranks at
        its end. Any other error on one rank alone would leave the others waiting for its numbers: it ends all of
        them."""
        self.failure, self._iterating = None, self.communicator.size > 1
        try:
            yield
        except Broken:
            raise
        except BaseException as error:           # Ctrl-C too: a program may catch it
            if not getattr(error, "told", False):
                with suppress(Broken):           # they did not hear of it, and have ended
                    self.communicator.tell_unasked(error)
            raise
        finally:
            self._iterating = False
        with self.communicator.agreed():
            if self.failure is not None:
                raise self.failure

    def said(self, texts):
        return [merged(of) for of in zip(*self.communicator.allgather(texts), strict=True)]

    def said_notes(self, notes):
        return merged_notes(self.communicator.allgather(notes))

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
            error.told = False                   # an object that an earlier solve told of may be raised again
            error.add_note(f"raised on rank {rank} of {self.communicator.size}, by a preconditioner or monitor")
            self.failure = self.failure or error
            return True

    def require_equal(self, value, what):
        self.communicator.require_equal(value, what)

    def allreduce(self, scalars):
        if isinstance(scalars, Columns):
            self.communicator.allreduce_columns(scalars, self.local)
        else:
            self.communicator.allreduce(scalars)

    def another(self):
        raise InputError("a system across ranks has no copies for other threads, since all ranks solve together: "
                         "prepare one for each thread of each rank, with a communicator of its own")

    def for_columns(self, columns):
        return DistributedSpace(self.local.for_columns(columns), self.communicator, self.starts)

    def counterpart(self, space):
        """Return ``space`` for the rows of this space: a level of multigrid has its own distribution of rows."""
        if np.array_equal(self.starts, space.starts):
            return space
        return DistributedSpace(space.local, space.communicator, self.starts)

    def same_memory(self, array, other):
        return self.local.same_memory(array, other)

    def finite(self, x):
        return self.local.finite(x)

    def same_view(self, view, base):
        return self.local.same_view(view, base)

    def max_on_host(self, x):
        return self.max_over_ranks(self.local.max_on_host(x))

    def of_ranks(self, value):
        return self.communicator.allgather(value)

    def find_true(self, mask):
        return self.local.find_true(mask)

    def count(self, keys, size):
        return self.local.count(keys, size)

    def prefix_sums(self, counts, starts):
        self.local.prefix_sums(counts, starts)

    def last_entries(self, *arrays):
        return self.local.last_entries(*arrays)

    def group_max(self, keys, size):
        return self.local.group_max(keys, size)

    def norms(self, *vectors):
        mine = self.local.norms(*vectors)
        of_ranks = np.array(self.communicator.allgather(mine))       # [rank, number] or [rank, number, column]
        found = [value for k in range(len(vectors))
                 for value in (np.sqrt((of_ranks[:, 2 * k] ** 2).sum(axis=0)), of_ranks[:, 2 * k + 1].max(axis=0))]
        return found if self.columns > 1 else [float(value) for value in found]

    def random(self, seed, out, first=0):
        self.local.random(seed, out, self.first + first)

    def loop(self, stopping, n):
        return (DistributedLoop if self.name == "cpu" else DistributedGraphLoop)(self, stopping, n)

    def describe(self):
        ranks = self.communicator.size
        return self.local.describe() + (f", on each of {ranks} ranks" if ranks > 1 else "")

    # -- of this rank --------------------------------------------------------------------------------------------

    @property
    def local(self):
        return self._local

    @property
    def device_name(self):
        return self.local.device_name

    @property
    def stream(self):
        """The CUDA stream of the local space."""
        return self.local.stream

    def empty(self, shape, dtype):
        return self.local.empty(shape, dtype)

    def mapped(self, shape, dtype):
        return self.local.mapped(shape, dtype)

    def from_host(self, array, out=None):
        return self.local.from_host(array, out)

    def to_host(self, array):
        return self.local.to_host(array)

    def compile_ahead(self, parts, dtype):
        self.local.compile_ahead(parts, dtype)

    def kernels(self, package, stem, dtype, states=None):
        return self.local.kernels(package, stem, dtype, states)

    def synchronize(self):
        self.local.synchronize()

    def memory(self):
        return self.local.memory()

    def active(self, rows=None):
        return self.local.active(None if rows is None else self.local_rows(rows))

    def reserve(self, doubles):
        self.local.reserve(doubles)

    def reserve_sums(self, scalars):
        self.local.reserve_sums(scalars)

    def padded(self, n):
        return self.local.padded(n)

    def collect(self, dots):
        self.local.collect(dots)


class Guarded(Wrapper):
    """A preconditioner of this rank's rows that answers an error with NaN, so that all ranks come to the same end."""

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
