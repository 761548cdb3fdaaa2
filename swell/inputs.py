"""The one door for what users bring: matrices and vectors of any kind are checked here and nowhere else."""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from swell.core.arrays import DTYPES, checked_dtype, host_array, kind_of, native
from swell.core.errors import InputError
from swell.core.operator import CallableOperator, LinearOperator
from swell.core.settings import shown
from swell.core.space import DEVICES, Space, make_space

CONVERSION_BYTES = 60       # an entry: CSR, the format made from it, and the index arrays of the conversion


@dataclass
class Input:
    """A checked matrix: a CSRMatrix (or a matrix-free operator) in its space, and what there is to say about it."""

    A: LinearOperator
    space: Space
    notes: list[str] = field(default_factory=list)
    kept: LinearOperator | None = None           # one of our own formats, to be used as it is


def device_of(array) -> str:
    """The device where an object lives: "cpu" or "cuda:k"."""
    kind = kind_of(array)
    if kind == "torch":
        from swell.core import torch_tensors
        return torch_tensors.device_of(array)
    if kind == "cupy":
        import cupy
        data = array if isinstance(array, cupy.ndarray) else getattr(array, "data", None)     # a sparse matrix's values
        return f"cuda:{cupy.cuda.Device().id if data is None else data.device.id}"
    return "cpu"


def read_matrix(A, device=None, dtype=None, b_dtype=None, b_device="cpu") -> Input:
    """Check A and bring it to its space as CSR with sorted, summed indices.

    Parameters
    ----------
    A : SciPy or CuPy sparse matrix, dense array, torch tensor, JAX BCOO or BCSR, PETSc Mat, LinearOperator, or one of
        swell's formats
    device : str or None
        "cpu" or "cuda"; None follows the data.
    dtype : None or one of float32, float64, complex64, complex128
        None keeps A's, made complex if b is.

    Raises
    ------
    InputError
        If A is not square, not finite, of an unsupported type, or has no rows of its own shape.
    """
    if device is not None and not isinstance(device, str):
        raise InputError(f"device={shown(device)}: expected {DEVICES}")
    if isinstance(A, LinearOperator):
        return _own(A, device, dtype, b_dtype)
    if kind_of(A) == "petsc":
        from swell.core import petsc
        A = petsc.matrix(A)
    shape = getattr(A, "shape", None)
    if shape is None or len(shape) != 2:
        raise InputError(f"A is {type(A).__name__} with shape {shape}: expected a square matrix, sparse or dense, or a "
                         "LinearOperator")
    if shape[0] != shape[1]:
        raise InputError(f"A has shape {tuple(shape)}: expected a square matrix (for least squares use lsqr or lsmr)")
    where = device_of(A) if device_of(A) != "cpu" else b_device
    space = make_space(where if device is None else device)
    if not hasattr(A, "tocsr") and hasattr(A, "matvec"):
        return _matrix_free(A, space, dtype, b_dtype)
    with space.active(shape[0]):
        return _with_entries(A, space, dtype, b_dtype)


def _with_entries(A, space, dtype, b_dtype) -> Input:
    """A matrix with entries, as CSR of the space."""
    import scipy.sparse as sp
    notes = []
    A = _plain(A)
    if sp.issparse(A):
        _check_arrays(A)
    _check_size(A, space)
    csr = _to_csr(A, space, notes)
    wanted = _wanted(dtype, csr.dtype, b_dtype)
    _check_not_real(wanted, csr.dtype)
    if dtype and wanted != csr.dtype:
        notes.append(f"A was converted from {csr.dtype.name} to {wanted.name}")
    csr = csr if csr.dtype == wanted else csr.astype(wanted)
    _check_finite(csr.data, csr.space, "A")
    return Input(csr, space, notes)


