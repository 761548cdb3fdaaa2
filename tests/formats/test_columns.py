"""Products with several right-hand sides read the matrix once, and give every column the bits of its own product."""
from __future__ import annotations

import numpy as np
import pytest
from tests.conftest import DTYPES, skip_what_others_show
from tests.support.products import build, random_matrix, vector

from swell.core.columns import Columns
from swell.core.sharing import Widening

FORMATS = ["csr", "csr(lanes=8)", "sell", "sell(window=64,height=32)", "ell(max_fill=1000)", "staircase_sell",
           "modified_sell(height=32)", "bsr(block=1)", "bsr(block=3, pad=True)", "bsr(block=8, pad=True)",
           "block_sell(block=3, pad=True)"]
COUNTS = [2, 3, 8, 33]
ROWS = 205                                       # no multiple of a block of threads, of a slice, or of 3 or 8


class Both:
    """A matrix for one vector and the same for k, and random columns; ``single`` and ``together`` call both."""

    def __init__(self, format, dtype, k, space):
        self.A = build(random_matrix(ROWS, 0.05, dtype), format, space)
        self.space, self.many, self.k = space, space.for_columns(k), k
        self.wide = Widening(self.many)(self.A)
        self.dots = np.result_type(dtype, np.float64)

    def columns(self, seed):
        made = self.many.buffer(ROWS, self.A.dtype)
        made.array[...] = self.space.from_host(np.stack([vector(ROWS, self.A.dtype, 100 * seed + j) for j in range(self.k)]))
        return made

    def compare(self, call):
        """``call(A, x, y, z, w, dots)`` on every column alone, and on all together; return the launches of the latter."""
        x, y, z, w = (self.columns(seed) for seed in range(4))
        expected = []
        with self.space.active():
            for j in range(self.k):
                alone = [self.space.from_host(self.space.to_host(v.array[j])) for v in (x, y, z, w)]
                dots = self.space.xp.zeros(2, self.dots)
                call(self.A, *alone, dots)
                expected.append((self.space.to_host(alone[1]), self.space.to_host(dots)))
        with self.many.active():
            dots = self.many.buffer(2, self.dots)
            dots.fill(0)
            before = self.launches
            call(self.wide, x, y, z, w, dots)
            launches = self.launches - before
        found, dots = self.many.to_host(y), self.many.to_host(dots)
        for j, (own, sums) in enumerate(expected):
            assert found[j].tobytes() == own.tobytes(), f"column {j}: {abs(found[j] - own).max()}"
            assert dots[j].tobytes() == sums.tobytes(), f"column {j}: {dots[j]}, alone {sums}"
        return launches

    @property
    def launches(self):
        return getattr(self.many, "launches", 0)


PRODUCTS = {
    "alpha and beta": lambda A, x, y, z, w, dots: A.apply(x, y, -0.5, 2),
    "alone": lambda A, x, y, z, w, dots: A.apply(x, y),
    "plus": lambda A, x, y, z, w, dots: A.apply_plus(x, z, y),
    "dots": lambda A, x, y, z, w, dots: A.apply_dots(x, y, w, dots),
    "dots with x": lambda A, x, y, z, w, dots: A.apply_dots(x, y, x, dots),
    "sum": lambda A, x, y, z, w, dots: A.apply_sum(x, -1, z, 0.5, w, 2, y) if A.name in ("csr", "sell") else None,
    "sum without w": lambda A, x, y, z, w, dots: A.apply_sum(x, 2, y, 1, w, 0, y) if A.name in ("csr", "sell") else None,
}


@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_column_has_the_bits_of_its_own_product(format, dtype, k, space):
    skip_what_others_show(dtype, space.name)
    both = Both(format, dtype, k, space)
    for name, call in PRODUCTS.items():
        both.compare(call)


@pytest.mark.gpu
@pytest.mark.parametrize("format", FORMATS)
def test_one_launch_a_product(format):
    from tests.conftest import space_or_skip
    space = space_or_skip("cuda")
    for k in (2, 8, 33):
        both = Both(format, "float64", k, space)
        assert both.compare(PRODUCTS["alpha and beta"]) == 1
        assert both.compare(PRODUCTS["dots"]) == 2       # and one that collects the blocks' sums
