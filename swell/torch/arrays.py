"""Tensors as arrays of NumPy or CuPy over the same memory, and back."""
from __future__ import annotations

from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def on_torch_stream(device: torch.device):
    """Return a context in which CuPy uses torch's current device and stream.

    torch runs backward passes on a GPU in threads of its own, and CuPy's device and stream belong to a thread."""
    if device.type != "cuda":
        yield
        return
    import cupy
    stream = torch.cuda.current_stream(device).cuda_stream
    with cupy.cuda.Device(device.index), torch.cuda.device(device), cupy.cuda.ExternalStream(stream):
        yield


def array_of(tensor):
    """Return a NumPy or CuPy array over the memory of a tensor without a graph."""
    if tensor.device.type == "cpu":
        return tensor.numpy()
    import cupy
    return cupy.from_dlpack(tensor)


def tensor_of(array) -> torch.Tensor | None:
    """Return a tensor over the memory of a NumPy or CuPy array; None for None."""
    if array is None:
        return None
    return torch.from_numpy(array) if isinstance(array, np.ndarray) else torch.from_dlpack(array)
