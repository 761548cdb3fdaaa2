"""The errors that swell raises on purpose.

Each message says what came, what was expected and what to do. Anything that is not a `SwellError` is a bug of swell.
"""


class SwellError(Exception):
    """Base of every error that swell raises on purpose."""


class InputError(SwellError, ValueError):
    """An argument or a file is not what it must be."""


class MissingDependency(SwellError):
    """An optional package or a GPU is missing; the message carries the line that installs it."""


class OutOfMemory(SwellError, MemoryError):
    """The problem does not fit in the memory of the machine or of the device."""
