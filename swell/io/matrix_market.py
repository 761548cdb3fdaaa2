"""Matrix Market files, in all variants.

Source: R. Boisvert, R. Pozo, K. Remington, The Matrix Market exchange formats, NISTIR 5935 (1996).

SciPy's reader (fast_matrix_market) parses numbers in parallel. But it skips everything after the columns that it
expects: it misreads a complex matrix labelled real, ``1.5abc`` or Fortran's ``1.0-103`` without a warning. Some damaged
files crash it. Therefore this module reads the header itself, and checks that the text holds only numbers, as many as
the header promises. SciPy gets a plain general matrix. This module then checks and expands the symmetry.
"""
import io
import re
from dataclasses import dataclass, replace

import numpy as np
import scipy.io

from swell.core.errors import InputError
from swell.io import files
from swell.io.canonical import canonical_csr, dense_to_csr, expand

_VALUES = {"real": 1, "double": 1, "integer": 1, "unsigned-integer": 1, "complex": 2, "pattern": 0}
_FIELDS = {0: "pattern", 1: "real", 2: "complex"}       # SciPy's field names, by the count of numbers of an entry
_LAYOUTS = ("coordinate", "array")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_MOST_COMMENTS = 1 << 26     # most bytes of text before the line of sizes
_MOST_BLANKS = 1 << 10       # most bytes of text for each number, in addition to _MOST_COMMENTS

