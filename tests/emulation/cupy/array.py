"""Arrays on the emulated device. NumPy does the work, on memory that only the device may see: whoever wants an array on
the host says so, by `get`, as with CuPy, and arrays of the two kinds do not mix."""
from __future__ import annotations

import enum
import operator

import numpy as np

from cupy import cuda

ANYWHERE = {"take", "put", "take_along_axis", "matmul"}          # an element of the result depends on any of the source
NUMPY_ALONE = {"initial", "where"}               # options of reductions that CuPy lacks


class _Bytes:
    """What NumPy takes for memory."""

    def __init__(self, pointer, size):
        self.pointer = pointer
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (pointer.ptr, False), "version": 3}


def _contents(value):
    """The NumPy arrays in arguments, which must be the device's."""
    if isinstance(value, ndarray):
        return value._held
    if isinstance(value, (list, tuple)):
        return type(value)(map(_contents, value))
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}: an array of the host where the device's are expected")
    return value


def _refuse_overlap(what, target, *sources):
    """Raise ValueError if ``target`` shares elements with a source: threads would read what others have written."""
    for source in sources:
        if isinstance(source, np.ndarray) and np.shares_memory(source, target):
            raise ValueError(f"{what}: source and target overlap, which is a race on a GPU; use another array")


def _same(one, other):
    """True if each element of one array is the same element of the other."""
    return (one.shape, one.strides, one.dtype) == (other.shape, other.strides, other.dtype) and (
        one.__array_interface__["data"] == other.__array_interface__["data"])


def _wrapped(result, near=()):
    """A result on the device: a view of one of the arrays it was made of, or a new one."""
    if isinstance(result, (list, tuple)):
        kind = type(result)
        return kind(*(_wrapped(r, near) for r in result)) if hasattr(result, "_fields") else kind(
            _wrapped(r, near) for r in result)
    if not isinstance(result, (np.ndarray, np.generic)):
        return result
    for other in near:
        if isinstance(other, ndarray) and isinstance(result, np.ndarray) and result.size and np.may_share_memory(
                result, other._held):
            return other._view(result)
    out = ndarray(result.shape, result.dtype, order="F" if result.ndim > 1 and result.flags.fnc else "C")
    out._held[...] = result
    return out


def call(function, *given, out=None, **named):
    """A function of NumPy on arrays of the device, in the order of the current stream."""
    values, stream = _contents(given), cuda.get_current_stream()
    options = {name: _contents(value) for name, value in named.items()}
    near = [g for g in (*given, *named.values()) if isinstance(g, ndarray)]

    def compute():
        with np.errstate(all="ignore"):
            return function(*values, **options)
    if out is not None:
        target = out[0] if isinstance(out, tuple) else out
        options["out"] = _contents(target)
        if not isinstance(function, np.ufunc) or function.signature:             # CuPy's ufuncs copy what overlaps
            sources = [*values, *(value for name, value in options.items() if name != "out")]
            name = getattr(function, "__name__", "out=")
            _refuse_overlap(name, options["out"], *(source for source in sources if name in ANYWHERE or not (
                isinstance(source, np.ndarray) and _same(source, options["out"]))))
        stream.do(compute)
        return target
    result = _wrapped(compute(), near)
    if stream.nodes is not None:                 # once more when the graph runs; shapes are known now
        results = result if isinstance(result, (list, tuple)) else [result]

        def again():
            found = compute()
            for target, value in zip(results, found if isinstance(found, (list, tuple)) else [found]):
                if isinstance(target, ndarray):
                    target._held[...] = value
        stream.nodes.append(again)
    return result


