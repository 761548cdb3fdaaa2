"""From the name of a device to its space."""
from __future__ import annotations

from swell.core.cpu import CpuSpace
from swell.core.errors import InputError
from swell.core.space import Space

DEVICES = "'cpu', 'cuda' or 'cuda:1', or 'cuda:all' in swell.solve and swell.prepare"


def make_space(device: str) -> Space:
    """Make a new space for "cpu", "cuda" or "cuda:1".

    Raises
    ------
    InputError
        For any other device name.
    MissingDependency
        For a GPU, if CuPy or the GPU is missing.
    """
    if device == "cpu":
        return CpuSpace()
    if not isinstance(device, str):
        raise InputError(f"device={device!r}: expected {DEVICES}")
    if device == "cuda" or (device.startswith("cuda:") and device[5:].isdigit()):
        from swell.core.cuda import CudaSpace
        return CudaSpace(int(device[5:] or 0) if ":" in device else 0)
    if device == "cuda:all":
        raise InputError("device='cuda:all' is for swell.solve, swell.prepare and swell solve: here name "
                         "one GPU, such as 'cuda', or start a rank for each, with device='cuda': mpiexec -n 2 python "
                         "script.py")
    raise InputError(f"device={device!r}: expected {DEVICES}")
