"""Checks of the user's matrices and vectors, of any library. No other module checks them.

The guest of an object's library reads the object (`swell.core.guests`); all objects then pass the same checks.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from swell.core.ahead import MATRIX
from swell.core.arrays import check_finite, checked_dtype, not_finite
from swell.core.errors import InputError
from swell.core.guests import guest_of
from swell.core.monitor import SolutionMonitor
from swell.core.operator import CallableOperator, LinearOperator
from swell.core.settings import DTYPES, shown
from swell.core.devices import DEVICES, make_space
from swell.core.space import Space

CONVERSION_BYTES = 60       # per entry: CSR, the format made from it, and the index arrays of the conversion


@dataclass
class Input:
    """A checked matrix (CSRMatrix or matrix-free operator) in its space, with notes for the user."""

    A: LinearOperator
    space: Space
    notes: list[str] = field(default_factory=list)
    kept: LinearOperator | None = None           # the user's matrix in one of swell's formats, used unconverted


def read_system(A, b, x0=None, device=None, dtype=None, block=None, search_below=0, parts=()):
    """Check a whole system, each part once: A, then the right-hand sides and the starting vectors.

    Parameters
    ----------
    A, device, dtype, block, search_below, parts
        See ``read_matrix``. The type and the device of b are taken into account too.
    b, x0
        See ``read_vectors``.

    Returns
    -------
    checked : Input
    rhs : array
    guess : array or None

    Raises
    ------
    InputError
        If any part cannot be solved as given.
    """
    checked = read_matrix(A, device, dtype, dtype_of(b), device_of(b), block, search_below, parts)
    return checked, *read_vectors(checked.A, b, x0)


def read_matrix(A, device=None, dtype=None, b_dtype=None, b_device="cpu", block=None, search_below=0,
                parts=()) -> Input:
    """Check A and convert it to CSR in the space of the solve, with sorted indices and duplicates summed.

    Parameters
    ----------
    A : SciPy, CuPy or pydata sparse matrix, dense array of any library, torch tensor, JAX BCOO or BCSR, PETSc Mat,
        LinearOperator, one of swell's formats, object with ``tocsr``, or tuple (data, indices, indptr) of arrays in CSR
    device : str or None
        "cpu" or "cuda"; None follows the data.
    dtype : None or one of float32, float64, complex64, complex128
        None keeps A's type, made complex if b is complex.
    block : int, optional
        Block size: rows of A that belong together. Default: A's own block size, or the size of the blocks found in A.
    search_below : int or inf
        For a matrix with fewer rows, the pass that checks the entries also compares each aᵢⱼ with aⱼᵢ: the solve will
        need to know whether A is symmetric.
    parts : list of str
        The names of the user's choices (``Configuration.parts``); a GPU starts to compile their kernels.

    Raises
    ------
    InputError
        If A is not square, not finite, does not consist of such blocks, or is of an unsupported type.
    """
    if device is not None and not isinstance(device, str):
        raise InputError(f"device={shown(device)}: expected {DEVICES}")
    if isinstance(A, LinearOperator):
        if block is not None:
            raise InputError(f"block={shown(block)}: A is a {type(A).__name__}, which has its block size already; give "
                             "block where it is made")
        return _read_own(A, device, dtype, b_dtype, search_below)
    guest, name = guest_of(A), type(A).__name__
    own_block, where = guest.block_size(A), guest.device_of(A)
    space = make_space((b_device if where == "cpu" else where) if device is None else device)
    with space.active():
        A = guest.read_matrix(A)
    shape = getattr(A, "shape", None)
    if shape is None or len(shape) != 2:
        hint = "; from a file: A = swell.read_matrix(path)" if isinstance(A, str | os.PathLike) else ""
        raise InputError(f"A is {name} with shape {shape}: expected a square matrix, sparse or dense, arrays "
                         f"(data, indices, indptr), or a LinearOperator; np.array(A) of lists{hint}")
    if shape[0] != shape[1]:
        raise InputError(f"A has shape {tuple(shape)}: expected a square matrix; for least squares "
                         "use swell.lstsq(A, b)")
    if not hasattr(A, "tocsr") and hasattr(A, "matvec"):
        if block is not None:
            raise InputError(f"block={shown(block)} needs a matrix with entries, and A is matrix-free: leave it out")
        return _read_matrix_free(A, space, dtype, b_dtype)
    with space.active(shape[0]):
        return _read_entries(A, space, dtype, b_dtype, own_block if block is None else block,
                             shape[0] < search_below, parts)


def read_factor(A, space):
    """Read a factor of a matrix product, of any shape, as a CSRMatrix of the space; NaN and Inf are allowed.

    Raises
    ------
    InputError
        For a matrix that is matrix-free, distributed, in another space, or of an unsupported type.
    """
    if isinstance(A, LinearOperator):
        if not (A.space.ranks.single and hasattr(A, "to_csr")):
            raise InputError(f"A is a {type(A).__name__}, which has no entries here: expected a matrix on one device")
        if A.space.device_name != space.device_name:
            raise InputError(f"A is on {A.space.device_name} and the product on {space.device_name}: build A there")
        return A.to_csr()
    name, A = type(A).__name__, guest_of(A).read_matrix(A)
    if len(getattr(A, "shape", ())) != 2 or (not hasattr(A, "tocsr") and hasattr(A, "matvec")):
        raise InputError(f"A is {name}: expected a matrix with entries, sparse or dense, of two dimensions")
    return _to_csr(A, space, [], keep=False)


def _read_entries(A, space, dtype, b_dtype, block, search, parts) -> Input:
    """Check a matrix with entries and convert it to CSR in the space."""
    notes = []
    space.compile_ahead((MATRIX, *parts), solve_dtype(dtype, dtype_of(A, "A"), b_dtype))
    csr = _to_csr(A, space, notes, block, search=search)
    check_finite_matrix(csr)
    wanted = solve_dtype(dtype, csr.dtype, b_dtype)
    check_not_real(wanted, csr.dtype)
    if dtype and wanted != csr.dtype:
        notes.append(f"A was converted from {csr.dtype.name} to {wanted.name}")
    csr = csr if csr.dtype == wanted else csr.astype(wanted)
    return Input(csr, space, notes)


def _check_gpu(array, name, space):
    """Raise InputError if ``array``, called ``name``, lies on another GPU than the one of the space."""
    where = device_of(array)
    if space.name == "cuda" and where not in ("cpu", space.device_name):
        raise InputError(f"{name} lies on {where} and the solve is on {space.device_name}: copy {name} there")


def _check_size(A, space):
    """Raise OutOfMemory if the matrix and its conversion would not fit, before anything is moved."""
    entries = A.nnz if hasattr(A, "nnz") else int(np.prod(A.shape))
    space.check_fits(entries * CONVERSION_BYTES, f"a matrix of {entries} entries",
                     "solve on device='cpu', use dtype='float32', or a larger GPU" if space.name == "cuda" else
                     "use dtype='float32' or a machine with more memory")


def solve_dtype(dtype, A_dtype, b_dtype):
    """The type to solve in: the requested one, or A's, made complex if b is complex.

    ``dtype``: the request, or None. ``A_dtype``, ``b_dtype``: the types of A and b; None for an unknown b."""
    if dtype is None:
        return np.dtype(np.result_type(checked_dtype(A_dtype, "A"), _complexity(b_dtype)))
    return _named_dtype(dtype)


def _named_dtype(dtype):
    """The NumPy type that ``dtype`` names; InputError unless it is one of `DTYPES`."""
    try:
        name = dtype if isinstance(dtype, str) else np.dtype(dtype).name
    except (TypeError, ValueError):              # NumPy knows no such type
        name = None
    if name not in DTYPES:
        raise InputError(f"dtype={shown(dtype)}: expected one of {', '.join(DTYPES)}")
    return np.dtype(name)


def check_not_real(wanted, A_dtype, name="A"):
    """Raise InputError if a complex A, called ``name`` in the message, would become real."""
    if wanted.kind != "c" and A_dtype.kind == "c":
        raise InputError(f"dtype={wanted.name} would drop the imaginary part of a complex {name}: use complex64 or "
                         "complex128")


def _complexity(b_dtype):
    """A type to combine with A's type: the result is complex if b is complex, else A's type unchanged."""
    return np.complex64 if b_dtype is not None and np.dtype(b_dtype).kind == "c" else np.float32


def _read_own(A, device, dtype, b_dtype, search_below) -> Input:
    """Check an operator or a matrix of swell, which already has its space."""
    if device is not None and not A.space.name == device.split(":")[0]:
        raise InputError(f"A lives in the {A.space.name} space and device={device!r} was asked for: build it there")
    if A.dtype.name not in DTYPES:
        raise InputError(f"A is {A.dtype.name}: expected one of {', '.join(DTYPES)}; build it from values of that type")
    if not A.space.ranks.single:
        return _read_distributed(A, dtype, b_dtype)
    if dtype is not None and _named_dtype(dtype) != A.dtype:
        raise InputError(f"A is {A.dtype.name} and dtype={dtype} was asked for: convert it before building the format")
    if A.shape[0] != A.shape[1]:
        raise InputError(f"A has shape {A.shape}: expected a square matrix; for least squares use swell.lstsq(A, b)")
    if not hasattr(A, "to_csr"):
        return Input(A, A.space, [] if A.has_entries else ["A is matrix-free"])
    with A.space.active(A.shape[0]):             # threads that share the matrix take turns
        csr = A.to_csr()
        csr.discard_facts()                      # its owner may have changed the values since
        csr.facts(search=A.shape[0] < search_below)
        check_finite_matrix(csr)
    return Input(csr, A.space, [], kept=A)


def _read_distributed(A, dtype, b_dtype) -> Input:
    """Check a distributed matrix; all ranks convert it to the same type."""
    wanted = solve_dtype(dtype, A.dtype, b_dtype)
    A.space.ranks.require_equal(wanted.name, "the type to solve in (dtype, or whether b is complex)")
    check_not_real(wanted, A.dtype)
    notes = [f"A was converted from {A.dtype.name} to {wanted.name}"] if dtype and wanted != A.dtype else []
    if wanted != A.dtype:
        with A.space.active():
            A = A.astype(wanted)
    return Input(A, A.space, notes)


def _read_matrix_free(A, space, dtype, b_dtype) -> Input:
    """Wrap a SciPy or CuPy LinearOperator."""
    if (device_of(A) == "cpu") != (space.name == "cpu"):
        raise InputError(f"a LinearOperator of {type(A).__module__.split('.')[0]} cannot run on device={space.name!r}: "
                         "its matvec takes that library's arrays; use device='cpu' with SciPy, 'cuda' with CuPy")
    dtype = solve_dtype(dtype, np.float64 if A.dtype is None else A.dtype, b_dtype)
    operator = CallableOperator(A.shape, dtype, space, A.matvec, getattr(A, "rmatvec", None),
                                name="user LinearOperator")
    return Input(operator, space, ["A is matrix-free: no format, ordering, scaling or matrix-based preconditioner"])


def _to_csr(A, space, notes, block=None, keep=True, search=False):
    """Convert anything with entries to a CSRMatrix of the space: sorted, duplicates summed, with a note if there were
    any. ``keep``: the result outlives the call, so it must not share memory with A."""
    guest = guest_of(A)
    _check_gpu(A, "A", space)
    guest.check(A, quick=True)
    _check_size(A, space)
    read = guest.csr(A)
    read = read._replace(shared=read.shared and keep)
    if block is not None:
        from swell.formats.blocks import checked_block_size
        read = read._replace(block=checked_block_size(block, A.shape[0]))
    csr = _move(read.csr, space, read)
    if not csr.facts(search).in_range:
        guest.check(A)                           # gives a more precise error for an array on the host
        raise InputError(f"A has row pointers or column indices out of range: expected columns from 0 to "
                         f"{A.shape[1] - 1}, and row pointers that ascend from 0 to nnz")
    if not csr.facts(search).canonical:
        csr = _move(guest.summed(read.csr), space, read._replace(shared=False))
    if read.entries > csr.nnz:
        notes.append(f"{read.entries - csr.nnz} duplicate entries of A were summed")
    return csr


def _move(csr, space, read):
    """Return the CSRMatrix of ``csr`` in the space; copy the arrays that the user could change later.

    ``read``: says whether arrays are shared with the user's matrix, and its block size."""
    from swell.formats.csr import CSRMatrix
    arrays = csr.indptr, csr.indices[:csr.nnz], csr.data[:csr.nnz].astype(checked_dtype(csr.dtype, "A"), copy=False)
    moved = (space.from_host(array) for array in arrays)
    if read.shared:
        moved = (space.copied(new) if space.same_memory(new, array) else new for new, array in zip(moved, arrays))
    return CSRMatrix(space, *moved, csr.shape, block=read.block)


