"""The guest for arrays of any other library, known by a protocol alone: the CUDA array interface, or DLPack.

An array is read without a copy, as a NumPy or CuPy array over its memory, and never written to. CuPy waits for the
stream that a CUDA array interface names; in DLPack the array's library waits for CuPy's stream. x is returned by the
library's own ``from_dlpack``, found by ``__array_namespace__``; for a library without it, x is a NumPy or CuPy array.

Sources: the Python array API standard; DLPack, dlpack.h; Numba, CUDA Array Interface, version 3.
"""
import numpy as np

from swell.core.cuda import require_cupy
from swell.core.errors import InputError
from swell.core.guests import Guest
from swell.core.settings import DTYPES

# DLDeviceType: the memory that the host reads, the memory that CUDA reads, and names for messages.
HOST, CUDA = (1, 3), (2, 13)
KINDS = {4: "opencl", 7: "vulkan", 8: "metal", 9: "vpi", 10: "rocm", 11: "rocm host", 12: "an extension", 14: "oneapi",
         15: "webgpu", 16: "hexagon", 17: "maia"}


class ArrayAPI(Guest):
    """Arrays with ``__cuda_array_interface__`` or ``__dlpack__``, on the host or on a CUDA GPU."""

    def device_of(self, value):
        if _cuda_interface(value):
            return f"cuda:{_view(value).device.id}"
        kind, number = _place(value)
        return "cpu" if kind in HOST else f"cuda:{number}"

    def dtype_of(self, value, name):
        return _read(value, name).dtype

    def read_matrix(self, A):
        return _read(A, "A")

    def read_vector(self, v, name):
        return _read(v, name)

    def give_back(self, x, like):
        """Return x as an array of the library and on the device of ``like``, over its own memory where possible."""
        namespace = getattr(like, "__array_namespace__", None)
        if namespace is None:
            return x
        x = namespace().from_dlpack(x)
        return x if x.device == like.device else x.to_device(like.device)


def _cuda_interface(array):
    """True if the object has the CUDA array interface; arrays on the host raise AttributeError for it."""
    return getattr(array, "__cuda_array_interface__", None) is not None


def _place(array):
    """Return (DLDeviceType, number) of the object's device.

    Raises
    ------
    InputError
        For a device that neither NumPy nor CuPy can read.
    """
    kind, number = (int(part) for part in array.__dlpack_device__())
    if kind not in (*HOST, *CUDA):
        raise InputError(f"a {_name(array)} lies on a device of kind {KINDS.get(kind, kind)} (DLPack's number {kind}): "
                         "expected the host or a CUDA GPU; copy it to the host")
    return kind, number


def _view(array):
    """Return a NumPy or CuPy array over the object's memory."""
    if _cuda_interface(array):
        return require_cupy()[0].asarray(array)
    kind, number = _place(array)
    if kind in HOST:
        return np.from_dlpack(array)
    cupy, _ = require_cupy()
    with cupy.cuda.Device(number):
        return cupy.from_dlpack(array)


def _read(array, name):
    """Return a NumPy or CuPy array over the object's memory; ``name`` is for messages.

    Raises
    ------
    InputError
        For a device or type that swell cannot read, such as bfloat16.
    """
    try:
        view = _view(array)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, InputError):        # which is a ValueError
            raise
        raise InputError(f"{name} is a {_name(array)}{_stated(array)}, which cannot be read ({error}): expected one of "
                         f"{', '.join(DTYPES)}; {_convert(array, name)}") from None
    if view.dtype.kind not in "biu" and view.dtype.name not in DTYPES:
        raise InputError(f"{name} has dtype {view.dtype.name}: expected one of {', '.join(DTYPES)}; "
                         f"{_convert(array, name)}")
    return view


def _convert(array, name):
    """Return the advice to convert an array, for a message."""
    if hasattr(array, "__array_namespace__"):
        return f"convert it with xp.astype({name}, xp.float64), where xp = {name}.__array_namespace__()"
    return "convert it to float64 with its library"


def _stated(array):
    """Return " of dtype ..." if the object says its dtype, for a message."""
    dtype = getattr(array, "dtype", None)
    return "" if dtype is None else f" of dtype {dtype}"


def _name(array):
    """Return the name of the object's class with its library."""
    return f"{type(array).__module__.partition('.')[0]}.{type(array).__name__}"
