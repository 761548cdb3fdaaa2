"""Tuning chooses what a (given) clock says is fastest, within its budget, and what it keeps on disk cannot hurt."""
from __future__ import annotations

import json
import os
import pathlib

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip
from tests.support.products import assert_product

import swell
from swell import InputError, Tuned, gallery
from swell.advisor import store as store_module
from swell.advisor.choose import default_format
from swell.advisor.store import Store
from swell.advisor.tuning import formats_to_try, pattern_class, text_of, tune
from swell.core import timing
from swell.core.registry import resolve
from swell.formats.csr import CSRMatrix


@pytest.fixture
def csr(space):
    with space.active():
        return CSRMatrix.from_scipy(gallery.p1_laplacian(2000), space)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "deep" / "tuning.json"


class Clock:
    """Time that passes only when a product is timed: ``times`` by the described format, ``each``: seconds of each timed format, beside."""

    def __init__(self, times, each=0.0):
        self.times, self.each, self.now, self.measured = times, each, 0.0, []

    def __call__(self):
        return self.now

    def measure(self, space, call, count):
        matrix = call.func.__self__
        self.measured.append(matrix.describe())
        self.now += self.each
        return next((t for name, t in self.times.items() if matrix.describe().startswith(name)), 100e-6)


def tuned(csr, clock, file=None, **settings):
    with csr.space.active():
        return tune(csr, Tuned(**settings), Store(file) if file else None, clock.measure, clock)


def test_the_fastest_is_chosen(csr):
    clock = Clock({"staircase_sell": 40e-6, "csr": 60e-6})
    M = tuned(csr, clock)
    assert M.describe().startswith("staircase_sell") and clock.measured[0].startswith("sell")
    assert "tuned: staircase_sell, 40 µs a product (100 with the default, sell)" in M.origin
    tried = len(formats_to_try(csr, "sell"))
    assert f"best of {tried} formats, {8 * (tried + 2)} products" in M.origin and len(clock.measured) == tried + 2
    assert_product(M, csr.to_scipy(), "float64")
    assert tuned(csr, Clock({"csr": 1e-6})).describe().startswith("csr")


def test_noise_does_not_replace_the_default(csr):
    assert tuned(csr, Clock({"staircase_sell": 98e-6})).describe().startswith("sell")
    assert tuned(csr, Clock({"staircase_sell": 96e-6})).describe().startswith("staircase_sell")


def test_a_burst_of_other_work_does_not_replace_the_default(csr):
    """All of its first products were slow; timed once more beside the best, the default is as fast."""
    clock = Clock({"staircase_sell": 80e-6})
    slow = iter([300e-6])
    plain = clock.measure
    clock.measure = lambda *given: max(plain(*given), next(slow, 0.0))
    clock.times["sell"] = 80e-6
    M = tuned(csr, clock)
    assert M.describe().startswith("sell") and "tuned: sell, 80 µs a product (80 with the default" in M.origin


def test_candidates_are_what_they_say_and_all_products_are_right(csr):
    names = formats_to_try(csr, "sell")
    assert names[0] == "sell" and len(names) == len(set(names)) <= 9
    with csr.space.active():
        built = [resolve("format", name).build(csr) for name in names]
    assert all(text_of(resolve("format", name)) == name for name in names)
    assert len({M.describe() for M in built}) == len(built)      # none is the default by another name
    for M in built:
        assert_product(M, csr.to_scipy(), "float64")


def test_a_row_that_would_be_padding_keeps_sell_away(space):
    A = sp.lil_array((3000, 3000))
    A.setdiag(1.0)
    A[7, :] = 1.0
    with space.active():
        csr = CSRMatrix.from_scipy(sp.csr_array(A), space)
        assert not any(name.startswith("sell") for name in formats_to_try(csr, "csr"))
        assert tuned(csr, Clock({})).describe().startswith("csr")


def test_the_budget_is_kept(csr, file):
    clock = Clock({"csr": 1e-6}, each=1.0)
    M = tuned(csr, clock, file, seconds=1.5)
    assert len(clock.measured) == 2 and "were not tried within Tuned(seconds=1.5), so it is not kept" in M.origin
    assert not file.exists()
    clock = Clock({}, each=10.0)
    assert "sell" in tuned(csr, clock, seconds=1e-9).origin and len(clock.measured) == 1     # the default at least


