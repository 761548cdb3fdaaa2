"""System: the matrices of one pattern behind a compiled JAX program. It sets up, updates and solves.

XLA may call from any of its threads, so one call runs at a time. Values that equal the last ones cost a comparison; new
values update the setup. The arrays are NumPy's or CuPy's, and last only as long as the call.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

import swell.api
from swell.batch.solve import prepare_batch
from swell.core.errors import SwellError
from swell.core.stopping import Reason
from swell.core.turn import Turn
from swell.inputs import device_of
from swell.jax.options import SMALL, Options
from swell.jax.pattern import Pattern
from swell.solving.results import Results


class Outcome(NamedTuple):
    """Solutions (m, n, c) of m matrices with c right-hand sides each, and for each an entry of three arrays (m, c)."""

    x: Any
    iterations: np.ndarray
    residual: np.ndarray
    code: np.ndarray


class System:
    """The systems of one pattern with the same options. Two systems are never equal."""

    def __init__(self, pattern: Pattern, options: Options):
        self.pattern, self.options = pattern, options
        self._turn = Turn()
        self._arrays: dict[tuple, Any] = {}      # index arrays on GPUs, by name and device
        self._solvers: dict[tuple, Any] = {}     # by device and type

    def solve(self, values, b, right_hand_sides: int, transposed: bool, must_converge: bool) -> Outcome:
        """Solve for all matrices and right-hand sides that ``vmap`` has collected.

        Parameters
        ----------
        values : array, shape (..., nnz)
            The leading axes come from ``vmap``; their size is 1 where the values do not depend on the axis.
        b : array, shape (..., n) or (..., n, k)
        right_hand_sides : int
            Dimensions of b without those axes: 1 or 2.
        transposed : bool
            Solve with Aᵀ.
        must_converge : bool
            Raise an error for a solve that does not converge.

        Returns
        -------
        Outcome
            Arrays with the leading axes of ``vmap``, then x like b, and the others without the axis n.

        Raises
        ------
        SwellError
        """
        lead = np.broadcast_shapes(values.shape[:-1], b.shape[:b.ndim - right_hand_sides])
        axes = range(len(lead))
        matrix = [axis for axis in axes if values.shape[axis] > 1]       # axes along which the matrices differ
        others = [axis for axis in axes if axis not in matrix]
        order = [*matrix, len(lead), *others, *range(len(lead) + 1, len(lead) + right_hand_sides)]
        full = np.broadcast_to(b, (*lead, *b.shape[b.ndim - right_hand_sides:])).transpose(order)
        m = math.prod(lead[axis] for axis in matrix)
        with self._turn:
            found = self._solve(values.reshape(m, -1), full.reshape(m, self.pattern.n, -1), transposed)
        if must_converge:
            self._check(found, transposed)
        x = found.x.reshape(full.shape).transpose(np.argsort(order).tolist())
        records = [array.reshape([size for axis, size in zip(order, full.shape) if axis != len(lead)])
                   for array in found[1:]]
        back = np.argsort([axis for axis in order if axis != len(lead)]).tolist()
        return Outcome(x, *(record.transpose(back) for record in records))

    def _solve(self, values, b, transposed) -> Outcome:
        """Solve for values (m, nnz) and b (m, n, c): as a batch if the systems are many and small, else in turn."""
        if len(values) > 1 and self.pattern.n <= SMALL and self.options.has_batch_form:
            return self._solve_batch(values, b, transposed)
        found = [self._solve_one(*each, transposed) for each in zip(values, b)]
        x = found[0].x if len(found) == 1 else _stack([each.x for each in found])
        return Outcome(x.reshape(b.shape), *map(np.stack, list(zip(*found))[1:]))

    def _solve_one(self, values, b, transposed) -> Outcome:
        """Solve for the right-hand sides (n, c) of one matrix."""
        b = b[:, 0] if b.shape[1] == 1 else b
        solver = self._solver(values)
        if transposed:                           # Aᵀ x = b is the conjugate of Aᴴ x̄ = b̄
            solver.stop_by(self.options.transposed_stopping)
            try:
                r = solver.solve(b.conj(), adjoint=True)
            finally:
                solver.stop_by(self.options.forward_stopping)
            x = r.x.conj()
        else:
            r = solver.solve(b)
            x = r.x
        columns = r.columns if isinstance(r, Results) else [r]
        return Outcome(x, *(np.array(each) for each in zip(*(
            (column.iterations, column.residual, column.reason.code) for column in columns))))

    def _solver(self, values):
        """The Solver for these values: the last one if they are the same, else updated."""
        key = device_of(values), values.dtype
        solver = self._solvers.get(key)
        if solver is not None and _same(solver, values):
            return solver
        A = self._csr(values)
        if solver is not None:
            self._solvers.pop(key)               # after an error it is gone
            solver.update(A)
        else:
            solver = swell.api.prepare(A, stopping=self.options.forward_stopping, **self.options.prepare)
        self._solvers[key] = solver
        return solver

    def _csr(self, values):
        """A CSR matrix of SciPy or CuPy with these values."""
        pattern = self.pattern
        if device_of(values) == "cpu":
            from scipy.sparse import csr_matrix
        else:
            from cupyx.scipy.sparse import csr_matrix
        indices, indptr = (self._on(name, getattr(pattern, name), values) for name in ("indices", "indptr"))
        return csr_matrix((values, indices, indptr), shape=(pattern.n, pattern.n))

    def _on(self, name, array, values):
        """An index array, known by its name, on the device of the values."""
        device = device_of(values)
        if device == "cpu":
            return array
        if (name, device) not in self._arrays:
            import cupy
            self._arrays[name, device] = cupy.asarray(array)
        return self._arrays[name, device]

    def _solve_batch(self, values, b, transposed) -> Outcome:
        """Solve for values (m, nnz) and b (m, n, c) as a batch."""
        pattern, stopping = self.pattern, self.options.forward_stopping
        if transposed:
            pattern, order = self.pattern.transposed
            values, stopping = values[:, self._on("order", order, values)], self.options.transposed_stopping
        key = "batch", device_of(values), values.dtype, transposed
        if key not in self._solvers:
            import scipy.sparse as sp
            A = sp.csr_matrix((np.ones(pattern.nnz, values.dtype), pattern.indices, pattern.indptr),
                              shape=(pattern.n, pattern.n))
            self._solvers[key] = prepare_batch(
                A, method=self.options.method, precond=self.options.precond, rtol=stopping.rtol, atol=stopping.atol,
                maxiter=stopping.maxiter, device=self.options.device or key[1], dtype=values.dtype)
        r = self._solvers[key].update(values).solve(b)
        return Outcome(r.x, r.iterations, r.residual, r.reasons)

    def _check(self, found, transposed):
        """Raise SwellError for the first solve that did not converge."""
        failed = np.argwhere(found.code != Reason.CONVERGED.code)
        if not failed.size:
            return
        (s, j), (m, c) = failed[0], found.code.shape
        which = (f" of matrix {s}" if m > 1 else "") + (f", right-hand side {j}" if c > 1 else "")
        reason = Reason.of(int(found.code[s, j]))
        raise SwellError(f"the solve with {'Aᵀ' if transposed else 'A'}{which} did not converge ({reason.name}: "
                         f"{reason.sentence}); ‖b − Ax‖/‖b‖ = {found.residual[s, j]:.2e} after "
                         f"{found.iterations[s, j]} iterations, and {len(failed)} of {m * c} solves failed")


def _same(solver, values) -> bool:
    """True if a Solver was set up for these values."""
    space = solver.space
    with space.active(values.size):
        return not space.find_true(solver.A.data != space.from_host(values))[1]


def _stack(arrays):
    """Stack arrays of NumPy or CuPy along a new first axis."""
    if isinstance(arrays[0], np.ndarray):
        return np.stack(arrays)
    import cupy
    return cupy.stack(arrays)
