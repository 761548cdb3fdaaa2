"""Maxima, counts and sums of a space, by kernels of our own: NumPy's answers, on every device."""
from __future__ import annotations

import numpy as np
import pytest
from tests.support.cases import rng
from tests.support.during import during

import swell
from swell.core import space as spaces
from swell.core.cpu import CpuSpace

SIZES = [1, 31, 1000, 100_000]
INTEGERS = ["int32", "int64", "uint8"]
KINDS = [*INTEGERS, "bool", "float32", "float64"]


def array(n, kind, low=-100, high=100):
    """Random numbers of a type; those of a type without sign are 0 to ``high`` − 1."""
    if kind == "bool":
        return rng().random(n) < 0.1
    if kind.startswith("float"):
        return rng().uniform(low, high, n).astype(kind)
    return rng().integers(max(low, 0) if kind == "uint8" else low, high, n).astype(kind)


def ask(space, call, *arrays):
    """``call`` with arrays of the space, which stay as they are; its answer."""
    with space.active():
        here = [space.from_host(a.copy()) for a in arrays]
        answer = call(*here)
        for a, b in zip(here, arrays, strict=True):
            np.testing.assert_array_equal(space.to_host(a), b)
        return answer if np.isscalar(answer) or isinstance(answer, tuple) else space.to_host(answer)


def same(found, expected, kind=np.int64):
    """Equal in values and in type."""
    assert found.dtype == kind
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_maximum(kind, space):
    for n in [0, *SIZES]:
        with during(n=n):
            x = array(n, kind)
            found = ask(space, space.max_on_host, x)
            assert isinstance(found, float) and found == (x.max() if n else -np.inf)
            if n and kind not in ("bool", "uint8"):              # none is positive
                assert ask(space, space.max_on_host, -abs(x) - 1) == -abs(x).min() - x.dtype.type(1)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("place", [0, 517, 999])
def test_the_maximum_of_what_is_not_finite(place, kind, space):
    for value in (np.nan, np.inf):
        x = array(1000, kind)
        x[place] = value
        assert np.array_equal(ask(space, space.max_on_host, x), value, equal_nan=True)
    assert ask(space, space.max_on_host, np.full(3, -np.inf, kind)) == -np.inf


def test_the_maximum_of_large_integers(space):
    """Below 2⁵³ a float holds them."""
    assert ask(space, space.max_on_host, np.array([-2**60, 2**52 + 1, 3])) == 2**52 + 1
    assert ask(space, space.max_on_host, np.array([-2**40, -2**41])) == -2**40


@pytest.mark.parametrize("kind", ["bool", *INTEGERS])
def test_find_true(kind, space):
    for n in [0, *SIZES]:
        with during(n=n):
            for share in (0, 0.01, 1):
                mask = (rng().random(n) < share).astype(kind)
                where = np.flatnonzero(mask)
                assert ask(space, space.find_true, mask) == (where[0] if where.size else n, where.size)
            for place in {0, n // 2, n - 1} if n else ():
                assert ask(space, space.find_true, (np.arange(n) == place).astype(kind)) == (place, 1)


@pytest.mark.parametrize("kind", INTEGERS)
def test_count(kind, space):
    """Keys that are rare, and keys that are all the same."""
    for n in [0, *SIZES]:
        with during(n=n):
            for high in (1, 7, 200):
                keys = array(n, kind, 0, high)
                same(ask(space, lambda keys: space.count(keys, 200), keys), np.bincount(keys, minlength=200))


def test_count_of_nothing(space):
    same(ask(space, lambda keys: space.count(keys, 0), np.empty(0, np.int32)), [])


@pytest.mark.parametrize("pointers", ["int32", "int64"])
@pytest.mark.parametrize("kind", [*INTEGERS, "bool"])
def test_prefix_sums(kind, pointers, space):
    for n in [0, *SIZES]:
        with during(n=n):
            counts = array(n, kind)
            expected = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))

            def starts(counts):
                out = space.from_host(np.full(n + 1, -7, pointers))
                space.prefix_sums(counts, out)
                return out
            same(ask(space, starts, counts), expected, pointers)
            assert ask(space, space.total, counts) == expected[-1]


@pytest.mark.parametrize("n", [2**14 - 1, 2**14, 2**14 + 1, 2**15 + 17])
def test_prefix_sums_of_few_and_of_many(n, space):
    """Sums by one block and by all of them, several times in a row: the barrier's count goes on."""
    for seed in range(3):
        counts = np.random.default_rng(seed).integers(-5, 100, n)
        expected = np.concatenate(([0], np.cumsum(counts)))

        def starts(counts):
            out = space.from_host(np.full(n + 1, -7))
            space.prefix_sums(counts, out)
            return out
        same(ask(space, starts, counts), expected)


@pytest.mark.parametrize("n", [1000, 20_000])
def test_sums_beyond_32_bits(n, space):
    counts = np.full(n, 2**31 - 1, np.int32)
    assert ask(space, space.total, counts) == n * (2**31 - 1)


@pytest.mark.parametrize("pointers", ["int32", "int64"])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_row_pointers(kind, pointers, space):
    """Rows without entries among them, the last too."""
    for n in [0, *SIZES]:
        with during(n=n):
            rows = np.sort(rng().integers(0, n // 2 + 1, n)).astype(kind)
            count = n // 2 + 5
            expected = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=count))))
            same(ask(space, lambda rows: space.row_pointers(rows, count, pointers), rows), expected, pointers)


@pytest.mark.parametrize("kind", INTEGERS)
def test_group_max(kind, space):
    """The last group may be cut short."""
    for n in [0, *SIZES]:
        with during(n=n):
            keys = array(n, kind)
            for size in (1, 3, 32, 256):
                expected = [keys[first:first + size].max() for first in range(0, n, size)]
                same(ask(space, lambda keys: space.group_max(keys, size), keys), expected, kind)


@pytest.mark.parametrize("each", [1, 32])
@pytest.mark.parametrize("n", SIZES)
def test_multiples_of_prefix_sums(n, each, space):
    counts = array(n, "int32", 0)

    def sums(counts):
        starts = space.empty(n + 1, np.int64)
        space.prefix_sums(counts, starts, each)
        return starts
    same(ask(space, sums, counts), each * np.r_[0, np.cumsum(counts, dtype=np.int64)])


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_positive_numbers_and_copies(kind, space):
    for n in SIZES:
        x = array(n, kind)
        x[::3] = 0
        assert ask(space, space.count_positive, x) == np.count_nonzero(x > 0)
        same(ask(space, space.copied, x), x, x.dtype)
        here = space.from_host(x.copy())
        assert not space.same_memory(space.copied(here), here)


def test_small_requests_do_not_ask_for_the_free_memory(monkeypatch):
    space = CpuSpace()
    monkeypatch.setattr(spaces, "ALWAYS_FREE", 100)
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (0, 10**9))
    space.check_fits(99, "a matrix", "take a smaller one")
    with pytest.raises(swell.OutOfMemory, match="take a smaller one"):
        space.check_fits(100, "a matrix", "take a smaller one")
