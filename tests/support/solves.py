"""What tests of solves share: the residual as it is, and what a second run allocates."""
from __future__ import annotations

import numpy as np


def true_residual(A, b, x):
    """‖b − A x‖ / ‖b‖."""
    return np.linalg.norm(b - A @ x) / np.linalg.norm(b)


def allocations_of_a_second_run(solver, b):
    """On its device: how many, with b already there."""
    import cupy
    prepared = solver._prepared[0]
    with solver.space.active():
        on_device = cupy.asarray(b)
        prepared.run(on_device)

        class Count(cupy.cuda.MemoryHook):
            name, allocated = "count", 0

            def malloc_preprocess(self, **kwargs):
                Count.allocated += 1

        with Count():
            prepared.run(on_device)
    return Count.allocated
