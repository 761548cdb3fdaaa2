"""swell bench block-gmres: on one device, across ranks, and its baselines."""
from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.across import gpus, on_gpus

from swell import InputError, SwellError, distributed, gallery, io
from swell.bench.block_gmres import across, cases, petsc, rank_figures, ranks
from swell.bench.block_gmres.cases import BATCHES, EXACT, HOST, OnHost, preconditioners
from swell.bench.block_gmres.cusparse import BlockSolves
from swell.bench.block_gmres.device import System
from swell.bench.block_gmres.figures import TOLERANCES, WHOLLY
from swell.cli import main
from swell.core.cpu import CpuSpace
from swell.core.devices import make_space
from swell.core.registry import resolve
from swell.formats.blocks import detect
from swell.formats.csr import CSRMatrix


def records(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_block_gmres(tmp_path, capsys):
    """More sweeps never need more iterations by much, and enough of them are the exact solve."""
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    assert main(["bench", "block-gmres", "--scale", "0.005", "--matrices", "coupled_transport3,atmosmodd~",
                 "--out", str(out), "--report", str(report)]) == 0
    every = records(out)
    found = [r for r in every if r["benchmark"] == "block_gmres" and r["matrix"] == "coupled_transport3"]
    labels = list(preconditioners(3))
    assert [r["preconditioner"] for r in found] == [label for label in labels for _ in TOLERANCES]
    for r in found:
        assert r["block"] == 3 and r["fill"] == 1 and r["reason"] == "CONVERGED"
        assert r["residual"] <= r["rtol"] * (1 + 1e-6)
        assert bool(r["restart_seconds"]) == (r["preconditioner"] != "none")
        assert not r["step"] or min(r["step"].values()) > 0
    tight = {r["preconditioner"]: r["iterations"] for r in found if r["rtol"] == 1e-5}
    assert tight["block ILU(0), 8 sweeps"] <= tight["block ILU(0), 2 sweeps"] <= tight["block ILU(0), 1 sweep"]
    assert tight["block ILU(0), exact"] < 0.7 * tight["none"]
    assert tight["block ILU(0), exact"] == tight["point ILU(0) on the blocks, exact"]
    assert abs(tight["block ILU(0), 8 sweeps"] - tight["block ILU(0), exact"]) <= 1
    assert {r["block"] for r in every if "block" in r} == {1, 3}
    batches = [r for r in every if r["benchmark"] == "block_gmres orthogonalisation"]
    assert [(r["batch"], r["basis"]) for r in batches[:7]] == [*((k, "full") for k in BATCHES), (30, "single")]
    assert all(r["inner_products"] > 0 and r["updates"] > 0 for r in batches)
    shown = capsys.readouterr()
    assert "coupled_transport3, cpu: block ILU(0), 8 sweeps" in shown.err
    assert all(title in shown.out for title in ("Table 1", "Figures 8 and 9", "Tables 2 to 4", "A step of GMRES(30)"))
    assert report.read_text("utf-8").count("data:image/png") == 7


def test_block_gmres_covers_the_papers_block_sizes():
    from swell.cli.bench import MATRICES
    sizes = [detect(CSRMatrix.from_scipy(gallery.get(name, 3000), CpuSpace())) for name in MATRICES["block-gmres"]]
    assert sorted(sizes) == [1, 2, 3, 4, 5]


def test_block_gmres_with_blocks_that_are_not_full(tmp_path, capsys):
    """As the paper has them: dense blocks over a matrix of points. What cannot be factored is left out, and said."""
    out, file = tmp_path / "r.jsonl", tmp_path / "hollow.npz"
    hollow = sp.csr_matrix(sp.kron(sp.identity(27), [[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]))
    hollow.eliminate_zeros()                         # no diagonal, so that point ILU(0) has none
    sp.save_npz(file, hollow)
    arguments = ["bench", "block-gmres", "--matrices", "ecology2~", "--scale", "0.0006", "--files", str(file), "--out",
                 str(out)]
    assert main([*arguments, "--block", "7"]) == 2 and "that divides them, 1, 2" in capsys.readouterr().err
    assert main([*arguments, "--block", "3"]) == 0
    found = [r for r in records(out) if r["benchmark"] == "block_gmres"]
    assert {r["block"] for r in found} == {3} and {r["matrix"] for r in found} == {"ecology2~", "hollow"}
    assert next(r["fill"] for r in found if r["matrix"] == "ecology2~") > 1.5
    assert "hollow: point ILU(0), exact is left out: " in capsys.readouterr().err
    assert {r["preconditioner"] for r in found if r["matrix"] == "hollow"} >= {"none", "block ILU(0), exact"}


def test_what_stands_beside_a_gpu():
    system = System(CpuSpace(), "transport", gallery.coupled_transport((6, 6, 6), 3), 3)
    found = list(system.beside_a_gpu(100))
    assert [(r["preconditioner"], r["rtol"]) for r in found] == [(k, rtol) for k in (HOST, WHOLLY)
                                                                 for rtol in (1e-3, 1e-5)]
    exact = system.solver(system.build(preconditioners(3)[EXACT]), 1e-5).solve(system.b).iterations
    assert found[1]["iterations"] == found[3]["iterations"] == exact and found[0]["restart_seconds"]
    assert [r["reason"] for r in system.beside_a_gpu(1)] == ["MAXITER"] * 2


def test_a_preconditioner_on_the_host_of_another_device():
    A = gallery.convection_diffusion((9, 9))
    M = resolve("precond", "ilu0").build(CSRMatrix.from_scipy(A, CpuSpace()))
    x, plain, other = np.arange(81.0), np.zeros(81), np.full(81, np.nan)
    M.apply(x, plain)
    OnHost(M, CpuSpace()).apply(x, other)
    assert (other == plain).all()
    OnHost(M, CpuSpace()).apply(x, other, 2, -1)
    assert other == pytest.approx(plain)


# -- across ranks ----------------------------------------------------------------------------------------------------


def settings(folder, device, **more):
    """Settings of two systems: blocks that A has, and blocks laid over points, whose last is padded."""
    systems = []
    for name, A, block in (("transport", gallery.coupled_transport((4, 4, 6), 3), 3),
                           ("points/4", cases.padded(gallery.convection_diffusion((5, 5, 5)), 4), 4)):
        path = folder / f"{block}.npz"
        sp.save_npz(path, sp.csr_matrix(A))
        systems.append((name, str(path), block))
    return {"device": device, "scaling": "strong", "partition": "rows", "block": None, "solves": True, "systems": systems, "repeat": 2,
            "solve-repeat": 1, "sweeps": [2, 20], "cusparse": False, "host": True, "maxiter": 300,
            "cpu-iterations": 300, **more}


def of_solves(found):
    return {(r["matrix"], r["preconditioner"]): r for r in found if r["benchmark"] == "block_gmres solve"}


def checked(found, labels, batches=BATCHES):
    """What holds on every device and number of ranks."""
    solves = of_solves(found)
    assert {label for _, label in solves} == labels
    assert len(solves) == len({name for name, _ in solves}) * len(labels)
    for (name, label), r in solves.items():
        assert r["reason"] == "CONVERGED" and r["residual"] <= 1.001e-5
        assert r["block"] == (3 if name == "transport" else 4)
        assert 0 < r["least"] <= r["mean"] <= r["largest"] and r["load_balance"] >= 1
        assert (r["bytes"] > 0) == (label != HOST)
    for name in {name for name, _ in solves}:
        assert solves[name, EXACT]["iterations"] <= solves[name, cases.sweeps(2)]["iterations"]
        assert abs(solves[name, cases.sweeps(20)]["iterations"] - solves[name, EXACT]["iterations"]) <= 1
    kinds = [r["benchmark"].removeprefix("block_gmres ") for r in found if r["matrix"] == "transport"]
    assert kinds[:2] == ["product", "iteration"] and kinds.count("orthogonalisation") == len(batches) + 1
    return solves


@pytest.mark.parametrize("count", [1, 2, 3])
def test_tables_across_ranks(tmp_path, count):
    """All ranks have the same records, and the preconditioner is the one that ``swell.solve`` builds on each rank."""
    import swell
    given = settings(tmp_path, "cpu")
    every = distributed.run(count, lambda communicator: [*ranks.measure(communicator, given)])
    labels = {EXACT, cases.sweeps(2), cases.sweeps(20)}
    solves = [checked(found, labels) for found in every]
    A = gallery.coupled_transport((4, 4, 6), 3)

    def solved(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None, block=3)
        b = M.space.empty(M.own.shape[0], M.dtype)
        M.space.random(cases.SEED, b)
        return swell.solve(M, b, method="gmres", precond="ilu(block=None)", rtol=1e-5).iterations

    assert {one["transport", EXACT]["iterations"] for one in solves} == {*distributed.run(count, solved)}


@pytest.mark.gpu
def test_tables_across_gpus(tmp_path, monkeypatch):
    """The host's exact solves are the GPU's."""
    monkeypatch.setattr(ranks.scaling, "IN_A_SOLVE", 35)
    monkeypatch.setattr(cases, "BATCHES", (30,))
    given = settings(tmp_path, "cuda")
    given["systems"] = given["systems"][:1]
    for found in on_gpus(gpus(), lambda communicator: [*ranks.measure(communicator, given)]):
        solves = checked(found, {EXACT, HOST, cases.sweeps(2), cases.sweeps(20)}, (30,))
        assert solves["transport", HOST]["iterations"] == solves["transport", EXACT]["iterations"]


def test_what_cannot_be_factored_is_left_out_on_all_ranks(tmp_path, capsys):
    given = settings(tmp_path, "cpu")
    swapped = sp.kron([[0, 1], [1, 0]], np.ones((3, 3)) + np.eye(3))             # no entry in a diagonal block
    sp.save_npz(given["systems"][0][1], sp.csr_matrix(sp.block_diag([swapped, sp.eye_array(90)])))
    found = distributed.run(2, lambda communicator: [*ranks.measure(communicator, given)])[0]
    assert {name for name, _ in of_solves(found)} == {"points/4"}
    assert f"transport: {EXACT} is left out: " in capsys.readouterr().err


def made_up(label, count, seconds, reason="CONVERGED"):
    return {"benchmark": "block_gmres solve", "matrix": "A", "preconditioner": label, "ranks": count,
            "seconds": seconds, "largest": seconds, "reason": reason, "load_balance": 1.0}


def test_the_best_sweeps_that_converged_stand_beside_exact_solves():
    found = [made_up(EXACT, 1, 3e-3), made_up(cases.sweeps(1), 1, 1e-3, "MAXITER"), made_up(cases.sweeps(2), 1, 2e-3),
             made_up(cases.sweeps(3), 1, 4e-3)]
    groups, values = rank_figures._by_label(found, "seconds")
    assert groups == ["A: 1"] and values == {EXACT: [3.0], rank_figures.BEST: [2.0]}


def test_steps_are_drawn_without_convergence_and_solves_are_not():
    found = [made_up(EXACT, 1, 3e-3, "MAXITER"), made_up(cases.sweeps(1), 1, 1e-3, "MAXITER")]
    assert rank_figures._by_label(found, "seconds") == (["A: 1"], {})
    assert rank_figures._by_label(found, "largest", solved=False) == (["A: 1"], {EXACT: [3.0]})


def test_what_a_solve_takes_beside_its_iterations():
    iteration = {"benchmark": "block_gmres iteration", "matrix": "A", "ranks": 2, "scaling": "strong", "seconds": 0.01}
    solve = {**made_up(EXACT, 2, 1.0), "iterations": 20, "largest": 31 * 0.03, "scaling": "strong"}
    assert across.besides([iteration], solve) == pytest.approx(1 - 20 * 0.04)
    assert all(np.isnan(across.besides([{**iteration, **other}], solve)) for other in ({"ranks": 1}, {"seconds": None}))
    assert np.isnan(across.besides([iteration], {**solve, "preconditioner": across.PETSC}))


def test_petscs_ranks_have_bars_of_their_own():
    """PETSc may run on more ranks than there are GPUs."""
    found = [made_up(EXACT, 1, 3e-3), made_up(EXACT, 2, 2e-3), made_up("PETSc", 2, 4e-3), made_up("PETSc", 64, 1e-3)]
    assert rank_figures._by_label(found, "seconds") == (
        ["A: 1", "A: 2", "A: 64"], {EXACT: [3.0, 2.0, None], "PETSc": [None, 4.0, 1.0]})
    axes, = rank_figures._balance(found).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["A: 2", "A: 64"]
    assert [bar.get_height() for bar in axes.patches] == [1, 0, 1, 1]


def test_no_solve_that_converged_is_no_figure():
    found = [made_up(EXACT, 1, 3e-3, "MAXITER"), made_up(cases.sweeps(1), 1, 1e-3, "MAXITER")]
    assert rank_figures._over_sweeps(found) is None and rank_figures._whole(found) is None


def test_the_caption_of_figure_12_names_the_lines_that_are_there():
    product = {"benchmark": "block_gmres product", "matrix": "A", "ranks": 1, "seconds": 1e-6,
               "seconds_without_overlap": 1e-6}
    found = [product, {**product, "benchmark": "block_gmres iteration"}, *(
        {**product, "benchmark": "block_gmres orthogonalisation", "basis": "full", "batch": k, "inner_products": 1e-6,
         "updates": 1e-6} for k in BATCHES), made_up(EXACT, 1, 3e-3), made_up(cases.sweeps(2), 1, 2e-3)]
    captions = [caption for caption, _ in rank_figures.drawn(found)]
    assert any(caption.endswith("on 1 rank; dashed: exact solves") for caption in captions)
    captions = [caption for caption, _ in rank_figures.drawn([*found, made_up(cases.BSRSV2, 1, 4e-3)])]
    assert any(caption.endswith("dashed: exact solves; dotted: cuSPARSE's bsrsv2") for caption in captions)


def test_every_matrix_of_figure_12_is_in_the_legend():
    """Also one that exact solves alone have solved; the ticks are all numbers of sweeps."""
    found = [made_up(EXACT, 1, 3e-3), made_up(cases.sweeps(2), 1, 2e-3), made_up(cases.sweeps(5), 1, 1e-3),
             {**made_up(EXACT, 1, 4e-3), "matrix": "B"},
             {**made_up(cases.sweeps(2), 1, 4e-3, "MAXITER"), "matrix": "B"}]
    figure = rank_figures._over_sweeps(found)
    assert {text.get_text() for legend in (*figure.legends, *filter(None, [figure.axes[0].get_legend()]))
            for text in legend.get_texts()} == {"A", "B"}
    assert figure.axes[0].get_xticks().tolist() == [2, 5]


def test_a_system_for_petsc_is_read_back(tmp_path):
    A = sp.csr_matrix(gallery.coupled_transport((3, 3, 3), 3))
    b = np.arange(81.0)
    petsc.write_system(tmp_path / "s.petsc", A, b)
    assert (io.read_matrix(tmp_path / "s.petsc") != A).nnz == 0
    assert (io.read_vector(tmp_path / "s.petsc") == b).all()


def program(tmp_path, body):
    path = tmp_path / "petsc.py"
    path.write_text(f"import sys\n{body}\n", encoding="utf-8")
    return f"{sys.executable} {path} {{ranks}}"


def test_petsc_is_started_as_named(tmp_path):
    command = program(tmp_path, "print('hello'); print('{\"ranks\": ' + sys.argv[1] + ', \"words\": ' "
                                "+ str(len(sys.argv)) + '}')")
    assert petsc.measure(command, 3, "s.petsc", 4, 1e-5, 300) == {"ranks": 3, "words": 10}


def test_what_is_wrong_with_petsc_is_said(tmp_path):
    with pytest.raises(InputError, match="there is no /nowhere/petsc; expected a command such as"):
        petsc.check("/nowhere/petsc -n {ranks}")
    with pytest.raises(InputError, match="it has no {ranks}; expected a command such as"):
        petsc.check(f"{sys.executable} -n 2")
    with pytest.raises(InputError, match="No closing quotation; expected a command such as"):
        petsc.check("mpiexec -n {ranks} './petsc_bjacobi")
    petsc.check(program(tmp_path, ""))
    with pytest.raises(SwellError, match="ended with status 3 and printed no record: broken"):
        petsc.measure(program(tmp_path, "sys.stderr.write('broken'); sys.exit(3)"), 1, "s.petsc", 4, 1e-5, 300)
    with pytest.raises(SwellError, match="ended with status 0 and printed no record"):
        petsc.measure(program(tmp_path, ""), 1, "s.petsc", 4, 1e-5, 300)


@pytest.mark.parametrize("arguments, words", [
    (["--matrices", "atmosmodd~/0"], "expected NAME, NAME:UNKNOWNS"),
    (["--matrices", "atmosmodd~:many"], "expected NAME, NAME:UNKNOWNS"),
    (["--matrices", "nothing/4"], "there is no 'nothing'"),
    (["--matrices", "atmosmodd~/33"], "expected a size up to 32"),
    (["--matrices", "atmosmodd~/64", "--ranks", "1"], "expected a size up to 32"),
    (["--matrices", "coupled_transport3", "--block", "7"], "or NAME/BLOCK in --matrices"),
    (["--ranks", "0"], "expected positive whole numbers"),
    (["--unknowns", "1000"], "--unknowns is for --ranks"),
    (["--ranks", "1", "--unknowns", "1000", "--files", "a.npz"], "--files cannot grow"),
    (["--ranks", "1", "--unknowns", "1000", "--matrices", "atmosmodd~:500"], "each number of ranks has a size of its"),
    (["--petsc", "./petsc_bjacobi"], "--petsc is for --ranks"),
    (["--partition", "graph"], "--partition is for --ranks"),
    (["--ranks", "1,2", "--petsc-ranks", "1,2"], "--petsc-ranks is for --petsc"),
    (["--ranks", "1", "--petsc", "./nothing"], "it has no {ranks}")])
def test_wrong_arguments(arguments, words, capsys):
    assert main(["bench", "block-gmres", "--scale", "0.005", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_petsc_refuses_complex_systems_before_anything_is_measured(mpi, tmp_path, capsys):
    sp.save_npz(tmp_path / "waves.npz", sp.csr_matrix(sp.eye_array(12) * (1 + 1j)))
    assert main(["bench", "block-gmres", "--ranks", "1", "--matrices", "", "--files", str(tmp_path / "waves.npz"),
                 "--block", "2", "--petsc", program(tmp_path, "")]) == 2
    shown = capsys.readouterr()
    assert "waves is complex, and the program is for real systems" in shown.err and "Table 1" not in shown.out


@pytest.mark.gpu
def test_cusparse_refuses_other_types():
    space = make_space("cuda")
    with space.active():
        for kind in ("float32", "complex128"):
            with pytest.raises(InputError, match=f"type {kind}: expected float64"):
                BlockSolves(CSRMatrix.from_scipy(sp.eye(4, format="csr", dtype=kind), space), 2)


def test_words_for_matrices():
    found = [*cases.named_matrices("coupled_transport4:500, atmosmodd~:8000/3", 0.5)]
    assert [(name, A.shape[0], block) for name, A, block in found] == [("coupled_transport4:500", 256, None),
                                                                       ("atmosmodd~:8000/3", 4098, 3)]
    assert cases.tolerance("thermal2~:9000/5") == 1e-3 and cases.tolerance("atmosmodd~") == 1e-5


def test_padding_keeps_the_system():
    A = gallery.convection_diffusion((3, 3, 3))
    padded = cases.padded(A, 4)
    assert padded.shape == (28, 28) and (padded[:27, :27] != A).nnz == 0 and padded[27, 27] == 1
    assert cases.padded(A, 3) is A


def test_the_command_on_ranks(mpi, tmp_path, capsys):
    """Two numbers of ranks, and a program in PETSc's place."""
    out, report = tmp_path / "r.jsonl", tmp_path / "r.html"
    record = {"ranks": 0, "iterations": 7, "reason": "CONVERGED", "seconds": 0.1, "setup_seconds": 0.1,
              "residual": 1e-6, "least": 0.1, "largest": 0.3, "mean": 0.2}
    command = program(tmp_path, f"record = {record}\nrecord['ranks'] = int(sys.argv[1])\nimport json\n"
                                "print(json.dumps(record))")
    assert main(["bench", "block-gmres", "--ranks", "2,1", "--matrices", "coupled_transport3,atmosmodd~/4", "--scale",
                 "0.001", "--sweeps", "2", "--threads", "1", "--repeat", "2", "--petsc", command, "--petsc-ranks", "3",
                 "--out", str(out), "--report", str(report)]) == 0
    found = records(out)
    solves = [r for r in found if r["benchmark"] == "block_gmres solve"]
    assert [r["ranks"] for r in solves] == 4 * [1] + 4 * [2] + 2 * [3]
    assert {r["matrix"] for r in solves} == {"coupled_transport3", "atmosmodd~/4"}
    assert {r["load_balance"] for r in solves if r["ranks"] == 3} == {0.3 / 0.2}
    shown = capsys.readouterr().out
    assert all(title in shown for title in ("Table 1", "Figures 8 and 9", "Figure 10", "Figure 11", "Tables 2 to 4"))
    assert report.read_text("utf-8").count("data:image/png") == 9


def test_the_command_in_weak_scaling(mpi, tmp_path):
    """Matrices grow with the ranks, and a matrix has one name."""
    out = tmp_path / "r.jsonl"
    assert main(["bench", "block-gmres", "--ranks", "1,2", "--unknowns", "375", "--matrices",
                 "coupled_transport3,atmosmodd~/4", "--sweeps", "2", "--threads", "1", "--repeat", "1", "--out",
                 str(out)]) == 0
    products = [r for r in records(out) if r["benchmark"] == "block_gmres product"]
    assert [(r["ranks"], r["matrix"], r["n"], r["scaling"]) for r in products] == [
        (1, "coupled_transport3", 375, "weak"), (1, "atmosmodd~/4", 344, "weak"),
        (2, "coupled_transport3", 648, "weak"), (2, "atmosmodd~/4", 732, "weak")]
