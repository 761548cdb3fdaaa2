"""swell inside PETSc and PETSc's matrices inside swell. Skipped, with the reason, where there is no petsc4py.

On several ranks: test_petsc_ranks.py.
"""
from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

PETSc = pytest.importorskip("petsc4py.PETSc", exc_type=(ImportError, ValueError),
                            reason="needs petsc4py, built for this NumPy: pip install petsc petsc4py")

import swell                                                                                    # noqa: E402
from swell.guests.petsc import views                                                            # noqa: E402
from swell.core.stopping import Reason                                                          # noqa: E402
from swell.guests.petsc import KSP, PC, reason_of                                               # noqa: E402
from swell.guests.petsc.ksp import CODES                                                        # noqa: E402

SCALAR = np.dtype(PETSc.ScalarType)
COMPLEX = SCALAR.kind == "c"
RANDOM = np.random.default_rng(0)


def options(words):
    """Put options into PETSc's database; the fixture clears it again."""
    database = PETSc.Options()
    for name, value in words.items():
        database[name] = value


@pytest.fixture(autouse=True)
def _clean():
    yield
    database = PETSc.Options()
    for name in database.getAll():
        database.delValue(name)


def mat(S, comm=PETSc.COMM_SELF):
    S = sp.csr_matrix(S)
    S.sort_indices()
    A = PETSc.Mat().createAIJ(S.shape, csr=(S.indptr.astype(PETSc.IntType), S.indices.astype(PETSc.IntType),
                                            S.data.astype(SCALAR)), comm=comm)
    A.assemble()
    return A


def blocked(S, kind, size):
    """The same matrix in blocks."""
    A = PETSc.Mat().create(PETSc.COMM_SELF)
    A.setSizes(S.shape)
    A.setType(kind)
    A.setBlockSize(size)
    A.setUp()
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    S = sp.coo_matrix(sp.triu(S) if kind == "sbaij" else S)
    for i, j, v in zip(S.row, S.col, S.data):
        A.setValue(i, j, v)
    A.assemble()
    return A


def vec(values):
    v = PETSc.Vec().createSeq(len(values), comm=PETSc.COMM_SELF)
    v.setArray(np.asarray(values, SCALAR))
    return v


def flow(n=24):
    """A convection–diffusion matrix, not symmetric."""
    return swell.gallery.convection_diffusion((n, n)).tocsr().astype(SCALAR)


def poisson(n=24):
    return swell.gallery.poisson2d(n).tocsr().astype(SCALAR)


def rhs(n):
    b = RANDOM.standard_normal(n)
    return b + 1j * RANDOM.standard_normal(n) if COMPLEX else b


def relative(S, x, b):
    return np.linalg.norm(b - S @ x) / np.linalg.norm(b)


def guest(S, prefix="", **words):
    """A KSP for S whose options are ``words``."""
    options({prefix + name: value for name, value in words.items()})
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOptionsPrefix(prefix)
    A = S if isinstance(S, PETSc.Mat) else mat(S)
    ksp.setOperators(A)
    ksp.setFromOptions()
    return ksp, A


def swell_ksp(S, **words):
    return guest(S, ksp_type="python", ksp_python_type="swell.guests.petsc.KSP", **words)


def swell_pc(S, **words):
    return guest(S, pc_type="python", pc_python_type="swell.guests.petsc.PC", **words)


# -- matrices and vectors --------------------


def test_aij_is_read_where_it_lies():
    S = flow()
    A = mat(S)
    state, pattern = A.stateGet(), views.pattern(A)
    one, two = views.matrix(A), views.matrix(A)
    assert (abs(one - S) > 0).nnz == 0
    parts = ("data", "indices", "indptr") if PETSc.IntType == np.int32 else ("data",)
    assert all(np.shares_memory(getattr(one, part), getattr(two, part)) for part in parts)
    A.scale(2)
    assert np.array_equal(one.data, 2 * S.data)  # PETSc wrote, and the view shows it
    assert not views._aij(A).data.flags.writeable
    assert views.pattern(A) == pattern and A.stateGet() != state
    state = A.stateGet()
    views.matrix(A)
    assert A.stateGet() == state                 # reading is no change


