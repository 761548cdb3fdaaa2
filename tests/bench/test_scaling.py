"""swell bench scaling: the model on made-up data, what is wrong said before ranks start, and a small run on ranks."""
from __future__ import annotations

import csv
import importlib.util
import json
import pathlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from swell import InputError, SwellError, gallery
from swell.bench.scaling import model, start
from swell.bench.scaling.model import CASES, Links, Local, Share
from swell.bench.scaling.prediction import Prediction, held_out
from swell.cli import main
from swell.core.errors import MissingDependency
from swell.distributed.launcher import launched
from swell.distributed.partition import consecutive, owners

LINKS = Links(latency=2e-6, bandwidth=8e9, step=3e-6, gather=1e9)
pytestmark = pytest.mark.skipif(launched() > 1, reason="this starts ranks, and runs on one")


# -- the model, on made-up data ----------------------------------------------------------------------------------


def test_links_are_found_again():
    messages = [(size, LINKS.latency + size / LINKS.bandwidth) for size in (8, 800, 80_000, 8_000_000)]
    reductions = [(p, k, LINKS.step * model.steps(p) + 8 * k * (p - 1) / LINKS.gather)
                  for p in (2, 4) for k in (1, 16, 64)]
    found = model.fit_links(messages, reductions)
    for name in ("latency", "bandwidth", "step", "gather"):
        assert getattr(found, name) == pytest.approx(getattr(LINKS, name), rel=1e-6)


def test_noise_moves_a_fit_no_more_than_itself():
    rng = np.random.default_rng(5)
    messages = [(size, (LINKS.latency + size / LINKS.bandwidth) * (1 + 0.1 * rng.standard_normal()))
                for size in 8 * 4 ** np.arange(10) for _ in range(5)]
    found = model.fit_links(messages, [(2, 1, 1e-6), (2, 64, 2e-6)])
    assert found.latency == pytest.approx(LINKS.latency, rel=0.1)
    assert found.bandwidth == pytest.approx(LINKS.bandwidth, rel=0.1)


def test_no_parameter_is_negative():
    """Long messages that took less time than short ones: infinitely fast, rather than faster than that."""
    found = model.fit_links([(8, 2e-6), (8_000_000, 1e-6)], [(2, 1, 2e-6), (2, 64, 1e-6)])
    assert found.latency > 0 and found.bandwidth == np.inf and found.gather == np.inf


def test_numbers_of_reductions_are_no_faster_than_messages():
    found = model.fit_links([(8, 2e-6), (8_000_000, 1e-3)], [(2, 1, 2e-6), (2, 64, 2e-6)])
    assert found.gather == found.bandwidth < np.inf and 1.5e-6 < found.step < 2e-6


def test_an_iteration_by_hand():
    """CG on 1000 rows of 7 entries with a halo of 200 of 2 neighbours, on 8 ranks."""
    share, local = Share(1000, 7000, 200, 2), Local(overhead=1e-5, speed=1e9)
    moved = 12 * 7000 + 20 * 1000 + 20 * 200 + 64 * 1000
    alone = 1e-5 + moved / 1e9
    exchange, sums = 2 * 2e-6 + 1600 / 8e9, 2 * (3 * 3e-6 + 8 * 3 * 7 / 1e9)
    case = CASES["cg"]
    assert share.bytes(case) == moved
    assert model.seconds(case, local, LINKS, share, 8) == pytest.approx(alone + exchange + sums)
    assert model.seconds(case, local, LINKS, share, 8, hidden=True) == pytest.approx(alone + sums)
    assert model.seconds(case, local, LINKS, share, 1) == pytest.approx(alone)      # nobody to talk to


def test_overhead_and_speed_are_found_again():
    case, local = CASES["gmres(restart=30)"], Local(overhead=5e-5, speed=3e9)
    shares = Share(500, 3000, 0, 0), Share(10**6, 7 * 10**6, 0, 0)
    points = [(1, share, local.seconds(case, share)) for share in shares]
    found = model.fit_local(case, points, None)
    assert (found.overhead, found.speed) == pytest.approx((local.overhead, local.speed))


def test_deviation_is_the_same_both_ways():
    assert model.deviation([2, 0.5], [1, 1]) == pytest.approx(1)
    assert model.deviation([3, 7], [3, 7]) == 0


