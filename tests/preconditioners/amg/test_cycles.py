"""What a cycle visits, and by what its vectors are balanced."""
from __future__ import annotations

import numpy as np
import pytest

import swell
from swell.preconditioners.amg.smoother import scales


@pytest.mark.parametrize("kind, visits", [("V", [1, 1, 1, 1, 1]), ("W", [1, 2, 4, 8, 8])])
def test_how_often_a_level_is_visited(kind, visits, monkeypatch):
    """A W-cycle visits the three levels below the finest twice; the finest once, or it would be two cycles."""
    A = swell.gallery.poisson2d(80)
    M = swell.prepare(A, method="cg", precond=swell.AMG(cycle=kind, coarsest=4)).M
    counts = [0] * 5
    for k, level in enumerate(M.operator.inner.levels[:5]):
        def down(*arguments, k=k, own=level.down):
            counts[k] += 1
            own(*arguments)
        monkeypatch.setattr(level, "down", down)
    M @ np.ones(A.shape[0])
    assert counts == visits


def test_smoothed_aggregation_balances_by_its_estimate_of_the_spectrum():
    """D = diag(√(ω/(λ d))): without λ, which is near 0.7 for elasticity, a cycle damps less."""
    A = swell.gallery.elasticity2d(24)
    A = A[0] if isinstance(A, tuple) else A
    M = swell.prepare(A, method="cg", precond=swell.SmoothedAggregation(dtype="float64", coarsest=20)).M
    cycle, levels = M.operator.inner, M.hierarchy.levels
    assert len(levels) >= 2
    assert any(abs(level.interpolation.radius - 1) > 0.05 for level in levels)
    for level, scale in zip(levels, cycle.scales):
        radius = level.interpolation.radius
        assert np.allclose(scale, scales(level.A, cycle._omega / radius, "point"), rtol=1e-12)