def test_a_view_outlives_the_name_of_its_matrix():
    A = mat(flow())
    one = views._values(A, "MatSeqAIJGetArrayRead", "MatSeqAIJRestoreArrayRead", 10)
    before = one.copy()
    del A
    [mat(flow()) for _ in range(3)]
    assert np.array_equal(one, before)


def test_equal_rows_are_not_taken_together():
    """PETSc can show an AIJ by its i-nodes, groups of rows with one pattern."""
    S = sp.csr_matrix(np.kron(poisson(3).toarray(), RANDOM.random((3, 3))).astype(SCALAR))
    assert abs(views.matrix(mat(S)) - S).max() == 0


def test_the_pattern_has_a_state():
    A = mat(sp.eye_array(4, format="csr"))
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    before = views.pattern(A)
    A.setValue(0, 3, 5)
    A.assemble()
    assert views.pattern(A) != before
    assert views.matrix(A).toarray()[0, 3] == 5


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("kind", ["baij", "sbaij"])
def test_blocks(kind, size):
    D = RANDOM.random((12, 12)) * (RANDOM.random((12, 12)) < 0.4) + 4 * np.eye(12)
    S = sp.csr_matrix((D + D.T).astype(SCALAR) * ((1 + 0.5j) if COMPLEX else 1))
    A = blocked(S, kind, size)
    state = A.stateGet()
    assert abs(sp.csr_matrix(views.matrix(A)) - S).max() == 0
    assert A.stateGet() == state
    name = "SeqBAIJ" if kind == "baij" else "SeqSBAIJ"
    assert np.shares_memory(views._blocks(A, name).data, views._blocks(A, name).data)
    x = rhs(12)
    y = A.createVecLeft()
    A.mult(vec(x), y)
    assert np.allclose(views.matrix(A) @ x, y.array)


@pytest.mark.skipif(not COMPLEX, reason="a PETSc with complex scalars only")
def test_a_hermitian_sbaij_has_conjugates_below():
    S = sp.csr_matrix(np.array([[3, 1 + 2j, 0], [1 - 2j, 4, 1j], [0, -1j, 5]]))
    A = blocked(S, "sbaij", 1)
    A.setOption(PETSc.Mat.Option.HERMITIAN, True)
    assert abs(views.matrix(A) - S).max() == 0


def test_dense_and_shell():
    S = flow(8)
    dense = mat(S).convert("dense", PETSc.Mat())
    assert np.array_equal(views.matrix(dense), S.toarray())
    b = vec(rhs(64))
    assert relative(S, swell.solve(dense, b).x.array, b.array) < 1e-8

    class Shell:
        def mult(self, A, x, y):
            y.array = S @ x.array_r

    shell = PETSc.Mat().createPython(S.shape, Shell(), comm=PETSc.COMM_SELF)
    shell.setUp()
    r = swell.solve(shell, b, method="gmres(restart=64)")
    assert r.converged and relative(S, r.x.array, b.array) < 1e-8 and r.format == "matrix-free"


def test_solve_takes_petsc_and_gives_a_vec():
    S, A = flow(), mat(flow())
    b = vec(rhs(S.shape[0]))
    before = b.array.copy()
    r = swell.solve(A, b, method="gmres", precond="ilu0", rtol=1e-9)
    assert isinstance(r.x, PETSc.Vec) and r.converged
    assert relative(S, r.x.array, before) < 1e-9 and np.array_equal(b.array, before)
    again = swell.solve(A, b, method="gmres", precond="ilu0", rtol=1e-9, x0=r.x)
    assert again.iterations == 0 and isinstance(swell.solve(A, before, method="gmres").x, np.ndarray)


def test_a_prepared_solver_does_not_follow_the_matrix():
    S, A = poisson(), mat(poisson())
    b = rhs(S.shape[0])
    s = swell.prepare(A, method="cg", b_like=b)
    A.scale(100)
    assert relative(S, s.solve(b).x, b) < 1e-8
    assert relative(100 * S, s.update(A).solve(b).x, b) < 1e-8


