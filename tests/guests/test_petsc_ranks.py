"""swell inside PETSc on several ranks. Skipped, with the reason, where something of it is missing.

``mpiexec`` runs this file as a program: each rank checks, and one that fails ends with its traceback.
"""
from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

PETSc = pytest.importorskip("petsc4py.PETSc", exc_type=(ImportError, ValueError),
                            reason="needs petsc4py, built for this NumPy: pip install petsc petsc4py")

from tests.guests.test_petsc import SCALAR, flow, mat, options, poisson                         # noqa: E402

import swell                                                                                    # noqa: E402
from swell.guests.petsc import views                                                            # noqa: E402
from swell.guests.petsc import reason_of                                                        # noqa: E402

OWN_PC = {"pc_type": "python", "pc_python_type": "swell.guests.petsc.PC"}
OWN_KSP = {"ksp_type": "python", "ksp_python_type": "swell.guests.petsc.KSP"}
CASES = {}


def case(function):
    """What ``mpiexec`` shall run: every rank calls it."""
    CASES[function.__name__] = function
    return function


def started(name, ranks, *arguments):
    """All ranks say that it is as it must be."""
    if shutil.which("mpiexec") is None:
        pytest.skip("needs mpiexec: Debian's openmpi-bin")
    if not name.startswith("block_jacobi"):
        pytest.importorskip("mpi4py", reason="needs mpi4py: pip install 'swell[mpi]'")
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "SWELL_NUM_THREADS": "1"}
    done = subprocess.run(["mpiexec", "-n", str(ranks), sys.executable, "-m", __name__, name, *arguments],
                          env=env, cwd=pathlib.Path(__file__).parents[2], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("as it must be") == ranks, done.stdout + done.stderr
    return done.stdout


def spread(S, rows=None, comm=None):
    """This rank's consecutive rows of S as a Mat; all of it on one rank."""
    comm = comm or PETSc.COMM_WORLD
    if comm.size == 1:
        return mat(S, comm)
    n = S.shape[0]
    rows = rows or [n // 3, *np.diff(np.linspace(n // 3, n, comm.size).astype(int))]
    start = sum(rows[:comm.rank])
    own = sp.csr_matrix(S)[start:start + rows[comm.rank]]
    own.sort_indices()
    A = PETSc.Mat().createAIJ(((rows[comm.rank], n), (rows[comm.rank], n)), comm=comm, csr=(
        own.indptr.astype(PETSc.IntType), own.indices.astype(PETSc.IntType), own.data.astype(SCALAR)))
    A.assemble()
    return A


def spread_blocks(S, size):
    """Like ``spread``, as a BAIJ: each rank has about as many blocks of ``size`` rows."""
    comm, blocks = PETSc.COMM_WORLD, S.shape[0] // size
    rows = size * (blocks // comm.size + (comm.rank < blocks % comm.size))
    A = PETSc.Mat().create(comm)
    A.setSizes(((rows, S.shape[0]), (rows, S.shape[0])))
    A.setType("baij")
    A.setBlockSize(size)
    A.setUp()
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    first, stop = A.getOwnershipRange()
    own = sp.coo_matrix(sp.csr_matrix(S)[first:stop])
    for i, j, value in zip(own.row, own.col, own.data):
        A.setValue(first + i, j, value)
    A.assemble()
    return A


def ksp_for(A, **words):
    """A KSP whose options are these alone."""
    database = PETSc.Options()
    for name in database.getAll():
        database.delValue(name)
    options({"ksp_rtol": "1e-9", **words})
    ksp = PETSc.KSP().create(A.comm)
    ksp.setOperators(A)
    ksp.setFromOptions()
    return ksp


def solved(ksp, b=None, tolerance=1e-9):
    """x for b, all ones by default, its residual confirmed by PETSc's own product."""
    A = ksp.getOperators()[0]
    x, ones = A.createVecs()
    ones.set(1)
    b = b or ones
    ksp.solve(b, x)
    r = b.duplicate()
    A.mult(x, r)
    r.aypx(-1, b)
    assert ksp.getConvergedReason() > 0 and r.norm() <= tolerance * b.norm(), (r.norm() / b.norm(), reason_of(ksp))
    return x


def difference(x, y):
    """‖x − y‖ / ‖y‖."""
    d = x.copy()
    d.axpy(-1, y)
    return d.norm() / y.norm()


def expect(error, words, call):
    """On this rank; the others check theirs."""
    with pytest.raises(error, match=words):
        call()


# -- a preconditioner --------------------


@case
def block_jacobi():
    A = spread(flow(16), (100, 156))
    theirs, ours = ksp_for(A, pc_type="bjacobi", sub_pc_type="ilu"), ksp_for(A, **OWN_PC)
    for factor in (1, 2):
        A.scale(factor)
        solved(theirs, tolerance=1e-7)
        solved(ours, tolerance=1e-7)
        assert ours.getIterationNumber() == theirs.getIterationNumber()
    ours.view()


@case
def block_jacobi_fails_on_one_rank():
    S = poisson(8).tolil()
    S[40, 40] = 0                                # on rank 1 alone
    words = "diagonal entries are zero" if PETSc.COMM_WORLD.rank else "failed on rank 1, whose message says why"
    expect(swell.SwellError, words, lambda: solved(ksp_for(spread(S, (32, 32)), pc_swell_precond="jacobi", **OWN_PC)))


@case
def block_jacobi_where_a_rank_has_no_rows():
    solved(ksp_for(spread(flow(8), (0, 64)), **OWN_PC), tolerance=1e-7)


@case
def schwarz_and_bddc():
    A = spread(flow(16))
    alone, layers = ksp_for(A, **OWN_PC), ksp_for(A, pc_swell_precond="schwarz(overlap=2,inner=ilu0)", **OWN_PC)
    solved(alone, tolerance=1e-7)
    x = solved(layers, tolerance=1e-7)
    count = layers.getIterationNumber()
    assert count < alone.getIterationNumber()
    A.scale(2)
    assert difference(solved(layers, tolerance=1e-7), 0.5 * x) < 1e-6 and layers.getIterationNumber() == count
    expect(swell.InputError, "leave the type out", lambda: solved(ksp_for(
        A, pc_swell_precond="schwarz", pc_swell_dtype="float32", **OWN_PC)))
    layers.view()
    if SCALAR.kind == "c":
        return                                   # BDDC is for real matrices
    A = spread(poisson(12))
    x = solved(ksp_for(A, ksp_type="cg", pc_swell_precond="bddc", **OWN_PC), tolerance=1e-7)
    assert difference(x, solved(ksp_for(A, ksp_swell_method="cg", ksp_swell_precond="bddc", **OWN_KSP))) < 1e-6


# -- a KSP --------------------


@case
def as_petsc():
    """Systems of a gallery and a real one, without a preconditioner: PETSc's x and its count."""
    real = sp.csr_matrix(scipy.io.mmread(sys.argv[2])) if len(sys.argv) > 2 else None
    for S in [poisson(20), *([] if real is None else [real])]:
        A = spread(S)
        theirs = ksp_for(A, ksp_type="cg", pc_type="none", ksp_norm_type="unpreconditioned")
        ours = ksp_for(A, ksp_swell_method="cg", **OWN_KSP)
        assert difference(solved(ours), solved(theirs, tolerance=1.1e-9)) < 1e-5
        assert abs(ours.getIterationNumber() - theirs.getIterationNumber()) <= 1
    A = spread(flow(20))
    exact = solved(ksp_for(A, ksp_type="gmres", ksp_rtol="1e-12"), tolerance=1e-10)
    for words in ({}, {"ksp_swell_method": "gmres", "ksp_swell_precond": "ilu0"},
                  {"ksp_swell_method": "bicgstab", "ksp_swell_scaling": "jacobi"},
                  {"ksp_swell_method": "gmres", "ksp_swell_precond": "schwarz(overlap=1)"},
                  {"ksp_swell_method": "fgmres", "ksp_swell_precond": "petsc", "pc_type": "bjacobi"}):
        ksp = ksp_for(A, ksp_swell_report="", **words, **OWN_KSP)
        assert difference(solved(ksp), exact) < 1e-5, words
        assert reason_of(ksp) is swell.Reason.CONVERGED
    ksp.view()


@case
def parts_are_read_where_they_lie():
    A = spread(flow(8))
    one, two = views.parts(A), views.parts(A)
    assert all(np.shares_memory(mine.data, again.data) for mine, again in zip(one[:2], two[:2]))
    first, stop = A.getOwnershipRange()
    whole = flow(8)[first:stop].toarray()
    assert np.array_equal(one[0].toarray(), whole[:, first:stop]) and np.array_equal(one[1].toarray(), whole[:, one[2]])
    ksp = ksp_for(A, **OWN_KSP)
    ksp.setUp()
    own = ksp.getPythonContext()._solver.A.own.data
    assert not np.shares_memory(own, one[0].data)                # a prepared system does not follow what PETSc writes


@case
def blocks():
    """A BAIJ is read where it lies, and its size is the solver's; also with zeros inside blocks."""
    for point in ([[2, 1], [1, 3]], [[2, 1], [0, 3]]):
        S = sp.csr_matrix(sp.kron(poisson(6), point).astype(SCALAR))
        A = spread_blocks(S, 2)
        exact = solved(ksp_for(A, ksp_type="gmres", ksp_rtol="1e-12"), tolerance=1e-10)
        views_are_of_blocks(A, S)
        ksp = ksp_for(A, ksp_swell_method="gmres", ksp_swell_precond="ilu(block=None)", ksp_swell_format="bsr",
                      **OWN_KSP)
        assert difference(solved(ksp), exact) < 1e-6
        solver, said = ksp.getPythonContext()._solver, ksp.getPythonContext().result.configuration
        assert solver.A.block_size == 2 and any("off-diagonal part in blocks of 2" in line for line in said)
        A.scale(4)
        views_are_of_blocks(A, 4 * S)
        assert difference(solved(ksp), 0.25 * exact) < 1e-6 and ksp.getPythonContext()._solver is solver
        precond = ksp_for(A, pc_swell_precond="schwarz(inner=ilu(block=None))", **OWN_PC)
        assert difference(solved(precond, tolerance=1e-7), 0.25 * exact) < 1e-6


def views_are_of_blocks(A, S):
    """Both parts are PETSc's blocks, and no copies: two views of one part are the same memory."""
    (own, rest, columns), again = views.parts(A), views.parts(A)
    first, stop = A.getOwnershipRange()
    whole = S[first:stop].toarray()
    assert own.format == rest.format == "bsr" and own.blocksize == rest.blocksize == (A.getBlockSize(),) * 2
    assert all(np.shares_memory(mine.data, other.data) for mine, other in zip((own, rest), again))
    assert np.array_equal(own.toarray(), whole[:, first:stop]) and np.array_equal(rest.toarray(), whole[:, columns])


@case
def a_real_system_of_blocks():
    """A reservoir of 302 cells on three ranks: PETSc's block ILU(0), and swell's as its PC and as a whole solver."""
    A, counts = spread_blocks(sp.csr_matrix(scipy.io.mmread(sys.argv[2])), 3), []
    ones, b = A.createVecs()
    ones.set(1)
    A.mult(ones, b)                              # with b = 1 PETSc's GMRES breaks down
    for words in ({"ksp_type": "gmres", "ksp_pc_side": "right", "pc_type": "bjacobi", "sub_pc_type": "ilu"},
                  {"ksp_type": "gmres", "ksp_pc_side": "right", "pc_swell_precond": "ilu(block=None)", **OWN_PC},
                  {"ksp_swell_method": "gmres(restart=30)", "ksp_swell_precond": "ilu(block=None)", **OWN_KSP}):
        ksp = ksp_for(A, **words)
        solved(ksp, b)
        counts.append(ksp.getIterationNumber())
    theirs, as_pc, as_ksp = counts
    assert abs(as_pc - theirs) <= 3 and as_ksp <= theirs + 3, counts


@case
def new_values_and_a_new_pattern():
    S, A = poisson(10), spread(poisson(10))
    ksp = ksp_for(A, ksp_swell_method="cg", ksp_swell_precond="ic0", **OWN_KSP)
    context = ksp.getPythonContext()
    solved(ksp)
    solver, halo = context._solver, context._solver.A.halo
    A.shift(1)
    solved(ksp)
    assert context._solver is solver and solver.A.halo is halo
    fresh = ksp_for(A, ksp_swell_method="cg", ksp_swell_precond="ic0", **OWN_KSP)
    solved(fresh)
    assert fresh.getIterationNumber() == ksp.getIterationNumber()
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    if A.comm.rank == 0:                         # the pattern changes on one rank
        A.setValue(0, 99, -0.5)
        A.setValue(99, 0, -0.5)
    A.assemble()
    solved(ksp)
    assert context._solver is not solver
    T = (S + sp.eye_array(100)).tolil()
    T[0, 99] = T[99, 0] = -0.5
    first, stop = A.getOwnershipRange()
    assert np.array_equal(context._solver.A.global_rows().toarray(), T.toarray()[first:stop])


@case
def monitors():
    A, rank = spread(poisson(16)), PETSc.COMM_WORLD.rank
    ksp, seen = ksp_for(A, ksp_swell_method="cg", **OWN_KSP), []
    ksp.setConvergenceHistory()
    ksp.setMonitor(lambda ksp, k, norm: seen.append((k, norm)))
    solved(ksp)
    assert [k for k, _ in seen] == list(range(ksp.getIterationNumber() + 1)) and np.isclose(seen[0][1], 16)
    assert [norm for _, norm in seen] == list(ksp.getConvergenceHistory())
    x, b = A.createVecs()
    b.set(1)
    ended = ksp_for(A, ksp_swell_method="cg", **OWN_KSP)
    ended.setMonitor(lambda ksp, k, norm: ksp.setConvergedReason(-4) if (k, rank) == (3, 1) else None)
    ended.solve(b, x)                            # of rank 1 alone: rank 0 hears of it
    assert ended.getConvergedReason() == -4 and 3 < ended.getIterationNumber() <= 12

    def fails(ksp, k, norm):
        if (k, rank, b.norm() == 16) == (2, 1, True):
            raise ZeroDivisionError("mine")

    failing = ksp_for(A, ksp_swell_method="cg", **OWN_KSP)
    failing.setMonitor(fails)
    expect(ZeroDivisionError, "mine", lambda: failing.solve(b, x))
    b.set(2)
    solved(failing, b)


@case
def tolerances_guesses_and_null_spaces():
    A = spread(poisson(16))
    ksp = ksp_for(A, ksp_swell_method="cg", **OWN_KSP)
    x, b = A.createVecs()
    b.set(1)
    ksp.setTolerances(max_it=4)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() == -3 and reason_of(ksp) is swell.Reason.MAXITER
    ksp.setTolerances(max_it=10000)
    ksp.setInitialGuessNonzero(True)
    ksp.solve(b, x)
    count = ksp.getIterationNumber()
    ksp.solve(b, x)
    assert count > 0 and ksp.getIterationNumber() == 0
    S = poisson(12).tolil()
    S.setdiag(0)
    S = (S - sp.diags_array(np.asarray(S.sum(axis=1)).ravel())).tocsr()          # Neumann everywhere
    A = spread(S)
    A.setNullSpace(PETSc.NullSpace().create(constant=True, comm=A.comm))
    x, b = A.createVecs()
    first, stop = A.getOwnershipRange()
    b.setArray(np.arange(144.0)[first:stop] - 71.5)
    x = solved(ksp_for(A, ksp_swell_method="cg", **OWN_KSP), b)
    assert abs(x.sum()) < 1e-8 * x.norm()


@case
def refusals():
    rank, A = PETSc.COMM_WORLD.rank, spread(poisson(8))
    for words, message in (({"ksp_swell_method": "direct"}, "does not run across ranks"),
                           ({"ksp_swell_ordering": "rcm", "ksp_swell_method": "cg"}, "ordering= does not work across"),
                           ({"ksp_swell_device": "tpu"}, "device='tpu' across ranks"),
                           ({"ksp_swell_methd": "cg"}, "did you mean -ksp_swell_method"),
                           ({"ksp_swell_method": ("cg", "gmres")[rank]}, "the ranks disagree")):
        expect(swell.InputError, message, lambda w=words: solved(ksp_for(A, **w, **OWN_KSP)))
    uneven = spread(flow(8), (0, 64))
    expect(swell.InputError, "rank 0 has no row of the 64", lambda: solved(ksp_for(uneven, **OWN_KSP)))
    A = spread(poisson(8))
    ksp = ksp_for(A, ksp_swell_method="cg", **OWN_KSP)
    solved(ksp)
    diagonal = A.getDiagonal()
    spoilt = diagonal.copy()
    if rank:
        spoilt.getArray()[0] = np.nan
    A.setDiagonal(spoilt)                        # of rank 1 alone
    expect(swell.InputError, "NaN or Inf .1 entries of this rank's", lambda: solved(ksp))
    A.setDiagonal(diagonal)
    solved(ksp)
    for kind in ("dense", "sbaij"):
        A.setOption(PETSc.Mat.Option.SYMMETRIC, True)
        other = A.convert(kind, PETSc.Mat())
        expect(swell.InputError, f"type mpi{kind} .*expected aij or baij", lambda: solved(ksp_for(other, **OWN_KSP)))
    expect(swell.InputError, "spread over 2 ranks.*swell.guests.petsc.KSP", lambda: swell.solve(A, np.ones(64)))


@case
def ctrl_c_of_one_rank():
    A, rank = spread(poisson(16)), PETSc.COMM_WORLD.rank
    ksp = ksp_for(A, ksp_swell_method="cg", ksp_rtol="1e-14", **OWN_KSP)
    ksp.setMonitor(lambda ksp, k, norm: signal.raise_signal(signal.SIGINT) if (k, rank) == (3, 1) else None)
    x, b = A.createVecs()
    b.set(1)
    expect(KeyboardInterrupt, "", lambda: ksp.solve(b, x))
    assert reason_of(ksp) is swell.Reason.INTERRUPTED and x.norm() > 0


@case
def of_some_ranks():
    """Two of three, in the other order; the third one takes no part."""
    from mpi4py import MPI
    world = MPI.COMM_WORLD
    part = world.Split(0 if world.rank < 2 else 1, -world.rank)
    A = spread(flow(12), comm=PETSc.Comm(part))
    ours, theirs = ksp_for(A, ksp_swell_method="gmres", **OWN_KSP), ksp_for(A, ksp_type="gmres", ksp_rtol="1e-12")
    assert difference(solved(ours), solved(theirs, tolerance=1e-9)) < 1e-6
    if part.size > 1:
        communicator = ours.getPythonContext()._solver.A.space.ranks.communicator
        again = ksp_for(A, **OWN_KSP)
        solved(again)
        assert communicator.rank == part.rank == 1 - world.rank
        assert again.getPythonContext()._solver.A.space.ranks.communicator is communicator


ALONE = {"of_some_ranks", "a_real_system_of_blocks"}             # they have tests of their own


@pytest.mark.parametrize("name", sorted(CASES.keys() - ALONE))
def test_two_ranks(name):
    started(name, 2)


@pytest.mark.data
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_real_system(data, ranks):
    said = started("as_petsc", ranks, str(data / "matrices" / "ml_elasticity.mtx.gz"))
    assert said.count("method cg on") + said.count("FGMRES") > 0


@pytest.mark.data
def test_a_real_system_of_blocks(data):
    started("a_real_system_of_blocks", 3, str(data / "matrices" / "fasp_spe01_bsr3.mtx.gz"))


def test_blocks_on_three_ranks():
    started("blocks", 3)


def test_some_ranks():
    started("of_some_ranks", 3)


if __name__ == "__main__":
    CASES[sys.argv[1]]()
    print("as it must be", flush=True)