@pytest.mark.parametrize("block", [1, 3])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_shares_are_those_of_distributed_matrices(ranks, block):
    from swell import distributed
    A = sp.csr_array(gallery.poisson3d(6) + sp.random_array((216, 216), density=0.01, rng=np.random.default_rng(2)))

    def mine(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, block=block)
        return (M.own.shape[0], int(M.row_lengths().sum()), M.halo.ghosts.size, np.count_nonzero(M.halo.incoming))

    most = np.max(distributed.run(ranks, mine), axis=0)
    owner = owners(consecutive(216, ranks, block), np.arange(216))
    counted = model.count_shares(A.indptr, A.indices, owner, ranks, block)
    assert counted == Share(*most)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_the_share_of_a_slab_is_that_of_the_matrix(ranks):
    A = gallery.poisson((4 * ranks, 4, 4))
    owner = owners(consecutive(A.shape[0], ranks), np.arange(A.shape[0]))
    assert model.share_of_slab(4, ranks) == model.count_shares(A.indptr, A.indices, owner, ranks)


@pytest.mark.parametrize("ranks, planes", [(1, 3), (2, 5), (3, 3), (4, 6)])
def test_each_rank_makes_its_slab_of_the_cube(ranks, planes):
    from swell import distributed
    from swell.bench.scaling.ranks import slab
    A, x = gallery.poisson((planes, 3, 3)), np.random.default_rng(4).random(9 * planes)

    def product(communicator):
        M = slab(communicator, 3, "cpu", planes)
        y = np.empty(M.own.shape[0])
        M.apply(x[M.rows], y)
        return M.gather(y), M.nnz

    for y, entries in distributed.run(ranks, product):
        assert np.allclose(y, A @ x, rtol=1e-14) and entries == A.nnz


def test_restarts_keep_their_length_when_iterations_are_timed(monkeypatch):
    """GMRES lengthens slow cycles, and then an iteration is no longer one of GMRES(30)."""
    import swell
    from swell import distributed
    from swell.bench.scaling import ranks
    from swell.core.registry import resolve
    methods, prepare = [], swell.prepare
    monkeypatch.setattr(swell, "prepare", lambda A, **more: methods.append(more["method"]) or prepare(A, **more))

    def timed(communicator):
        settings = {"repeat": 1, "solve-repeat": 1, "block": None}
        return ranks.System("A", "strong", ranks.slab(communicator, 16, "cpu"), settings).iteration("gmres(restart=30)")

    distributed.run(1, timed)
    method = resolve("method", methods[0])
    assert method.restart == 30 and not method.lengthen


def test_blocks_of_one_row_are_points():
    """BSR with blocks of 1 is CSR without its kernels."""
    from swell import distributed
    from swell.bench.scaling import ranks

    whole = gallery.coupled_transport((3, 3, 3), 2)

    def described(communicator, block):
        A = distributed.scatter(communicator, whole if communicator.rank == 0 else None, block=block)
        return ranks.System("A", "strong", A, {"block": block}).A.describe()

    assert all("bsr, block 2" in text for text in distributed.run(2, described, 2))
    assert not any("bsr" in text for text in distributed.run(2, described, 1))


@pytest.mark.gpu
def test_preconditioning_steps_on_gpus_run_in_a_graph(monkeypatch):
    """Launched by the host, sweeps are bound by launches, which a solve does not wait for."""
    from tests.support.across import gpus, on_gpus

    from swell import distributed
    from swell.bench.scaling import ranks
    from swell.core import timing
    whole = gallery.poisson3d(6)
    replayed, times = [], timing.times
    monkeypatch.setattr(timing, "times", lambda *arguments: replayed.append(True) or times(*arguments))

    def solved(communicator):
        A = distributed.scatter(communicator, whole if communicator.rank == 0 else None, device="cuda")
        return ranks.System("A", "strong", A, {"block": None}).solve(
            "ILU(0), 2 sweeps", "ilu0(solve='sweeps(count=2, guard=off)')")

    for r in on_gpus(gpus(), solved):
        assert r["reason"] == "CONVERGED" and 0 < r["least"] <= r["mean"] <= r["largest"]
    assert replayed