@pytest.mark.parametrize("kind, words", [("nest", "expected aij"), ("unassembled", "not assembled")])
def test_matrices_that_are_refused(kind, words):
    if kind == "nest":
        A = PETSc.Mat().createNest([[mat(poisson(3))]], comm=PETSc.COMM_SELF)
    else:
        A = PETSc.Mat().createAIJ((3, 3), nnz=1, comm=PETSc.COMM_SELF)
    with pytest.raises(swell.InputError, match=words):
        swell.solve(A, np.ones(A.getSize()[0]))


@pytest.mark.skipif(COMPLEX, reason="a PETSc with real scalars only")
def test_a_complex_solution_does_not_fit_a_real_vec():
    with pytest.raises(swell.InputError, match="the solution is complex128 and this PETSc is built for float64"):
        swell.solve((1 + 1j) * poisson(5), vec(np.ones(25)))


# -- PC --------------------


@pytest.mark.parametrize("method, precond", [("gmres", "ilu0"), ("bcgs", "ilu0(ordering=twisted)"), ("gmres", "jacobi"),
                                             ("preonly", "direct"), ("bicg", "ilu0")])
def test_pc_in_petscs_methods(method, precond):
    S = flow()
    ksp, A = swell_pc(S, ksp_type=method, pc_swell_precond=precond, ksp_rtol=1e-10)
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    before = b.array.copy()
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0 and relative(S, x.array, before) < 1e-7
    assert np.array_equal(b.array, before)


def test_pc_iterates_as_petscs_own_ilu():
    S = flow()
    b = vec(rhs(S.shape[0]))
    counts = []
    for words in ({"pc_type": "ilu"}, {"pc_type": "python", "pc_python_type": "swell.guests.petsc.PC"}):
        ksp, A = guest(S, ksp_rtol=1e-10, **words)
        x = A.createVecRight()
        ksp.solve(b, x)
        counts.append(ksp.getIterationNumber())
    assert counts[0] == counts[1]


def test_pc_transpose():
    S = flow()
    ksp, A = swell_pc(S, pc_swell_precond="direct")
    ksp.setUp()
    b, y = rhs(S.shape[0]), A.createVecRight()
    ksp.getPC().applyTranspose(vec(b), y)
    assert relative(S.T, y.array, b) < 1e-12


def test_pc_in_single_precision_goes_through_vectors_of_its_own():
    S = flow()                                   # linear to its own rounding only, which fgmres forgives
    ksp, A = swell_pc(S, pc_swell_dtype="complex64" if COMPLEX else "float32", ksp_type="fgmres", ksp_rtol=1e-10)
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0 and relative(S, x.array, b.array) < 1e-8
    assert ksp.getPC().getPythonContext()._r.dtype.itemsize == SCALAR.itemsize // 2


def test_pc_refreshes_values_and_remakes_for_a_pattern():
    S = flow()
    ksp, A = swell_pc(S, ksp_type="preonly", pc_swell_precond="direct")
    context = ksp.getPC().getPythonContext()
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    first = context._M
    A.scale(3)
    ksp.solve(b, x)
    assert context._M is first and relative(3 * S, x.array, b.array) < 1e-12
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    A.setValue(0, S.shape[0] - 1, 0.5)
    A.assemble()
    ksp.solve(b, x)
    T = (3 * S).tolil()
    T[0, S.shape[0] - 1] = 0.5
    assert context._M is not first and relative(T.tocsr(), x.array, b.array) < 1e-12
    before = x.array.copy()
    ksp.getPC().setReusePreconditioner(True)
    A.scale(2)
    ksp.solve(b, x)
    assert np.array_equal(x.array, before)       # PETSc was told to keep what there is


def test_pc_without_the_database_and_its_view(capfd):
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    ksp.setOperators(mat(poisson()))
    ksp.setType("cg")
    pc = ksp.getPC()
    pc.setType("python")
    pc.setPythonContext(PC(precond=swell.IC0(ordering="twisted")))
    pc.view()
    ksp.setUp()
    pc.view()
    said = capfd.readouterr().out
    assert "IC(ordering='twisted') on cpu, not set up" in said and "IC(ordering='twisted'), 1680 entries" in said


