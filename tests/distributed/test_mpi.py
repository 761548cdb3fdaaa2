"""The same across processes: the tests of this folder under ``mpiexec -n 2``, the command line, and ranks that die."""
from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from tests.conftest import space_or_skip
from tests.support.polymeshes import skewed, texts, write
from swell import gallery
from swell.distributed.launcher import launched
from swell.pde import fvm

HERE = pathlib.Path(__file__).parent
pytestmark = pytest.mark.skipif(launched() > 1, reason="this starts ranks, and runs on one")
# Open MPI asks for these where one user has all rights, or there are fewer cores than ranks; MPICH does not read them.
ASKED = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PRTE_MCA_rmaps_default_mapping_policy":
         ":oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe": "1"}


def started(*command, ranks=2, timeout=900, **variables):
    """What ``mpiexec -n 2 python command`` did."""
    beside = pathlib.Path(sys.executable).parent / "mpiexec"
    mpiexec = str(beside) if beside.exists() else shutil.which("mpiexec") or "mpiexec"
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run([mpiexec, "-n", str(ranks), sys.executable, *command], capture_output=True, text=True,
                          timeout=timeout, env={**ours, **ASKED, **variables})


@pytest.fixture(scope="module", autouse=True)
def mpi():
    """A skip that says what is missing."""
    pytest.importorskip("mpi4py", reason="ranks need mpi4py and an MPI: pip install 'swell[mpi]' mpich")
    try:
        probe = started("-c", "from mpi4py import MPI; print(MPI.COMM_WORLD.size)", timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no mpiexec: pip install mpich, or an MPI of your system")
    if "".join(probe.stdout.split()) != "22":                    # both may write at once
        pytest.skip(f"mpiexec does not start ranks that mpi4py sees: {probe.stdout} {probe.stderr[-300:]}")


def test_the_solves_of_this_folder_across_processes():
    files = [str(HERE / f"test_{name}.py") for name in ("solves", "agreement", "methods", "fvm", "part_mesh", "flow",
                                                        "helmholtz", "bddc")]
    done = started("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *files)
    assert done.returncode == 0 and done.stdout.count(" passed") == 2, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("ranks", [2, 3])
def test_columns_across_processes(ranks):
    done = started("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not gpu", "-k",
                   "(every_method and (gmres or qmr)) or single_reduction_cg or no_memory or bddc or multigrid or agree",
                   str(HERE / "test_columns.py"), ranks=ranks)
    assert done.returncode == 0 and done.stdout.count(" passed") == ranks, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("ranks, some", [(2, ""), (3, "cg or gmres or not (test_a_preconditioner or test_a_monitor)")])
def test_errors_that_are_caught_across_processes(ranks, some):
    """Of three ranks two hear of it, which a few methods show."""
    done = started("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-k", some,
                   str(HERE / "test_caught_errors.py"), ranks=ranks)
    assert done.returncode == 0 and done.stdout.count(" passed") == ranks, done.stdout[-3000:] + done.stderr[-3000:]


CAUGHT = """
import sys
import numpy as np, swell
from swell.core.operator import LinearOperator
ranks = swell.distributed.init()
A = swell.distributed.scatter(ranks, swell.gallery.poisson2d(30) if ranks.rank == 0 else None)
class Operator(LinearOperator):
    def apply(self, x, out, alpha=1, beta=0):
        if ranks.rank == 1:
            raise ZeroDivisionError("on purpose")
        A.apply(x, out, alpha, beta)
def monitor(k, residual):
    if ranks.rank == 1 and {leaves}:
        sys.exit(0)
try:
    swell.solve({A}, np.ones(A.space.ranks.local_rows(900)), method="cg", monitor=monitor)
except Exception as error:
    print(f"caught: {{error}}", flush=True)
"""


def test_a_rank_whose_monitor_leaves_is_told_to_the_others():
    done = started("-c", CAUGHT.format(leaves=True, A="A"), timeout=120)
    assert done.returncode == 0 and done.stdout.count("caught: rank 1 has ended its program") == 1, done.stderr


def test_an_operator_that_owes_the_others_messages_ends_all():
    """Its own error is caught, and the others wait for numbers that never come."""
    done = started("-c", CAUGHT.format(leaves=False, A="Operator(A.shape, A.dtype, A.space)"), timeout=120)
    assert done.returncode != 0 and "on purpose" in done.stderr


def test_the_command_line(tmp_path):
    A = sp.csr_matrix(gallery.poisson2d(30))
    scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry="symmetric")
    b = np.random.default_rng(3).standard_normal(900)
    np.save(tmp_path / "b.npy", b)
    for partition in ("rows", "graph"):
        done = started("-m", "swell", "solve", str(tmp_path / "a.mtx"), "--rhs", str(tmp_path / "b.npy"), "--out",
                       str(tmp_path / "x.npy"), "--json", "--quiet", "--partition", partition)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["converged"]              # one object: rank 0 alone prints
        assert np.linalg.norm(b - A @ np.load(tmp_path / "x.npy")) <= 1e-8 * np.linalg.norm(b)


def test_bddc_on_the_command_line(tmp_path):
    A = sp.csr_matrix(gallery.poisson2d(30))
    scipy.io.mmwrite(tmp_path / "a.mtx", A, symmetry="symmetric")
    command = ["-m", "swell", "solve", str(tmp_path / "a.mtx"), "--method", "cg", "--out", str(tmp_path / "x.npy"), "--json"]
    done = started(*command, "--precond", "bddc(domains=8, partition=rows)")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["converged"] and found["iterations"] < 30
    assert np.linalg.norm(1 - A @ np.load(tmp_path / "x.npy")) <= 1e-8 * 30
    done = started(*command, "--precond", "bddc(domains=1)")
    assert done.returncode == 2 and done.stderr.count("each needs a subdomain") == done.stderr.count("swell: ") == 1


@pytest.mark.parametrize("arguments, message", [
    (["nothing.mtx"], "nothing.mtx does not exist"),
    (["{a}", "--method", "direct"], "direct does not run across ranks"),
    (["{a}", "--report", "r.html"], "--report does not work across ranks"), (["{a}", "--rhs", "{b}"], "--rhs has 5 rows"),
    (["{a}", "--device", "gpu"], "--device gpu across ranks"), (["{a}", "--device", "cuda:all"], "cuda:all across ranks"),
])
def test_the_command_line_says_what_is_wrong_once(tmp_path, arguments, message):
    scipy.io.mmwrite(tmp_path / "a.mtx", sp.eye_array(20).tocoo())
    np.save(tmp_path / "b.npy", np.ones(5))
    names = {"a": tmp_path / "a.mtx", "b": tmp_path / "b.npy"}
    done = started("-m", "swell", "solve", *(word.format(**names) for word in arguments))
    assert done.returncode == 2
    assert done.stderr.count(message) == 1 and done.stderr.count("swell: ") == 1


def test_the_device_is_looked_at_before_a_mesh_is_read():
    done = started("-m", "swell", "fvm", "box:9,9,9", "--patch-bc", "*=0", "--device", "gpu")
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.count("--device gpu across ranks") == done.stderr.count("swell: ") == 1


@pytest.mark.parametrize("line, message", [
    ("swell.distributed.scatter(ranks, A, device='gpu')", "device='gpu' across ranks"),
    ("swell.solve(swell.distributed.scatter(ranks, A), [1.0] * 100)", "expected (50,) or (50, k) for b[A.rows]"),
    ("swell.solve(swell.distributed.scatter(ranks, A), [1e-200] * 50)", "leave the range of double precision"),
    ("swell.distributed.init(messages='smoke')", "messages='smoke': expected 'peer' or 'nccl'"),
])
def test_a_script_says_what_is_wrong_once(line, message):
    """One traceback of one rank, and not that of what it passed on."""
    done = started("-c", f"import swell; ranks = swell.distributed.init(); A = swell.gallery.poisson2d(10)\n{line}")
    assert done.returncode != 0 and done.stderr.count("Traceback") == 1 and done.stderr.count(message) == 1, done.stderr
    assert done.stderr.count("rank 0 of 2:\n") == 1


def interrupted(done):
    """True if a rank ended all of them as Ctrl-C does. mpiexec may report the signal by which it killed another rank in
    place of the status; it then names the status of the rank that asked for the end."""
    return done.returncode == 130 or done.returncode == 9 and "Abort(130)" in done.stderr


def test_ctrl_c_before_there_is_a_solution_is_told_once():
    code = ("import os, signal\nfrom swell.cli import main\nfrom swell.cli import ranks\n"
            "def heard(*arguments):\n    os.kill(os.getpid(), signal.SIGINT)\n"
            "ranks.matrix = heard\nraise SystemExit(main(['solve', 'gallery:poisson2d:400']))")
    done = started("-c", code)
    assert interrupted(done) and not done.stdout and done.stderr.count("swell: interrupted") == 1, done.stderr


@pytest.mark.parametrize("rank", [0, 1])
def test_ctrl_c_of_one_rank_before_there_is_a_solution_ends_all(rank):
    code = ("import os, signal\nfrom swell.cli import main\nfrom swell.cli import ranks\nread = ranks.matrix\n"
            "def heard(group, arguments):\n"
            f"    if group.rank == {rank}: os.kill(os.getpid(), signal.SIGINT)\n"
            "    return read(group, arguments)\n"
            "ranks.matrix = heard\nraise SystemExit(main(['solve', 'gallery:poisson2d:400']))")
    done = started("-c", code, timeout=120)
    assert interrupted(done) and not done.stdout and done.stderr.count("swell: interrupted") == 1, done.stderr


def test_a_frequency_response_on_the_command_line(tmp_path):
    """Of ranks and of one: the same pressures, printed and written once."""
    for missing in ("skfem", "pymetis", "meshio"):
        pytest.importorskip(missing, reason="a mesh across ranks needs swell[mesh,partition]")
    from swell.pde import helmholtz
    helmholtz.box((8, 4, 3), upper=(1.0, 0.4, 0.3)).write(tmp_path / "box.msh")
    command = ("-m", "swell", "helmholtz", str(tmp_path / "box.msh"), "--source", "xmin", "--ear", "0.9,0.2,0.1", "--band",
               "90:110:10", "--damping", "0.02", "--rtol", "1e-10", "--json", "--csv", str(tmp_path / "r.csv"))
    found = []
    for ranks in (1, 2):
        done = started(*command, ranks=ranks)
        assert done.returncode == 0, done.stderr
        rows = [line for line in (tmp_path / "r.csv").read_text().splitlines() if line[0].isdigit()]
        found.append([float(line.split(",")[3]) for line in rows])
        assert json.loads(done.stdout)
    assert len(found[0]) == 3 and found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.parametrize("arguments, status, message", [
    (["demo"], 2, "swell demo does not run across ranks: start it without mpiexec; those that do are solve, fvm,"),
    ([], 2, "which command?"), (["solve"], 2, "arguments are required: A"), (["solve", "--rtol", "x"], 2, "invalid float"),
    (["--version"], 0, "swell 0."), (["--help"], 0, "positional arguments"), (["solve", "-h"], 0, "Ctrl-C ends")])
def test_what_a_command_line_says_is_said_once(arguments, status, message):
    done = started("-m", "swell", *arguments)
    assert done.returncode == status and (done.stderr if status else done.stdout).count(message) == 1, done.stderr
    assert not (done.stdout if status else done.stderr)


def test_a_file_that_only_some_ranks_can_read(tmp_path):
    scipy.io.mmwrite(tmp_path / "0.mtx", sp.eye_array(20).tocoo())
    done = started("-c", "import swell; r = swell.distributed.init()\n"
                   f"try:\n    swell.distributed.read(r, f'{tmp_path}/{{r.rank}}.mtx')\n"
                   "except swell.InputError as error:\n    print('agreed:', error)")
    assert done.returncode == 0 and done.stdout.count("agreed:") == done.stdout.count("1.mtx does not exist") == 2


SOLVE = """
import os, signal, sys, time
import numpy as np, swell
ranks = swell.distributed.init()
A = swell.distributed.scatter(ranks, swell.gallery.poisson2d(60) if ranks.rank == 0 else None)
def fate(k, residual):
    if k == 5 and ranks.rank == 1:
        {fate}
swell.prepare(A, method="cg", rtol=1e-13).solve(np.ones(A.space.ranks.local_rows(3600)), monitor=fate)
time.sleep(90)                    # a rank that nobody ends says so
print("nobody ended me")
"""


@pytest.mark.parametrize("fate, message", [
    ("os.kill(os.getpid(), signal.SIGKILL)", ""), ("raise ZeroDivisionError('on purpose')", "on purpose"),
    ("raise MemoryError('no room for the basis')", "no room for the basis")], ids=["killed", "throws", "out of memory"])
def test_a_rank_that_dies_ends_all(fate, message):
    done = started("-c", SOLVE.format(fate=fate), timeout=240)
    assert done.returncode != 0 and message in done.stderr and "nobody ended me" not in done.stdout


@pytest.mark.parametrize("ranks, rank", [(2, 0), (3, 1)])
def test_a_rank_that_leaves_alone_ends_all(ranks, rank):
    """Python has no hook for sys.exit; the others hear of it when they ask something."""
    done = started("-c", "import sys, swell; r = swell.distributed.init()\n"
                   f"if r.rank == {rank}:\n    sys.exit('the input is wrong')\n"
                   "swell.distributed.scatter(r, swell.gallery.poisson2d(20))\nprint('nobody ended me')", ranks=ranks,
                   timeout=120)
    assert done.returncode != 0 and "the input is wrong" in done.stderr
    assert "nobody ended me" not in done.stdout                  # the launcher may tell there of ranks that it ended
    assert f"Gone: rank {rank} has ended its program" in done.stderr


@pytest.mark.parametrize("code, out", [
    ("time.sleep(3 * r.rank)", ""), ("import mpi4py.MPI; mpi4py.MPI.Finalize()", ""),
    ("if r.rank:\n    for _ in range(3):\n        try:\n            r.allgather(1)\n"
     "        except swell.InputError:\n            print('heard')", "heardheardheard")])
def test_ranks_that_end_one_after_the_other(code, out):
    done = started("-c", f"import time, swell; r = swell.distributed.init()\n{code}", timeout=60)
    assert done.returncode == 0 and not done.stderr and "".join(done.stdout.split()) == out


@pytest.mark.parametrize("rank", [0, 1])
def test_a_command_of_which_a_rank_throws_ends_all(rank):
    """In the middle of iterations, where the others wait for numbers and not for words."""
    code = ("from swell.cli import main\nfrom swell.distributed.space import DistributedLoop\n"
            "report = DistributedLoop.report\n"
            "def heard(self, formed=True):\n"
            "    report(self, formed)\n"
            f"    if (self.iterations, self.space.ranks.communicator.rank) == (33, {rank}):\n"
            "        raise MemoryError('no room for the basis')\n"
            "DistributedLoop.report = heard\n"
            "raise SystemExit(main(['solve', 'gallery:poisson2d:4000', '--method', 'cg', '--rtol', '1e-13']))")
    done = started("-c", code, timeout=240)
    assert done.returncode != 0 and "iterations" not in done.stdout and "no room for the basis" in done.stderr


def test_what_ranks_disagree_on_is_told_once():
    """All know it at once, so that rank 0 alone says it."""
    done = started("-c", "import swell; r = swell.distributed.init(); r.require_equal(r.rank, 'the colour')")
    assert done.returncode != 0
    assert done.stderr.count("InputError: the ranks disagree on the colour: 0 on rank 0, 1 on rank 1") == 1, done.stderr


def test_a_decomposed_case(tmp_path):
    """Each rank reads and writes its part; rank 0 tells of all of them."""
    mesh = skewed((8, 6, 5))
    fvm.decompose(mesh, (mesh.centres[:, 0] > 0.4).astype(int), tmp_path / "case")
    write(tmp_path / "whole", texts(mesh))
    settings = ["--patch-bc", "xmin=1", "--patch-bc", "xmax=0", "--patch-bc", "*=neumann:0", "--json"]
    command = ["-m", "swell", "fvm", str(tmp_path / "case"), *settings]
    done = started(*command, "--out", str(tmp_path / "p.pvtu"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    whole = json.loads(started("-m", "swell", "fvm", str(tmp_path / "whole"), *settings, ranks=1).stdout)
    assert found["converged"] and found["cells"] == whole["cells"] and found["faces"] == whole["faces"]
    assert found["ranks"] == 2 and "ranks" not in whole
    assert found["p"] == pytest.approx(whole["p"], abs=1e-6)
    assert found["conservation"]["patches"] == pytest.approx(whole["conservation"]["patches"], abs=1e-6)
    assert sorted(path.name for path in tmp_path.glob("p*")) == ["p.pvtu", "p_0.vtu", "p_1.vtu"]
    for more, message in ((["--out", str(tmp_path / "q.vtu")], "the extension is .vtu, expected .pvtu"),
                          (["--report", str(tmp_path / "q.html")], "--report needs the whole matrix")):
        done = started(*command, *more)
        assert done.returncode == 2 and done.stderr.count(message) == 1 and done.stderr.count("swell: ") == 1
    done = started(*command, ranks=3)
    assert done.returncode == 2 and done.stderr.count("is decomposed into 2 parts, and there are 3 ranks") == 1


def test_init_starts_mpi_where_nobody_has():
    """Importing mpi4py does, unless it was told not to; MPI ends the process of who calls it before that."""
    done = started("-c", "import mpi4py; mpi4py.rc.initialize = False\nimport swell; r = swell.distributed.init()\n"
                   "assert r.allgather(r.rank) == [0, 1] and swell.distributed.init().size == 2")
    assert done.returncode == 0, done.stderr


def test_init_after_the_end_of_mpi():
    done = started("-c", "import swell; from mpi4py import MPI; MPI.Finalize(); swell.distributed.init()")
    assert done.returncode != 0 and "InputError: MPI has been finalized in this process" in done.stderr


@pytest.mark.gpu
def test_ranks_that_share_a_gpu():
    """Refused unless they are asked to: processes take turns on it."""
    space_or_skip("cuda")
    code = ("import numpy as np, swell; r = swell.distributed.init(share_gpus={share})\n"
            "A = swell.distributed.scatter(r, swell.gallery.poisson2d(30) if r.rank == 0 else None, device='cuda')\n"
            "for method in ('cg', 'gmres'):\n"
            "    result = swell.solve(A, np.ones(A.space.ranks.local_rows(900)), method=method)\n"
            "    assert result.converged and r.size == 3")
    done = started("-c", code.format(share=True), ranks=3, CUDA_VISIBLE_DEVICES="0")
    assert done.returncode == 0, done.stderr
    done = started("-c", code.format(share=False), ranks=3, CUDA_VISIBLE_DEVICES="0")
    assert done.returncode != 0 and done.stderr.count("each wants a GPU of its own") == 1, done.stderr


def test_more_ranks_than_rows():
    done = started("-c", "import swell, scipy.sparse as sp; r = swell.distributed.init()\n"
                   "swell.distributed.scatter(r, sp.eye_array(1, format='csr'))")
    assert done.returncode != 0 and "start at most 1" in done.stderr


def test_no_rank_holds_the_whole_matrix(tmp_path):
    """What reading takes beyond an empty interpreter, on each of two ranks, over what it takes on one."""
    A = sp.csr_matrix(gallery.poisson3d(60))
    sp.save_npz(tmp_path / "a.npz", A, compressed=False)
    code = ("import resource, swell; r = swell.distributed.init()\n"
            "import numpy, scipy.sparse.linalg, swell.io.rows, swell.distributed, swell.formats.csr\n"
            "swell.distributed.scatter(r, swell.gallery.poisson2d(10))\n"
            "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            f"before = peak(); A = swell.distributed.read(r, r'{tmp_path / 'a.npz'}')\n"
            "most = max(r.allgather(peak() - before))\nif r.rank == 0: print(most)")        # two writers would mingle
    one_rank, both = (int(started("-c", code, ranks=k).stdout) for k in (1, 2))
    assert both <= 0.65 * one_rank


def test_no_rank_holds_all_subdomains():
    """What a solve by BDDC takes beyond a small one, on each of two ranks, over what it takes on one."""
    code = ("import resource, numpy, swell; from swell.pde.poisson_cube import PoissonCube\n"
            "ranks = swell.distributed.init()\n"
            "def solve(cube):\n"
            "    parts = cube.rank_subdomains(ranks.rank, ranks.size)\n"
            "    A, S = swell.distributed.from_subdomains(ranks, parts)\n"
            "    bddc = swell.BDDC(subdomains=S)\n"
            "    r = swell.solve(A, numpy.full(A.own.shape[0], cube.load), method='cg', precond=bddc)\n"
            "    assert r.converged\n"
            "    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
            "before = solve(PoissonCube(3, 2)); k = numpy.random.default_rng(0).uniform(1, 2, (32,) * 3)\n"
            "most = max(ranks.allgather(solve(PoissonCube(8, 4, coefficient=k)) - before))\n"      # none equals another
            "if ranks.rank == 0: print(most)")
    one_rank, both = (int(started("-c", code, ranks=k, OPENBLAS_NUM_THREADS="1").stdout) for k in (1, 2))
    assert both <= 0.65 * one_rank


def test_finite_volumes_from_the_command_line(tmp_path):
    meshio = pytest.importorskip("meshio", reason="reading the result needs meshio")
    pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")
    case = ["-m", "swell", "fvm", "box:12,11,10", "--patch-bc", "xmin=1", "--patch-bc", "xmax=0", "--patch-bc",
            "*=neumann:0", "--json", "--quiet"]
    done = started(*case, "--out", str(tmp_path / "two.vtu"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["converged"]
    assert started(*case, "--out", str(tmp_path / "one.vtu"), ranks=1).returncode == 0
    one, two = (meshio.read(tmp_path / name).cell_data["p"] for name in ("one.vtu", "two.vtu"))
    assert np.allclose(np.concatenate(one), np.concatenate(two), atol=1e-7)


@pytest.mark.parametrize("ranks", ["0", "1", "01"])
def test_ctrl_c_is_told_once_and_the_iterate_written(tmp_path, ranks):
    """Both ranks get the signal, as from a terminal, or one of them, while they iterate."""
    code = ("import os, signal\nfrom swell.cli import main\n"
            "from swell.distributed.space import DistributedLoop\nreport = DistributedLoop.report\n"
            "def heard(self, formed=True):\n"
            "    report(self, formed)\n"
            f"    if self.iterations == 30 and str(self.space.ranks.communicator.rank) in '{ranks}':\n"
            "        os.kill(os.getpid(), signal.SIGINT)\n"
            "DistributedLoop.report = heard\n"
            f"raise SystemExit(main(['solve', 'gallery:poisson2d:40000', '--method', 'cg', '--rtol', '1e-13', '--out', "
            f"r'{tmp_path / 'x.npy'}']))")
    done = started("-c", code)
    assert done.returncode == 1 and done.stdout.count("INTERRUPTED") == 1, done.stderr
    assert done.stderr.count("swell: interrupted") == 1
    assert np.load(tmp_path / "x.npy").size == 40000


FIELDS = {
    "0/U": """internalField uniform (0 0 0);
boundaryField { ymax { type fixedValue; value uniform (1 0 0); } "[xy]m.*" { type noSlip; } "z.*" { type empty; } }""",
    "0/p": """internalField uniform 0; boundaryField { "[xy].*" { type zeroGradient; } "z.*" { type empty; } }""",
    "constant/transportProperties": "nu 0.05;", "system/controlDict": "application simpleFoam; endTime 200; deltaT 1;"}


def flow_case(folder):
    """A cavity of 8 x 8 cells."""
    fvm.write_polymesh(fvm.box((8, 8)), folder)
    for place, text in FIELDS.items():
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"FoamFile {{ format ascii; object {path.name}; }}\n{text}\n")
    return folder


def test_flow_from_the_command_line(tmp_path):
    """A whole case and a decomposed one, steady, and in time from what was written: the forces of one rank."""
    meshio = pytest.importorskip("meshio", reason="reading the result needs meshio")
    pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")
    whole, parts = flow_case(tmp_path / "whole"), flow_case(tmp_path / "parts")
    fvm.read_case(parts).decompose(2)
    command = ["-m", "swell", "flow", str(whole), "--json", "--out"]
    one = json.loads(started(*command, str(tmp_path / "one.vtu"), ranks=1).stdout)
    done = started(*command, str(tmp_path / "two.vtu"), "--report", str(tmp_path / "two.html"), "--write-case")
    assert done.returncode == 0, done.stderr
    two = json.loads(done.stdout)
    done = started("-m", "swell", "flow", str(parts), "--json", "--out", str(tmp_path / "parts.pvtu"), "--report",
                   str(tmp_path / "parts.html"), "--write-case", "--forces", "ymax", "--history", str(tmp_path / "h.csv"))
    assert done.returncode == 0, done.stderr
    three = json.loads(done.stdout)
    for found in (two, three):
        assert found["converged"] and found["cells"] == 64 and abs(found["iterations"] - one["iterations"]) <= 2
        for name, force in one["forces"].items():
            assert np.allclose(found["forces"][name]["viscous"], force["viscous"], atol=1e-5)
            assert np.allclose(found["forces"][name]["pressure"], force["pressure"], atol=1e-4)
    fields = [meshio.read(tmp_path / f"{name}.vtu").cell_data["U"][0] for name in ("one", "two", "parts_0", "parts_1")]
    assert np.allclose(fields[0], fields[1], atol=1e-5) and len(fields[2]) + len(fields[3]) == 64
    assert "<img" in (tmp_path / "parts.html").read_text("utf-8") and (tmp_path / "h.csv").read_text().count("ymax") == 6
    time = str(three["iterations"])
    assert all({path.name for path in (parts / f"processor{k}" / time).iterdir()} == {"U", "p", "phi"} for k in (0, 1))
    assert (whole / str(two["iterations"]) / "phi").exists()
    done = started("-m", "swell", "flow", str(parts), "--transient", "--start", "latest", "--dt", "0.05", "--end", "0.2",
                   "--every", "0.1", "--json", "--out", str(tmp_path / "w.pvd"))
    assert done.returncode == 0 and json.loads(done.stdout)["iterations"] == 4, done.stderr
    assert (tmp_path / "w.pvd").read_text().count(".pvtu") == 2 and (tmp_path / "w_0001_1.vtu").exists()


def test_a_case_that_is_wrong_on_one_rank_is_told_once(tmp_path):
    pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")
    case = flow_case(tmp_path / "case")
    fvm.read_case(case).decompose(2)
    wrong = case / "processor1" / "0" / "U"
    right = wrong.read_bytes()
    for content, message in ((right.replace(b"noSlip", b"mixed"), "has the condition mixed, which is not known"),
                             (right[:400], "U"), (None, "U")):
        wrong.unlink() if content is None else wrong.write_bytes(content)
        done = started("-m", "swell", "flow", str(case), timeout=100)
        assert done.returncode == 2 and not done.stdout, done.stdout
        assert done.stderr.count("swell: ") == 1 and message in done.stderr and "processor1" in done.stderr
    wrong.write_bytes(right)
    done = started("-m", "swell", "flow", str(case), "--out", str(tmp_path / "a.vtu"))
    assert done.returncode == 2 and done.stderr.count("expected .pvtu") == 1


@pytest.mark.parametrize("ranks", ["1", "01"])
def test_ctrl_c_keeps_a_flow(tmp_path, ranks):
    """One rank gets the signal, or both, between two linear solves."""
    pytest.importorskip("pymetis", reason="the partition of a mesh needs pymetis")
    case = flow_case(tmp_path / "case")
    code = ("import os, signal\nfrom swell.cli import main\nfrom swell.pde.fvm.simple import Steady\n"
            "measure = Steady.measure\n"
            "def heard(self):\n"
            "    self.seen = getattr(self, 'seen', 0) + 1\n"
            f"    if self.seen == 3 and str(self.flow.mesh.ranks.rank) in '{ranks}':\n"
            "        os.kill(os.getpid(), signal.SIGINT)\n"
            "    return measure(self)\n"
            "Steady.measure = heard\n"
            f"raise SystemExit(main(['flow', r'{case}', '--out', r'{tmp_path / 'x.vtu'}']))")
    done = started("-c", code, timeout=100)
    assert done.returncode == 1 and "NOT converged in 3 iterations" in done.stdout, done.stdout + done.stderr
    assert done.stderr.count("swell: interrupted") == 1 and (tmp_path / "x.vtu").exists()
