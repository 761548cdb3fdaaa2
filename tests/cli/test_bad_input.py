"""Bad input: one clear line that names the argument and the remedy, exit status 2, no traceback, no output file."""
import gzip
import importlib.util

import numpy as np
import pytest

HEADER = "%%MatrixMarket matrix coordinate real general\n"

# name of a file: its content
FILES = {
    "truncated.mtx": HEADER + "2 2 2\n1 1 1\n",
    "too_many.mtx": HEADER + "2 2 1\n1 1 1\n2 2 1\n",
    "index.mtx": HEADER + "2 2 2\n1 1 1\n3 2 1\n",
    "huge.mtx": HEADER + "1000000000000 1000000000000 900000000000000\n1 1 1\n",
    "nan.mtx": HEADER + "2 2 2\n1 1 nan\n2 2 1\n",
    "inf.mtx": HEADER + "2 2 2\n1 1 inf\n2 2 1\n",
    "mislabelled.mtx": "this is\nno matrix\n",
    "empty.mtx": "",
    "unsymmetric.mtx": HEADER + "2 2 4\n1 1 2\n1 2 1\n2 1 0.5\n2 2 2\n",
    "walls.mtx": HEADER + "2 2 4\n1 1 1\n1 2 -1\n2 1 -1\n2 2 1\n",        # constants are its null space
    "zero_diagonal.mtx": HEADER + "2 2 2\n1 2 1\n2 1 1\n",
    "garbage.txt": "one two\n",
}