def test_prefixes_are_honoured():
    ksp, A = guest(poisson(), "fluid_", pc_type="python", pc_python_type="swell.guests.petsc.PC",
                   pc_swell_precond="jacobi")
    assert ksp.getPC().getPythonContext().precond == "jacobi"
    other, _ = guest(poisson(), "solid_", pc_type="python", pc_python_type="swell.guests.petsc.PC")
    assert other.getPC().getPythonContext().precond == "ilu0"


def test_a_misspelt_option_is_an_error():
    with pytest.raises(swell.InputError, match="-pc_swell_precnod: did you mean -pc_swell_precond"):
        swell_pc(poisson(), pc_swell_precnod="ic0")


@pytest.mark.parametrize("words, message", [({"pc_swell_precond": "ilu1"}, "unknown precond"),
                                            ({"pc_swell_precond": "none"}, "leaves swell nothing to do"),
                                            ({"pc_swell_precond": "ic0"}, "Hermitian|symmetric"),
                                            ({"pc_swell_dtype": "float16"}, "float16")])
def test_what_pc_refuses_is_raised_with_its_message(words, message):
    ksp, A = swell_pc(flow(), **words)
    b, x = A.createVecs()
    b.set(1)
    with pytest.raises(swell.SwellError, match=message):
        ksp.solve(b, x)


# -- KSP --------------------


@pytest.mark.parametrize("method, precond", [("cg", "ic0"), ("gmres", "ilu0(ordering=twisted)"), ("bicgstab", "jacobi"),
                                             ("direct", ""), ("", "")])
def test_ksp_solves_as_swell_does(method, precond):
    S = poisson()
    words = {name: value for name, value in (("ksp_swell_method", method), ("ksp_swell_precond", precond)) if value}
    ksp, A = swell_ksp(S, ksp_rtol=1e-9, **words)
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    same = swell.solve(S, b.array, method=method or None, precond=precond or None, rtol=1e-9, maxiter=10000)
    assert ksp.getConvergedReason() == 2 and relative(S, x.array, b.array) <= 1e-9
    assert ksp.getIterationNumber() == same.iterations and np.array_equal(x.array, same.x)
    assert np.isclose(ksp.getResidualNorm(), np.linalg.norm(b.array - S @ x.array), rtol=1e-3)
    assert ksp.getPC().getType() == "none" and ksp.getPythonContext().result.converged


def test_monitors_and_history():
    S = poisson()
    ksp, A = swell_ksp(S, ksp_swell_method="cg")
    seen = []
    ksp.setMonitor(lambda ksp, k, norm: seen.append((k, norm, ksp.getIterationNumber(), ksp.getResidualNorm())))
    ksp.setConvergenceHistory()
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    count = ksp.getIterationNumber()
    assert [s[0] for s in seen] == [s[2] for s in seen] == list(range(count + 1))
    assert [s[1] for s in seen] == [s[3] for s in seen] == list(ksp.getConvergenceHistory())
    assert np.isclose(seen[0][1], b.norm())


def test_a_monitor_may_end_it():
    S = poisson()
    ksp, A = swell_ksp(S, ksp_swell_method="cg")

    def monitor(ksp, k, norm):
        if k == 3:
            ksp.setConvergedReason(PETSc.KSP.ConvergedReason.DIVERGED_DTOL)

    ksp.setMonitor(monitor)
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    assert ksp.getIterationNumber() == 3 and ksp.getConvergedReason() == -4


def test_what_a_monitor_raises_comes_out_and_the_next_solve_works():
    S = poisson()
    ksp, A = swell_ksp(S, ksp_swell_method="cg")

    def monitor(ksp, k, norm):
        if k == 2 and b.array[0] == 0:
            raise ZeroDivisionError("mine")

    ksp.setMonitor(monitor)
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    b.array[0] = 0
    with pytest.raises(ZeroDivisionError, match="mine"):
        ksp.solve(b, x)
    b.array[0] = 1
    ksp.solve(b, x)
    assert ksp.getConvergedReason() == 2 and relative(S, x.array, b.array) <= 1e-5


