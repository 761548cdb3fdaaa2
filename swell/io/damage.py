"""Errors of other libraries' readers on damaged files, turned into InputError."""
from contextlib import contextmanager

from swell.core.errors import InputError, MissingDependency, OutOfMemory


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
