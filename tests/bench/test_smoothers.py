"""The smoothers' benchmark, on small stand-ins."""
import json

import numpy as np
import pytest
import scipy.sparse as sp

from swell import gallery
from swell.bench import smoothers
from swell.cli import main


def test_smoothers(tmp_path, capsys):
    out, report, file = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "own.npz"
    sp.save_npz(file, sp.csr_matrix(gallery.jumping_diffusion((9, 9, 9))))
    assert main(["bench", "smoothers", "--scale", "0.001", "--matrices", "ecology2~", "--files", str(file),
                 "--outer-iterations", "40", "--cpu-iterations", "30", "--out", str(out), "--report", str(report)]) == 0
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [r["matrix"] for r in found[::len(smoothers.ALGORITHMS)]] == ["ecology2~", "own"]
    assert [r["algorithm"] for r in found] == 2 * list(smoothers.ALGORITHMS)
    for r in found:
        assert r["iterations"] == 30 and len(r["times"]) == len(r["squared_residuals"]) == 4
        assert (np.diff(r["times"]) > 0).all() and r["seconds"] == r["times"][-1]
        b = smoothers.right_hand_side(sp.csr_matrix((r["n"], r["n"])))
        assert r["squared_residuals"][0] == pytest.approx(b @ b)              # x is zero
        assert r["squared_residuals"][-1] < r["squared_residuals"][0]
    natural, both = (r["squared_residuals"] for r in found[:2])
    assert natural != both and "Fwd. Gauss–Seidel" in capsys.readouterr().out
    assert report.read_text("utf-8").count("data:image/png") == 4


def test_residuals_are_those_of_the_iterations_they_are_named_by():
    """Those of Gauss–Seidel, by SciPy's triangular solve."""
    from swell.core.devices import make_space
    A = smoothers.ordered(sp.csr_matrix(gallery.p1_laplacian(400)))
    _, norms2 = smoothers.smoothing(make_space("cpu"), A, smoothers.ALGORITHMS[smoothers.NATURAL], 20, 10)
    L, x, b = sp.tril(A).tocsr(), np.zeros(400), smoothers.right_hand_side(A)
    for k in range(20):
        x += sp.linalg.spsolve_triangular(L, b - A @ x)
        if k % 10 == 9:
            assert norms2[(k + 1) // 10] == pytest.approx(np.sum((b - A @ x) ** 2), rel=1e-10)


@pytest.mark.parametrize("slow, shown", [
    ([0, 0, 0, 0, 0, 0], True),                            # a quiet machine
    ([0, 9, 0, 0, 0, 0], True),                            # one run with few residuals was held up
    ([0, 9, 0, 9, 0, 9], False),                           # all of them: residuals would have taken less than nothing
    ([3, 0, 0, 3, 0, 0], False)])                          # now these, now those
def test_times_within_noise_are_blank_and_none_is_negative(slow, shown, monkeypatch):
    """200 iterations of 1 ms and residuals of 2 ms, on a machine that holds some runs up by so many seconds."""
    slow = iter(slow)
    monkeypatch.setattr(smoothers, "prepared", lambda space, A, algorithm, count, every: lambda: (
        [1e-3 * count + 2e-3 * count / every + next(slow)], []))
    residual, iteration = smoothers.apart(None, None, None, 200, 1.0)
    if shown:
        assert residual == pytest.approx(2e-3) and iteration == pytest.approx(1e-3)
    else:
        assert np.isnan(residual) and iteration > 0
    r = {"matrix": "A", "algorithm": smoothers.NATURAL, "device": "cpu", "n": 1, "iterations": 200, "seconds": 1.0,
         "squared_residuals": [1.0], "residual_seconds": residual, "iteration_seconds": iteration}
    row = smoothers.table([r])[2][0]
    assert (row[6] == "40.0") == shown and (row[6] == "") == (not shown) and row[9] == "1.0"


def test_iterations_are_tens(tmp_path, capsys):
    assert main(["bench", "smoothers", "--outer-iterations", "15"]) != 0
    assert "multiple of 10" in capsys.readouterr().err


def test_what_diverges_is_said_and_not_timed_for_more_than_it_did(tmp_path, capsys):
    file, out = tmp_path / "own.npz", tmp_path / "r.jsonl"
    sp.save_npz(file, sp.csr_matrix(np.kron(np.eye(400), 0.1 * np.eye(3) + 0.9)))   # D⁻¹A: 0.1 and 2.8
    assert main(["bench", "smoothers", "--matrices", "", "--files", str(file), "--outer-iterations", "200", "--out",
                 str(out)]) == 0
    found = {r["algorithm"]: r for r in map(json.loads, out.read_text("utf-8").splitlines())}
    jacobi = found["Jacobi, damped by 2/3"]                                    # |1 − 2/3 · 2.8| < 1
    assert jacobi["iterations"] == 200
    block = found["Block Jacobi (sync)"]                                       # 1.8 to the power of 100 in each
    assert block["residual_seconds"] is None and block["iterations"] < 200
    assert all(r["iterations"] == 10 * (len(r["times"]) - 1) for r in found.values())
    diverged = [r for r in found.values() if r["iterations"] < 200]
    assert capsys.readouterr().out.count("diverges") == len(diverged)
