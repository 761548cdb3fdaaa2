"""Calls from a compiled JAX program to swell, over the program's own buffers.

``buffer_callback`` (JAX 0.6.1 or newer) hands over the buffers themselves: on a CPU as NumPy's arrays, on a GPU as
CuPy's, on XLA's stream and without the host. Older versions have ``pure_callback``, which copies to the host and back.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from swell.core.errors import InputError
from swell.jax.system import System

try:
    from jax.experimental.buffer_callback import buffer_callback
except ImportError:
    buffer_callback = None

CPU, CUDA = 1, 2        # devices of DLPack


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
    transposed, must_converge : bool
        See `System.solve_all`.
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
            for buffer, found in zip(out, self._solve(np.asarray(values), np.asarray(b))):
                np.asarray(buffer)[...] = found
        elif kind == CUDA:
            import cupy
            with cupy.cuda.Device(number), cupy.cuda.ExternalStream(context.stream, number) as stream:
                for buffer, found in zip(out, self._solve(cupy.asarray(values), cupy.asarray(b))):
                    cupy.asarray(buffer)[...] = cupy.asarray(found)
                stream.synchronize()             # before CuPy reuses the memory of what was found
        else:
            raise InputError(f"the arrays lie on a device of DLPack's kind {kind}: expected a CPU or a CUDA GPU")

    def _solve(self, values, b):
        """Return x and the records of an Outcome, in the types that the program expects."""
        x, *records = self.system.solve_all(values, b, self.right_hand_sides, self.transposed, self.must_converge)
        kinds = np.int32, np.finfo(b.dtype).dtype, np.int32
        return x, *(record.astype(kind) for record, kind in zip(records, kinds))


def call(system: System, values, b, transposed=False, must_converge=True) -> tuple[jax.Array, Info]:
    """Solve for traced arrays of one type.

    Parameters
    ----------
    system : System
    values : array, shape (nnz,)
        In the order of the pattern.
    b : array, shape (n,) or (n, k)
    transposed, must_converge
        See `System.solve_all`.
    """
    made = Call(system, b.ndim, transposed, must_converge)
    record = b.shape[1:]
    kinds = (b.shape, b.dtype), (record, np.int32), (record, jnp.finfo(b.dtype).dtype), (record, np.int32)
    outs = tuple(jax.ShapeDtypeStruct(*each) for each in kinds)
    if buffer_callback is None:
        found = jax.pure_callback(made.host, outs, values, b, vmap_method="expand_dims")
    else:
        found = buffer_callback(made.in_place, outs, vmap_method="expand_dims")(values, b)
    return found[0], Info(*found[1:])
