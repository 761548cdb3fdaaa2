"""Checks of tensors, and their conversion to the type to solve in."""
from __future__ import annotations

import torch

from swell.core.errors import InputError
from swell.core.settings import DTYPES

TYPES = tuple(getattr(torch, name) for name in DTYPES)
COMPLEX = {torch.float32: torch.complex64, torch.float64: torch.complex128}


def alike(values, b, dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Convert both to the type to solve in: the one with the name ``dtype``, or A's own, made complex if b is complex.

    Raises
    ------
    InputError
        For half precision without a named type, and for a real type with complex input.
    """
    if dtype is None:
        wanted = values.dtype if values.dtype in TYPES else torch.float64
        wanted = COMPLEX.get(wanted, wanted) if b.is_complex() else wanted
    else:
        wanted = getattr(torch, dtype)
    for tensor, name in ((values, "A"), (b, "b")):
        check_narrow(tensor, name, dtype)
        if tensor.is_complex() and not wanted.is_complex:
            raise InputError(f"dtype={dtype} would drop the imaginary part of a complex {name}: use complex64 or "
                             "complex128")
    return values.to(wanted), b.to(wanted)


def check_narrow(tensor, name, dtype):
    """Raise InputError for a tensor of half precision or less, unless a type to solve in was named."""
    if tensor.is_quantized:
        raise InputError(f"{name} is quantized ({str(tensor.dtype).removeprefix('torch.')}): expected numbers; convert "
                         f"it with {name}.dequantize()")
    if dtype is None and tensor.dtype not in TYPES and (tensor.is_floating_point() or tensor.is_complex()):
        raise InputError(f"{name} has dtype {str(tensor.dtype).removeprefix('torch.')}, in which swell does not "
                         "compute: ask for a wider type, as in dtype='float32', or convert it with "
                         f"{name}.to(torch.float32)")


def check_values(values):
    """Raise InputError unless values are a tensor of one dimension, or of two for a batch."""
    if not isinstance(values, torch.Tensor):
        raise InputError(f"values is a {type(values).__name__}: expected a torch tensor; swell.solve takes arrays of "
                         "other libraries")
    if values.ndim not in (1, 2):
        raise InputError(f"values has shape {tuple(values.shape)}: expected (nnz,), or (m, nnz) for a batch")


def check_vector(b, values, n, batched):
    """Raise InputError unless b is a dense tensor that fits the system and lies on its device."""
    for tensor, name in ((values, "values"), (b, "b")):
        if not isinstance(tensor, torch.Tensor):
            raise InputError(f"{name} is a {type(tensor).__name__}: expected a torch tensor; swell.solve takes arrays "
                             "of other libraries")
    if b.layout != torch.strided:
        raise InputError(f"b is a tensor of layout {b.layout}: expected a dense one; convert it with b.to_dense()")
    lead = (values.shape[0],) if batched else ()
    if b.ndim not in (1 + len(lead), 2 + len(lead)) or tuple(b.shape[:len(lead) + 1]) != (*lead, n) or not b.numel():
        sizes = ", ".join(map(str, (*lead, n)))
        raise InputError(f"b has shape {tuple(b.shape)}: expected ({sizes}{',' * (not lead)}) or ({sizes}, k) with k "
                         "of at least 1")
    check_device(values, "A", b, "b")


def check_device(one, name, other, other_name):
    """Raise InputError unless two tensors lie on one device, which must be a CPU or a CUDA GPU."""
    if one.device.type not in ("cpu", "cuda"):
        raise InputError(f"{name} lies on device {str(one.device)!r}: expected cpu or cuda; move it with .cpu()")
    if one.device != other.device:
        raise InputError(f"{name} lies on {one.device} and {other_name} on {other.device}: move one of them, as in "
                         f"{other_name}.to({str(one.device)!r})")