def made_up(ranks, local, copy):
    """What a run would record, were the model right, of one matrix with CG."""
    size = 10**6
    for p in ranks:
        yield {"benchmark": "scaling links", "ranks": p, "copy_bytes_per_second": copy[p],
               "messages": [(s, LINKS.latency + s / LINKS.bandwidth) for s in (8, 8000, 8_000_000)] if p > 1 else [],
               "reductions": [(k, LINKS.step * model.steps(p) + 8 * k * (p - 1) / LINKS.gather) for k in (1, 64)]
               if p > 1 else []}
        for scaling, rows in (("overhead", 500 * p), ("strong", size)):
            share = Share(rows // p, 7 * rows // p, 1000 * (p > 1), min(p - 1, 2))
            at = Local(local.overhead, local.speed * copy[p] / copy[1])
            yield {"benchmark": "scaling iteration", "scaling": scaling, "matrix": scaling, "method": "cg", "ranks": p,
                   "n": rows, "seconds": model.seconds(CASES["cg"], at, LINKS, share, p),
                   **{f"share_{name}": getattr(share, name) for name in ("rows", "entries", "ghosts", "neighbours")}}
    for p in (8, 64):
        yield {"benchmark": "scaling shares", "matrix": "strong", "ranks": 1, "of_ranks": p, "share_rows": size // p,
               "share_entries": 7 * size // p, "share_ghosts": 1000, "share_neighbours": 2}


def test_a_prediction_of_what_follows_the_model():
    """Memory that is slower where two ranks use it is taken into account; what was not fitted to is met."""
    records = list(made_up((1, 2, 4), Local(2e-5, 5e9), {1: 6e9, 2: 5e9, 4: 4e9}))
    prediction = Prediction(records, threads=1, cores=4)
    found = prediction.records()
    assert [r["ranks"] for r in found] == [1, 2, 4, 8, 64] and not prediction.crowded
    seen = held_out(found)
    assert [r["ranks"] for r in seen] == [2, 4]
    assert model.deviation([r["seconds"] for r in seen], [r["measured"] for r in seen]) < 1e-6
    assert found[-1]["efficiency"] == pytest.approx(found[0]["seconds"] / (64 * found[-1]["seconds"]))
    parts = found[-1]["local"] + found[-1]["overhead"] + found[-1]["exchange"] + found[-1]["reductions"]
    assert parts == pytest.approx(found[-1]["seconds"]) and found[-1]["hidden"] < found[-1]["seconds"]


def test_memory_is_not_faster_where_more_ranks_use_it():
    """A copy that was disturbed on one rank must not make efficiencies of more than 1."""
    records = list(made_up((1, 2), Local(2e-5, 5e9), {1: 5e9, 2: 5e9}))
    for r in records:
        if r["benchmark"] == "scaling links" and r["ranks"] == 2:
            r["copy_bytes_per_second"] = 9e9
    assert max(r["efficiency"] for r in Prediction(records, threads=1, cores=2).records()) <= 1


def test_ranks_that_share_cores_are_not_fitted_to():
    records = list(made_up((1, 2, 4), Local(2e-5, 5e9), {1: 6e9, 2: 5e9, 4: 4e9}))
    for r in records:
        if r["benchmark"] == "scaling links" and r["ranks"] == 4:
            r["messages"], r["reductions"] = [(8, 1.0), (8000, 1.0)], [(4, 1, 1.0), (4, 64, 1.0)]
    assert Prediction(records, threads=1, cores=2).links.latency == pytest.approx(LINKS.latency)
    assert Prediction(records, threads=1, cores=1).crowded


# -- what is wrong is said before any rank starts ----------------------------------------------------------------


@pytest.fixture
def here(monkeypatch):
    """mpi4py and an mpiexec, as far as anybody asks before the ranks start."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(start.shutil, "which", lambda name, path=None: "/nowhere/mpiexec")


@pytest.mark.parametrize("option, value, words", [
    ("--ranks", "0", "--ranks 0: expected positive whole numbers"), ("--ranks", "1,two", "positive whole numbers"),
    ("--ranks", "", "positive whole numbers"), ("--sweeps", "-1", "positive whole numbers"),
    ("--matrices", "thermal3~", "did you mean 'thermal2~'"), ("--unknowns", "0", "positive number"),
    ("--threads", "0", "positive number"), ("--files", "nowhere.mtx", "nowhere.mtx does not exist"),
    ("--csv", "r.txt", "expected .csv"), ("--ranks", "1", "/nowhere/mpiexec could not be started")])
def test_bad_arguments(here, option, value, words, capsys):
    assert main(["bench", "scaling", "--matrices", "", f"{option}={value}"]) == 2
    assert words in capsys.readouterr().err


def test_what_is_missing(monkeypatch, capsys):
    monkeypatch.setattr(start.shutil, "which", lambda name, path=None: None)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    with pytest.raises(MissingDependency, match="there is no mpiexec .*pip install"):
        start.mpiexec("scaling")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["bench", "scaling"]) == 2
    assert "needs mpi4py" in capsys.readouterr().err


def test_mpiexec_beside_python_comes_first(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    monkeypatch.setattr(start.shutil, "which", lambda name, path=None: "/there/mpiexec" if not path else path + "/x")
    assert start.mpiexec("scaling") == str(pathlib.Path(sys.executable).parent) + "/x"


def test_it_is_not_started_by_mpiexec_itself(monkeypatch):
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(InputError, match="start it without"):
        start.mpiexec("scaling")


def program(tmp_path, text):
    """Something in mpiexec's place."""
    path = tmp_path / "mpiexec"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{text}")
    path.chmod(0o755)
    return str(path)


def test_what_ranks_print(tmp_path, capsys):
    """Records come through, other lines go to stderr, an error that the ranks agree on is raised."""
    said = "print('a library greets'); print(json.dumps({'a': 1, 'threads': os.environ['SWELL_NUM_THREADS']}))\n"
    assert list(start.records(program(tmp_path, said), 2, 3, {}, "module")) == [{"a": 1, "threads": "3"}]
    assert "a library greets" in capsys.readouterr().err
    fails = said + "print(json.dumps({'error': 'too few rows'})); sys.exit(2)"
    with pytest.raises(InputError, match=r"too few rows \(on 2 ranks\)"):
        list(start.records(program(tmp_path, fails), 2, 3, {}, "module"))
    with pytest.raises(SwellError, match="ended with status 7"):
        list(start.records(program(tmp_path, said + "sys.exit(7)"), 1, 1, {}, "module"))


# -- ranks -------------------------------------------------------------------------------------------------------


def test_a_run(mpi, tmp_path, capsys):
    out, report, table, file = (tmp_path / name for name in ("r.jsonl", "r.html", "r.csv", "own.npz"))
    sp.save_npz(file, sp.csr_matrix(gallery.convection_diffusion((8, 8, 8))))
    assert main(["bench", "scaling", "--ranks", "2,1", "--unknowns", "512", "--matrices", "ecology2~", "--scale",
                 "0.001", "--files", str(file), "--repeat", "2", "--sweeps", "2", "--threads", "1", "--out", str(out),
                 "--report", str(report), "--csv", str(table)]) == 0
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    of = {kind: [r for r in found if r["benchmark"] == f"scaling {kind}"]
          for kind in ("links", "product", "iteration", "solve", "shares", "prediction")}
    assert [r["ranks"] for r in of["links"]] == [1, 2] and not of["links"][0]["messages"]
    assert all(seconds > 0 for _, seconds in of["links"][1]["messages"] + of["links"][1]["reductions"])
    cases = [(s, m, p) for p in (1, 2) for s, m in (("weak", "Poisson 3D"), ("strong", "ecology2~"), ("strong", "own"))]
    assert [(r["scaling"], r["matrix"], r["ranks"]) for r in of["product"]] == cases
    assert [r["n"] for r in of["product"] if r["scaling"] == "weak"] == [512, 1024]
    for r in of["product"]:
        assert 0 < r["least"] <= r["seconds"] and r["load_balance"] >= 1
        total = sum(r[stage] for stage in ("pack", "exchange", "local", "rest"))
        assert r["share_of_communication"] == pytest.approx((r["pack"] + r["exchange"]) / total)
        assert (r["share_ghosts"] > 0) == (r["ranks"] > 1)
    methods = {(r["matrix"], r["method"]) for r in of["iteration"]}
    assert ("ecology2~", "cg") in methods and ("own", "cg") not in methods and ("own", "gmres(restart=30)") in methods
    for r in of["iteration"]:
        assert r["reductions"] == pytest.approx(CASES[r["method"]].reductions, rel=0.1)
    for r in of["solve"]:
        assert 0 < r["least"] <= r["mean"] <= r["largest"] and r["reason"] == "CONVERGED" and r["residual"] <= 1e-5
        assert r["load_balance"] == pytest.approx(r["largest"] / r["mean"])
    assert {r["of_ranks"] for r in of["shares"] if r["matrix"] == "own"} == {8, 16, 32, 64, 128, 256, 512}  # rows: 512
    assert {r["ranks"] for r in of["prediction"] if r["scaling"] == "weak"} == {1, 2, *model.PREDICTED}
    assert all(r["versions"] and r["command"] and r["threads"] == 1 for r in found if r not in of["prediction"])
    shown = capsys.readouterr().out
    assert "Figure 10" in shown and "Tables 2 to 4" in shown and "not fitted to: off by" in shown
    assert report.read_text("utf-8").count("data:image/png") == 9
    with table.open(encoding="utf-8") as stream:
        assert len(list(csv.DictReader(stream))) == len(found)


def test_blocks_across_ranks(mpi, tmp_path, capsys):
    """Blocks that are not full, on three ranks, whose even shares of the rows would cut them."""
    out, file = tmp_path / "r.jsonl", tmp_path / "own.npz"
    sp.save_npz(file, sp.csr_array(sp.kron(gallery.poisson2d(7), np.eye(3)) + sp.diags_array(np.ones(146), offsets=1)))
    assert main(["bench", "scaling", "--ranks", "3", "--unknowns", "64", "--matrices", "", "--files", str(file),
                 "--block", "3", "--repeat", "1", "--sweeps", "2", "--threads", "1", "--out", str(out)]) == 0
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert {(r["scaling"], r["block"]) for r in found if "block" in r} == {("weak", 1), ("strong", 3), ("overhead", 1)}
    product, = (r for r in found if r["benchmark"] == "scaling product" and r["scaling"] == "strong")
    assert "bsr, block 3" in product["format"] and product["share_rows"] == 51 and product["share_ghosts"] % 3 == 0
    assert {r["preconditioner"] for r in found if r["benchmark"] == "scaling solve" and r["scaling"] == "strong"} == {
        "block ILU(0), exact", "block ILU(0), 2 sweeps"}
    assert "block ILU(0), exact" in capsys.readouterr().out


@pytest.mark.parametrize("block, ranks, words", [("5", "1", "blocks of 5 rows do not divide the 12 rows of A"),
                                                 ("0", "1", "--block 0: expected a positive number"),
                                                 ("3", "1,5", "4 block rows of 3 cannot be shared by 5 ranks")])
def test_blocks_that_cannot_be(here, block, ranks, words, tmp_path, capsys):
    sp.save_npz(tmp_path / "twelve.npz", sp.eye_array(12, format="csr"))
    assert main(["bench", "scaling", "--ranks", ranks, "--matrices", "", "--block", block, "--files",
                 str(tmp_path / "twelve.npz")]) == 2
    assert words in capsys.readouterr().err


def test_more_ranks_than_rows(here, tmp_path, capsys):
    sp.save_npz(tmp_path / "two.npz", sp.eye_array(2, format="csr"))
    assert main(["bench", "scaling", "--ranks", "1,3", "--files", str(tmp_path / "two.npz")]) == 2
    assert "2 rows cannot be shared by 3 ranks: start at most 2" in capsys.readouterr().err


def test_what_the_ranks_agree_on_is_the_error_of_the_command(mpi, tmp_path, capsys):
    """A file that is good at its head only: all ranks end, and it is said once."""
    (tmp_path / "cut.mtx").write_text("%%MatrixMarket matrix coordinate real general\n4 4 4\n1 1 1.0\n2 2 1.0\n")
    assert main(["bench", "scaling", "--ranks", "2", "--matrices", "", "--unknowns", "64", "--no-solves", "--repeat",
                 "1", "--files", str(tmp_path / "cut.mtx")]) == 2
    shown = capsys.readouterr().err
    assert shown.count("swell: ") == 1 and "2 entries" in shown and "(on 2 ranks)" in shown
