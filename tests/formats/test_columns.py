"""Products with several right-hand sides read the matrix once, and give every column the bits of its own product."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import DTYPES, space_or_skip
from tests.support.products import build, random_matrix, vector

from swell.core.library import _native, native_kernels
from swell.core.sharing import Widening
from swell.core.slots import Flag

FORMATS = ["csr", "csr(lanes=8)", "sell", "sell(window=64,height=32)", "ell(max_fill=1000)", "staircase_sell",
           "modified_sell(height=32)", "bsr(block=1)", "bsr(block=3, pad=True)", "bsr(block=8, pad=True)",
           "block_sell(block=3, pad=True)"]
CASES = [(dtype, k) for dtype in DTYPES for k in ([2, 3, 8, 33] if dtype == "float64" else [3, 33])]
ROWS = 205                                       # no multiple of a block of threads, of a slice, or of 3 or 8


class Both:
    """A matrix for one vector and the same for k, and random columns.

    ``stopped``: columns whose loop has stopped. ``matrix``: in SciPy; a random one by default."""

    def __init__(self, format, dtype, k, space, stopped=(), matrix=None):
        self.A = build(random_matrix(ROWS, 0.05, dtype) if matrix is None else matrix, format, space)
        self.space, self.many, self.k, self.stopped = space, space.for_columns(k), k, stopped
        self.wide = Widening(self.many)(self.A)
        self.dots = np.result_type(dtype, np.float64)
        if space.name == "cpu":
            self.many.flags = np.zeros((k, len(Flag)), np.int64)
            self.many.flags[list(stopped), Flag.STOP] = 1
        else:
            with self.many.active():
                self.many.host_context["flags"][list(stopped), Flag.STOP] = 1
                self.many.send_context()

    def columns(self, seed):
        rows = self.A.shape[0]
        made = self.many.buffer(rows, self.A.dtype)
        made.array[...] = self.space.from_host(np.stack([vector(rows, self.A.dtype, 100 * seed + j)
                                                         for j in range(self.k)]))
        return made

    def compare(self, call):
        """``call(A, x, y, z, w, dots)`` for every column alone, and for all together; return the latter's launches."""
        x, y, z, w = (self.columns(seed) for seed in range(4))
        expected = []
        with self.space.active():
            for j in range(self.k):
                alone = [self.space.from_host(self.space.to_host(v.array[j])) for v in (x, y, z, w)]
                dots = self.space.xp.full(2, 7, self.dots)
                if j not in self.stopped:
                    call(self.A, *alone, dots)
                expected.append((self.space.to_host(alone[1]), self.space.to_host(dots)))
        with self.many.active():
            dots = self.many.buffer(2, self.dots)
            dots.fill(7)
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
        return 0 if self.space.name == "cpu" else self.many.launches


PRODUCTS = {                                     # of every format
    "alone": lambda A, x, y, z, w, dots: A.apply(x, y),
    "alpha and beta": lambda A, x, y, z, w, dots: A.apply(x, y, -0.5, 2),
    "dots": lambda A, x, y, z, w, dots: A.apply_dots(x, y, w, dots),
    "dots with x": lambda A, x, y, z, w, dots: A.apply_dots(x, y, x, dots),
}
SUMS = {                                         # of formats that add vectors in the same pass
    "plus": lambda A, x, y, z, w, dots: A.apply_plus(x, z, y),
    "sum": lambda A, x, y, z, w, dots: A.apply_sum(x, -1, z, 0.5, w, 2, y),
    "sum in place": lambda A, x, y, z, w, dots: A.apply_sum(x, 2, y, 1, w, 0, y),
}


def calls(A):
    return [*PRODUCTS.values(), *(SUMS.values() if A.name in ("csr", "sell") else ())]


@pytest.mark.parametrize("dtype, k", CASES)
@pytest.mark.parametrize("format", FORMATS)
def test_every_column_has_the_bits_of_its_own_product(format, dtype, k, space):
    both = Both(format, dtype, k, space)
    for call in calls(both.A):
        both.compare(call)


@pytest.mark.parametrize("k, stopped", [(2, [0]), (3, [0, 1]), (8, [0, 3, 7]), (33, [*range(8), 20, 32])])
@pytest.mark.parametrize("format", FORMATS)
def test_a_column_that_has_stopped_is_not_written(format, k, stopped, space):
    both = Both(format, "float64", k, space, stopped)
    for call in calls(both.A):
        both.compare(call)


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_written_once_all_have_stopped(format, space):
    both = Both(format, "float64", 3, space, [0, 1, 2])
    for call in calls(both.A):
        both.compare(call)


@pytest.mark.parametrize("reach, size", [(0, 33), (1, 33), (20_000, 6), (40_000, 2), (100_000, 1), (1e9, 1)])
def test_a_cpu_takes_as_many_columns_as_its_cache_holds(reach, size):
    assert _native.kernel("swell.formats.csr.group_size")(33, reach, 8) == size


@pytest.mark.parametrize("rows", [50_000, 70_000])
@pytest.mark.parametrize("format", ["csr", "sell"])
def test_columns_far_apart_on_a_cpu(format, rows):
    """Where the cache holds two columns of x only, or one, the bits are the same."""
    ends = sp.coo_array((np.ones(2 * rows), (np.arange(rows).repeat(2), np.tile([0, rows - 1], rows))), (rows, rows))
    both = Both(format, "float64", 5, space_or_skip("cpu"), matrix=(ends + 3 * sp.eye_array(rows)).tocsr())
    for call in calls(both.A):
        both.compare(call)


@pytest.mark.gpu
@pytest.mark.parametrize("format", FORMATS)
def test_one_launch_a_product(format):
    """It has a twin, whose blocks treat up to eight columns."""
    space = space_or_skip("cuda")
    for k in (2, 8, 33):
        both = Both(format, "float64", k, space)
        assert both.compare(PRODUCTS["alone"]) == 1
        assert both.compare(PRODUCTS["dots"]) == 2       # and one that collects the blocks' sums
        assert both.wide._kernels.product._twin and both.wide._kernels.product_dots._twin


@pytest.mark.parametrize("format", ["csr", "bsr"])
def test_a_matrix_without_rows_reads_nothing(format):
    """What lies behind its pointers would be an address far away."""
    indptr, empty, none = np.array([0, 1 << 30], np.int32)[:1], np.empty((2, 0)), np.empty(0, np.int32)
    product = native_kernels("swell.formats", format).product_columns
    product(np.arange(2), indptr, none, np.empty(0), empty, empty, 1, 1.0, 0.0)