# (arguments after the names of --out, what the message must say)
CASES = [
    (["missing.mtx"], ["missing.mtx"]),
    (["."], ["folder"]),
    (["truncated.mtx"], ["truncated"]),
    (["truncated.mtx.gz"], ["truncated"]),
    (["too_many.mtx"], ["too_many.mtx"]),
    (["index.mtx"], ["index.mtx", "3"]),
    (["huge.mtx"], ["huge.mtx"]),
    (["nan.mtx"], ["NaN"]),
    (["inf.mtx"], ["Inf"]),
    (["mislabelled.mtx"], ["MatrixMarket"]),
    (["array.mtx"], ["array.mtx", ".npy"]),
    (["empty.mtx"], ["empty"]),
    (["rectangular.mtx"], ["square", "swell.lstsq(A, b) in Python"]),
    (["A.mtx", "--rhs", "missing.npy"], ["missing.npy"]),
    (["A.mtx", "--rhs", "short.npy"], ["b has shape (3,)", "144"]),
    (["A.mtx", "--rhs", "nan.npy"], ["b contains NaN"]),
    (["A.mtx", "--rhs", "garbage.txt"], ["garbage.txt"]),
    (["A.mtx", "--x0", "short.npy"], ["x0 has shape (3,)"]),
    (["A.mtx", "--x0", "nan.npy"], ["x0 contains NaN"]),
    (["A.mtx", "--rtol", "0"], ["rtol"]),
    (["A.mtx", "--rtol", "-1"], ["rtol", "negative"]),
    (["A.mtx", "--rtol=-1e-8"], ["rtol", "negative"]),
    (["A.mtx", "--rtol", "nan"], ["rtol"]),
    (["A.mtx", "--rtol", "2"], ["rtol"]),
    (["A.mtx", "--rtol", "small"], ["--rtol", "small"]),
    (["A.mtx", "--atol", "-1"], ["atol"]),
    (["A.mtx", "--maxiter", "-5"], ["maxiter"]),
    (["A.mtx", "--maxiter", "1.5"], ["--maxiter", "1.5"]),
    (["A.mtx", "--method", "gmrez"], ["gmrez", "did you mean 'gmres'"]),
    (["A.mtx", "--method", "jacobi"], ["jacobi is a preconditioner: give --precond jacobi"]),
    (["A.mtx", "--precond", "cg"], ["unknown precond 'cg': cg is a method: give --method cg"]),
    (["A.mtx", "--bogus"], ["--bogus", "(see swell solve --help)"]),
    (["A.mtx", "--preconditioner", "amg"], ["did you mean --precond?", "(see swell solve --help)"]),
    (["A.mtx", "--solver", "cg"], ["did you mean --method?"]),
    (["A.mtx", "-o", "y.npy"], ["did you mean --out?"]),
    (["A.mtx", "b.npy"], ["is it --rhs b.npy?"]),
    (["A.mtx", "--project"], ["--nullspace constants --project"]),
    (["A.mtx", "--nullspace", "none", "--project"], ["--nullspace constants --project"]),
    (["A.mtx", "--method", "gmres(restat=3)"], ["restat", "restart"]),
    (["A.mtx", "--method", "gmres(restart=0)"], ["restart=0"]),
    (["A.mtx", "--method", "gmres(restart"], ["gmres(restart"]),
    (["A.mtx", "--precond", "jakobi"], ["did you mean 'jacobi'"]),
    (["A.mtx", "--method", "gmres", "--precond", "ilu(block=5)"], ["block=5", "1, 2, 3, 4, 6", "pad=True"]),
    (["A.mtx", "--method", "gmres", "--format", "bsr(block=7)"], ["block=7", "1, 2, 3, 4, 6", "pad=True"]),
    (["A.mtx", "--method", "gmres", "--format", "bsr(block=4, pad=3)"], ["pad=3", "True or False"]),
    (["A.mtx", "--method", "gmres", "--format", "ell(max_fill=x)"], ["max_fill='x'", "at least 1"]),
    (["A.mtx", "--method", "gmres", "--precond", "ilu0(solve=exact(single=2))"], ["single=2", "True or False"]),
    (["A.mtx", "--method", "gmres", "--precond", "ilu(level=-1)"], ["level=-1"]),
    (["zero_diagonal.mtx", "--method", "gmres", "--precond", "ilu0"], ["diagonal", "swell.transversal"]),
    (["zero_diagonal.mtx", "--method", "gmres", "--precond", "ilu(block=1)"], ["diagonal", "swell.transversal"]),
    (["zero_diagonal.mtx", "--method", "gmres", "--precond", "ilu(drop=0.001)"], ["diagonal", "swell.transversal"]),
    (["A.mtx", "--method", "gmres", "--precond", "ilu0(solve=sweeps(count=0))"], ["Sweeps(count=0)", "at least 1"]),
    (["A.mtx", "--method", "gmres(batch=-1)"], ["batch=-1"]),
    (["unsymmetric.mtx", "--method", "cg"], ["cg needs a Hermitian matrix", "(0, 1) is 1 and", "(1, 0) is 0.5"]),
    (["unsymmetric.mtx", "--precond", "ic0"], ["IC needs a Hermitian matrix", "(0, 1)", "gmres"]),
    (["walls.mtx", "--method", "cg", "--nullspace", "constants"], ["incompatible", "1.00e+00 ‖b‖", "2.000e+00 instead", "take it out with --project"]),
    (["A.mtx", "--nullspace", "constant"], ["--nullspace constant: expected constants, none, or a file with a basis"]),
    (["A.mtx", "--scaling", "jacoby"], ["did you mean 'jacobi'"]),
    (["A.mtx", "--format", "sel"], ["did you mean 'sell'"]),
    (["A.mtx", "--ordering", "rmc"], ["did you mean 'rcm'"]),
    (["A.mtx", "--dtype", "float16"], ["--dtype", "float16", "float64"]),
    (["complex.mtx", "--dtype", "float64"], ["imaginary", "complex128"]),
    (["A.mtx", "--device", "tpu"], ["device='tpu'", "cuda"]),
    (["unsymmetric.mtx", "--method", "cg"], ["use --method bicgstab or gmres with"]),
    (["zero_diagonal.mtx", "--method", "cg", "--scaling", "jacobi"], ["diagonal", "direct"]),
    (["zero_diagonal.mtx", "--method", "gmres", "--precond", "jacobi"], ["diagonal", "direct"]),
    (["gallery:poison2d"], ["did you mean 'poisson2d'"]),
    (["gallery:poisson2d:many"], ["many"]),
]