class ndarray:
    """An array on the emulated device."""

    __array_priority__ = 100

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order="C"):
        dtype = np.dtype(dtype)
        shape = (int(shape),) if np.ndim(shape) == 0 else tuple(int(s) for s in shape)
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        self.base = None
        if strides is not None and size:
            size = sum((n - 1) * s for n, s in zip(shape, strides)) + dtype.itemsize
        self.data = memptr if memptr is not None else cuda.alloc(max(size, 1))
        held = np.asarray(_Bytes(self.data, max(size, 1)))
        self._held = np.ndarray(shape, dtype, held, 0, strides, order or "C")

    def _view(self, held):
        out = object.__new__(ndarray)
        out._held, out.base = held, self if self.base is None else self.base
        out.data = self.data + (held.__array_interface__["data"][0] - self.data.ptr)
        return out

    def __array__(self, *given, **named):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy "
                        "array explicitly.")

    def __array_ufunc__(self, ufunc, method, *given, out=None, **named):
        if method != "__call__":
            return NotImplemented
        return call(ufunc, *given, out=out, **named)

    def __array_function__(self, function, kinds, given, named):
        return call(function, *given, **named)

    @property
    def __cuda_array_interface__(self):
        return {**self._held.__array_interface__, "version": 3}

    def __dlpack__(self, stream=None, **named):
        return self

    def __dlpack_device__(self):
        return 2, self.data.device_id

    def _shared(self):
        return self._view(self._held)

    # -- between host and device -------------------------------------------------------------------------------------

    def get(self, stream=None, order="C", out=None, blocking=True):
        cuda.get_current_stream().forbid_capture("a copy to the host")
        cuda.raise_overruns()
        if out is None:
            return np.array(self._held, order="C" if order == "A" else order)
        out[...] = self._held
        return out

    def __reduce__(self):
        import cupy
        return cupy.array, (self.get(),)         # row-major afterwards, as CuPy's

    def set(self, array, stream=None):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"Only numpy.ndarray can be set to cupy.ndarray, not {type(array)}")
        if array.dtype != self.dtype or array.shape != self.shape:
            raise ValueError(f"{array.dtype} {array.shape} cannot be set to {self.dtype} {self.shape}")
        (stream or cuda.get_current_stream()).do(lambda: self._held.__setitem__(..., array))

    def item(self, *index):
        return self.get().item(*index)

    def tobytes(self, order="C", stream=None):
        return self.get().tobytes(order)

    def tolist(self):
        return self.get().tolist()

    def __bool__(self):
        return bool(self.get())

    def __int__(self):
        return int(self.item())

    def __float__(self):
        return float(self.item())

    def __complex__(self):
        return complex(self.item())

    def __index__(self):
        return operator.index(self.item())

    def __repr__(self):
        return repr(self._held)

    def __format__(self, text):
        return format(self.item(), text) if text else repr(self)

    # -- parts and forms ----------------------------------------------------------------------------------------------

    def __len__(self):
        return len(self._held)

    def __iter__(self):
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index):
        place = _contents(index)
        found = self._held[place]
        if isinstance(found, np.generic):                        # an entry is an array without dimensions, and a view
            places = place if isinstance(place, tuple) else (place,)
            found = self._held[tuple(slice(p, p + 1 or None) for p in map(operator.index, places))].reshape(())
        if np.may_share_memory(found, self._held) or not found.size:
            return self._view(found)
        return call(lambda a, i: a[i], self, index)

    def __setitem__(self, index, value):
        place = _contents(index)
        if isinstance(value, np.ndarray) and value.ndim and (place is Ellipsis or place == slice(None)):
            return self.set(np.broadcast_to(value, self.shape).astype(self.dtype))
        content = value.item() if isinstance(value, np.ndarray) and not value.ndim else _contents(value)
        chosen, places = self._held[place], place if isinstance(place, tuple) else (place,)
        if isinstance(content, np.ndarray) and content.ndim:
            if not np.may_share_memory(chosen, self._held):      # index arrays pick a copy: they may write anywhere
                _refuse_overlap("a[places] = b", self._held, content)
            elif not _same(chosen, content):
                _refuse_overlap("a[places] = b", chosen, content)
        _refuse_overlap("a[places] = b", self._held, *places)

        def assign():
            with np.errstate(all="ignore"):
                self._held[place] = content if not np.iscomplexobj(content) or self.dtype.kind == "c" else content.real
        cuda.get_current_stream().do(assign)

    def fill(self, value):
        self[...] = value

    def astype(self, dtype, order="K", casting=None, subok=None, copy=True):
        if not copy and self.dtype == dtype:
            return self
        return call(lambda a: a.astype(dtype, order), self)

    def copy(self, order="C"):
        return call(lambda a: a.copy(order), self)

    def view(self, dtype=None):
        return self._view(self._held.view(dtype) if dtype is not None else self._held.view())

    def reshape(self, *shape, order="C"):
        found = self._held.reshape(*shape, order=order)
        if np.may_share_memory(found, self._held) or not found.size:
            return self._view(found)
        return call(lambda a: a.reshape(*shape, order=order), self)

    def ravel(self, order="C"):
        return self.reshape(-1, order=order)

    def flatten(self, order="C"):
        return self.copy().reshape(-1, order=order)

    def transpose(self, *axes):
        return self._view(self._held.transpose(*axes))

    def swapaxes(self, first, second):
        return self._view(self._held.swapaxes(first, second))

    def squeeze(self, axis=None):
        return self._view(self._held.squeeze(axis))

    def argsort(self, axis=-1):
        return call(lambda a: a.argsort(axis, kind="stable"), self)

    def sort(self, axis=-1):
        cuda.get_current_stream().do(lambda: self._held.sort(axis, kind="stable"))

    def conj(self):
        return call(np.conj, self) if self.dtype.kind == "c" else self

    conjugate = conj
    T = property(lambda self: self._view(self._held.T))
    real = property(lambda self: self._view(self._held.real), lambda self, v: self._view(self._held.real).fill(v))
    imag = property(lambda self: self._view(self._held.imag) if self.dtype.kind == "c" else call(np.imag, self),
                    lambda self, v: self._view(self._held.imag).fill(v))
    device = property(lambda self: self.data.device)