def check_finite_matrix(csr):
    """Raise InputError if a CSRMatrix has NaN or Inf among its entries."""
    bad = csr.facts(search=False).not_finite
    if bad:
        raise not_finite("A", bad)


def read_vectors(A, b, x0=None, finite_later=False):
    """Check the right-hand sides and the starting vectors (or None) of a matrix that has been read.

    Parameters
    ----------
    A : LinearOperator
    b, x0 : arrays of any kind, shape (n,) or (n, k)
        Across ranks: this rank's rows.
    finite_later : bool
        Do not search a one-column b on a GPU for NaN and Inf. The caller uses ``check_finite`` if the solve fails.

    Returns
    -------
    rhs, guess : arrays, guess None without x0

    Raises
    ------
    InputError
        If ``read_vector`` refuses b or x0, their shapes differ, or one of them is complex and A is real.
    """
    n = A.shape[0]
    rows = A.space.ranks.local_rows(n)
    part = "" if rows == n else "[A.rows], this rank's part"
    rhs = read_vector(b, rows, "b", part, A.space, finite_later and A.space.ranks.single)
    guess = None if x0 is None else read_vector(x0, rows, "x0", part, A.space)
    if rhs.dtype.kind == "c" and A.dtype.kind != "c":
        raise InputError("b is complex and the system was prepared real: prepare(A, dtype='complex128')")
    if guess is not None and guess.dtype.kind == "c" and A.dtype.kind != "c":
        raise InputError("x0 is complex and the system is real: give its real part, or dtype='complex128'")
    if guess is not None and guess.shape != rhs.shape:
        raise InputError(f"x0 has shape {guess.shape}: expected {rhs.shape}, the shape of b")
    return rhs, guess


