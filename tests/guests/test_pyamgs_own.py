"""PyAMG's own tests of its Krylov methods, with swell's functions in place of PyAMG's.

pytest collects the tests of PyAMG's module, compiled anew with `swell.guests.pyamg`. `EXCEPTIONS` lists what differs on
purpose; docs/PDE_CODES.md says the same.
"""
from __future__ import annotations

import importlib.util
import pathlib
import re

import pytest

pytest.importorskip("pyamg", reason="needs PyAMG: pip install 'swell[guests]'")
from swell.guests import pyamg as ours  # noqa: E402

OURS = ("bicgstab", "cg", "gmres", "fgmres")
THEIRS = "pyamg.krylov.tests.test_krylov"
EXCEPTIONS = {"test_stoppingcriteria": "swell has one criterion, ‖b − A x‖ ≤ tol ‖b‖, and refuses the others"}
if importlib.util.find_spec(THEIRS) is None:
    pytest.skip("this PyAMG comes without its tests", allow_module_level=True)


def _compiled():
    """PyAMG's test module as a dictionary of names, with swell's functions under test."""
    path = pathlib.Path(importlib.util.find_spec(THEIRS).origin)
    package = importlib.import_module("pyamg.krylov")
    with pytest.MonkeyPatch.context() as patch:
        for name in OURS:
            patch.setattr(package, name, getattr(ours, name))
        names = {"__name__": __name__}
        exec(compile(path.read_text(), str(path), "exec"), names)
    return names


globals().update({name: value for name, value in _compiled().items() if not name.startswith("__")})


@pytest.fixture(autouse=True)
def expected(request):
    """Mark the documented exceptions as failures that must occur."""
    for pattern, reason in EXCEPTIONS.items():
        if re.fullmatch(pattern, request.node.name):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