def _method(name):
    def method(self, *given, **named):
        for option in NUMPY_ALONE & named.keys():
            raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
        def function(a, *rest, **options):
            return getattr(a, name)(*rest, **options)
        function.__name__ = name
        return call(function, self, *given, **named)
    return method


def _operator(function, reverse=False, in_place=False):
    def apply(self, *other):
        if other and isinstance(other[0], enum.Enum):
            raise TypeError(f"Unsupported type {type(other[0])}: CuPy takes plain numbers")
        if other and not isinstance(other[0], (ndarray, np.generic, int, float, complex)):
            if isinstance(other[0], np.ndarray):
                raise TypeError(f"Unsupported type {type(other[0])}: an array of the host beside one of the device")
            return NotImplemented
        if in_place:
            return call(function, self, *other, out=self)
        return call(function, *((other[0], self) if reverse else (self, *other)))
    return apply


for _name in ("sum", "max", "min", "any", "all", "prod", "mean", "argmax", "argmin", "nonzero", "cumsum", "dot",
              "round", "take", "repeat", "diagonal", "trace", "searchsorted", "clip"):
    setattr(ndarray, _name, _method(_name))
for _name in ("shape", "dtype", "strides", "size", "ndim", "nbytes", "itemsize", "flags"):
    setattr(ndarray, _name, property(operator.attrgetter(f"_held.{_name}")))
for _name, _function in {
        "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "floordiv": np.floor_divide,
        "mod": np.remainder, "pow": np.power, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "lshift": np.left_shift, "rshift": np.right_shift, "matmul": np.matmul}.items():
    setattr(ndarray, f"__{_name}__", _operator(_function))
    setattr(ndarray, f"__r{_name}__", _operator(_function, reverse=True))
    setattr(ndarray, f"__i{_name}__", _operator(_function, in_place=True))
for _name, _function in {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal,
                         "ne": np.not_equal, "neg": np.negative, "pos": np.positive, "abs": np.abs,
                         "invert": np.invert}.items():
    setattr(ndarray, f"__{_name}__", _operator(_function))
ndarray.__hash__ = None
ndarray.__module__ = "cupy"