def test_tolerances_and_reasons():
    S = poisson()
    ksp, A = swell_ksp(S, ksp_swell_method="cg")
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    reasons = PETSc.KSP.ConvergedReason
    for words, code in (({"rtol": 1e-3}, reasons.CONVERGED_RTOL),
                        ({"rtol": 1e-12, "atol": 1e-2}, reasons.CONVERGED_ATOL),
                        ({"rtol": 1e-12, "atol": 1e-50, "max_it": 4}, reasons.DIVERGED_MAX_IT)):
        ksp.setTolerances(**words)
        ksp.solve(b, x)
        norm = np.linalg.norm(b.array - S @ x.array)
        assert ksp.getConvergedReason() == code
        assert code < 0 or norm <= max(words["rtol"] * b.norm(), words.get("atol", 0))
    assert ksp.getIterationNumber() == 4 and reason_of(ksp) is Reason.MAXITER
    ksp.setTolerances(max_it=10000)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() == 2         # the limit went up again
    b.set(0)
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0 and x.norm() == 0 and ksp.getIterationNumber() == 0


def test_every_reason_has_a_code_that_petsc_knows():
    codes = PETSc.KSP.ConvergedReason
    known = {getattr(codes, name) for name in dir(codes) if not name.startswith("_")}
    assert set(CODES) == set(Reason) and set(CODES.values()) <= known
    assert [reason for reason, code in CODES.items() if code > 0] == [Reason.CONVERGED]


def test_nothing_is_called_converged_that_is_not():
    S = sp.csr_matrix(np.diag([1.0, 0.0]).astype(SCALAR) + np.array([[0, 0], [1.0, 0]]))
    ksp, A = swell_ksp(S, ksp_swell_method="gmres")
    b, x = vec([1, 3]), A.createVecRight()
    ksp.solve(b, x)
    assert ksp.getConvergedReason() < 0
    ksp.setErrorIfNotConverged(True)
    with pytest.raises(PETSc.Error):
        ksp.solve(b, x)
    indefinite, A = swell_ksp(sp.diags_array([1.0, -1.0, 2.0]), ksp_swell_method="cg")
    b, x = A.createVecs()
    b.set(1)
    indefinite.solve(b, x)
    assert indefinite.getConvergedReason() == -10 and reason_of(indefinite) is Reason.INDEFINITE
    unfactored, A = swell_ksp(sp.csr_matrix(np.ones((3, 3))), ksp_swell_method="direct")
    unfactored.solve(b, x)
    assert unfactored.getConvergedReason() < 0


def test_reason_of_petscs_own_ksp_looks_at_the_residual():
    scaled = sp.diags_array(10.0 ** np.arange(-6, 6)) @ (poisson(4)[:12, :12] + sp.eye_array(12))
    ksp, A = guest(scaled, ksp_type="richardson", pc_type="jacobi", ksp_rtol=1e-2)
    b, x = vec(10.0 ** np.arange(-6, 6)), A.createVecRight()
    ksp.solve(b, x)
    confirmed = relative(sp.csr_matrix(scaled), x.array, b.array) <= 1e-2
    assert ksp.getConvergedReason() > 0
    assert reason_of(ksp) is (Reason.CONVERGED if confirmed else Reason.FALSE_CONVERGENCE)


def test_initial_guess():
    S = poisson()
    ksp, A = swell_ksp(S, ksp_swell_method="cg", ksp_rtol=1e-6)
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    first = ksp.getIterationNumber()
    ksp.setInitialGuessNonzero(True)
    ksp.setTolerances(rtol=1e-7)
    ksp.solve(b, x)
    assert 0 < ksp.getIterationNumber() < first and relative(S, x.array, b.array) <= 1e-7
    ksp.solve(b, x)
    assert ksp.getIterationNumber() == 0


