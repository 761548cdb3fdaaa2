"""System: the matrices of one pattern behind a compiled JAX program, for all that ``vmap`` collects in one call.

The arrays are NumPy's or CuPy's, and last only as long as the call.
"""
from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from swell.autodiff import system
from swell.core.errors import SwellError
from swell.core.stopping import Reason
from swell.solving.results import Results

SMALL = 1000            # unknowns up to which several matrices are solved as a batch


class Outcome(NamedTuple):
    """Solutions (m, n, c) of m matrices with c right-hand sides each, and for each an entry of three arrays (m, c)."""

    x: Any
    iterations: np.ndarray
    residual: np.ndarray
    code: np.ndarray


class System(system.System):
    """The systems of one pattern, for arrays with the axes of ``vmap``."""

    def solve_all(self, values, b, right_hand_sides: int, transposed: bool, must_converge: bool) -> Outcome:
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
        found = self._solve_matrices(values.reshape(m, -1), full.reshape(m, self.pattern.n, -1), transposed)
        if must_converge:
            _check(found, transposed)
        x = found.x.reshape(full.shape).transpose(np.argsort(order).tolist())
        records = [array.reshape([size for axis, size in zip(order, full.shape) if axis != len(lead)])
                   for array in found[1:]]
        back = np.argsort([axis for axis in order if axis != len(lead)]).tolist()
        return Outcome(x, *(record.transpose(back) for record in records))

    def _solve_matrices(self, values, b, transposed) -> Outcome:
        """Solve for values (m, nnz) and b (m, n, c): as a batch if the systems are many and small, else in turn."""
        if len(values) > 1 and self.pattern.n <= SMALL and self.options.has_batch_form:
            r = self.solve_batch(values, b, transposed=transposed, relative=transposed)
            return Outcome(r.x, r.iterations, r.residual, r.reasons)
        found = [self._solve_matrix(*each, transposed) for each in zip(values, b)]
        x = found[0].x if len(found) == 1 else _stack([each.x for each in found])
        return Outcome(x.reshape(b.shape), *map(np.stack, list(zip(*found))[1:]))

    def _solve_matrix(self, values, b, transposed) -> Outcome:
        """Solve for the right-hand sides (n, c) of one matrix. Aᵀ x = b is the conjugate of Aᴴ x̄ = b̄."""
        b = b[:, 0] if b.shape[1] == 1 else b
        r = self.solve(values, b.conj() if transposed else b, adjoint=transposed, relative=transposed)
        columns = r.columns if isinstance(r, Results) else [r]
        return Outcome(r.x.conj() if transposed else r.x, *(np.array(each) for each in zip(*(
            (column.iterations, column.residual, column.reason.code) for column in columns))))


def _check(found, transposed):
    """Raise SwellError for the first solve that did not converge."""
    failed = np.argwhere(found.code != Reason.CONVERGED.code)
    if not failed.size:
        return
    (s, j), (m, c) = failed[0], found.code.shape
    which = (f" of matrix {s}" if m > 1 else "") + (f", right-hand side {j}" if c > 1 else "")
    reason = Reason.of(int(found.code[s, j]))
    raise SwellError(f"the solve with {'Aᵀ' if transposed else 'A'}{which} did not converge ({reason.name}: "
                     f"{reason.sentence}); ‖b − Ax‖/‖b‖ = {found.residual[s, j]:.2e} after {found.iterations[s, j]} "
                     f"iterations, and {len(failed)} of {m * c} solves failed")


def _stack(arrays):
    """Stack arrays of NumPy or CuPy along a new first axis."""
    if isinstance(arrays[0], np.ndarray):
        return np.stack(arrays)
    import cupy
    return cupy.stack(arrays)
