"""swell bench bddc, on small cubes."""
import csv
import json

import pytest

from swell.cli import main
from swell.core.errors import FactorisationError
from swell.dense import ICM


def test_cubes(tmp_path, capsys):
    out, report, table = tmp_path / "r.jsonl", tmp_path / "r.html", tmp_path / "r.csv"
    assert main(["bench", "bddc", "--subdomains", "2,3", "--elements", "2,3,4", "--repeat", "2", "--random-rhs",
                 "--out", str(out), "--report", str(report), "--csv", str(table), "--decomposers", "getrf", "gem"]) == 0
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(r["subdomains"], r["elements"], r["decomposer"]) for r in found] == [
        (s, m, d) for s in (2, 3) for m in (2, 3, 4) for d in ("Getrf()", "GEM()")]
    for r, other in zip(found[::2], found[1::2], strict=True):
        assert r["reason"] == "converged" and r["iterations"] == other["iterations"] and r["rhs"] == "random"
        assert abs(r["least"] - 1) < 1e-3 and r["largest"] == pytest.approx(other["largest"], rel=1e-9)
        assert r["setup"] > r["schur"] > 0 and r["loading"] > 0 and r["krylov"] > 0 and r["bytes"] > 0
        assert r["speedup"] == 1 and other["speedup"] == pytest.approx(r["setup"] / other["setup"])
    assert found[-1]["coarse_unknowns"] == 98 and found[-1]["coarse"] > found[-1]["threshold"] == 0
    assert found[-1]["local_problems"] == 27 and found[-1]["local_rows"] == [44, 124]
    shown = capsys.readouterr().out
    assert "Growth with H/h" in shown and "(1 + log H/h)" in shown
    page = report.read_text("utf-8")
    for words in ("figure 3.23a", "figure 3.23b", "figure 3.22b", "figures 3.20 and 3.22a", "figure 3.24",
                  "a subdomain in the middle (figure 3.19)"):
        assert words in page, words
    assert page.count("data:image/png") == 5 + 3                 # patterns: 2³ subdomains have corners only
    with table.open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(found)


def test_speedups_are_relative_to_getrf_on_the_same_problem():
    """And a problem without getrf has none."""
    from swell.bench.bddc import figures, key_of, speedups
    found = [{"problem": "poisson", "ratio": None, "subdomains": 4, "levels": 2, "elements": m, "reason": "converged",
              "decomposer": name, "setup": setup, "krylov": 1.0, "iterations": 9}
             for m, name, setup in ((4, "Getrf()", 2.0), (4, "ICM()", 4.0), (8, "ICM()", 1.0), (8, "PCM()", 1.0))]
    speedup = speedups(found, lambda r: r["setup"])
    assert {key[2]: value for key, value in speedup.items()} == {"Getrf()": 1.0, "ICM()": 0.5}
    assert all(key_of(r) not in speedup for r in found[2:])
    drawn = dict(figures(found))
    assert len(drawn) == 5 and len(dict(figures(found[2:]))) == 3
    lines = next(f for caption, f in drawn.items() if "3.23a" in caption).axes[0].lines
    assert len({(line.get_marker(), line.get_markersize()) for line in lines}) == len(lines) == 3   # equal counts show


def test_other_settings(tmp_path):
    out = tmp_path / "r.jsonl"
    assert main(["bench", "bddc", "--subdomains", "3", "--elements", "4", "--repeat", "1", "--out", str(out), "--interior",
                 "ic0", "--adaptive", "5", "--coefficient", "channels", "--decomposers", "getrf"]) == 0
    found = json.loads(out.read_text("utf-8"))
    assert (found["interior_by"], found["threshold"], found["reason"]) == ("ic0", 5, "converged") and found["adaptive"] > 0
    assert found["coarse_unknowns"] == 98 + 18                   # there are channels across faces


def test_elasticity(tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    assert main(["bench", "bddc", "--problem", "elasticity2d", "--subdomains", "2", "--elements", "2,4,6", "--repeat", "1",
                 "--out", str(out), "--ratio", "0,0.4999", "--pressure", "patches", "--averages", "basis",
                 "--decomposers", "getrf", "--random-rhs", "--coefficient", "checkerboard"]) == 0
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [(r["elements"], r["ratio"]) for r in found] == [(m, ratio) for m in (2, 4, 6) for ratio in (0, 0.4999)]
    assert all(r["reason"] == "converged" and abs(r["least"] - 1) < 1e-3 and r["largest"] < 2 for r in found)
    shown = capsys.readouterr().out
    assert "2² x 6², ν = 0 " in shown and "2² x 6², ν = 0.4999" in shown and "Growth with H/h" in shown


@pytest.fixture
def failing_icm(monkeypatch):
    """No cube is known that ICM cannot decompose in the end."""
    def decompose(self, work):
        raise FactorisationError("ICM: the pivot of column 0 is zero: take pivoting='full'")
    monkeypatch.setattr(ICM, "decompose", decompose)


def test_a_decomposer_that_fails_is_a_record(failing_icm, tmp_path, capsys):
    out = tmp_path / "r.jsonl"
    assert main(["bench", "bddc", "--subdomains", "2", "--elements", "3", "--repeat", "1", "--out", str(out),
                 "--decomposers", "getrf", "icm(x=8)"]) == 0
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert "failure" not in found[0] and "the pivot of column 0" in found[1]["failure"]
    shown = capsys.readouterr().out
    assert "Left out" in shown and "take pivoting='full'" in shown       # all of the reason


def test_where_nothing_was_measured(failing_icm, capsys):
    assert main(["bench", "bddc", "--subdomains", "2", "--elements", "2", "--repeat", "1", "--decomposers",
                 "icm(x=8)"]) == 1


@pytest.mark.parametrize("option, value, words", [
    ("--elements", "1", "at least 2"), ("--subdomains", "four", "whole numbers"),
    ("--levels", "3", "last level would have one"), ("--decomposers", "lu", "unknown decomposer"),
    ("--constraints", "x", "letters"), ("--ratio", "0.3", "--problem elasticity"), ("--csv", "/nowhere/x.csv", "no folder")])
def test_bad_arguments(option, value, words, capsys):
    arguments = ["bench", "bddc", "--subdomains", "2", "--elements", "2", "--repeat", "1", "--decomposers", "getrf"]
    assert main([*arguments, option, value]) == 2
    assert words in capsys.readouterr().err


def test_bad_ratios(capsys):
    arguments = ["bench", "bddc", "--problem", "elasticity", "--subdomains", "2", "--elements", "2", "--ratio"]
    assert main([*arguments, "a half"]) == 2 and "numbers below 0.5" in capsys.readouterr().err
    assert main([*arguments, "0.5"]) == 2 and "between -1 and 0.5" in capsys.readouterr().err
