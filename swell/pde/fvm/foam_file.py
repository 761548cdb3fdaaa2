"""Parser of OpenFOAM's files: a header, then a list or a dictionary, in text or binary, compressed or not.

The header's ``format`` says whether numbers are text or raw bytes. Its ``arch`` gives the byte order and the width of
integers ("labels") and reals ("scalars"). A list is written ``N ( ... )``, or ``N { value }`` for N equal values. In
binary the raw bytes follow the parenthesis at once. Faces are ``N ( 4(0 1 2 3) ... )``. In the class faceCompactList
they are two lists instead: the start of each face, and the points of all faces.

Expressions repeat possessively (``*+``): they never give back what they took, so a damaged file costs no more than one
pass over it.
"""
from __future__ import annotations

import re
import warnings
from pathlib import Path

import numpy as np

from swell.core.errors import InputError
from swell.core.library import native_kernels
from swell.io.files import check_memory, opened, regular_file

BLANK = rb"(?:\s++|//[^\n]*+|/\*.*?\*/)*+"
COMMENT = re.compile(rb'("[^"\n]*")|//[^\n]*|/\*.*?(\*/|\Z)', re.DOTALL)
HEADER = re.compile(BLANK + rb"FoamFile\s*+\{([^}]*+)\}", re.DOTALL)
LIST = re.compile(BLANK + rb"(\d++)?" + BLANK + rb"([({])", re.DOTALL)
NO_ENTRIES = re.compile(BLANK + rb"0" + BLANK + rb"(?:\(" + BLANK + rb"\))?", re.DOTALL)
ENTRY = re.compile(r'(\w++)\s++("[^"]*+"|[^;"]*+)\s*+;')        # arch is "LSB;label=32;scalar=64"
INTEGER = re.compile(rb"[+-]?\d+")
REAL = re.compile(rb"[+-]?(?:\d++\.?\d*+|\.\d++)(?:[eE][+-]?\d+)?|nan|inf")
TOKEN = re.compile(r'"[^"]*"|[{}();]|[^\s{}();"]+')
PARENTHESES = bytes.maketrans(b"()", b"  ")
LONGEST_HEADER = 10_000     # bytes
MOST_DIGITS = 18            # of a count: int64


