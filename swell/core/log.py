"""The logger "swell": choices, compilations and attempts (INFO), each kernel (DEBUG), and failures (WARNING).

A library prints nothing by itself, so the logger has no output until the program configures one. Two facts concern
every user, and are lines on stderr until then: kernels compile for long, or have no folder (`tell`).
"""
import contextlib
import logging
import sys

LOG = logging.getLogger("swell")
LOG.addHandler(logging.NullHandler())


def tell(level, text):
    """Log ``text``; if no handler of the program takes records of this level, print it on stderr."""
    heard = any(not isinstance(handler, logging.NullHandler) for handler in (*LOG.handlers, *LOG.root.handlers))
    if heard and LOG.isEnabledFor(level):
        LOG.log(level, text)
    else:
        with contextlib.suppress(OSError):       # stderr may be a file on a full disk: a line ends no solve
            print(f"swell: {text}", file=sys.stderr, flush=True)
