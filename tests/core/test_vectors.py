"""The contract of a space's vector operations: NumPy's values, for every type, on every device, in a fixed order."""
from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import DTYPES, space_or_skip
from tests.support.during import during
from tests.support.products import vector

from swell.core.library import _native
from swell.core.space import accumulator

SIZES = [0, 1, 2, 3, 4, 5, 7, 63, 64, 65, 1000, 100_003]
ALPHA = {"f": 0.75, "c": 0.75 - 0.5j}
BETA = {"f": -1.25, "c": -1.25 + 2j}


@pytest.fixture(params=DTYPES)
def kind(request):
    return request.param


def run(space, call, *arrays):
    """``call`` with arrays of the space; them all as NumPy arrays."""
    with space.active():
        here = [space.from_host(a.copy()) for a in arrays]
        call(*here)
        return [space.to_host(a) for a in here]


def scalars(kind, count=3):
    """Poisoned room for sums."""
    return np.full(count, np.nan, accumulator(kind))


def close(found, expected, kind, size=None):
    """Equal to a few roundings of what was added up."""
    scale = abs(expected) if size is None else size
    return (abs(found - expected) <= 8 * np.finfo(kind).eps * scale + 1e-300).all()


def test_elementwise(kind, space):
    for n in SIZES:
        with during(n=n):
            x, y = vector(n, kind, 1), vector(n, kind, 2)
            alpha, beta = np.dtype(kind).type(ALPHA[x.dtype.kind]), np.dtype(kind).type(BETA[x.dtype.kind])
            nothing = np.full(n, np.nan, kind)                   # must be overwritten without having been read
            assert (run(space, lambda out: space.assign(alpha, out), nothing)[0] == alpha).all()
            assert close(run(space, lambda x: space.scale(alpha, x), x)[0], alpha * x, kind)
            size = abs(alpha * x) + abs(beta * y) + abs(y)
            kept, found = run(space, lambda x, y: space.axpy(alpha, x, y), x, y)
            assert (kept == x).all() and close(found, alpha * x + y, kind, size)
            found = run(space, lambda x, y: space.axpby(alpha, x, beta, y), x, y)[1]
            assert close(found, alpha * x + beta * y, kind, size)
            assert close(run(space, lambda x, y: space.axpby(alpha, x, 0, y), x, nothing)[1], alpha * x, kind)
            assert close(run(space, space.multiply, x, y)[1], x * y, kind)


def test_sums(kind, space):
    """In double, whatever the vectors are; the first argument is conjugated; the place after the result is left alone."""
    for n in SIZES:
        with during(n=n):
            x, y, w = (vector(n, kind, seed) for seed in (1, 2, 3))
            exact_x, exact_y = x.astype(accumulator(kind)), y.astype(accumulator(kind))
            dot = run(space, space.dot, x, y, scalars(kind))[2]
            assert dot[0] == pytest.approx(np.vdot(exact_x, exact_y), rel=1e-13, abs=1e-12) and np.isnan(dot[1:]).all()
            norm = run(space, space.norm, x, scalars(kind))[1]
            assert norm[0] == pytest.approx(np.linalg.norm(exact_x), rel=1e-13) and np.isnan(norm[1:]).all()
            alpha = np.dtype(kind).type(ALPHA[x.dtype.kind])
            _, new, _, sums = run(space, lambda x, y, w, out: space.axpy_dots(alpha, x, y, w, out),
                                  x, y, w, scalars(kind))
            assert close(new, alpha * x + y, kind, abs(alpha * x) + abs(y))
            wide = new.astype(accumulator(kind))
            assert sums[0] == pytest.approx(np.vdot(w.astype(accumulator(kind)), wide), rel=1e-13, abs=1e-12)
            assert sums[1] == pytest.approx(np.vdot(wide, wide), rel=1e-13) and np.isnan(sums[2])


def test_what_is_not_finite_is_not_hidden(kind, space):
    x = vector(1000, kind)
    x[997] = np.nan
    assert np.isnan(run(space, space.dot, x, np.ones_like(x), np.zeros(1, accumulator(kind)))[2][0])
    assert np.isnan(run(space, space.norm, x, np.zeros(1, accumulator(kind)))[1][0])
    assert np.isnan(run(space, lambda a, b: space.axpy(0, a, b), x, np.ones_like(x))[1][997])


def test_sums_repeat_to_the_last_bit(dtype, space):
    x, y = vector(300_007, dtype, 1), vector(300_007, dtype, 2)

    def sums():
        found = run(space, space.dot, x, y, scalars(dtype))[2][0], run(space, space.norm, x, scalars(dtype))[1][0]
        return *found, *run(space, lambda a, b, out: space.axpy_dots(2, a, b, a, out), x, y, scalars(dtype))[2][:2]
    assert len({sums() for _ in range(5)}) == 1


def test_sums_do_not_depend_on_the_threads(dtype, all_threads):
    if all_threads < 2:
        pytest.skip("there is one core")
    space, x, y = space_or_skip("cpu"), vector(300_007, dtype, 1), vector(300_007, dtype, 2)
    found = []
    for count in (1, all_threads):
        _native.limit_threads(count)
        sums = scalars(dtype, 4)
        space.dot(x, y, sums)
        space.norm(x, sums[1:])
        space.axpy_dots(-0.5, x, y.copy(), x, sums[2:])
        found.append(tuple(sums))
    assert found[0] == found[1]