def _check_size(A, space):
    """Estimate what the matrix and its conversion need, before anything is moved."""
    entries = A.nnz if hasattr(A, "nnz") else int(np.prod(A.shape))
    space.check_fits(entries * CONVERSION_BYTES, f"a matrix of {entries} entries",
                     "solve on device='cpu', use dtype='float32', or a larger GPU" if space.name == "cuda" else
                     "use dtype='float32' or a machine with more memory")


def _wanted(dtype, own, b_dtype):
    """The type to solve in: the one asked for, or A's own, made complex where b is."""
    if dtype is None:
        return np.dtype(np.result_type(checked_dtype(own, "A"), _complexity(b_dtype)))
    return _named(dtype)


def _named(dtype):
    """The type that ``dtype`` names.

    Raises
    ------
    InputError
        If it is none of the four.
    """
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except (TypeError, ValueError):              # no type at all
        name = None
    if name not in DTYPES:
        raise InputError(f"dtype={shown(dtype)}: expected one of {', '.join(DTYPES)}")
    return np.dtype(name)


def _check_not_real(wanted, own):
    """Raise InputError where a complex A would become real."""
    if wanted.kind != "c" and own.kind == "c":
        raise InputError(f"dtype={wanted.name} would drop the imaginary part of a complex A: use complex64 or "
                         "complex128")


def _complexity(b_dtype):
    """The type that makes A's complex where b is complex, and changes nothing otherwise."""
    return np.complex64 if b_dtype is not None and np.dtype(b_dtype).kind == "c" else np.float32


def _own(A, device, dtype, b_dtype) -> Input:
    """An operator or a matrix of ours comes with its space."""
    if device is not None and not A.space.name == device.split(":")[0]:
        raise InputError(f"A lives in the {A.space.name} space and device={device!r} was asked for: build it there")
    if A.dtype.name not in DTYPES:
        raise InputError(f"A is {A.dtype.name}: expected one of {', '.join(DTYPES)}; build it from values of that type")
    if A.diagonal_block is not A:
        return _in_parts(A, dtype, b_dtype)
    if dtype is not None and _named(dtype) != A.dtype:
        raise InputError(f"A is {A.dtype.name} and dtype={dtype} was asked for: convert it before building the format")
    if A.shape[0] != A.shape[1]:
        raise InputError(f"A has shape {A.shape}: expected a square matrix")
    if not hasattr(A, "to_csr"):
        return Input(A, A.space, [] if A.has_entries else ["A is matrix-free"])
    csr = A.to_csr()
    _check_finite(csr.data, A.space, "A")
    return Input(csr, A.space, [], kept=A)


def _in_parts(A, dtype, b_dtype) -> Input:
    """A matrix in parts, converted on all ranks alike."""
    wanted = _wanted(dtype, A.dtype, b_dtype)
    A.space.same(wanted.name, "the type to solve in (dtype, or whether b is complex)")
    _check_not_real(wanted, A.dtype)
    notes = [f"A was converted from {A.dtype.name} to {wanted.name}"] if dtype and wanted != A.dtype else []
    if wanted != A.dtype:
        with A.space.active():
            A = A.astype(wanted)
    return Input(A, A.space, notes)


def _matrix_free(A, space, dtype, b_dtype) -> Input:
    """A SciPy or CuPy LinearOperator."""
    if (kind_of(A) == "cupy") != (space.name == "cuda"):
        raise InputError(f"a LinearOperator of {type(A).__module__.split('.')[0]} cannot run on device={space.name!r}: "
                         "its matvec takes that library's arrays; use device='cpu' with SciPy, 'cuda' with CuPy")
    own = A.dtype if A.dtype is not None else np.float64
    dtype = _wanted(dtype, own, b_dtype)
    operator = CallableOperator(A.shape, dtype, space, A.matvec, getattr(A, "rmatvec", None),
                                name="user LinearOperator")
    return Input(operator, space, ["A is matrix-free: no format, ordering, scaling or matrix-based preconditioner"])