class FoamFile:
    """The content of one file, with methods that parse its lists in order.

    Parameters
    ----------
    folder : pathlib.Path
    name : str
        Name of the file; if there is no such file, ``name.gz`` is read.

    Raises
    ------
    InputError
        For a missing or damaged file, or one without OpenFOAM's header.
    """

    def __init__(self, folder: Path, name: str):
        plain, packed = folder / name, folder / f"{name}.gz"
        if not plain.exists() and not packed.exists():
            raise InputError(f"{folder} has no file {name} or {name}.gz: copy it there, or write it again")
        self.path = regular_file(plain if plain.exists() else packed)
        with opened(self.path) as stream:
            self.content = stream.read()
        match = HEADER.match(self.content)
        if not match:
            raise InputError(f"{self.path} does not begin with OpenFOAM's header, FoamFile {{ ... }}: it is "
                             "another file")
        if len(match[1]) > LONGEST_HEADER:
            raise InputError(f"{self.path}: the header FoamFile {{ ... }} has {len(match[1])} bytes, expected at most "
                             f"{LONGEST_HEADER}; it is damaged: copy or write it again")
        self.at = match.end()
        text = self.without_comments(match[1]).decode("ascii", "replace")
        self.header = {key: value.strip('" \t\r\n') for key, value in ENTRY.findall(text)}
        self.binary = self.header.get("format", "ascii") == "binary"
        if not self.binary:
            self.content, self.at = self.without_comments(self.content[self.at:]), 0

    def without_comments(self, text) -> bytes:
        """Return text with a blank in place of each comment; raise InputError for one that does not end."""
        def kept(match):
            if match[2] == b"":
                raise InputError(f"{self.path}: the comment {match[0][:40].decode('utf-8', 'replace')!r} has no end: "
                                 "write */ behind it")
            return match[1] or b" "
        return COMMENT.sub(kept, text)

    def count(self, digits) -> int:
        """Return the count that ``digits``, bytes or text, stand for; raise InputError for one that no file holds."""
        if len(digits) > MOST_DIGITS:
            shown = digits.decode() if isinstance(digits, bytes) else digits
            raise InputError(f"{self.path}: the count {shown[:MOST_DIGITS]}... has {len(digits)} digits, expected at "
                             f"most {MOST_DIGITS}; it is damaged: copy or write it again")
        return int(digits)

    def repeated(self, value, count):
        """Return the array ``value`` ``count`` times, one after the other; ``N{value}`` in a file of any size."""
        check_memory(self.path, count * value.nbytes, f"{count} times the same value")
        return np.tile(value, count)

    def labels(self) -> np.ndarray:
        """Parse the next list of integers and return it; int64, or int32 from a binary list of 32 bits."""
        return self._next("label", "integers", np.int64, 1)

    def points(self) -> np.ndarray:
        """Parse the next list of vectors and return it; shape (p, 3), float64."""
        return self._next("scalar", "points", np.float64, 3).reshape(-1, 3)

    def faces(self):
        """Parse the faces; return (face_ptr, face_points), as in `Mesh`."""
        if self.header.get("class") == "faceCompactList":
            ptr, points = self.labels(), self.labels()
            if not ptr.size or ptr[0] != 0 or ptr[-1] != points.size:
                raise InputError(f"{self.path}: its faces need {ptr[-1] if ptr.size else 'no'} points, and it lists "
                                 f"{points.size}; write the mesh again")
            return ptr, points
        if self.binary:
            raise InputError(f"{self.path}: binary faces of the class {self.header.get('class')} came, expected "
                             "faceCompactList; convert the mesh with foamFormatConvert")
        count, inside = self._nested("faces")
        numbers = self._numbers(inside.translate(PARENTHESES), np.int64)
        ptr = np.empty(count + 1, np.int64)
        points = np.empty(max(numbers.size - count, 0), np.int64)
        if not native_kernels("swell.pde.fvm", "foam").split_faces(numbers, ptr, points):
            raise InputError(f"{self.path}: {self._wrong_face(inside)}; write the mesh again")
        return ptr, points

    def patches(self) -> list[tuple[str, dict]]:
        """Parse a boundary file; return a list of (patch name, dict of entries as text)."""
        tokens = TOKEN.findall(self.without_comments(self.content[self.at:]).decode("utf-8", "replace"))
        tokens.append("")                       # marks the end of the file
        at = 1 if tokens[0].isdecimal() else 0
        if tokens[at] != "(":
            raise InputError(f"{self.path}: {tokens[at] or 'nothing'!r} came, expected the number of patches and a "
                             "list in parentheses; write the mesh again")
        patches, at = [], at + 1
        while tokens[at] != ")":
            name, entries, at = self._dictionary(tokens, at)
            patches.append((name, entries))
        if tokens[0].isdecimal() and (announced := self.count(tokens[0])) != len(patches):
            raise InputError(f"{self.path} announces {announced} patches and has {len(patches)}; write the mesh again")
        return patches

    def _dictionary(self, tokens, at):
        """Parse ``name { key value; ... }`` from token number ``at`` of the list ``tokens``; return (name, dict of
        entries, index of the next token).

        Inner dictionaries are skipped.
        """
        name, entries, depth = tokens[at].strip('"'), {}, 0
        if not name or tokens[at + 1] != "{":
            raise InputError(f"{self.path}: {tokens[at + bool(name)] or 'the end of the file'!r} came where patch "
                             f"{name!r} should begin with {{; the file is truncated or damaged: write the mesh again")
        at += 1
        statement = []
        while True:
            token = tokens[at]
            if token == "":
                raise InputError(f"{self.path} is truncated: patch {name!r} has no end; write the mesh again")
            depth += (token == "{") - (token == "}")
            if depth == 0:
                return name, entries, at + 1
            if depth == 1 and token in "{};":
                if token == ";" and statement:
                    entries[statement[0]] = " ".join(statement[1:])
                statement = []
            elif depth == 1:
                statement.append(token)
            at += 1

    def _next(self, kind, what, dtype, width):
        """Parse the next list of numbers; return a flat array. ``kind``: "label" or "scalar", for the width of binary
        numbers; ``what``: the list's name in messages; ``dtype``: the type in text; ``width``: numbers an entry."""
        match = LIST.match(self.content, self.at)
        if not match or not match[1] and self.binary:
            if empty := NO_ENTRIES.match(self.content, self.at):
                self.at = empty.end()
                return np.zeros(0, dtype)
            raise InputError(f"{self.path}: no list of {what} follows its header; the file is truncated or damaged: "
                             "write it again")
        if match[2] == b"{":
            end = self._end(b"}", match.end(), what)
            value = self._numbers(self.content[match.end():end].translate(PARENTHESES), dtype)
            self.at = end + 1
            return self.repeated(value, self.count(match[1] or b"0"))
        if self.binary:
            return self._raw(kind, what, self.count(match[1]) * width, match.end())
        if width > 1:
            count, inside = self._nested(what)
        else:
            end = self._end(b")", match.end(), what)
            inside, self.at = self.content[match.end():end], end + 1
            count = None if match[1] is None else self.count(match[1])
        numbers = self._numbers(inside.translate(PARENTHESES), dtype)
        if count is not None and numbers.size != count * width:
            raise InputError(f"{self.path} announces {count} {what} and has {numbers.size} numbers for them, expected "
                             f"{count * width}; it is truncated or damaged: write it again")
        return numbers

    def _end(self, closing, start, what):
        """Return the position of ``closing``, the closing bracket, after ``start``, for a list without inner lists;
        ``what``: the list's name in messages."""
        end = self.content.find(closing, start)
        if end < 0:
            raise InputError(f"{self.path} is truncated: its list of {what} has no end; copy or write it again")
        return end

    def _nested(self, what):
        """Return (count, text inside) of the next list, which has entries in parentheses and is the last of the file;
        ``what``: its name in messages."""
        match = LIST.match(self.content, self.at)
        if not match or match[2] != b"(":
            raise InputError(f"{self.path}: no list of {what} follows its header; the file is truncated or damaged: "
                             "write it again")
        end = self.content.rfind(b")")
        inside = self.content[match.end():max(end, match.end())]
        begun, done = inside.count(b"("), inside.count(b")")
        count = begun if match[1] is None else self.count(match[1])
        if not begun == done == count:
            raise InputError(f"{self.path} is truncated or damaged: it announces {count} {what}, and "
                             f"{min(begun, done)} are there with both parentheses; copy or write it again")
        return count, inside

    def _numbers(self, text, dtype):
        """Return the numbers in ``text``, bytes with white space between them, as an array of type ``dtype``; raise
        InputError for other text."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", DeprecationWarning)
                return np.fromstring(text, dtype, sep=" ") if text.strip() else np.zeros(0, dtype)
        except (DeprecationWarning, ValueError) as error:
            number = INTEGER if dtype is np.int64 else REAL
            wrong = next((word for word in text.split() if not number.fullmatch(word)), b"?").decode("ascii", "replace")
            raise InputError(f"{self.path} has {wrong[:60]!r} where a number was expected; it is damaged: copy or "
                             "write it again") from error

    def _raw(self, kind, what, count, start):
        """Return ``count`` raw numbers from byte ``start``, as int32, int64 or float64; ``kind``: "label" or "scalar";
        ``what``: the list's name in messages."""
        arch = self.header.get("arch", "")
        said = (re.search(rf"{kind}=(\d+)", arch) or (0, "32" if kind == "label" else "64"))[1]
        if said not in ("32", "64"):
            raise InputError(f"{self.path}: its header says {kind}={said[:MOST_DIGITS]}, expected 32 or 64; write it "
                             "again")
        bits = int(said)
        dtype = np.dtype(f"{'>' if 'MSB' in arch else '<'}{'i' if kind == 'label' else 'f'}{bits // 8}")
        stop = start + count * dtype.itemsize
        if len(self.content) < stop:
            there = (len(self.content) - start) // dtype.itemsize
            raise InputError(f"{self.path} is truncated: it announces {count} numbers for its {what}, and {there} are "
                             "there; copy or write it again")
        if self.content[stop:stop + 1] != b")":
            raise InputError(f"{self.path}: its list of {what} does not end after {count} numbers of {bits} bits; the "
                             f"header's arch is {arch or 'missing'}: put the right one there, such as "
                             "LSB;label=64;scalar=64")
        self.at = stop + 1
        numbers = np.frombuffer(self.content, dtype, count, start)
        return numbers.astype(np.float64 if kind == "scalar" else dtype.newbyteorder("="))

    @staticmethod
    def _wrong_face(inside):
        """Return a text on the first face that has another number of points than it announces; ``inside``: the bytes of
        the list of faces."""
        for face, text in enumerate(inside.split(b")")[:-1]):
            before, _, points = text.rpartition(b"(")
            announced, there = b"".join(before.split()[-1:]), len(points.split())
            if announced != b"%d" % there:
                said = announced[:MOST_DIGITS].decode("ascii", "replace") or "no number of"
                return f"face {face} announces {said} points and has {there}"
        return "its faces cannot be told apart"
