"""Functions for all readers and writers: find, identify, open and replace files, and check sizes."""
import bz2
import csv
import gzip
import io
import os
import re
import secrets
import signal
import stat
import tempfile
import threading
import zlib
from contextlib import contextmanager
from enum import Enum
from pathlib import Path

import numpy as np

from swell.core import memory
from swell.core.errors import InputError, MissingDependency, OutOfMemory
from swell.core.settings import shown

MATRIX_FORMATS = ("Matrix Market (.mtx, .mtx.gz, .mtx.bz2), Harwell-Boeing (.rb, .hb, .rua, …), Matlab .mat, HDF5 "
                  "(.h5), SciPy .npz, NumPy .npy or PETSc binary")


class Kind(Enum):
    """The format of a file, by its content; the value completes the sentence "this is ..."."""

    MATRIX_MARKET = "a Matrix Market file"
    HARWELL_BOEING = "a Harwell-Boeing file"
    MATLAB = "a Matlab .mat file"
    HDF5 = "an HDF5 file"
    NPZ = "a NumPy .npz archive"
    NPY = "a NumPy .npy array"
    PETSC = "a PETSc binary file"
    TEXT = "plain text without a Matrix Market header"


OTHER_CODES = "docs/howto/files_of_other_codes.md has two lines each for files of hypre, AmgX and Abaqus."
# The formats that an extension promises. With any other extension the content alone decides.
_PROMISES = {".mtx": (Kind.MATRIX_MARKET,), ".mm": (Kind.MATRIX_MARKET,), ".npz": (Kind.NPZ,), ".npy": (Kind.NPY,),
             ".petsc": (Kind.PETSC,), ".txt": (Kind.TEXT,), ".mat": (Kind.MATLAB, Kind.HDF5), ".h5": (Kind.HDF5,),
             ".hdf5": (Kind.HDF5,), ".hb": (Kind.HARWELL_BOEING,), ".rb": (Kind.HARWELL_BOEING,),
             **{f".{scalars}{symmetry}a": (Kind.HARWELL_BOEING,) for scalars in "rcip" for symmetry in "suhzr"}}

MAX_DEFLATE = 1032          # most bytes to which one byte of a gzip or zip file can expand
LONGEST_LINE = 1 << 24      # most bytes of a line of text: 600 000 numbers
MAX_EMPTY_PER_ENTRY = 100    # most rows or columns for each stored entry, in addition to MAX_UNCHECKED
MAX_UNCHECKED = 1_000_000    # rows and columns that are always allowed

PETSC_CLASSES = range(1211211, 1211250)

_HDF5 = b"\x89HDF\r\n\x1a\n"
# The third line starts with the type, such as RUA, and has the numbers of rows, columns and entries.
_HARWELL_BOEING = re.compile(rb"[^\n]*\n[^\n]*\n[RCIPQ][SUHZR][AE]\s+\d+\s+\d+\s+\d+", re.IGNORECASE)

_OPENERS = {"": open, ".gz": gzip.open, ".bz2": bz2.open}

# Frequent mistakes, by the file's first bytes: the actual format, and the remedy.
_STRANGERS = {
    b"\xef\xbb\xbf": ("text with a byte-order mark", "Save it as plain ASCII text."),
    b"\xff\xfe": ("text in UTF-16", "Save it as plain ASCII text."),
    b"version https://git-lfs": ("a Git LFS pointer, not the file itself", "Run 'git lfs pull' to get the file."),
    b"<!DOCTYPE": ("a web page", "The download went wrong: fetch the file itself."),
    b"<html": ("a web page", "The download went wrong: fetch the file itself."),
}


def as_path(path):
    """Convert `path` to a `Path`; `InputError` if it is not a path, for instance a matrix."""
    try:
        path = Path(path)
    except TypeError:
        raise InputError(f"a path is expected, text such as 'matrix.mtx' or a pathlib.Path, and this is a "
                         f"{type(path).__name__}; data in memory needs no reading") from None
    if "\0" in str(path):
        raise InputError(f"{shown(str(path))} holds a NUL character, which no file's name can: check the name")
    return path


def status(path):
    """The `os.stat_result` of a file, or None if it does not exist.

    Raises
    ------
    InputError
        If the name is too long, its links form a loop, or a folder on the way is not accessible.
    """
    try:
        return path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{shown(str(path))} cannot be looked up: {error.strerror}. Check the name.") from None


def _relative_to():
    """Return " (relative to FOLDER)" with the working folder, for an error message; empty if that was removed."""
    try:
        return f" (relative to {Path.cwd()})"
    except FileNotFoundError:
        return ""


def regular_file(path):
    """Return `path` as the `Path` of an existing regular file; otherwise raise `InputError` with the reason."""
    path = as_path(path)
    attributes = status(path)
    if attributes is None:
        raise InputError(f"{path} does not exist; check the name{_relative_to()}.")
    if stat.S_ISDIR(attributes.st_mode):
        raise InputError(f"{path} is a folder; name a file in it.")
    if not stat.S_ISREG(attributes.st_mode):
        raise InputError(f"{path} is not a regular file; save its content to a file first.")
    return path