def _plain(A):
    """torch's and JAX's matrices as arrays or sparse matrices of NumPy, SciPy or CuPy."""
    if kind_of(A) == "torch":
        from swell.core import torch_tensors
        return torch_tensors.matrix(A)
    if kind_of(A) == "jax":
        from swell.core import jax_arrays
        return jax_arrays.matrix(A)
    return A


def _to_csr(A, space, notes):
    """A CSRMatrix of the space from anything with entries; sorted, duplicates summed (and said)."""
    from swell.formats.csr import CSRMatrix
    if kind_of(A) == "cupy":
        from swell.core.cuda import canonical_csr
    else:
        canonical_csr = _canonical_csr
    csr, duplicates = canonical_csr(A)
    if duplicates:
        notes.append(f"{duplicates} duplicate entries of A were summed")
    if csr.nnz and (int(csr.indices.min()) < 0 or int(csr.indices.max()) >= csr.shape[1]):
        raise InputError(f"A has column indices from {int(csr.indices.min())} to {int(csr.indices.max())}: expected 0 "
                         f"to {csr.shape[1] - 1}")
    return CSRMatrix.from_scipy(csr, space)


def _canonical_csr(A):
    """(SciPy CSR with sorted, summed indices, number of duplicates) without touching the user's matrix."""
    import scipy.sparse as sp
    if sp.issparse(A):
        checked_dtype(A.dtype, "A")
        try:
            csr = native(A).tocsr()
        except (IndexError, TypeError, ValueError) as error:     # of what only SciPy's own code looks at, as in LIL
            raise InputError(f"A is an inconsistent {type(A).__name__} ({error}): build it anew") from None
    else:
        dense = host_array(A, "A")
        checked_dtype(dense.dtype, "A")
        csr = sp.csr_matrix(dense)
    before = A.nnz if sp.issparse(A) else csr.nnz
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    elif any(np.shares_memory(ours, theirs) for ours, theirs in _parts(csr, A)):
        csr = csr.copy()                         # a prepared system must not follow later changes of the user's arrays
    return csr, max(0, before - csr.nnz) if getattr(A, "format", "") in ("coo", "csr", "csc") else 0


def _parts(csr, A):
    """The arrays of a CSR matrix beside those of what it was made from."""
    theirs = [getattr(A, name, None) for name in ("data", "indices", "indptr")]
    if not hasattr(A, "tocsr"):
        theirs = []
    return [(ours, other) for ours in (csr.data, csr.indices, csr.indptr) for other in theirs
            if isinstance(other, np.ndarray) and other.dtype != object]


