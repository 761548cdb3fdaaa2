"""``Recurring``: one solver for a loop whose matrices have a pattern that mostly recurs."""
from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from swell import inputs
from swell.api import prepare
from swell.core.errors import InputError
from swell.core.guests import canonical_csr
from swell.core.log import LOG
from swell.formats.csr import CSRMatrix
from swell.options import Accepted, OptionsDict
from swell.solving.result import Result

OPTIONS = Accepted()
MOST_JOINED = 1.25      # a joint pattern is prepared if it has at most this times the entries of the new matrix
MOST_KEPT = 2           # a pattern is kept for a matrix with at least one part in this of its entries


class Recurring:
    """A solver for time loops and Newton's method. It updates its setup where it can, and prepares where it must.

    A matrix of the last pattern, or of a part of it, updates the setup: SciPy's sums drop entries that cancel, so that
    patterns shrink and grow. A matrix with new entries is prepared anew, for both patterns together if they have
    nearly the same entries; a pattern that alternates is then set up twice in all. Missing entries are stored as zeros.

    Parameters
    ----------
    options
        See `swell.Options`.

    Attributes
    ----------
    setups, updates : int
        How often a matrix was prepared, and how often values were updated. Equal matrices count as neither.
    last : {"prepared", "updated", "kept"}
        What the last call did.
    result : Result or None
        The last solve's.

    Examples
    --------
    >>> import numpy as np, swell
    >>> A, step = swell.gallery.poisson2d(30), swell.Recurring(method="cg", precond="ic0")
    >>> all(step.solve(A * (1 + t), np.ones(900)).converged for t in (0.0, 0.1, 0.2))
    True
    >>> step
    Recurring(1 setup, 2 updates)
    """

    @OPTIONS.shown
    def __init__(self, **options: Unpack[OptionsDict]):
        self._options = OPTIONS.read(options)
        self._solver: Any = None
        self._other_stopping = False             # the last solve ended by a Stopping of its own
        self.setups, self.updates, self.last, self.result = 0, 0, "", None

    def solve(self, A, b, x0=None, monitor=None, together=None, adjoint=False, progress=False, *,
              stopping=None) -> Result | Any:
        """Solve A x = b; return the Result. A note says if the system was prepared anew, and why.

        Parameters
        ----------
        A, b
            As `swell.solve` takes them.
        stopping : Stopping, optional
            When this solve ends; by default as the options say.
        x0, monitor, together, adjoint, progress
            As `Solver.solve` takes them.
        """
        solver = self.solver(A, b)
        if stopping is not None or self._other_stopping:
            solver.stop_by(self._options.criterion if stopping is None else stopping)
        self._other_stopping = stopping is not None
        self.result = result = solver.solve(b, x0, monitor, together, adjoint, progress)
        if self.last == "prepared" and self.setups > 1:
            result.notes.append(f"the matrix has another type or entries that the last ones had not: setup "
                                f"{self.setups}, after {self.updates} updates")
        return result

    def solver(self, A, b=None):
        """Return the Solver for A: the last one, the last one updated, or a new one.

        Parameters
        ----------
        A : square matrix, n × n
            As `swell.solve` takes it; it is not kept.
        b : array, optional
            A right-hand side, or an array of its type.
        """
        types = inputs.dtype_of(A, "A"), b is not None and inputs.dtype_of(b).kind == "c"
        if self._solver is None or types[0] != self._type or types[1] and self._solver.A.dtype.kind != "c":
            return self._prepared(A, b, types[0])
        held = self._solver.A
        if not isinstance(held, CSRMatrix):
            return self._tried(A, b, types[0])
        matrix = inputs.read_matrix(A, held.space.device_name, held.dtype).A
        if not isinstance(matrix, CSRMatrix) or matrix.shape != held.shape:
            return self._prepared(A, b, types[0])
        if not held.same_pattern(matrix):
            joined, more = _joined(held.to_scipy(), canonical_csr(matrix.to_scipy()))
            if more:
                return self._prepared(A if joined is None else joined, b, types[0])
            matrix = inputs.read_matrix(joined, held.space.device_name, held.dtype).A
        if held.space.find_true(matrix.data != held.data)[1]:
            return self._updated(matrix)
        self.last = "kept"
        return self._solver

    def _prepared(self, A, b, dtype):
        if self._solver is not None:
            LOG.info("%r: the matrix has another type, shape or new entries, and is prepared anew", self)
        self._solver, self._type = prepare(A, b_like=b, **self._options.keywords()), dtype
        self.setups, self.last = self.setups + 1, "prepared"
        return self._solver

    def _updated(self, A):
        self._solver.update(A)
        self.updates, self.last = self.updates + 1, "updated"
        return self._solver

    def _tried(self, A, b, dtype):
        """Update a system on all GPUs, or a matrix-free one, which compare patterns themselves or refuse."""
        try:
            return self._updated(A)
        except InputError:
            return self._prepared(A, b, dtype)

    def __repr__(self):
        return "Recurring(" + ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in (
            (self.setups, "setup"), (self.updates, "update"))) + ")"


def _joined(held, new):
    """Return (``new`` on the joint pattern of two SciPy matrices in canonical CSR, whether it must be prepared). The
    first is None if ``new`` has too few entries to be worth that pattern."""
    n = held.shape[1]
    old, mine = (np.repeat(np.arange(n), np.diff(M.indptr)) * n + M.indices for M in (held, new))
    keys = np.union1d(old, mine)
    more = keys.size > old.size
    if keys.size > (MOST_JOINED if more else MOST_KEPT) * mine.size:
        return None, True
    data = np.zeros(keys.size, new.dtype)
    data[np.searchsorted(keys, mine)] = new.data
    indptr = np.searchsorted(keys, np.arange(n + 1) * n)
    return type(new)((data, keys % n, indptr), shape=new.shape), more
