"""System: the matrices of one pattern. It sets up, updates and solves, forward, adjoint and in batches.

Values that equal the last ones cost a comparison; new values update the setup. Programs call from any of their threads,
and one call runs at a time. Values are arrays of NumPy or CuPy, and last only as long as the call.
"""
from __future__ import annotations

from typing import Any

from swell import api
from swell.autodiff.options import Options
from swell.autodiff.options import relative as relative_only
from swell.autodiff.pattern import Pattern
from swell.batch.result import BatchResult
from swell.batch.solve import prepare_batch
from swell.core.turn import Turn
from swell.inputs import device_of


class System:
    """The systems of one pattern with the same options. Two Systems are never equal.

    Attributes
    ----------
    pattern : Pattern
    options : Options
    setups, updates : int
        How often a solver was prepared, and updated to new values.
    """

    def __init__(self, pattern: Pattern, options: Options):
        self.pattern, self.options = pattern, options
        self.setups = self.updates = 0
        self._turn = Turn()
        self._arrays: dict[tuple, Any] = {}      # index arrays on GPUs, by name and device
        self._solvers: dict[tuple, Any] = {}     # by device and type; of batches also by the systems they solve

    def solve(self, values, b, *, adjoint=False, relative=False, differentiable=False) -> Any:
        """Solve A x = b, or Aᴴ x = b; return the Result, or for several columns the Results.

        Parameters
        ----------
        values : array, shape (nnz,)
            In the order of the pattern; shape (n, n) if that has no index arrays.
        b : array of any library, shape (n,) or (n, k)
        adjoint : bool
        relative : bool
            The size of x is unknown, as of a derivative: only the relative tolerance holds.
        differentiable : bool
            An adjoint solve may follow: raise an error now if the choice has none.
        """
        with self._turn:
            solver = self._solver(values)
            if differentiable:
                solver.require_adjoint()
            before = solver.stopping
            stopping = relative_only(before) if relative or differentiable else before
            if not relative or stopping == before:
                return solver.solve(b, together=self.options.together, adjoint=adjoint)
            solver.stop_by(stopping)
            try:
                return solver.solve(b, together=self.options.together, adjoint=adjoint)
            finally:
                solver.stop_by(before)

    def solve_batch(self, values, b, *, transposed=False, relative=False) -> BatchResult:
        """Solve a system for each row of ``values``, all at once; with ``transposed`` for the transposed matrices.

        Parameters
        ----------
        values : array, shape (m, nnz) or (m, n, n)
        b : array of any library, shape (m, n) or (m, n, k)
        transposed, relative : bool
        """
        with self._turn:
            pattern, values = self.pattern, values.reshape(values.shape[0], -1)
            if transposed:
                pattern, order = pattern.transposed
                values = values.take(self._beside(values, "order", order), axis=1)
            key = device_of(values), values.dtype, transposed, relative
            if key not in self._solvers:
                self.options.check_batch()
                named = {"device": key[0], **self.options.keywords(), "dtype": values.dtype}
                self._solvers[key] = prepare_batch(pattern.host, **named | ({"atol": 0.0} if relative else {}))
                self.setups += 1
            return self._solvers[key].update(values).solve(b)

    def _solver(self, values):
        """Return the Solver for these values: the last one if they are the same, else updated."""
        key, sparse = (device_of(values), values.dtype), self.pattern.indptr is not None
        solver = self._solvers.get(key)
        if solver is not None and sparse and _equal(solver, values):
            return solver
        A = self._matrix(values)
        self._solvers.pop(key, None)             # after an error it is gone
        if solver is not None and not sparse and not _same_pattern(solver.A, A):
            solver = None                        # frees it before the next is set up
        if solver is None:
            solver = api.prepare(A, **self.options.keywords())
            self.setups += 1
        elif sparse or not _equal(solver, A.data):
            solver.update(A, keep_preconditioner=self.options.keep_preconditioner)
            self.updates += 1
        self._solvers[key] = solver
        return solver

    def _matrix(self, values):
        """Return a CSR matrix of SciPy or CuPy with these values; a dense matrix gives its nonzeros."""
        if device_of(values) == "cpu":
            from scipy.sparse import csr_matrix
        else:
            from cupyx.scipy.sparse import csr_matrix
        if self.pattern.indptr is None:
            return csr_matrix(values)
        indices, indptr = (self._beside(values, name, getattr(self.pattern, name)) for name in ("indices", "indptr"))
        return csr_matrix((values, indices, indptr), shape=(self.pattern.n, self.pattern.n))

    def _beside(self, values, name, array):
        """Return an index array, known by its name, on the device of the values."""
        device = device_of(values)
        if device == device_of(array):
            return array
        if (name, device) not in self._arrays:
            import cupy
            self._arrays[name, device] = cupy.asarray(array)
        return self._arrays[name, device]


def _equal(solver, values) -> bool:
    """True if a Solver was set up for these values."""
    space = solver.space
    with space.active(values.size):
        return not space.find_true(solver.A.data != space.from_host(values))[1]


def _same_pattern(one, other) -> bool:
    """True if two CSR matrices have their entries in the same places."""
    return one.nnz == other.nnz and all(bool((getattr(one, name) == getattr(other, name)).all())
                                        for name in ("indptr", "indices"))
