"""PyAMG's own tests of its Krylov methods, with swell's functions in place of PyAMG's.

pytest collects the tests of PyAMG's module, compiled anew with `swell.guests.pyamg`. `EXCEPTIONS` lists what differs on
purpose; docs/PDE_CODES.md says the same.
"""
from __future__ import annotations

import pytest
from tests.support.theirs import compiled, expect_failures, require

pytest.importorskip("pyamg", reason="needs PyAMG: pip install 'swell[guests]'")
from swell.guests import pyamg as ours  # noqa: E402

OURS = ("bicgstab", "cg", "gmres", "fgmres")
THEIRS = "pyamg.krylov.tests.test_krylov"
EXCEPTIONS = {"test_stoppingcriteria": "swell has one criterion, ‖b − A x‖ ≤ tol ‖b‖, and refuses the others"}
require(THEIRS)
globals().update(compiled(THEIRS, "pyamg.krylov", {name: getattr(ours, name) for name in OURS}, __name__))


@pytest.fixture(autouse=True)
def expected(request):
    """Mark the documented exceptions as failures that must occur."""
    expect_failures(request, EXCEPTIONS)
