"""A plugin for pytest that tests another build of the native library: ``python -m pytest -p tests.sanitized``.

``SWELL_NATIVE`` is the library's path; ``make sanitize`` builds it with sanitizers, in a folder of its own.
"""
from __future__ import annotations

import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_loader

loader = ExtensionFileLoader("swell._native", os.environ["SWELL_NATIVE"])
native = module_from_spec(spec_from_loader("swell._native", loader))
loader.exec_module(native)
sys.modules["swell._native"] = native            # before swell imports its own
