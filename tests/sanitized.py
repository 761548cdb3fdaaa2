"""A plugin for pytest that tests another build of the native library: ``python -m pytest -p tests.sanitized``.

``SWELL_BUILD`` is the folder of the library; ``make sanitize`` builds it with sanitizers, in a folder of its own.
"""
from __future__ import annotations

import os

import swell

swell.__path__.insert(0, os.path.abspath(os.environ["SWELL_BUILD"]))         # before swell imports its own

from swell.core.library import _native  # noqa: E402

assert _native.__file__.startswith(swell.__path__[0]), _native.__file__
