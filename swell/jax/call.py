"""Calls from a compiled JAX program to swell, over the program's own buffers.

``buffer_callback`` (JAX 0.6.1 or newer) hands over the buffers themselves: on a CPU as NumPy's arrays, on a GPU as
CuPy's, on XLA's stream and without the host. Older versions have ``pure_callback``, which copies to the host and back.
"""
from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from swell.autodiff.system import System
from swell.core.errors import InputError, SwellError
from swell.core.stopping import Reason
from swell.solving.results import Results

try:
    from jax.experimental.buffer_callback import buffer_callback
except ImportError:
    buffer_callback = None

CPU, CUDA = 1, 2        # devices of DLPack
SINGLE = "; this is single precision, JAX's default: jax.config.update('jax_enable_x64', True) before the first array"
MAX_BATCHED_UNKNOWNS = 1000    # unknowns up to which several matrices are solved as a batch


class Info(NamedTuple):
    """The record of each solve: arrays with an entry for each right-hand side.

    Attributes
    ----------
    iterations : int32 array
    residual : array
        The true relative residual ‖b − A x‖₂ / ‖b‖₂.
    code : int32 array
        The code of its `swell.Reason`.
    """

    iterations: jax.Array
    residual: jax.Array
    code: jax.Array


@dataclass(frozen=True)
class Call:
    """A function that XLA calls. Equal calls are one to JAX, so it compiles a program for them once.

    Attributes
    ----------
    system : System
    right_hand_sides : int
        1 for one, of shape (n,); 2 for several, as columns.
    transposed : bool
        Solve with Aᵀ.
    must_converge : bool
        Raise an error for a solve that does not converge.
    """

    system: System
    right_hand_sides: int
    transposed: bool
    must_converge: bool

    def host(self, values, b):
        """Solve for arrays that JAX has copied to the host; return new arrays."""
        return self._solve(np.asarray(values), np.asarray(b))

    def in_place(self, context, out, values, b):
        """Solve for XLA's buffers, and write into the buffers ``out``."""
        kind, number = values.__dlpack_device__()
        if kind == CPU:
            for buffer, result in zip(out, self._solve(np.asarray(values), np.asarray(b))):
                np.asarray(buffer)[...] = result
        elif kind == CUDA:
            import cupy
            with cupy.cuda.Device(number), cupy.cuda.ExternalStream(context.stream, number) as stream:
                for buffer, result in zip(out, self._solve(cupy.asarray(values), cupy.asarray(b))):
                    cupy.asarray(buffer)[...] = cupy.asarray(result)
                stream.synchronize()             # before CuPy reuses the memory of the results
        else:
            raise InputError(f"the arrays lie on a device of DLPack's kind {kind}: expected a CPU or a CUDA GPU")

    def _solve(self, values, b):
        """Solve for all matrices and right-hand sides that ``vmap`` has collected; return x and the arrays of `Info`.

        The axes of ``vmap`` come first in ``values`` and ``b``, with size 1 where an array does not depend on them."""
        row_axis = b.ndim - self.right_hand_sides
        lead = np.broadcast_shapes(values.shape[:-1], b.shape[:row_axis])
        matrix = [axis for axis, size in enumerate(values.shape[:-1]) if size > 1]     # along these, matrices differ
        others = [axis for axis in range(row_axis) if axis not in matrix]
        order = [*matrix, row_axis, *others, *range(row_axis + 1, b.ndim)]
        full = np.broadcast_to(b, (*lead, *b.shape[row_axis:])).transpose(order)
        m = math.prod(lead[axis] for axis in matrix)
        x, *records = self._solve_matrices(values.reshape(m, -1), full.reshape(m, self.system.pattern.n, -1))
        if self.must_converge:
            self._check(*records, b.dtype)
        back, shape = np.argsort(order).tolist(), list(full.shape)
        x, shape[len(matrix)] = x.reshape(shape).transpose(back), 1
        kinds = np.int32, np.finfo(b.dtype).dtype, np.int32
        return x, *(record.reshape(shape).transpose(back).squeeze(row_axis).astype(kind)
                    for record, kind in zip(records, kinds))

    def _solve_matrices(self, values, b):
        """Solve for values (m, nnz) and b (m, n, c): as a batch if the systems are many and small, else in turn.

        Return x and, for each right-hand side, an entry of three arrays (m, c)."""
        system = self.system
        if len(values) > 1 and system.pattern.n <= MAX_BATCHED_UNKNOWNS and system.options.has_batch_form:
            r = system.solve_batch(values, b, transposed=self.transposed, relative=self.transposed)
            return r.x, r.iterations, r.residual, r.reasons
        x, *records = zip(*(self._solve_matrix(*each) for each in zip(values, b)))
        return (x[0] if len(x) == 1 else _stack(x)).reshape(b.shape), *map(np.stack, records)

    def _solve_matrix(self, values, b):
        """Solve for the right-hand sides (n, c) of one matrix. Aᵀ x = b is the conjugate of Aᴴ x̄ = b̄."""
        b = b[:, 0] if b.shape[1] == 1 else b
        r = self.system.solve(values, b.conj() if self.transposed else b, adjoint=self.transposed,
                              relative=self.transposed)
        columns = r.columns if isinstance(r, Results) else [r]
        return r.x.conj() if self.transposed else r.x, *(np.array(each) for each in zip(*(
            (column.iterations, column.residual, column.reason.code) for column in columns)))

    def _check(self, iterations, residual, code, dtype):
        """Raise SwellError for the first solve that did not converge."""
        failed = np.argwhere(code != Reason.CONVERGED.code)
        if not failed.size:
            return
        (s, j), (m, c) = failed[0], code.shape
        which = (f" of matrix {s}" if m > 1 else "") + (f", right-hand side {j}" if c > 1 else "")
        reason = Reason.of(int(code[s, j]))
        single = np.finfo(dtype).dtype == np.float32 and reason is Reason.ATTAINABLE_ACCURACY
        raise SwellError(f"the solve with {'Aᵀ' if self.transposed else 'A'}{which} did not converge ({reason.name}: "
                         f"{reason.sentence}); ‖b − Ax‖/‖b‖ = {residual[s, j]:.2e} after {iterations[s, j]} "
                         f"iterations, and {len(failed)} of {m * c} solves failed"
                         + SINGLE * single)


def call(system: System, values, b, transposed=False, must_converge=True) -> tuple[jax.Array, Info]:
    """Solve for traced arrays of one type; `Call` documents the other parameters.

    Parameters
    ----------
    values : array, shape (nnz,)
        In the order of the pattern.
    b : array, shape (n,) or (n, k)
    """
    made = Call(system, b.ndim, transposed, must_converge)
    record = b.shape[1:]
    kinds = (b.shape, b.dtype), (record, np.int32), (record, jnp.finfo(b.dtype).dtype), (record, np.int32)
    outs = tuple(jax.ShapeDtypeStruct(*each) for each in kinds)
    if buffer_callback is None:
        outputs = jax.pure_callback(made.host, outs, values, b, vmap_method="expand_dims")
    else:
        outputs = buffer_callback(made.in_place, outs, vmap_method="expand_dims")(values, b)
    return outputs[0], Info(*outputs[1:])


def _stack(arrays):
    """Stack arrays of NumPy or CuPy along a new first axis."""
    if isinstance(arrays[0], np.ndarray):
        return np.stack(arrays)
    import cupy
    return cupy.stack(arrays)