@pytest.fixture
def bad(folder, monkeypatch):
    """The folder, with broken files beside the good ones, as the working directory."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    packed = gzip.compress((folder / "A.mtx").read_bytes())
    (folder / "truncated.mtx.gz").write_bytes(packed[:len(packed) // 2])
    np.save(folder / "short.npy", np.ones(3))
    np.save(folder / "nan.npy", np.full(144, np.nan))
    (folder / "array.mtx").write_bytes((folder / "b.npy").read_bytes())
    monkeypatch.chdir(folder)
    return folder


def check(bad, outcome, words):
    """One line, status 2, and the folder as it was."""
    status, out, err = outcome
    assert status == 2, (out, err)
    assert out == "" and err.startswith("swell: ") and err.count("\n") == 1 and "Traceback" not in err
    for word in words:
        assert word in err


@pytest.mark.parametrize("arguments, words", CASES, ids=lambda value: " ".join(value)[:50])
def test_solve(cli, bad, arguments, words):
    before = sorted(path.name for path in bad.iterdir())
    check(bad, cli("solve", *arguments, "--out", "x.npy", "--report", "r.html"), words)
    assert sorted(path.name for path in bad.iterdir()) == before


OUTPUTS = [
    (["--out", "nowhere/x.npy"], ["--out", "nowhere"]),
    (["--report", "nowhere/r.html"], ["--report", "nowhere"]),
    (["--out", "x.dat"], ["--out", ".npy"]),
    (["--out", "x"], ["--out", ".npy"]),
    (["--report", "r.pdf"], ["--report", ".html"]),
    (["--out", "taken.npy"], ["--out", "folder"]),
    (["--out", "A.mtx"], ["--out", "replace"]),
    (["--rhs", "b.npy", "--out", "b.npy"], ["--out", "replace"]),
]


@pytest.mark.parametrize("arguments, words", OUTPUTS, ids=lambda value: " ".join(value)[:50])
def test_outputs_are_checked_before_the_solve(cli, bad, monkeypatch, arguments, words):
    (bad / "taken.npy").mkdir()
    monkeypatch.setattr("swell.io.read_matrix_with_notes", lambda path, name: pytest.fail("the matrix was read first"))
    check(bad, cli("solve", "A.mtx", *arguments), words)


def test_names_are_checked_before_the_matrix_is_read(cli, bad, monkeypatch):
    monkeypatch.setattr("swell.io.read_matrix_with_notes", lambda path, name: pytest.fail("the matrix was read first"))
    for arguments in (["--method", "gmrez"], ["--rtol", "0"], ["--device", "tpu"]):
        assert cli("solve", "A.mtx", *arguments)[0] == 2


def test_memory_is_estimated_before_the_solve(cli, bad, monkeypatch):
    monkeypatch.setattr("swell.core.cpu.CpuSpace.memory", lambda self: (1000, 2000))
    check(bad, cli("solve", "A.mtx", "--method", "gmres", "--out", "x.npy"), ["needs", "GiB", "free"])
    assert not (bad / "x.npy").exists()


def test_no_gpu(cli, bad):
    if importlib.util.find_spec("cupy"):
        pytest.skip("CuPy is installed here")
    check(bad, cli("solve", "A.mtx", "--device", "cuda"), ["cuda", "swell[cuda13]", "--device cpu"])


@pytest.mark.parametrize("arguments, words", [
    (["info", "missing.mtx"], ["missing.mtx"]),
    (["info", "rectangular.mtx"], ["square"]),
    (["info", "A.mtx", "--picture", "p.jpg"], [".png"]),
    (["info", "A.mtx", "--picture", "nowhere/p.png"], ["nowhere"]),
    (["demo", "--cells", "2"], ["cells", "8"]),
    (["demo", "--out", "A.mtx"], ["--out"]),
    (["bench", "spmv", "--matrices", "none"], ["none"]),
    (["bench", "krylov", "--matrices", "poisson2d"], ["poisson2d", "thermal2~"]),
    (["bench", "spmv", "--formats", "sel"], ["did you mean 'sell'"]),
    (["bench", "spmv", "--scale", "0"], ["--scale"]),
    (["bench", "blas1", "--dtypes", "float16"], ["float16", "complex128"]),
    (["bench", "krylov", "--tune"], ["--tune"]),
    (["bench", "blas1", "--complex"], ["--complex"]),
    (["bench", "spmv", "--out", "x.csv"], [".jsonl"]),
], ids=lambda value: " ".join(value)[:50])
def test_other_commands(cli, bad, arguments, words):
    check(bad, cli(*arguments), words)


@pytest.mark.parametrize("arguments, words", [
    (["circle"], ["'circle' cannot be looked up", "symbolic links"]),
    (["A.mtx", "--rhs", "circle"], ["'circle' cannot be looked up"]),
    (["A.mtx", "--out", "circle/x.npy"], ["circle", "symbolic links"]),
    (["A.mtx", "--report", "circle/r.html"], ["circle", "symbolic links"]),
    (["a" * 5000], ["too long"]),
    (["A.mtx", "--out", "a" * 5000 + ".npy"], ["too long"]),
    (["A.mtx", "--report", "a/" * 2500 + "r.html"], ["too long"]),
    (["A.mtx", "--out", "a\0.npy"], ["NUL"]),
    (["A\0.mtx"], ["NUL"]),
    (["A.mtx", "--method", "gmres(restart=" + "-" * 50_000 + "1)"], ["cannot read the settings"]),
], ids=lambda value: " ".join(value)[:30].replace("\0", "NUL"))
def test_names_that_no_file_can_have(cli, bad, arguments, words):
    (bad / "circle").symlink_to("circle")
    outcome = cli("solve", *arguments)
    check(bad, outcome, words)
    assert len(outcome[2]) < 400