def test_a_known_class_is_not_measured(csr, file, space):
    first = tuned(csr, Clock({"staircase_sell": 1e-6}), file)
    clock = Clock({"csr": 1e-9})
    again = tuned(csr, clock, file)
    assert not clock.measured and again.describe() == first.describe() and "as kept" in again.origin and not again.notes
    with space.active():
        near = CSRMatrix.from_scipy(gallery.p1_laplacian(2100), space)
        other = CSRMatrix.from_scipy(gallery.poisson3d(12), space)
        single = csr.astype(np.float32)
    assert not tuned(near, clock, file).notes and not clock.measured                         # of the same class
    for different in (other, single):
        tuned(different, clock, file)
        assert clock.measured
        clock.measured.clear()
    assert tuned(csr, clock).describe().startswith("csr")                                    # cache=False measures


def test_the_class_holds_what_matters(csr, monkeypatch):
    key = pattern_class(csr, "sell")
    assert key.startswith(f"{swell.__version__} | ") and "float64" in key and "default sell" in key
    assert ("thread" in key) == (csr.space.name == "cpu")
    monkeypatch.setattr(swell, "__version__", "99")
    assert pattern_class(csr, "sell") != key


def test_another_version_s_choices_are_dropped(csr, file, monkeypatch):
    tuned(csr, Clock({}), file)
    monkeypatch.setattr(swell, "__version__", "99")
    clock = Clock({})
    tuned(csr, clock, file)
    assert clock.measured and [k.split(" | ")[0] for k in json.loads(file.read_text())] == ["99"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 1}', "null", "\x00\xff", '{"a": {"format"', "[" * 100_000])
def test_a_damaged_file_is_said_and_replaced(csr, file, text):
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    M = tuned(csr, Clock({"csr": 1e-6}), file)
    assert M.describe().startswith("csr") and len(M.notes) == 1 and "is damaged" in M.notes[0] and str(file) in M.notes[0]
    assert not tuned(csr, Clock({}), file).notes


@pytest.mark.parametrize("format", ["direct", "sell(", "ell", "sell(height=77)", 7, None, ["sell"]])
def test_an_entry_that_is_no_candidate_is_said_and_measured_anew(csr, file, format):
    tuned(csr, Clock({}), file)
    key, = json.loads(file.read_text())
    file.write_text(json.dumps({key: {"format": format}}))
    M = tuned(csr, Clock({"csr": 1e-6}), file)
    assert M.describe().startswith("csr") and "none of the formats to try" in M.notes[0]
    assert json.loads(file.read_text())[key]["format"].startswith("csr")


def test_a_folder_that_cannot_be_written_is_said(csr, tmp_path):
    (tmp_path / "file").write_text("")
    M = tuned(csr, Clock({"csr": 1e-6}), tmp_path / "file" / "tuning.json")
    assert M.describe().startswith("csr") and any("not kept" in note and "SWELL_CACHE" in note for note in M.notes)


def test_a_write_that_fails_leaves_the_old_file_and_no_other(csr, file, monkeypatch):
    tuned(csr, Clock({}), file)
    before = file.read_text()

    def full(*paths):
        raise OSError(28, "No space left on device")
    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(swell, "__version__", "99")
    M = tuned(csr, Clock({}), file)
    assert "No space left" in M.notes[0] and file.read_text() == before and list(file.parent.iterdir()) == [file]


def test_where_the_file_lies(monkeypatch, tmp_path):
    monkeypatch.setenv("SWELL_CACHE", str(tmp_path / "own"))
    assert Store().path == tmp_path / "own" / "tuning.json"
    monkeypatch.setenv("SWELL_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert Store().path == tmp_path / "xdg" / "swell" / "tuning.json"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")             # which the standard says to ignore
    assert Store().path == pathlib.Path.home() / ".cache" / "swell" / "tuning.json"

    def homeless():
        raise RuntimeError("no home")
    monkeypatch.setattr(store_module.pathlib.Path, "home", homeless)
    lost = Store()
    lost.put("a", {}, "")
    assert lost.get("a") is None and "no home" in lost.complaints[0]


@pytest.mark.parametrize("bad", [{"products": 0}, {"products": 1001}, {"products": 2.5}, {"seconds": 0}, {"seconds": -1},
                                 {"seconds": float("nan")}, {"seconds": float("inf")}, {"seconds": True}, {"cache": 1}])
def test_settings_are_checked(bad):
    with pytest.raises(InputError, match=next(iter(bad))):
        Tuned(**bad)


def test_small_systems_are_not_tuned(space):
    with space.active():
        M = Tuned().build(CSRMatrix.from_scipy(gallery.poisson2d(10), space))
    assert M.describe().startswith("csr") and "not tuned: fewer than 256 rows" in M.origin


def test_too_little_memory_is_said(csr, monkeypatch):
    monkeypatch.setattr(csr.space, "memory", lambda: (1000, 10**9))
    clock = Clock({})
    assert "not tuned" in tuned(csr, clock).origin and not clock.measured


def test_solve_tells_what_was_chosen(device):
    A = gallery.poisson2d(40)
    r = swell.solve(A, np.ones(1600), format="tuned(seconds=5)", device=device, rtol=1e-8)
    assert r.converged and np.linalg.norm(np.ones(1600) - A @ r.x) <= 1e-8 * 40
    assert any("tuned: " in line for line in r.configuration) and r.format in ("csr", "sell", "staircase_sell")
    again = swell.prepare(A, format=Tuned(), method="cg", device=device)
    assert any("as kept for this class" in line for line in again.solve(np.ones(1600)).configuration)
    plain = swell.solve(A, np.ones(1600), device=device)
    assert not any("tuned" in line for line in plain.configuration)                          # never unasked


def test_a_damaged_file_is_a_note_of_the_result(monkeypatch, tmp_path, device):
    monkeypatch.setenv("SWELL_CACHE", str(tmp_path))
    (tmp_path / "tuning.json").write_text("{")
    r = swell.solve(gallery.poisson2d(40), np.ones(1600), method="cg", format="tuned", device=device)
    assert r.converged and any("damaged" in note for note in r.notes)


def test_new_values_after_tuning(device):
    A = gallery.poisson2d(40)
    s = swell.prepare(A, method="cg", scaling="jacobi", format="tuned", device=device)
    b = np.arange(1600.0)
    s.solve(b)
    r = s.update(2 * A).solve(b)
    assert r.converged and np.linalg.norm(b - 2 * A @ r.x) <= 1e-8 * np.linalg.norm(b)


def test_shared_arrays_are_counted_once():
    A = gallery.poisson2d(40)
    alone = swell.solve(A, np.ones(1600), method="cg", format="csr").memory["matrix"]
    assert swell.solve(A, np.ones(1600), method="cg", format="csr(lanes=4)").memory["matrix"] == alone


def test_seconds_are_the_least_of_some(space):
    calls = []
    with space.active():
        x = space.empty(1000, np.float64)

        def call():
            calls.append(1)
            space.assign(1, x)
        found = timing.seconds(space, call, 6)
    assert 0 < found < 0.1 and len(calls) == 7


def test_the_least_time_counts(monkeypatch):
    times = iter([0, 5, 10, 11, 20, 23])                         # three calls: 5, 1 and 3 seconds
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(times))
    assert timing.seconds(space_or_skip("cpu"), lambda: None, 3) == 1


@pytest.mark.parametrize("dtype, name, n, format", [
    ("float64", "poisson3d", 8000, "sell, height 16"), ("float32", "poisson3d", 8000, "sell, height 16"),
    ("complex128", "helmholtz3d", 8000, "sell, height 8"), ("complex128", "helmholtz3d", 90_000, "sell, height 8"),
    ("complex128", "helmholtz2d", 8000, "sell, height 8"), ("complex64", "helmholtz3d", 8000, "sell, height 8"),
    ("complex64", "helmholtz2d", 8000, "sell, height 8")])
def test_the_defaults_of_a_cpu_are_what_was_measured_fastest(dtype, name, n, format):
    A = CSRMatrix.from_scipy(gallery.get(name, n).astype(dtype), space_or_skip("cpu"))
    assert default_format(A).build(A).describe().startswith(format)