_FLOAT = re.compile(rb"[+-]?(\d++\.?\d*+|\.\d++)([eEdD][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)
MOST_DIGITS = 19             # of a size or an index: int64, or a sign
_INDEX = re.compile(rb"\+?\d+")
# SciPy's reader refuses Fortran's 1.0D+3 and a leading plus, +1.0; a "+" never changes a number and is dropped. The
# reader would count a blank line of a Windows file as an entry, so "\r" becomes "\n".
_SPELLING, _REDUNDANT = bytes.maketrans(b"dD\r", b"eE\n"), b"+"


def _classes_and_pairs():
    """Return two tables of 256 bytes: from byte to class, and from two neighbouring classes, a and b, to a verdict.

    The second table's index is 8 a + b. The verdict is 1 if a number starts at the second byte, 2 if the pair
    is illegal in a text of numbers, and else 0.
    """
    classes = {"space": b" \t\r\n", "digit": b"0123456789", "sign": b"+-", "dot": b".", "exponent": b"eEdD",
               "letter": b"nNaAiIfFtTyY", "other": b""}       # letters of nan, inf, infinity
    follows = {"space": "space digit sign dot letter", "digit": "space digit dot exponent", "sign": "digit dot letter",
               "dot": "space digit exponent", "exponent": "digit sign", "letter": "letter space"}
    code = {name: number for number, name in enumerate(classes)}
    class_of = bytearray([code["other"]] * 256)
    for name, members in classes.items():
        for byte in members:
            class_of[byte] = code[name]
    verdict = bytearray([2] * 256)
    for first, seconds in follows.items():
        for second in seconds.split():
            verdict[8 * code[first] + code[second]] = first == "space" and second != "space"
    return bytes(class_of), bytes(verdict)


_CLASS, _VERDICT = _classes_and_pairs()


@dataclass(frozen=True)
class _Header:
    """The first two lines: ``%%MatrixMarket matrix layout field symmetry`` and the sizes."""

    layout: str
    field: str
    symmetry: str
    rows: int
    cols: int
    entries: int        # data lines
    line: int           # number of the size line, from 1

    @property
    def columns(self):
        """Numbers on a data line."""
        return _VALUES[self.field] + (2 if self.layout == "coordinate" else 0)

    @property
    def describes(self):
        return f"'{self.layout} {self.field} {self.symmetry}'"


def read_matrix(path):
    """Read a Matrix Market file as CSR; see `swell.io.read_matrix_with_notes`."""
    header, numbers = _read(path)
    if header.layout == "array":
        return dense_to_csr(path, _unpack(header, numbers))
    check_triangle(path, header, numbers)
    A, notes = canonical_csr(path, numbers)       # before the expansion, so that a duplicate counts once
    if header.field == "pattern":
        notes.append("pattern matrix: every entry is 1")
    if header.symmetry != "general":
        A, _ = canonical_csr(path, expand(header.symmetry, A.tocoo()))
        notes.append(f"{header.symmetry} storage expanded to {A.nnz} entries")
    return A, notes


def read_vector(path):
    """Read a Matrix Market file of either layout as a dense array, shape (m, n)."""
    header, numbers = _read(path)
    if header.layout == "array":
        return _unpack(header, numbers)
    files.refuse_square(path, (header.rows, header.cols))
    files.check_memory(path, (16 if header.field == "complex" else 8) * header.rows * header.cols,
                       f"a dense {header.rows} x {header.cols} array")
    check_triangle(path, header, numbers)
    return expand(header.symmetry, numbers).toarray()


def write_dense(stream, x):
    """Write x, of shape (n,) or (n, k), to the open binary `stream` as a general Matrix Market array."""
    scipy.io.mmwrite(stream, x if x.ndim == 2 else x[:, None], symmetry="general")


def _read(path):
    """Return (header, numbers); numbers is a COO matrix of the entries, or, for the array layout, its stored values."""
    with files.opened(path) as stream:
        header = read_header(path, stream)
        check_sizes(path, header)
        # i, j and value of each entry, as read and as CSR; twice this if symmetry is expanded.
        factor = 1 if header.symmetry == "general" else 2
        files.check_memory(path, 40 * factor * header.entries, f"{header.entries} entries")
        numbers = _numbers(path, header, header, stream)
    return header, numbers if header.layout == "coordinate" else numbers[0]


def read_entries(path, header, piece):
    """Return the entries in `piece`, some whole lines of the file, as a COO matrix; InputError for other text.

    `path` and `header`, the file's, are for the message."""
    lines = replace(header, entries=sum(1 for line in piece.split(b"\n") if line.strip()))
    return _numbers(path, header, lines, io.BytesIO(piece))


def _numbers(path, header, announced, stream):
    """Parse `stream`, which must hold exactly the entries of the header `announced`; return SciPy's result.

    After a failure the whole file `path`, with its own `header`, is searched for the fault, for the `InputError`."""
    checked = _CheckedNumbers(announced, stream)
    try:
        matrix = scipy.io.mmread(checked)
    except (ValueError, OverflowError):
        matrix = None
    if checked.passed > checked.most:
        raise files.too_long(path, checked.most)
    if matrix is None or not checked.legal or checked.count != announced.entries * announced.columns:
        raise InputError(f"{path}, {_first_fault(path, header)}")
    return matrix


class _CheckedNumbers:
    """A stream for SciPy's reader: a plain general header, then the file's text, counted and checked on its way.

    The checks take about 0.25 s for 100 MB. The whole text is never in memory at once.

    Attributes
    ----------
    count : int
        Numbers read so far.
    legal : bool
        True if the text so far holds only numbers.
    passed, most : int
        Bytes read so far, and the limit after which reading stops.
    """

    def __init__(self, header, stream):
        # An array is declared as one row of its stored values. (With one column SciPy would divide by its length.)
        sizes = (f"{header.rows} {header.cols} {header.entries}" if header.layout == "coordinate" else
                 f"1 {header.entries}")
        field = _FIELDS[_VALUES[header.field]]
        self._pending = f"%%MatrixMarket matrix {header.layout} {field} general\n{sizes}\n".encode()
        self._stream, self._before, self._ended = stream, b"\n", False
        self.count, self.legal = 0, True
        self.passed, self.most = 0, most_text(header)

    def read(self, size):
        """Return at most `size` bytes; SciPy's reader calls this."""
        if self._pending:
            piece, self._pending = self._pending[:size], self._pending[size:]
            return piece
        piece = b""
        while not piece and not self._ended:
            stored = self._stream.read(size)
            self._check(stored or b"\n")
            self.passed += len(stored)
            self._ended = not stored or not self.legal or self.passed > self.most
            # SciPy's reader crashes on some bytes that are not numbers, and on a last line without a line break.
            piece = b"\n" if self._ended else stored.translate(_SPELLING, _REDUNDANT)
        return piece

    def _check(self, piece):
        classes = np.frombuffer((self._before + piece).translate(_CLASS), np.uint8)
        verdicts = (8 * classes[:-1] + classes[1:]).tobytes().translate(_VERDICT)
        self.count += verdicts.count(1)
        self.legal = self.legal and 2 not in verdicts
        self._before = piece[-1:]


def read_header(path, stream):
    """Read the open file up to and including the line of sizes; return the `_Header`. `path` is for messages."""
    banner = stream.readline(1024)
    words = banner.decode("latin-1").lower().split()
    choices = [("%%matrixmarket",), ("matrix",), _LAYOUTS, tuple(_VALUES), _SYMMETRIES]
    if len(words) != 5:
        raise InputError(f"{path}, line 1: the header has {len(words)} words, expected 5, such as "
                         "'%%MatrixMarket matrix coordinate real general'. Mend line 1.")
    for word, allowed in zip(words, choices):
        if word not in allowed:
            raise InputError(f"{path}, line 1: '{word}' came, expected {' or '.join(allowed)}. Mend line 1.")
    layout, field, symmetry = words[2:]
    if field == "pattern" and (layout == "array" or symmetry in ("skew-symmetric", "hermitian")):
        raise InputError(f"{path}, line 1: '{layout} {field} {symmetry}' does not exist: a pattern has no values. "
                         "Write 'coordinate', and 'general' or 'symmetric', or give the field as 'real'.")

    for number, line in enumerate(files.lines(path, stream, _MOST_COMMENTS, 1), 2):
        if line.strip() and not line.startswith(b"%"):
            break
    else:
        raise InputError(f"{path} is truncated: it ends before the line of sizes. Fetch or write it again.")
    sizes = line.split()
    expected = ("rows", "columns", "entries") if layout == "coordinate" else ("rows", "columns")
    if len(sizes) != len(expected) or not all(size.isdigit() and len(size) <= MOST_DIGITS for size in sizes):
        raise InputError(f"{path}, line {number}: the sizes are '{_shown(line)}', expected {len(expected)} integers: "
                         f"{', '.join(expected)}. Mend this line.")
    rows, cols, *stored = map(int, sizes)
    if symmetry != "general" and rows != cols:
        raise InputError(f"{path}, line {number}: {rows} x {cols} is not square, but the header says {symmetry}. "
                         "Write 'general' in line 1, or mend the sizes.")
    triangle = {"general": rows * cols, "skew-symmetric": rows * (rows - 1) // 2}.get(symmetry, rows * (rows + 1) // 2)
    return _Header(layout, field, symmetry, rows, cols, *(stored or [triangle]), number)


def most_text(header):
    """Return the most bytes allowed for the text of the entries that `header` announces.

    Blanks and leading zeros cost time, and a compressed file can expand to a thousand times its size of them."""
    return _MOST_COMMENTS + _MOST_BLANKS * header.columns * header.entries


def check_sizes(path, header):
    """Raise `InputError` if `header` announces more entries than the file can hold, before memory is allocated."""
    size = path.stat().st_size
    held = {"": size, ".gz": files.MAX_DEFLATE * size}.get(files.compression(path))      # unbounded for bzip2
    if held is not None and 2 * header.columns * header.entries > held + 1:
        raise InputError(f"{path}, line {header.line}: {header.entries} entries are announced, but a file of {size} "
                         "bytes cannot hold them. It is truncated, or this line is wrong: fetch it again or mend it.")


def check_triangle(path, header, stored):
    """Raise `InputError` if entries of `stored`, a COO matrix, contradict the header's symmetry.

    Entries above the diagonal, for instance, would be counted twice."""
    if header.symmetry == "general":
        return
    row, col, value = stored.row, stored.col, stored.data
    faults = [(row < col, "above the diagonal",
               "Write 'general' in line 1 if the file lists both triangles; swap rows and columns if only the upper")]
    if header.symmetry == "skew-symmetric":
        faults.append(((row == col) & (value != 0), "on the diagonal, which is zero then", "Mend line 1 or the entry"))
    if header.symmetry == "hermitian":
        faults.append(((row == col) & (value.imag != 0), "on the diagonal and not real",
                       "Write 'symmetric' in line 1 if A equals its transpose without conjugation, or mend the entry"))
    for wrong, where, remedy in faults:
        if wrong.any():
            k = int(np.argmax(wrong))
            raise InputError(f"{path}: the header says {header.symmetry}, but entry {k + 1} of the list, at row "
                             f"{row[k] + 1}, column {col[k] + 1}, lies {where} ({wrong.sum()} such). {remedy}.")


def _unpack(header, values):
    """Return the full dense array (rows, cols) from `values`, the stored values of the array layout.

    They lie column by column; of a symmetric matrix only the lower triangle is stored."""
    if header.symmetry == "general":
        return values.reshape(header.cols, header.rows).T
    col, row = np.triu_indices(header.rows, 1 if header.symmetry == "skew-symmetric" else 0)
    full = np.zeros((header.rows, header.cols), values.dtype)
    full[col, row] = {"symmetric": values, "skew-symmetric": -values, "hermitian": values.conj()}[header.symmetry]
    full[row, col] = values
    return full


def _first_fault(path, header):
    """Return a text on the first fault in the entries of the file, with its line. Slow: only used after a failure."""
    with files.opened(path) as stream:
        read_header(path, stream)
        return _first_fault_in(files.lines(path, stream, most_text(header), header.line), header)


def _first_fault_in(lines, header):
    """Return a text on the first fault in `lines`, the data lines that follow the header; see `_first_fault`."""
    seen, number = 0, header.line
    for number, line in enumerate(lines, header.line + 1):
        words = line.split()
        if not words:
            continue
        where = f"line {number}: '{_shown(line)}'"
        if words[0].startswith(b"%"):
            return f"{where} is a comment among the entries. Move it above the line of sizes."
        if seen == header.entries:
            return (f"{where} follows the {header.entries} entries that line {header.line} announces. "
                    "Mend the count there, or remove what follows.")
        if len(words) != header.columns:
            if len(words) < header.columns and not line.endswith(b"\n"):
                return f"{where} breaks off: the file is truncated. Fetch or write it again."
            return (f"{where} has {len(words)} numbers, but {header.describes} of line 1 has {header.columns} on each. "
                    f"Mend the line, or the header in line 1{_better_field(header, len(words))}.")
        indices = words[:2] if header.layout == "coordinate" else []
        for word, size, what in zip(indices, (header.rows, header.cols), ("row", "column")):
            if not _INDEX.fullmatch(word):
                return f"{where}: the {what} '{_shown(word)}' is not a positive integer. Mend the line."
            if len(word) > MOST_DIGITS or not 1 <= int(word) <= size:
                return (f"{where}: {what} {_shown(word)} is outside 1 to {size}. Indices start at 1; "
                        f"mend the line, or the sizes in line {header.line}.")
        for word in words[len(indices):]:
            if not _FLOAT.fullmatch(word):
                return f"{where}: '{_shown(word)}' is not a number. Mend the line."
        seen += 1
    if seen < header.entries:
        return (f"line {number}: the file ends after {seen} of {header.entries} entries; it is "
                f"truncated, or line {header.line} counts wrongly. Fetch it again, or mend the count.")
    return "the entries hold characters other than numbers and spaces. Write it again as plain ASCII text."


def _better_field(header, columns):
    """Return a hint for a message: the field whose lines have `columns` numbers; empty if there is none."""
    values = columns - (2 if header.layout == "coordinate" else 0)
    return f" ('{_FIELDS[values]}' in place of '{header.field}')" if values in _FIELDS else ""


def _shown(text):
    """Return bytes of the file as short, printable text for a message."""
    text = text.strip().decode("latin-1")
    return ascii(text)[1:-1] if len(text) <= 60 else ascii(text[:57])[1:-1] + "..."
