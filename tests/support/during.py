"""Many cheap cases in one test: an error still says in which of them it came."""
from __future__ import annotations

from contextlib import contextmanager


@contextmanager
def during(**case):
    """Note the case on an error that leaves this block."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"with {', '.join(f'{name}={value!r}' for name, value in case.items())}")
        raise