@contextmanager
def _unreadable_explained(path):
    """A context that turns errors from reading a damaged or unreadable file into an `InputError`."""
    try:
        yield
    except EOFError as error:
        raise InputError(f"{path} is truncated: its compressed stream ends too early. "
                         "Fetch or copy it again.") from error
    except zlib.error as error:
        raise InputError(f"{path} is damaged: {error}. Fetch or copy it again.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}. "
                         "Check its permissions, or fetch or copy it again.") from error


@contextmanager
def damage_explained(path, again):
    """Return a context that turns errors of a library on the damaged file `path` into an `InputError`.

    `again`: how to write the file again, for the message."""
    try:
        yield
    except (InputError, MissingDependency, OutOfMemory):
        raise
    except Exception as error:      # the parsers raise a dozen kinds of errors, tokenize.TokenError among them
        if "allow_pickle" in str(error):
            raise InputError(f"{path} holds Python objects, expected numbers: loading objects could run code. "
                             "Write the array again with dtype=float.") from error
        raise InputError(f"{path} is damaged, truncated or inconsistent ({error}). "
                         f"Fetch it again, or {again}.") from error


def compression(path):
    """The compression, ".gz", ".bz2" or "", by the first bytes of the file."""
    with _unreadable_explained(path), open(path, "rb") as raw:
        magic = raw.read(3)
    return ".gz" if magic.startswith(b"\x1f\x8b") else ".bz2" if magic == b"BZh" else ""


@contextmanager
def opened(path):
    """Return a context that opens `path` for reading bytes and closes it; it decompresses gzip and bzip2.

    Damage becomes an `InputError`."""
    with _unreadable_explained(path), _OPENERS[compression(path)](path, "rb") as stream:
        yield stream


def identify(path):
    """Identify the format of the file `path` by its content.

    Returns
    -------
    Kind

    Raises
    ------
    InputError
        If the file is empty or damaged, its format is unknown, or its extension promises another format.
    """
    with opened(path) as stream:
        head = stream.read(4096)
    if not head.strip():
        raise InputError(f"{path} is empty. Expected {MATRIX_FORMATS}; write or fetch it again.")

    suffix, packed = path.suffix.lower(), compression(path)
    if packed != (suffix if suffix in (".gz", ".bz2") else ""):
        content, name = (f"{packed[1:]}-compressed", path.name + packed) if packed else ("uncompressed", path.stem)
        raise InputError(f"{path} looks {content}, which its extension contradicts. Rename it to {name}.")

    kind = _kind(path, head)
    if packed:
        if kind not in (Kind.MATRIX_MARKET, Kind.HARWELL_BOEING, Kind.TEXT):
            raise InputError(f"{path} is a compressed file that holds {kind.value}. "
                             "Only Matrix Market, Harwell-Boeing and text are read compressed: decompress it first.")
        suffix = Path(path.stem).suffix.lower()
    promised = _PROMISES.get(suffix, (kind,))
    if kind not in promised:
        remedy = ("Its first line must be a header such as '%%MatrixMarket matrix coordinate real general'. "
                  f"{OTHER_CODES}"
                  if Kind.MATRIX_MARKET in promised and kind is Kind.TEXT else
                  "Give it the extension of its content, or write it again in the intended format.")
        raise InputError(f"{path} ends in {suffix} but its content looks like {kind.value}. {remedy}")
    return kind


def _kind(path, head):
    """Return the `Kind` of the file that starts with the bytes `head`; InputError for a format that cannot be read."""
    if head.lstrip(b" ")[:14].lower() == b"%%matrixmarket":      # MUMPS writes spaces before it
        return Kind.MATRIX_MARKET
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return Kind.NPZ
    if head.startswith(b"\x93NUMPY"):
        return Kind.NPY
    # PETSc writes its class id, a little above 1211210, as a big-endian integer of 32 or 64 bits.
    if int.from_bytes(head[:4]) in PETSC_CLASSES or int.from_bytes(head[:8]) in PETSC_CLASSES:
        return Kind.PETSC
    if head.startswith(b"MATLAB 5.0"):
        return Kind.MATLAB
    if any(head.startswith(_HDF5, offset) for offset in (0, 512, 1024, 2048)):        # behind a user block, as Matlab's
        return Kind.HDF5
    if _HARWELL_BOEING.match(head):
        return Kind.HARWELL_BOEING
    for start, (what, remedy) in _STRANGERS.items():
        if head.startswith(start):
            raise InputError(f"{path} is {what}. {remedy}")
    if any(byte < 32 and byte not in b"\t\n\r\f" for byte in head):
        version = " From Matlab version 4, save it again with -v7." if path.suffix.lower() == ".mat" else ""
        raise InputError(f"{path} is binary data of no format that swell knows. Expected {MATRIX_FORMATS}.{version}")
    return Kind.TEXT


