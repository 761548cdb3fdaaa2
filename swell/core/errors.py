"""The errors that swell raises on purpose.

Each message names the wrong value, the expected one, and the remedy. An error that is not a `SwellError` is a bug.
"""
from __future__ import annotations

from contextlib import contextmanager


class SwellError(Exception):
    """Base of every error that swell raises on purpose."""


class InputError(SwellError, ValueError):
    """An argument or a file is invalid."""


class UnknownOption(InputError, TypeError):
    """No argument has this name; a TypeError, as in Python."""


class DoesNotFit(InputError):
    """A matrix is too large for the chosen method. If the advisor chose it, the advisor chooses again."""


class FactorisationError(SwellError, RuntimeError):
    """A factorisation failed; the message says why. A RuntimeError, as SciPy's.

    Attributes
    ----------
    singular : bool
        True if the cause is the matrix and not the memory.
    index : int
        Index of the matrix that failed, if there are several.
    """

    def __init__(self, message, singular=False, index=0):
        super().__init__(message)
        self.singular, self.index = singular, index


class NotConverged(SwellError, RuntimeError):
    """A solve did not converge, where the caller would see x alone; SciPy's factors raise a RuntimeError, too.

    Attributes
    ----------
    result : Result, Results or BatchResult
        The outcome: the best x, the reason, the true residual and the history.
    """

    def __init__(self, message, result):
        super().__init__(message)
        self.result = result

    def __reduce__(self):
        return NotConverged, (str(self), self.result)


class MissingDependency(SwellError):
    """An optional package or a GPU is missing; the message gives the command that installs it."""


class OutOfMemory(SwellError, MemoryError):
    """The problem does not fit in the memory of the machine or of the device."""


def meant(name, known) -> str:
    """Return "did you mean …? " with the one of ``known`` most similar to ``name``, or an empty text, for a message."""
    import difflib
    near = difflib.get_close_matches(str(name), known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}? " if near else ""


@contextmanager
def naming(part: str):
    """Return a context that puts ``part``, the words for a part of a setup, before the messages of its errors."""
    try:
        yield
    except (InputError, FactorisationError) as error:
        error.args = (f"{part}: {error}", *error.args[1:])
        raise
