"""``swell reproduce lu-bddc``: what it measures here, on small matrices, and that altered numbers contradict it."""
from __future__ import annotations

import copy
import json
import re
import shlex

import pytest

from swell.cli import main, parser
from swell.core.registry import resolve
from swell.papers import bddc_cube, dense_lu, lu_bddc, paper
from swell.papers.evidence import Measured
from swell.papers.run import from_records
from swell.papers.verdict import CONTRADICTED, NOT_TESTED, REPRODUCED

PLAIN, UNBOUNDED = "icm(x=8, form=plain, section=16)", "icm(x=8, form=plain, section=16, pivot_upper=inf)"
SMALL = {
    "dense here": "dense-lu --generated random border bordered --sizes 90 --repeat 1 --decomposers getrf cm "
                  "'cm(pivoting=conditional)' 'pcm(x=8)' 'pcm(x=8, pivoting=conditional)' 'icm(x=8)' --solvers ss trsm "
                  "getrs 'is(x=8)' --tolerances 0,1e-5,1",
    "sections here": "dense-lu --generated random border bordered --sizes 90 --types float64 --repeat 1 --solvers trsm "
                     f"--decomposers '{PLAIN}' '{UNBOUNDED}' --changes 1e-2,1e-4",
    "cube here": "bddc --elements 3,5 --repeat 1 --decomposers getrf 'pcm(x=8)' 'icm(x=8)' 'icm(x=8, tolerance=1)'"}


@pytest.fixture(scope="module")
def evidence(tmp_path_factory):
    """Small measurements, without the benchmarks' reports, beside the stored records."""
    found = from_records("lu-bddc").evidence
    for name, call in SMALL.items():
        out = tmp_path_factory.mktemp("records") / "r.jsonl"
        assert main(["bench", *shlex.split(call), "--out", str(out)]) == 0
        found |= {name: Measured([json.loads(line) for line in out.read_text("utf-8").splitlines()], call)}
    return found


def verdicts(evidence):
    return {conclusion.text: line for conclusion, line in paper.judge(lu_bddc.THE_PAPER, evidence).conclusions}


def changed(evidence, part, change):
    """Evidence whose records of one part went through ``change(record)``."""
    records = copy.deepcopy(evidence[part].records)
    for r in records:
        change(r)
    return evidence | {part: Measured(records, evidence[part].source)}


def test_what_is_measured_here_is_judged(evidence):
    found = verdicts(evidence)
    for words, verdict in (("2 s + p", REPRODUCED), ("on the diagonal", REPRODUCED), ("tolerance of zero", REPRODUCED),
                           ("Conditional pivoting", REPRODUCED), ("may have NaN", CONTRADICTED),
                           ("invalid results", CONTRADICTED), ("equal iterations", REPRODUCED),
                           ("grow with ICM's tolerance", REPRODUCED), ("last time step", REPRODUCED)):
        lines = [line for text, line in found.items() if words in text]
        assert [line.verdict for line in lines] == [verdict], (words, lines)
    rows = {line.what: line for line in bddc_cube.local_matrices(evidence)}
    assert rows["H/h = 5: rows of the largest local matrix"].ours == "178"       # as in the thesis


def test_a_library_that_loses_its_lead_reproduces():
    """MAGMA must be the faster one on the least matrix, and the slower one on the largest."""
    def verdict(*pairs):
        records = [{"n": n, "ms": {"cuSOLVER": a, "MAGMA": b}} for n, (a, b) in enumerate(pairs)]
        return lu_bddc.magma_on_large({"libraries": Measured(records, "")}).verdict
    assert verdict((2, 1), (9, 9), (1, 2)) == REPRODUCED
    assert verdict((1, 2), (1, 2)) == verdict((2, 1), (2, 1)) == CONTRADICTED
    assert verdict() == NOT_TESTED


def more_in_one_section(r):
    if r["benchmark"] == "dense-lu decomposition" and r["matrix"].startswith("random"):
        r["iterations"][1][1] += 2


def more_before_the_border(r):
    if r["benchmark"] == "dense-lu decomposition" and r["matrix"].startswith("border90"):
        r["iterations"][0][0] += 1


def worse_without_tolerance(r):
    if r.get("tolerance") == 0:
        r["backward_error"] *= 1e20


def better_conditional(r):
    if "conditional" in r.get("decomposer", ""):
        r["backward_error"] *= 1e-20


def better_estimates(r):
    if "from_estimate" in r:
        r["from_estimate"] //= 2


def slow_sequential(r):
    if r.get("solver") == "SS()":
        r["seconds"] *= 1e3


def one_more_iteration(r):
    if r["decomposer"].startswith("PCM"):
        r["iterations"] += 1


def no_more_iterations(r):
    r["iterations"] = 7


@pytest.mark.parametrize("part, change, words", [
    ("sections here", more_in_one_section, "2 s + p"), ("sections here", more_before_the_border, "on the diagonal"),
    ("sections here", better_estimates, "last time step"),
    ("dense here", worse_without_tolerance, "tolerance of zero"),
    ("dense here", better_conditional, "Conditional pivoting"), ("dense here", slow_sequential, "sequential solver"),
    ("cube here", one_more_iteration, "equal iterations"), ("cube here", no_more_iterations, "grow with ICM's")])
def test_altered_numbers_contradict(evidence, part, change, words):
    altered = verdicts(changed(evidence, part, change))
    assert [line.verdict for text, line in altered.items() if words in text] == [CONTRADICTED]


def test_a_failure_and_a_nan_are_results_that_the_thesis_has(evidence):
    """What its ICM and IS gave, and swell's do not: the judges would say so."""
    def not_finite(r):
        if "inf" in r.get("decomposer", "") and r["matrix"].startswith("random"):
            r["backward_error"] = float("inf")

    def failed(r):
        if r.get("solver", "").startswith("IS(") and r["matrix"].startswith("random"):
            r["failure"] = "its solution overflows"
    assert dense_lu.not_finite(changed(evidence, "sections here", not_finite)).ours == "1"
    line = dense_lu.invalid(changed(evidence, "dense here", failed))
    assert line.verdict == REPRODUCED and line.ours == "2"                       # in two types


def test_figures_of_stored_records_stand_at_their_items(evidence, monkeypatch):
    monkeypatch.setattr("swell.display.figure.png", lambda figure: b"")
    html = paper.html(paper.judge(lu_bddc.THE_PAPER, evidence), {"device": "cpu", "date": "today"})
    pieces = re.split("<h2>(.*?)</h2>", html)
    of_title = dict(zip(pieces[1::2], pieces[2::2]))
    for item in lu_bddc.THE_PAPER.items:
        captions = re.findall("<figcaption>(.*?)</figcaption>", of_title.pop(item.title.replace("'", "&#x27;")))
        assert bool(captions) == bool(item.figure), item.title
        assert all(item.figure in caption and "NVIDIA H200" in caption for caption in captions)
    assert list(of_title) == ["Where the numbers come from", "Conclusions"] and "<td>random; bordered</td>" in html


def test_figures_of_what_this_run_measures_are_in_the_benchmarks_reports(evidence):
    here = {name: Measured(m.records, m.source, "<p>its own report</p>") for name, m in evidence.items()}
    assert not list(lu_bddc.draw(here))


def test_parts_are_calls_that_the_command_line_takes():
    for call in {call for part in lu_bddc.PARTS for call in (part.full, part.small) if call}:
        arguments = parser().parse_args(["bench", *shlex.split(call)])
        for kind, names in (("decomposer", arguments.decomposers), ("dense_solver", getattr(arguments, "solvers", ()))):
            assert all(resolve(kind, name) for name in names)