def lines(path, stream, most, number=0):
    """Yield the lines of an open text `stream`, as bytes; the first has the number `number` + 1 in messages.

    Raises
    ------
    InputError
        If a line is longer than `LONGEST_LINE`, or all lines have more than `most` bytes: a compressed file can expand
        to a thousand times its size.
    """
    passed = 0
    while line := stream.readline(LONGEST_LINE + 1):
        number, passed = number + 1, passed + len(line)
        if len(line) > LONGEST_LINE:
            raise InputError(f"{path}, line {number}: the line has more than {LONGEST_LINE} bytes, which no text of "
                             "numbers has. Break it, or fetch the file again.")
        if passed > most:
            raise too_long(path, most)
        yield line


def too_long(path, most):
    """Return the `InputError` for a text with more than `most` bytes."""
    return InputError(f"{path} holds more than {most} bytes of text, far more than its header announces or the free "
                      "memory can hold: blanks, comments or a damaged stream. Write it again.")


def check_memory(path, size, what):
    """Raise `OutOfMemory` if `size` bytes, for `what` in `path`, exceed the free memory."""
    free = memory.free()
    if size > free:
        raise OutOfMemory(f"{path} declares {what}: {size / 2**30:.3g} GiB, more than the {free / 2**30:.3g} GiB that "
                          "are free. Check the sizes it declares, or use a machine with more memory.")


def check_shape(path, shape, entries):
    """Raise `InputError` if a matrix of this shape, with `entries` entries, has far more rows or columns than entries.

    An empty row costs memory and time too. Without this check a file of 60 bytes could demand any amount of both.
    """
    if max(shape) > MAX_UNCHECKED + MAX_EMPTY_PER_ENTRY * entries:
        raise InputError(f"{path} declares {shape[0]} x {shape[1]} and {entries} entries: nearly all its rows or "
                         "columns are empty, so that it is singular. Mend the sizes, or write the file again.")


def refuse_square(path, shape):
    """Raise InputError if a sparse matrix that is read as a vector is square, which no right-hand side is."""
    if shape[0] == shape[1] > 1:
        raise InputError(f"{path} holds a sparse matrix of shape {tuple(shape)}, expected a vector or several as "
                         "columns. Read it with swell.read_matrix.")


def as_vector(path, values):
    """Return `values` as a float64 or complex128 array of shape (n,) or, for several columns, (n, k).

    Raises
    ------
    InputError
        If `values` is not numeric, or does not have one or two dimensions; the message names `path`.
    """
    values = np.asarray(values)
    if values.dtype.kind not in "biufc":
        raise InputError(f"{path}: a vector of dtype {values.dtype} came, expected numbers. "
                         "Convert it with numpy.asarray(x, dtype=float).")
    if values.ndim not in (1, 2):
        raise InputError(f"{path}: an array of shape {values.shape} came, expected (n,) or (n, k). Reshape it.")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return np.ascontiguousarray(values, dtype=np.complex128 if values.dtype.kind == "c" else np.float64)


def to_write(path, ending):
    """Return ``path`` as a `Path`; raise `InputError` unless it ends in ``ending``, such as ".vtu", in any case."""
    path = as_path(path)
    if path.suffix.lower() != ending:
        raise InputError(f"cannot write {path}: the extension is {path.suffix or 'missing'}, expected {ending}")
    return path


def write_rows(path, rows):
    """Write ``rows``, sequences of cells, to a CSV file as `write_atomically` does."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    write_atomically(path, lambda stream: stream.write(text.getvalue().encode()))


def write_atomically(path, write):
    """Call `write(stream)` on a new file beside `path`, then rename it to `path`; a failure leaves nothing behind.

    Raises
    ------
    InputError
        If the folder does not exist, is not writable or is full.
    """
    folder = status(path.parent)
    if folder is None or not stat.S_ISDIR(folder.st_mode):
        raise InputError(f"Cannot write {path}: {path.parent} is not a folder. Make it first.")
    temporary = path.with_name(f".{secrets.token_hex(8)}.part")      # a short name: the file's own name may already
    try:                                                             # have the greatest length allowed
        with _removed_on_termination(temporary):
            with open(temporary, "xb") as stream:
                write(stream)
                stream.flush()
                os.fsync(stream.fileno())   # without this a power cut after the rename could leave an empty file
            os.replace(temporary, path)
    except OSError as error:
        raise InputError(f"Cannot write {shown(str(path))}: {error.strerror or error}. Check that its folder is "
                         f"writable and not full, and {shown(path.name)} no folder.") from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def temporary_folder(what):
    """A context with the path of a temporary folder, for libraries that read and write names, not streams.

    An OSError within, as on a full disk, becomes an `InputError`; ``what``: its purpose, for the message."""
    try:
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder)
    except OSError as error:
        raise InputError(f"{what} needs a temporary folder, and that cannot be written ({error.strerror or error}): "
                         "make room, or name another folder with TMPDIR") from error


@contextmanager
def _removed_on_termination(temporary):
    """A context in which SIGTERM first removes the file, then ends the process.

    By default SIGTERM ends a process at once, and no `finally` runs. Nothing is done if the caller has a handler of its
    own, or outside of the main thread, the only one that can set a handler.
    """
    if (threading.current_thread() is not threading.main_thread()
            or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL):
        yield
        return

    def end(number, frame):
        temporary.unlink(missing_ok=True)
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