def _check_arrays(A):
    """Arrays that contradict each other would crash SciPy's compiled code, or be read past their ends: look first."""
    if A.format == "coo":
        _check_lengths(A.data.shape, *((index.size,) for index in A.coords))
        for name, index, size in zip(("row", "column"), A.coords, A.shape):
            _check_range(index, size, f"{name} index")
    elif A.format == "dia":
        _check_lengths(A.data.shape, (A.offsets.size, *A.data.shape[1:2]))
    elif A.format in ("csr", "csc", "bsr"):
        block = A.blocksize if A.format == "bsr" else ()
        shape = [size // one for size, one in zip(A.shape, block or (1, 1))]
        major, minor = shape[::-1] if A.format == "csc" else shape
        if (A.indptr.shape != (major + 1,) or A.indptr[0] != 0 or (np.diff(A.indptr) < 0).any()
                or A.indptr[-1] > A.indices.size):
            raise InputError(f"A.indptr is inconsistent: expected {major + 1} ascending values from 0 to nnz")
        _check_lengths(A.data.shape, (A.indices.size, *block))
        _check_range(A.indices, minor, "index")


def _check_lengths(found, *expected):
    """Raise InputError unless the values have the shape that the indices ask for."""
    for shape in expected:
        if tuple(found) != tuple(shape):
            raise InputError(f"A.data has shape {tuple(found)}: expected {tuple(shape)}, as A's indices have; was one "
                             "of its arrays replaced?")


def _check_range(index, size, name):
    """Raise InputError unless all indices are integers from 0 to size − 1."""
    if index.dtype.kind not in "iu" or index.ndim != 1:
        raise InputError(f"A has {name} arrays of {index.dtype} and shape {index.shape}: expected integers in "
                         "one dimension")
    if index.size and (index.min() < 0 or index.max() >= size):
        worst = index.max() if index.max() >= size else index.min()
        raise InputError(f"A has a {name} of {worst}: expected 0 to {size - 1}; was it built with one-based indices?")


def read_vector(v, n: int, name: str, part: str = ""):
    """A right-hand side or a starting vector as a NumPy or CuPy array of shape (n,) or (n, k); ``part`` says which rows
    of it these are, where they are not all of A's.

    Raises
    ------
    InputError
        For a wrong shape, an unsupported type, NaN or Inf.
    """
    if kind_of(v) == "torch":
        from swell.core import torch_tensors
        v = torch_tensors.vector(v, name)
    elif kind_of(v) == "jax":
        from swell.core import jax_arrays
        v = jax_arrays.vector(v, name)
    elif kind_of(v) == "petsc":
        from swell.core import petsc
        v = petsc.vector(v, name)
    elif kind_of(v) == "host":
        v = host_array(v.toarray() if hasattr(v, "toarray") else v, name)
    if v.dtype.kind not in "fciub":
        raise InputError(f"{name} has dtype {v.dtype}: expected numbers")
    checked_dtype(v.dtype, name)
    if v.ndim not in (1, 2) or v.shape[0] != n:
        raise InputError(f"{name} has shape {tuple(v.shape)}: expected ({n},) or ({n}, k) for "
                         f"{name + part if part else f'an A of {n} rows'}")
    finite = np.isfinite(v)                      # CuPy's arrays answer to NumPy's function
    if not bool(finite.all()):
        raise InputError(f"{name} contains NaN or Inf ({int((~finite).sum())} entries): a linear system needs finite "
                         "numbers; look where it was assembled")
    return v


def check_monitor(monitor):
    """Raise InputError unless a monitor can be called, before a setup that may take long."""
    if not (monitor is None or callable(monitor)):
        raise InputError(f"monitor={shown(monitor)}: expected a function of (iteration, relative_residual), which may "
                         "return True to stop the solve")


def _check_finite(data, space, name):
    finite = space.xp.isfinite(data)
    if not bool(finite.all()):
        raise InputError(f"{name} contains NaN or Inf ({int((~finite).sum())} entries): a linear system needs finite "
                         "numbers; look where it was assembled")


def dtype_of(array):
    """The NumPy dtype of an array of any kind."""
    if kind_of(array) == "torch":
        from swell.core import torch_tensors
        return torch_tensors.dtype_of(array, "b")
    if kind_of(array) == "petsc":
        from swell.core import petsc
        return petsc.scalar_type()
    return array.dtype if hasattr(array, "dtype") else host_array(array, "b").dtype


def returned(x, space, original):
    """A copy of x, an array of the space, as the kind of array that ``original`` is."""
    kind = kind_of(original)
    if kind == "host" or device_of(original) == "cpu":
        x = np.array(space.to_host(x))
    else:
        x = x.copy()
    if kind == "petsc":
        from swell.core import petsc
        return petsc.vector_like(original, x)
    if kind == "torch":
        from swell.core import torch_tensors
        return torch_tensors.tensor(x)
    return x


def stack(columns, rhs, original):
    """Solution vectors as the columns of one array of the kind that ``original`` is."""
    if kind_of(original) == "torch":
        import torch
        return torch.stack(columns, dim=1)
    if kind_of(rhs) == "cupy":
        import cupy
        return cupy.stack(columns, axis=1) if columns else cupy.empty(rhs.shape)
    return np.stack(columns, axis=1) if columns else np.empty(rhs.shape)