def test_ksp_updates_values_remakes_for_a_pattern_and_keeps_on_request():
    S = poisson()
    ksp, A = swell_ksp(S, ksp_swell_method="cg", ksp_swell_precond="ic0", ksp_rtol=1e-8)
    context = ksp.getPythonContext()
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    solver, prepared = context._solver, context._solver._prepared[0]
    A.shift(1)
    T = (S + sp.eye_array(S.shape[0])).tocsr()
    ksp.solve(b, x)
    assert context._solver is solver and solver._prepared[0] is prepared and relative(T, x.array, b.array) <= 1e-8
    count = ksp.getIterationNumber()
    assert count == swell.solve(T, b.array, method="cg", precond="ic0", rtol=1e-8).iterations
    options({"ksp_reuse_preconditioner": "1"})
    A.shift(20)
    ksp.solve(b, x)                              # IC(0) of the matrix before
    U = (T + 20 * sp.eye_array(S.shape[0])).tocsr()
    assert relative(U, x.array, b.array) <= 1e-8
    assert ksp.getIterationNumber() > swell.solve(U, b.array, method="cg", precond="ic0", rtol=1e-8).iterations
    A.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
    for i, j in ((0, 575), (575, 0)):
        A.setValue(i, j, -0.5)
    A.assemble()
    ksp.solve(b, x)
    U = U.tolil()
    U[0, 575] = U[575, 0] = -0.5
    assert context._solver is not solver and relative(U.tocsr(), x.array, b.array) <= 1e-8


def test_petscs_preconditioner_in_swells_method():
    S = poisson()
    b = vec(rhs(S.shape[0]))
    ksp, A = swell_ksp(S, ksp_swell_method="cg", ksp_swell_precond="petsc", pc_type="icc", ksp_rtol=1e-9)
    x = A.createVecRight()
    ksp.solve(b, x)
    assert ksp.getPC().getType() == "icc" and relative(S, x.array, b.array) <= 1e-9
    same = swell.solve(S, b.array, method="cg", precond="ic0", rtol=1e-9)
    assert abs(ksp.getIterationNumber() - same.iterations) <= 1
    A.shift(5)                                   # PETSc renews its PC, and swell its matrix
    ksp.solve(b, x)
    assert relative(S + 5 * sp.eye_array(S.shape[0]), x.array, b.array) <= 1e-9


def test_a_null_space_of_the_matrix_is_known_to_swell():
    S = swell.gallery.poisson2d(12).tolil()
    S.setdiag(0)
    S = S.tocsr()
    S = (S - sp.diags_array(np.asarray(S.sum(axis=1)).ravel())).tocsr()        # Neumann everywhere
    A = mat(S)
    A.setNullSpace(PETSc.NullSpace().create(constant=True, comm=PETSc.COMM_SELF))
    ksp, A = swell_ksp(A, ksp_swell_method="cg", ksp_rtol=1e-9)
    x = A.createVecRight()
    b = rhs(144)
    ksp.solve(vec(b - b.mean()), x)
    assert ksp.getConvergedReason() > 0 and abs(x.sum()) < 1e-9
    assert relative(S, x.array, b - b.mean()) <= 1e-9
    if not A.isSymmetricKnown()[0]:              # else PETSc itself takes the constants out of b
        with pytest.raises(swell.InputError, match="null"):
            ksp.solve(vec(b), x)


def test_the_view_says_what_ran(capfd):
    ksp, A = swell_ksp(poisson(), ksp_swell_method="cg", ksp_swell_precond="ic0", ksp_swell_report="")
    ksp.view()
    b, x = A.createVecs()
    b.set(1)
    ksp.solve(b, x)
    ksp.view()
    said = capfd.readouterr().out
    for words in ("swell: method cg on cpu, not set up", "swell: CG() on 576 unknowns", "preconditioner: IC()",
                  "last solve: CONVERGED", "converged in", "using UNPRECONDITIONED norm type", "right preconditioning"):
        assert words in said


