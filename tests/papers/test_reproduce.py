"""``swell reproduce``: verdicts follow the numbers; the report stands alone; the page in the docs is its."""
from __future__ import annotations

import json
import math
import re
from functools import partial

import pytest

from swell.cli import main
from swell.cli.reproduce import PAPERS
from swell.papers import evidence as parts
from swell.papers import paper
from swell.papers.evidence import Measured, Part, read
from swell.papers.run import from_records, the_paper
from swell.papers.verdict import CONTRADICTED, NOT_TESTED, REPRODUCED, at_least, at_most, overall, ratio

TIMES = ("mean_seconds", "iteration_seconds", "solve_seconds", "iterations", "seconds", "inner_products", "updates",
         "largest", "setup", "max_difference", "backward_error", "from_estimate")
SELECTIONS = (lambda r: r["device"].startswith("cuda"), lambda r: r["device"].startswith("cpu"),
              lambda r: r["n"] >= 900_000 and r["device"].startswith("cuda"), lambda r: r.get("ranks") == 2,
              lambda r: r.get("batch") in (4, 8), lambda r: str(r.get("matrix")).startswith("random"),
              lambda r: r.get("tolerance") == 0, lambda r: r.get("dtype") == "float32")
NAMES = ("(async)", "IC(0)", "Ruiz scaling", "Jacobi scaling", "Block Gauss", "exact", "sweep", "cuSPARSE", "PETSc",
         "Getrf", "Trsm", "PCM", "ICM(x=8)", "ICM(tolerance=1)", "conditional", "SS(")
COMPUTED = "IA, rows counted from 1", "pairs of a decomposer and a solver that fit"


def lines_of(outcome):
    return [line for _, lines in outcome.items for line in lines] + [line for _, line in outcome.conclusions]


@pytest.mark.parametrize("name", PAPERS)
def test_altered_numbers_contradict(name):
    """Each conclusion that stored records reproduce is contradicted by some multiple of some of their numbers."""
    chosen = the_paper(name)
    reference = from_records(name)
    confirmed = {c.text for c, line in reference.conclusions if line.verdict == REPRODUCED}
    assert confirmed
    for field in TIMES:
        for chosen_records in (*SELECTIONS, *(partial(named, name) for name in NAMES)):
            for factor in (1e3, 1e-3) if confirmed else ():
                outcome = paper.judge(chosen, altered(reference.evidence, field, factor, chosen_records))
                confirmed -= {c.text for c, line in outcome.conclusions if line.verdict == CONTRADICTED}
    assert not confirmed


def test_weak_scaling_is_no_evidence_for_the_block_papers_strong_one():
    chosen, reference = the_paper("block-gmres"), from_records("block-gmres")
    weak = [r | {"scaling": "weak"} | {field: 1e3 * r[field] for field in TIMES if r.get(field) is not None}
            for r in reference.evidence["ranks"].records]
    more = reference.evidence | {"ranks": Measured(reference.evidence["ranks"].records + weak, "")}
    assert [(line.verdict, line.ours) for line in lines_of(paper.judge(chosen, more))] == [
        (line.verdict, line.ours) for line in lines_of(reference)]


def named(name, record):
    return any(name in str(record.get(field)) for field in ("variant", "algorithm", "preconditioner", "decomposer",
                                                            "solver"))


def altered(evidence, field, factor, choose):
    """Evidence with one field, a number or lists of numbers, multiplied in the records that ``choose`` takes."""
    return {name: Measured([r | {field: times(r[field], factor)} if r.get(field) is not None and choose(r) else r
                            for r in m.records], m.source) for name, m in evidence.items()}


def times(value, factor):
    if isinstance(value, list):
        return [times(one, factor) for one in value]
    return value * factor if isinstance(value, int | float) else value


def test_a_verdict_needs_a_number():
    assert at_least("", "", None, 1).verdict == at_most("", "", math.nan, 1).verdict == NOT_TESTED
    assert at_least("", "", 2, 1).verdict == at_most("", "", 1, 2).verdict == REPRODUCED
    assert at_least("", "", 1, 2).verdict == at_most("", "", math.inf, 1).verdict == CONTRADICTED
    assert ratio(1, 0) is ratio(None, 1) is ratio(1, math.nan) is None and ratio(1, 2) == 0.5
    lines = [at_least("", "", value, 1) for value in (None, 2, 0)]
    assert [overall(lines[:k]) for k in (0, 1, 2, 3)] == [NOT_TESTED, NOT_TESTED, REPRODUCED, CONTRADICTED]


