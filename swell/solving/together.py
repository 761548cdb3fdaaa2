"""Together: k right-hand sides of one prepared system solved at the same time, by k independent recurrences.

Each iteration multiplies the matrix by k vectors at once and applies the preconditioner to them. Every column has its
own scalars, convergence test and history, and takes the same steps as if it were solved alone. A column that has ended
is frozen. If a column needs more than a single run of the method, such as a restart after a breakdown or a longer
basis, it goes on alone, from its x.
"""
from __future__ import annotations

import weakref

from swell.core.ahead import MATRIX
from swell.core.columns import column
from swell.core.operator import Composite
from swell.core.sharing import Widening
from swell.solving.result import Result
from swell.solving.solve import Solve

MAX_COLUMNS = 32        # more right-hand sides are solved in groups


def obstacle(prepared) -> str | None:
    """Return why a prepared system must solve its right-hand sides one by one, or None."""
    s = prepared.setup
    if s.configuration.method.gpu_only:
        return f"{s.configuration.name('method')} holds one right-hand side on the chip"
    if s.nullspace is not None:
        return "with a null space they are solved one by one"
    foreign = [part for whole in (s.matrix, s.M, s.S) for part in _all_parts(whole)
               if not type(part).__module__.startswith("swell.")]
    return f"{type(foreign[0]).__name__}, an operator of your own, takes one vector at a time" if foreign else None


def _all_parts(operator):
    """Return ``operator`` and all operators that it applies, in a list; an empty one for None."""
    if operator is None:
        return []
    parts = operator.parts if isinstance(operator, Composite) else ()
    return [operator, *(each for part in parts for each in _all_parts(part))]


def bound(prepared, columns, method=None) -> "Together":
    """Return the `Together` of ``prepared`` for ``columns`` right-hand sides; ``method``: as for `Together`.

    The last one is kept, with its buffers."""
    if (columns, method) not in prepared.companions:
        prepared.companions = {(columns, method): Together(prepared, columns, method)}
    return prepared.companions[columns, method]


class Together:
    """Buffers and the bound method for k right-hand sides of ``prepared``, whose matrices and factors it shares.

    Parameters
    ----------
    prepared : Prepared
    columns : int
        k, from 2 to `MAX_COLUMNS`.
    method : settings of a method, optional
        It replaces the prepared one.

    All ranks must create and run it together.
    """

    def __init__(self, prepared, columns, method=None):
        setup = prepared.setup
        with prepared.space.ranks.agreed():            # one rank alone may lack memory
            self._alone = weakref.ref(prepared)  # `prepared` holds this object; a cycle would keep their memory
            self.space = prepared.space.for_columns(columns)
            with self.space.active(setup.A.shape[0]):
                self.space.compile_ahead((MATRIX, *setup.configuration.parts), setup.A.dtype)
                self._copies = Widening(self.space)
                self.prepared = prepared.shared(self._copies, method)

    @property
    def alone(self):
        """The prepared system of one right-hand side."""
        return self._alone()

    def update(self) -> bool:
        """Take over an update of the prepared system to new values; buffers and captured graphs stay.

        Return False if the update replaced more than values, on this rank or another; this object is then of no use."""
        self.prepared.update_from(self.alone)
        return not self.space.ranks.max(not self._copies.current())         # one answer for all ranks

    def run(self, b, x0=None, monitor=None, watch=None) -> list[Result]:
        """Solve for the columns of b, shape (n, k), on the host or on the device; return their results in order.

        ``x0``: the starting vectors, such an array, or None for zero. ``monitor(iteration, relative_norm)`` gets the
        largest relative norm of all columns. ``watch(norm, threshold)`` gets the norm and threshold of the column
        furthest from its threshold; if it returns True, the run ends as OVERTAKEN. Each x has the shape (n,).
        """
        n, alone = self.prepared.setup.A.shape[0], self.alone
        with self.space.active(n):
            solve = Solve(self.prepared, b, monitor, watch)
            solve.run(x0)
            results = [None if solve.goes_on(j) else solve.result(j) for j in range(self.space.columns)]
        with alone.space.active(n):
            for j in [j for j, result in enumerate(results) if result is None]:
                further = Solve(alone, b[:, j], monitor, earlier=solve.columns[j])
                further.resume(column(self.prepared.x, j))
                results[j] = further.result()
                results[j].x = results[j].x.copy()           # the next column would overwrite the buffer
        return results