@pytest.mark.parametrize("words, message", [
    ({"ksp_swell_methd": "cg"}, "did you mean -ksp_swell_method"),
    ({"ksp_swell_method": "gmress"}, "unknown method"),
    ({"pc_type": "gamg"}, "-ksp_swell_precond petsc"),
    ({"pc_type": "ilu"}, "-ksp_swell_precond petsc"),
    ({"ksp_norm_type": "preconditioned"}, "leave -ksp_norm_type"),
    ({"ksp_pc_side": "left"}, "leave -ksp_norm_type and"),
    ({"ksp_convergence_test": "skip"}, "default convergence test only"),
    ({"ksp_rtol": "2"}, "rtol=2"),
    ({"ksp_swell_device": "tpu"}, "device='tpu'"),
    ({"ksp_swell_precond": "petsc", "ksp_swell_device": "cuda"}, "works on the host"),
    ({"ksp_swell_method": "cg", "ksp_monitor_true_residual": ""}, "does not form x in every iteration"),
])
def test_what_ksp_refuses_is_raised_with_its_message(words, message):
    with pytest.raises(swell.SwellError, match=message):
        ksp, A = swell_ksp(poisson(), **words)
        b, x = A.createVecs()
        b.set(1)
        ksp.solve(b, x)


def test_ksp_refuses_two_matrices_and_transposes():
    ksp, A = swell_ksp(poisson())
    b, x = A.createVecs()
    b.set(1)
    with pytest.raises(swell.InputError, match="solves A x = b only"):
        ksp.solveTranspose(b, x)
    ksp.setOperators(A, mat(poisson()))
    with pytest.raises(swell.InputError, match="two matrices"):
        ksp.solve(b, x)


def test_ksp_from_python_and_a_residual_vector():
    S = poisson()
    ksp = PETSc.KSP().create(PETSc.COMM_SELF)
    A = mat(S)
    ksp.setOperators(A)
    ksp.setType("python")
    ksp.setPythonContext(KSP(method=swell.GMRES(restart=20), precond="ilu0"))
    b, x = vec(rhs(S.shape[0])), A.createVecRight()
    ksp.solve(b, x)
    assert np.allclose(ksp.buildResidual().array, b.array - S @ x.array)
    assert ksp.getPythonContext().result.method == "gmres"


def test_newton_by_snes():
    """SNES changes the values of one pattern, and the tolerance of each solve (Eisenstat and Walker)."""
    S = poisson(12)
    b = np.full(144, 5.0)
    J = mat(S)

    def residual(snes, x, f):
        f.array = S @ x.array_r + x.array_r**3 - b

    def jacobian(snes, x, J, P):
        diagonal = vec(S.diagonal() + 3 * x.array_r**2)
        P.setDiagonal(diagonal)
        P.assemble()

    options({"snes_ksp_ew": "", "ksp_type": "python", "ksp_python_type": "swell.guests.petsc.KSP",
             "ksp_swell_method": "cg", "ksp_swell_precond": "ic0"})
    snes = PETSc.SNES().create(PETSc.COMM_SELF)
    x = J.createVecRight()
    snes.setFunction(residual, x.duplicate())
    snes.setJacobian(jacobian, J)
    snes.setFromOptions()
    snes.solve(None, x)
    assert snes.getConvergedReason() > 0 and np.linalg.norm(S @ x.array + x.array**3 - b) < 1e-6


def test_an_error_at_the_end_of_a_program_is_the_last_word(tmp_path):
    """PETSc would crash in what an uncaught error has left behind: its message must not be buried."""
    script = tmp_path / "app.py"
    script.write_text("""import sys, petsc4py
petsc4py.init(sys.argv)
from petsc4py import PETSc
A = PETSc.Mat().createAIJ((3, 3), nnz=1)
A.assemble(); A.shift(1)
ksp = PETSc.KSP().create(); ksp.setOperators(A); ksp.setFromOptions(); ksp.setUp()
""")
    for kind, words in (("ksp", ["-ksp_type", "python", "-ksp_python_type", "swell.guests.petsc.KSP",
                                 "-ksp_swell_methd", "cg"]),
                        ("pc", ["-pc_type", "python", "-pc_python_type", "swell.guests.petsc.PC",
                                "-pc_swell_precond", "ilu1"])):
        done = subprocess.run([sys.executable, str(script), *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == 1, kind
        assert "swell.core.errors.InputError: unknown" in done.stderr.strip().splitlines()[-1], done.stderr
