"""Other libraries' own tests, compiled anew with swell's functions in place of theirs."""
from __future__ import annotations

import importlib.util
import pathlib
import re

import pytest


def require(module):
    """Skip the test module that calls this if ``module``, a library's test module, was not installed."""
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"{module} is not installed", allow_module_level=True)


def compiled(module, package, functions, name, changed=lambda source: source):
    """Return the names of ``module``, a library's test module, as a dictionary.

    ``functions``: swell's functions by the names that they replace in ``package``. ``name``: the module's new name.
    ``changed(source)`` edits its text first.
    """
    path = pathlib.Path(importlib.util.find_spec(module).origin)
    names = {"__name__": name}
    with pytest.MonkeyPatch.context() as patch:
        for own, function in functions.items():
            patch.setattr(importlib.import_module(package), own, function)
        exec(compile(changed(path.read_text()), str(path), "exec"), names)
    return {name: value for name, value in names.items() if not name.startswith("__")}


def expect_failures(request, exceptions):
    """Mark the test of ``request`` as a failure that must occur, if ``exceptions``, {pattern: reason}, names it."""
    for pattern, reason in exceptions.items():
        if re.fullmatch(pattern, request.node.name):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