def read_vector(v, n: int, name: str, part: str = "", space=None, finite_later=False):
    """Check a right-hand side or a starting vector; return it as a NumPy or CuPy array of shape (n,) or (n, k).

    Parameters
    ----------
    v : array of any kind
    n : int
        Expected number of rows.
    name : str
        Its name in error messages.
    part : str
        For error messages: which rows are expected, if not all rows of A.
    space : Space, optional
        The space of the solve; a vector that lies there is searched for NaN and Inf by a kernel of swell.
    finite_later : bool
        Do not search a vector of one column that lies on that GPU.

    Raises
    ------
    InputError
        For a wrong shape, an unsupported type, NaN or Inf.
    """
    v = guest_of(v).read_vector(v, name)
    if space is not None:
        _check_gpu(v, name, space)
    if v.dtype.kind not in "fciub":
        raise InputError(f"{name} has dtype {v.dtype}: expected numbers; {name}.astype('float64') converts them")
    checked_dtype(v.dtype, name)
    if v.ndim not in (1, 2) or v.shape[0] != n:
        raise InputError(f"{name} has shape {tuple(v.shape)}: expected ({n},) or ({n}, k) for "
                         f"{name + part if part else f'an A of {n} rows'}")
    if v.ndim == 2 and not v.shape[1]:
        raise InputError(f"{name} has shape {tuple(v.shape)}: expected at least one column")
    if space is None or device_of(v) != space.device_name:
        check_finite(name, v)
        return v
    if finite_later and v.ndim == 1 and space.name == "cuda":
        return v
    with space.active(n):
        if not space.finite(v):
            check_finite(name, v)
    return v


