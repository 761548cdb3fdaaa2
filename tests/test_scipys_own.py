"""SciPy's own tests of its iterative solvers, with swell's functions in place of SciPy's.

pytest collects the functions of SciPy's test module, compiled anew with `swell.scipy_like`. `EXCEPTIONS` lists what
differs on purpose; docs/PDE_CODES.md says the same.
"""
from __future__ import annotations

import re

import pytest
import scipy
from tests.support.theirs import compiled, expect_failures, require

from swell import scipy_like

OURS = ("bicgstab", "cg", "gmres", "minres", "qmr", "tfqmr")
THEIRS = "scipy.sparse.linalg._isolve.tests.test_iterative"
EXCEPTIONS = {
    r"test_convergence\[sym-nonpd-(bicgstab|qmr|tfqmr)\]": "swell resumes after the breakdown that SciPy ends with",
    r"test_show\[case2[01]\]": "swell's tfqmr converges where SciPy's reaches the limit",
    "test_atol_legacy": "swell's gmres converges where SciPy's cycles of 20 stagnate",
    "test_callback_x_monotonic": "swell's gmres converges where SciPy's cycles of 10 reach the limit",
    "test_callback": "swell preconditions on the right: the callback gets the norm of b − A x, not of M (b − A x)",
    r"test_precond_inverse\[.*\]": "swell's gmres needs 4 products, not 3: one of them computes the true residual",
}
if not scipy.__version__.startswith("1.17."):
    pytest.skip("the exceptions are those of SciPy 1.17's tests", allow_module_level=True)
require(THEIRS)


def changed(source):
    """SciPy's test module with swell's functions and no others under test."""
    source = re.sub(r"@pytest\.mark\.fail_slow\(.*\)\n", "\n", source)           # a marker of SciPy's own
    source, found = re.subn(r"_SOLVERS = \[[^\]]*\]", f"_SOLVERS = [{', '.join(OURS)}]", source)
    assert found == 1, "SciPy's test module has changed: _SOLVERS is not where it was"
    return source


globals().update(compiled(THEIRS, "scipy.sparse.linalg._isolve", {name: getattr(scipy_like, name) for name in OURS},
                          __name__, changed))


@pytest.fixture(autouse=True)
def expected(request):
    """Mark the documented exceptions as failures that must occur."""
    expect_failures(request, EXCEPTIONS)
