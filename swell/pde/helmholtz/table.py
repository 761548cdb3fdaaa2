"""Table: a quantity that depends on the frequency, by values at some frequencies and straight lines between them."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from swell.core.errors import InputError


class Table:
    """Values at ascending frequencies, real or complex; linear between two of them, and undefined outside.

    Parameters
    ----------
    frequencies : sequence of float
        Hz, strictly ascending.
    values : sequence of numbers, of the same length
    name : str
        Its name in messages, such as the file's.

    Examples
    --------
    >>> from swell.pde import helmholtz
    >>> felt = helmholtz.Table([100, 200], [2000 - 3000j, 1500 - 1000j])
    >>> complex(felt.at(150.0))
    (1750-2000j)
    """

    def __init__(self, frequencies, values, name="the table"):
        self.name = name
        try:
            self.frequencies, array = np.array(frequencies, float), np.array(values)
            self.values = array.astype(complex if array.dtype.kind == "c" else float)
        except (TypeError, ValueError):
            raise InputError(f"{name}: expected frequencies in Hz and as many numbers") from None
        if self.frequencies.ndim != 1 or self.frequencies.shape != self.values.shape or not self.frequencies.size:
            raise InputError(f"{name}: {self.frequencies.shape} frequencies and {self.values.shape} values came: "
                             "expected as many values as frequencies, at least one")
        if not (np.isfinite(self.frequencies).all() and np.isfinite(self.values).all()):
            raise InputError(f"{name} has a number that is not finite")
        if self.frequencies[0] < 0 or (np.diff(self.frequencies) <= 0).any():
            at = int(np.argmax(np.diff(self.frequencies, prepend=-1) <= 0))
            raise InputError(f"{name}: frequency {self.frequencies[at]:g} Hz in line {at + 1}: expected ascending "
                             "frequencies, none twice and none negative")

    def at(self, frequency):
        """Return the value at a frequency in Hz.

        Raises
        ------
        InputError
            Outside the table's band: a table is never extrapolated.
        """
        first, last = self.frequencies[[0, -1]]
        if not first * (1 - 1e-12) <= frequency <= last * (1 + 1e-12):
            raise InputError(f"{self.name} goes from {first:g} to {last:g} Hz, and {frequency:g} Hz was asked for: add "
                             "lines to the table, or sweep inside its band")
        return np.interp(frequency, self.frequencies, self.values)

    def __repr__(self):
        return (f"Table({self.name!r}, {self.frequencies.size} frequencies from {self.frequencies[0]:g} to "
                f"{self.frequencies[-1]:g} Hz)")


def read_table(path) -> Table:
    """Read a table from a CSV file: frequency in Hz, real part, and, if there is one, imaginary part in each line.

    A first line of names and lines that begin with # are skipped.

    Raises
    ------
    InputError
        For a file that cannot be read, a line without two or three numbers, or bad frequencies.
    """
    rows = read_rows(path, (2, 3))
    return Table(rows[:, 0], rows[:, 1] if rows.shape[1] == 2 else rows[:, 1] + 1j * rows[:, 2], Path(path).name)


def read_rows(path, widths) -> np.ndarray:
    """Read the numbers of a CSV file as an array; a first line of names and lines that begin with # are skipped.

    ``widths``: the numbers of columns that are possible. Raises InputError for anything else in the file."""
    try:
        lines = Path(path).read_text("utf-8-sig").splitlines()        # spreadsheets begin files with a mark
    except (OSError, UnicodeDecodeError, TypeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    rows, named, expected = [], False, " or ".join(map(str, widths))
    for number, line in enumerate(lines, 1):
        words = line.replace(";", ",").split(",")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        row = [_number(word) for word in words]
        if not rows and not named and set(row) == {None}:             # names of the columns
            named = True
            continue
        if None in row or len(row) not in widths or rows and len(row) != len(rows[0]):
            raise InputError(f"{path}, line {number}: {line.strip()[:60]!r}: expected {expected} numbers with commas "
                             "between them, in every line the same")
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has no line of {expected} numbers")
    return np.array(rows)


def _number(word):
    """Return a word as a float; None if it is no number."""
    try:
        return float(word)
    except ValueError:
        return None