def check_monitor(monitor, together=None, shows_x=True):
    """Raise InputError unless the monitor is None or callable, and ``together`` None, True or False; called before the
    setup, which may take long. ``shows_x``: the solve can take a `SolutionMonitor`."""
    if not (monitor is None or callable(monitor) and (shows_x or not isinstance(monitor, SolutionMonitor))):
        raise InputError(f"monitor={shown(monitor)}: expected a function of (iteration, relative_residual), which may "
                         "return True to stop the solve")
    if not (together is None or isinstance(together, bool)):
        raise InputError(f"together={shown(together)}: expected True, to solve for all columns of b at once, False, to "
                         "solve one by one, or None, to take what is predicted to be faster")


def device_of(array) -> str:
    """The device of an object of any library: "cpu" or "cuda:k"."""
    return guest_of(array).device_of(array)


def dtype_of(array, name="b") -> np.dtype:
    """The NumPy type of an array of any library; ``name`` is its name in error messages."""
    return guest_of(array).dtype_of(array, name)


def returned(x, space, original):
    """A copy of x, an array of the space, converted to the array type and device of ``original``."""
    guest = guest_of(original)
    where = guest.device_of(original)
    if where == "cpu":
        x = np.array(space.to_host(x))
    elif space.name == "cpu":
        with (there := make_space(where)).active():
            x = there.from_host(x)
    else:
        x = space.copy_for_caller(x)
    return guest.give_back(x, original)


def stack(columns, rhs, original):
    """Stack solution vectors as the columns of one array, of the same array type as ``original``."""
    guest = guest_of(original)
    read = [guest.read_vector(x, "x") for x in columns]
    return guest.give_back(np.stack(read, axis=1) if read else np.empty_like(rhs, dtype=np.float64), original)
