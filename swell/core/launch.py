"""How kernels are launched on a GPU: CUDA's driver, called by ``native/launch.cpp`` with a launch attribute.

Programmatic dependent launch: a kernel may begin while the previous one drains. This hides its launch latency, and all
its work before ``wait_for_previous`` (context.cuh). Every kernel of swell waits before it touches data that another
kernel wrote, so results are as if kernels ran in stream order. Needs compute capability 9.0.

Cooperative launch: all blocks run at the same time, or the launch fails. Blocks may therefore wait for one another.
Cluster launch: the blocks of a cluster always run at the same time, on neighbouring multiprocessors, and access each
other's shared memory. Every device with clusters allows 8 blocks in a cluster. Up to 16, which only some devices allow
(``CudaSpace.cluster_blocks``), need a function attribute.
"""
from __future__ import annotations

import ctypes

from swell.core.errors import InputError

COOPERATIVE, DEPENDENT = 2, 6                # CUlaunchAttributeID; the latter: PROGRAMMATIC_STREAM_SERIALIZATION
LARGER = 14                                  # CUfunction_attribute that allows clusters of more than 8 blocks
TOO_LARGE = 720, 912                         # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, CUDA_ERROR_INVALID_CLUSTER_SIZE


def driver():
    """Return the library of CUDA's driver."""
    return ctypes.CDLL("libcuda.so.1")


def address_of_launch() -> int:
    """Return the address of the driver's ``cuLaunchKernelEx``."""
    return ctypes.cast(driver().cuLaunchKernelEx, ctypes.c_void_p).value


def allow_large_clusters(function: int):
    """Allow clusters of more than 8 blocks for a function, given by its address."""
    driver().cuFuncSetAttribute(ctypes.c_void_p(function), LARGER, 1)


def raise_failed(status: int, grid: int, block: int, shared: int):
    """Raise the error for a launch that the driver refused.

    ``status``: its CUresult. ``grid``, ``block``, ``shared``: blocks, threads of a block and its bytes of dynamic
    shared memory.

    Raises
    ------
    InputError
        If the blocks of a cooperative launch, or of a cluster, cannot all run at the same time.
    RuntimeError
        For any other status.
    """
    if status in TOO_LARGE:
        raise InputError(f"{grid} blocks of {block} threads and {shared} bytes of shared memory must run at the same "
                         "time, and cannot on this GPU: this process may use a part of the GPU only. Lift that limit, "
                         "or use method='cg'")
    raise RuntimeError(f"cuLaunchKernelEx failed with CUresult {status} (grid {grid}, block {block})")
