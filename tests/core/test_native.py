"""The native library: how Python calls a kernel, its threads, and the bits of its sums."""
from __future__ import annotations

import math
import multiprocessing
import pickle
import threading

import numpy as np
import pytest

from swell.core import library
from swell.core.library import _native
from swell.core.slots import Flag, Limit, Norms

TYPES = (np.float32, np.float64, np.complex64, np.complex128)
axpy, dot, norm = (_native.kernel(f"swell.core.vector.{name}") for name in ("axpy", "dot", "norm"))


def numbers(n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(n)
    return (made + 1j * rng.standard_normal(n) if np.dtype(dtype).kind == "c" else made).astype(dtype)


@pytest.fixture
def threads():
    """set_threads; all threads again after the test."""
    yield _native.set_threads
    _native.set_threads(0)


# -- calls -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_the_types_of_arrays_choose_the_overload(dtype):
    x, y = numbers(37, dtype), numbers(37, dtype, 1)
    expected = (np.dtype(dtype).type(0.5) * x + y).astype(dtype)
    assert axpy(np.dtype(dtype).type(0.5), x, y) is None
    np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("alpha", [2, 2.0, True, np.float32(2), np.int32(2), np.uint8(2), np.bool_(True)])
def test_numbers_of_python_and_numpy(alpha):
    y = np.zeros(3)
    axpy(alpha, np.ones(3), y)
    assert (y == float(alpha)).all()


@pytest.mark.parametrize("alpha", [2j, np.complex64(2j), np.complex128(2j), np.float32(2), 2])
def test_complex_numbers(alpha):
    y = np.zeros(3, complex)
    axpy(alpha, np.ones(3, complex), y)
    assert (y == alpha).all()


def test_results():
    stepping = _native.kernel("swell.preconditioners.ic_rows.factor")
    assert stepping.__self__.name == "swell.preconditioners.ic_rows.factor" and not stepping.__self__.takes_state
    assert _native.kernel("swell.krylov.cg.residual").__self__.takes_state


def test_a_block_method_takes_the_records_of_all_right_hand_sides():
    judge = _native.kernel("swell.krylov.block_gmres.judge_cycles")
    flags, limits, histories = np.zeros((2, len(Flag)), np.int64), np.zeros((2, len(Limit))), np.zeros((2, 4))
    norms = np.ones((2, len(Norms)))
    assert judge.__self__.takes_state and "(states, float64[,], int64)" in judge.__self__.signatures
    judge((flags, limits, histories), norms, 2)
    assert flags[:, Flag.STOP].all() and (histories[:, 0] == 1).all()
    for wrong in ((flags[0], limits[0], histories[0]), (flags, limits[:1], histories), (flags, limits, histories[:, :2])):
        with pytest.raises(TypeError, match="expected .states"):
            judge(wrong, norms, 2)


@pytest.mark.parametrize("arguments, part", [
    ((1.0, np.ones(3), np.ones(3, np.float32)), "(float, float64[], float32[])"),
    ((1.0, np.ones(3), np.ones(6)[::2]), "float64[] with gaps"),
    ((1.0, np.ones(6)[::2], np.ones(3)), "numpy.ascontiguousarray"),
    ((1.0, np.ones((3, 1)), np.ones(3)), "float64[,]"),
    ((1j, np.ones(3), np.ones(3)), "(complex, "),
    ((1.0, np.ones(3)), "(float, float64[])"),
    ((1.0, [1.0], np.ones(1)), "list"),
    ((None, np.ones(3), np.ones(3)), "NoneType"),
    ((1.0, np.ones(3, ">f8"), np.ones(3)), "array of another type"),
    ((1.0, np.ones(3), np.frombuffer(bytes(24))), "float64[] read-only"),
    ((1.0, np.frombuffer(bytes(25), np.uint8)[1:].view(float), np.ones(3)), "not aligned"),
])
def test_a_call_without_an_overload_says_what_came_and_what_exists(arguments, part):
    with pytest.raises(TypeError) as caught:
        axpy(*arguments)
    message = str(caught.value)
    assert message.startswith("swell.core.vector.axpy(") and part in message
    assert "(float64, float64[], float64[] out)" in message


def test_read_only_arrays_may_be_read():
    y = np.zeros(3)
    axpy(1.0, np.frombuffer(np.ones(3).tobytes()), y)
    assert (y == 1).all()


def test_an_integer_too_large_is_an_error():
    with pytest.raises(OverflowError):
        _native.kernel("swell.core.vector.random")(1 << 70, 0, np.zeros(3))


def test_keywords_are_refused():
    with pytest.raises(TypeError):
        axpy(alpha=1.0)


def test_an_unknown_kernel_names_the_remedy():
    with pytest.raises(LookupError, match="install"):
        _native.kernel("swell.core.vector.nothing")


@pytest.mark.parametrize("name", sorted(_native.names()))
def test_every_kernel_has_distinct_signatures(name):
    signatures = _native.kernel(name).__self__.signatures
    assert signatures and len(set(signatures)) == len(signatures)


@pytest.mark.parametrize("dtype", TYPES)
def test_empty_arrays(dtype):
    empty, out = np.empty(0, dtype), np.full(2, 7, np.result_type(dtype, np.float64))
    axpy(1, empty, empty.copy())
    _native.kernel("swell.core.vector.dots")(empty, empty, out)
    assert (out == 0).all()


def test_a_table_without_rows():
    match = _native.kernel("swell.pde.fvm.elements.match")
    assert match(np.empty((0, 4), np.int64), 3, np.empty(0, np.int64)) == -1         # NumPy's strides are (0, 0)


def test_a_row_of_a_matrix_and_a_part_of_a_vector():
    rows = np.zeros((3, 5))
    axpy(1.0, np.ones(5), rows[1])
    axpy(1.0, np.ones(2), rows[2, 1:3])
    assert rows.sum() == 7


def test_blocks_are_contiguous_arrays_of_three_dimensions():
    apply, blocks = _native.kernel("swell.preconditioners.block_jacobi.apply"), numbers(4 * 3 * 3, float).reshape(4, 3, 3)
    x, out = numbers(9, float, 1), np.empty(9)
    apply(blocks[1:], x, out, 3, 1.0, 0.0)
    np.testing.assert_allclose(out, (blocks[1:] @ x.reshape(3, 3, 1)).reshape(-1), rtol=1e-14)
    apply(blocks[:0], x[:0], out[:0], 3, 1.0, 0.0)
    signature = r"expected \(float64\[,,\], float64\[\], float64\[\] out, int64, float64, float64\)"
    for wrong, part in ((blocks[::2], r"float64\[,,\] with gaps"), (blocks.transpose(0, 2, 1), "with gaps"),
                        (blocks.reshape(4, 9), r"\(float64\[,\],"), (blocks.reshape(-1), r"\(float64\[\],")):
        with pytest.raises(TypeError, match=f"{part}.*{signature}"):
            apply(wrong, x, out, 3, 1.0, 0.0)


def test_a_kernel_is_pickled_by_name():
    again = pickle.loads(pickle.dumps(axpy))
    assert again.__self__ is axpy.__self__


def test_a_library_of_other_sources_is_refused(monkeypatch):
    library.require_current()
    monkeypatch.setattr(_native, "digest", "0" * 16)
    with pytest.raises(ImportError, match=r"built from other sources \(0000000000000000, expected .*pip install"):
        library.require_current()


# -- sums --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [1, 15, 16, 17, 1000, 2048, 100_003])
def test_sums_are_right(dtype, n):
    x, y, out = numbers(n, dtype), numbers(n, dtype, 1), np.zeros(1, np.result_type(dtype, np.float64))
    dot(x, y, out)
    wide = np.conj(x.astype(out.dtype)) * y
    exact = complex(math.fsum(wide.real), math.fsum(wide.imag))
    assert abs(out[0] - exact) <= 1e-15 * abs(wide).sum()
    norm(x, out)
    assert out[0].real == pytest.approx(math.sqrt(math.fsum(abs(x.astype(out.dtype))**2)), rel=1e-15)


def test_rows_past_the_last_pack_are_not_added():
    """A tail's missing values are 0, but inf · 0 is not."""
    y, out = np.zeros(17), np.zeros(2)
    _native.kernel("swell.core.vector.axpy_dots")(np.inf, np.ones(17), y, np.zeros(17), out)
    assert np.isinf(y).all() and np.isnan(out[0]) and np.isinf(out[1])


@pytest.mark.parametrize("dtype", TYPES)
def test_the_number_of_threads_changes_no_bit(dtype, threads):
    n, found = 300_001, []
    x, w = numbers(n, dtype), numbers(n, dtype, 1)
    for count in (1, 2, 3, 0):
        threads(count)
        y, out = numbers(n, dtype, 2), np.zeros(2, np.result_type(dtype, np.float64))
        _native.kernel("swell.core.vector.axpy_dots")(0.25, x, y, w, out)
        found.append((y.tobytes(), out.tobytes()))
    assert len(set(found)) == 1


# -- threads -----------------------------------------------------------------------------------------------------------


def test_set_threads_is_for_this_thread_alone(threads):
    threads(1)
    seen = []
    other = threading.Thread(target=lambda: seen.append(_native.threads()))
    other.start()
    other.join()
    assert _native.threads() == 1 and seen[0] >= 1
    assert threads(0) == 1                       # the last number
    with pytest.raises(ValueError, match="expected 0"):
        threads(-1)


def test_a_limit_is_for_all_threads():
    _native.limit_threads(1)
    try:
        seen = []
        other = threading.Thread(target=lambda: seen.append(_native.threads()))
        other.start()
        other.join()
        assert _native.threads() == seen[0] == 1
    finally:
        _native.limit_threads(0)
    with pytest.raises(ValueError, match="expected 0"):
        _native.limit_threads(-1)


@pytest.mark.skipif(not library.level(), reason="this processor has no levels")
def test_the_level_of_a_library(monkeypatch):
    built = library.level()
    monkeypatch.setenv("SWELL_LEVEL", built)
    assert library.level() == built
    monkeypatch.setenv("SWELL_LEVEL", "v9")
    with pytest.raises(ImportError, match=f"SWELL_LEVEL=v9: expected one of .*{built}"):
        library.level()
    monkeypatch.delenv("SWELL_LEVEL")
    monkeypatch.setattr("swell._native_probe.level", 1)
    with pytest.raises(ImportError, match="this processor needs another than"):
        library.level()


def test_many_threads_of_python_call_at_once():
    n, wrong = 50_000, []

    def work(seed):
        x, out = numbers(n, float, seed), np.zeros(1)
        dot(x, x, out)
        first = out[0]
        for _ in range(50):
            dot(x, x, out)
            wrong.extend([seed] if out[0] != first else [])

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def _in_child(pipe):
    x, out = np.ones(100_000), np.zeros(1)
    for _ in range(20):
        dot(x, x, out)
    pipe.send(out[0])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_a_forked_child_has_its_own_threads():
    x, out = np.ones(100_000), np.zeros(1)
    dot(x, x, out)                               # the parent's threads exist
    fork = multiprocessing.get_context("fork")
    for _ in range(3):
        mine, theirs = fork.Pipe()
        child = fork.Process(target=_in_child, args=(theirs,), daemon=True)
        child.start()
        assert mine.poll(30) and mine.recv() == 100_000
        child.join()
