"""The errors that swell raises on purpose.

Each message says what came, what was expected and what to do. Anything that is not a `SwellError` is a bug of swell.
"""


class SwellError(Exception):
    """Base of every error that swell raises on purpose."""


class InputError(SwellError, ValueError):
    """An argument or a file is not what it must be."""


class DoesNotFit(InputError):
    """A matrix is too large for what was chosen; where the advisor chose, it takes its next choice."""


class FactorisationError(SwellError):
    """A factorisation ended without factors; the message says why.

    Attributes
    ----------
    singular : bool
        True if the matrix is to blame, rather than the memory.
    index : int
        Of several matrices, which.
    """

    def __init__(self, message, singular=False, index=0):
        super().__init__(message)
        self.singular, self.index = singular, index


class MissingDependency(SwellError):
    """An optional package or a GPU is missing; the message carries the line that installs it."""


class OutOfMemory(SwellError, MemoryError):
    """The problem does not fit in the memory of the machine or of the device."""