@pytest.mark.parametrize("name", PAPERS)
def test_without_records_nothing_is_judged(name):
    chosen = the_paper(name)
    outcome = paper.judge(chosen, {part.name: Measured([], "") for part in chosen.parts})
    assert {line.verdict for line in lines_of(outcome) if line.what not in COMPUTED} == {NOT_TESTED}


def test_a_run_measures_reads_judges_and_writes(monkeypatch, tmp_path, capsys):
    """On one small part; the others are stored."""
    chosen = the_paper("helmholtz")
    small = Part("vectors here", "blas1", "blas1 --dtypes complex128 --scale 0.0001 --repeat 2")
    rest = [Part(p.name, p.full, stored=p.stored or "none.jsonl") for p in chosen.parts[1:]]
    monkeypatch.setattr("swell.papers.helmholtz.THE_PAPER", paper.Paper(
        chosen.name, chosen.title, chosen.caution, (small, *rest), chosen.items, chosen.conclusions))
    report = tmp_path / "r.html"
    assert main(["reproduce", "helmholtz", "--small", "--out", str(report)]) == 0
    shown, text = capsys.readouterr().out, report.read_text("utf-8")
    assert "reproduced" in shown and "not tested" in shown and "of copy" not in shown
    for item, _ in from_records("helmholtz").items:
        assert item.title in text
    assert "h200_blas1.jsonl: cuda:0, NVIDIA H200, 2026-11-2" in text and "this run: swell bench blas1" in text
    assert "none.jsonl is not in" in text and 'class="badge bad"' in text
    assert not re.search(r'(?:src|href)="(?!data:)', text) and "<script" not in text


def test_a_gpu_measures_in_place_of_stored_records_and_once_for_one_call(monkeypatch, tmp_path):
    """The space is the CPU's under another name."""
    calls = []
    monkeypatch.setattr(parts, "measured", lambda command, device: calls.append(command) or Measured([], command))
    monkeypatch.setattr("swell.core.devices.make_space", lambda device: type("Space", (), {"name": device}))
    wanted = Part("a", "full", "small"), Part("b", "full", stored="none.jsonl"), Part("c", "", stored="none.jsonl")
    for device, small, sources in (("cuda", False, ["full", "full", "none"]), ("cuda", True, ["small", "none", "none"]),
                                   ("cpu", False, ["full", "none", "none"])):
        calls.clear()
        found = parts.gather(wanted, device, small, tmp_path)
        assert [m.source.partition(".")[0] for m in found.values()] == sources and len(calls) == 1


def test_bad_input(tmp_path, capsys):
    assert main(["reproduce", "helmholtz", "--records", str(tmp_path / "none")]) == 2
    assert "--records" in capsys.readouterr().err
    assert main(["reproduce", "helmholtz", "--out", "r.txt"]) == 2 and ".html" in capsys.readouterr().err
    assert main(["reproduce", "other"]) == 2
    said = capsys.readouterr().err
    assert all(name in said for name in (*PAPERS, "other"))
    (tmp_path / "r.jsonl").write_text("{")
    with pytest.raises(parts.InputError, match="JSON lines"):
        read(Part("", "", stored="r.jsonl"), tmp_path)


def test_a_commit_is_named_where_the_record_has_it(tmp_path):
    record = {"device": "cuda:0, one", "date": "2026-11-21T10:00:00+00:00"}
    for more, said in (({}, "its commit was not recorded"), ({"commit": "1234abcd"}, "commit 1234abcd")):
        (tmp_path / "r.jsonl").write_text(json.dumps(record | more) + "\n")
        assert read(Part("", "", stored="r.jsonl"), tmp_path).source == f"r.jsonl: cuda:0, one, 2026-11-21, {said}"
    (tmp_path / "s.jsonl").write_text(json.dumps(record | {"device": "cpu, 2 threads", "commit": "1234abcd"}) + "\n")
    assert read(Part("", "", "small", sample="s.jsonl"), tmp_path).source == (
        "s.jsonl: cpu, 2 threads, 2026-11-21, commit 1234abcd")
