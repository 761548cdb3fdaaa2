"""Every case of ``tests/support/cases.py``: the reason is the right one, and "converged" is never said of what is not."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.cases import REAL, SMALL, Reason, real_matrix, right_hand_side
from tests.support.during import during

import swell

RTOL = 1e-8


def check_truth(A, b, result):
    """Converged if and only if SciPy's residual meets the tolerance; what did not converge says what to do."""
    x = np.asarray(result.x)
    assert x.shape == b.shape
    norm_b = np.linalg.norm(b)
    residual = np.linalg.norm(b - A @ x) / norm_b if norm_b else 0.0
    # At the level of rounding the order of a sum decides on which side of the tolerance a residual lies.
    rounding = np.finfo(result.dtype).eps * np.linalg.norm(abs(A) @ abs(x)) / (norm_b or 1.0)
    close = abs(residual - RTOL) <= rounding
    assert result.converged == (residual <= RTOL) or close or result.reason is Reason.ATTAINABLE_ACCURACY
    assert not result.converged or residual <= RTOL + rounding
    assert result.residual == pytest.approx(residual, rel=1e-3, abs=1e-13 + 4 * rounding)
    if not result.converged:
        assert result.reason is not Reason.RUNNING
        assert result.message in str(result)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_small(case, device):
    A, b = case.system()
    for method, reason in case.ends.items():
        with during(method=method):
            named = {} if method == "auto" else {"method": method, "maxiter": case.limit}
            result = swell.solve(A, b, device=device, **named)
            assert result.reason is reason, str(result)
            check_truth(A, b, result)
            assert result.history.size == result.iterations + 1


@pytest.mark.data
@pytest.mark.parametrize("case, which", [pytest.param(case, which, id=f"{case.name}-{('A·1', 'ones')[which]}")
                                         for case in REAL for which in (0, 1) if case.ends[which]])
def test_real(case, which, data):
    A = real_matrix(data, case.name)
    b = right_hand_side(A, ("A·1", "ones")[which])
    if not b.any():
        b = right_hand_side(A, "A·random")
    result = swell.solve(A, b, rtol=RTOL)
    ends = case.ends[which]
    assert result.reason in (ends if isinstance(ends, tuple) else (ends,)), str(result)
    check_truth(A, b, result)


@pytest.mark.data
@pytest.mark.parametrize("name", ["west0479", "resolve_ACTIVSg200_KKT", "hangGlider_2"])
def test_what_no_iteration_can_do_goes_to_the_direct_solver(name, data):
    A = real_matrix(data, name)
    result = swell.solve(A, np.ones(A.shape[0]))
    assert result.converged and result.method == "direct"
    assert "diagonal entries are zero" in str(result)


@pytest.mark.data
def test_the_result_tells_of_the_other_attempts(data, nothing_outright):
    A = real_matrix(data, "dwg961b")
    result = swell.solve(A, np.ones(A.shape[0]))
    assert result.converged and result.method == "direct"
    assert result.attempts and all(a.reason is not Reason.CONVERGED for a in result.attempts)
    assert str(result).count("also tried: ") == len(result.attempts)
