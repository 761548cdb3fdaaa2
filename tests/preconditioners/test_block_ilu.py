"""Block ILU(0) and blockwise triangular solves: against dense blocks, ILU(0) and LU; sweeps, guards, bad input."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.blocks import applied, blocked, built, csr, growing, near, singular_block, vector
from tests.support.cases import real_matrix, rng
from tests.support.during import during

import swell
from swell import gallery
from swell.core.errors import FactorisationError
from swell.core.registry import resolve
from swell.core.devices import make_space
from swell.core.stopping import Reason
from swell.formats.bsr import BSR
from swell.preconditioners.lu_factorisation import BlockSequential
from swell.preconditioners.incomplete import IncompleteOperator
from swell.preconditioners.triangular import random_vector

SOLVES = ("exact(schedule='levels')", "exact(schedule='sync_free')", "sweeps(count=60)")
REAL = {"ml_elasticity": 3, "hypre_beam_tet_dof2475": 3, "fasp_spe01_bsr3": 3}


def dense(M):
    """(L, U, pattern) as dense arrays, in the order of the rows of A, padding included."""
    s, T, host = M.block, M.factor, M.space.to_host
    size = T.count * s
    order = np.arange(T.count) if M.order is None else host(M.order)
    rows = (order[:, None] * s + np.arange(s)).reshape(-1)
    factors, inverse = np.zeros((2, size, size), T.dtype), host(T.inverse)
    pattern = np.kron(np.eye(T.count), np.ones((s, s)))
    for N, lower in zip(factors, (True, False)):
        ptr, columns, blocks = (host(a) for a in T.triangle(lower))
        for i in range(T.count):
            own = slice(i * s, (i + 1) * s)
            N[own, own] = np.eye(s)
            for k in range(ptr[i], ptr[i + 1]):
                at = own, slice(columns[k] * s, (columns[k] + 1) * s)
                N[at], pattern[at] = blocks[k], 1
    for j in range(T.count):
        factors[1][:, j * s:(j + 1) * s] = factors[1][:, j * s:(j + 1) * s] @ np.linalg.inv(inverse[j])
    back = np.argsort(rows)
    return tuple(X[back][:, back] for X in (*factors, pattern))


# -- the factors -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("ordering", ["natural", "multicolor", "rcm"])
def test_blocks_of_the_product_are_those_of_the_matrix(ordering, dtype, space):
    for s in [2, 3, 4, 5, 11] if ordering == "natural" else [3]:
        with during(s=s):
            A = blocked(s, dtype)
            with space.active():
                M = built(f"ilu(block={s}, ordering={ordering!r})", A, space)
                L, U, pattern = dense(M)
                assert abs((L @ U - A.toarray()) * pattern).max() <= 1e-14 * abs(A).max()
                assert abs(L @ U - A.toarray()).max() > 1e-3                    # there is fill that was left out
                x = vector(A.shape[0], dtype)
                assert near(applied(M, x), np.linalg.solve(L @ U, x))
                assert near(applied(M, x, adjoint=True), np.linalg.solve((L @ U).conj().T, x))
                assert M.notes == () and f"blocks of {s}" in M.describe()


def test_fixed_point_sweeps_converge_to_it(dtype, space):
    """And as many as there are levels and more are it; the description says by how much the last one changed it."""
    for s in [2, 3, 4, 5, 8, 11, 32]:
        with during(s=s):
            A = blocked(s, dtype)
            x = vector(A.shape[0], dtype)
            with space.active():
                exact, errors, changes = built(f"ilu(block={s})", A, space), [], []
                for sweeps in (1, 2, 40):
                    M = built(f"ilu(block={s}, factor='sweeps', factor_sweeps={sweeps})", A, space)
                    errors.append(float(abs(M.factor.data - exact.factor.data).max() / abs(exact.factor.data).max()))
                    changes.append(M.change)
                    said = f"changed by {M.change:.1e} in the last sweep" in M.describe()
                    assert M.notes == () and (sweeps == 40 or said)
                assert errors[2] <= 1e-13 and exact.change == 0 and errors[0] > 2 * errors[1] > 1e-9
                assert changes[0] > changes[1] > changes[2] == 0 or changes[2] < 1e-14
                assert near(applied(M, x), applied(exact, x), 1e-11)
                assert near(applied(M, x, True), applied(exact, x, True), 1e-11)


@pytest.mark.parametrize("kind", ["float32", "complex64"])
def test_fixed_point_sweeps_in_single(kind, space):
    A = sp.csr_array(blocked(3).astype(kind))
    with space.active():
        exact, M = (built(f"ilu(block=3{how})", A, space) for how in ("", ", factor='sweeps', factor_sweeps=40"))
        assert M.dtype == kind and near(space.to_host(M.factor.data), space.to_host(exact.factor.data), 1e-5)


@pytest.mark.parametrize("ordering, s", [("rcm", 3), ("multicolor", 11)])
def test_sweeps_in_an_order_and_padded(ordering, s, space):
    A, x = blocked(1, count=90), vector(90)
    text = f"ilu(block={s}, pad=True, ordering={ordering!r}{{}})"
    with space.active():
        exact, M = (built(text.format(how), A, space) for how in ("", ", factor='sweeps', factor_sweeps=40"))
        assert near(applied(M, x), applied(exact, x)) and near(applied(M, x, True), applied(exact, x, True))


def test_sweeps_give_the_same_bits_every_time(space):
    with space.active():
        first, second = (built("ilu(block=3, factor='sweeps')", blocked(3), space).factor.data for _ in range(2))
        assert bool((first == second).all())


def test_factor_sweeps_that_grow_are_not_used(device):
    """Their map is nilpotent, yet grows before it vanishes: shifted and said, or an error."""
    n = 20
    A = sp.csr_array(4 * np.eye(2 * n) + rng().standard_normal((2 * n, 2 * n)))
    for precond in ("ilu(block=2, factor='sweeps', factor_sweeps=8{})", "ilu0(factor='sweeps', factor_sweeps=8{})"):
        result = swell.solve(A, np.ones(2 * n), method="gmres", precond=precond.format(""), device=device)
        assert any("fixed-point sweeps changed L and U" in note and "factor='exact'" in note for note in result.notes)
        assert np.isfinite(result.x).all()
        result = swell.solve(A, np.ones(2 * n), method="gmres", precond=precond.format(", pivot='error'"), device=device)
        assert result.reason is Reason.NOT_FACTORED and np.isfinite(result.x).all()
        assert "fixed-point sweeps changed" in str(result)


def test_single_entries_where_A_has_no_blocks(dtype, space):
    A = blocked(1, dtype, count=90)
    assert swell.ILU(block=1) == swell.ILU()
    with space.active():
        detected, point = built("ilu(block=None)", A, space), built("ilu0", A, space)
        assert ["so this is plain ILU(0)" in note for note in detected.notes] == [True] and not point.notes
        assert detected.block == 1 and (detected.factor.data == point.factor.data).all()


@pytest.mark.parametrize("s", [2, 3, 5, 8])
def test_rows_numbered_unknown_by_unknown_are_recognised(s, space):
    """The note's permutation gives blocks. Rows of one unknown, and rows vertex by vertex, are not taken for it."""
    grid = sp.kron(sp.eye_array(9), sp.diags_array([1.0, 4, 1], offsets=[-1, 0, 1], shape=(8, 8)), format="csr")
    by_unknown = sp.csr_array(sp.kron(np.ones((s, s)) + s * np.eye(s), grid))
    p = np.arange(72 * s).reshape(s, -1).T.ravel()
    with space.active():
        note, = built("ilu(block=None)", by_unknown, space).notes
        assert f"72 for each of {s}" in note and f"numpy.arange({72 * s}).reshape({s}, -1).T.ravel()" in note
        found = built("ilu(block=None)", by_unknown[p][:, p], space)
        assert found.block == s and not found.notes
        note, = built("ilu(block=None)", sp.csr_array(grid), space).notes
        assert "unknown by unknown" not in note and "block=3" in note


def test_without_fill_it_is_the_inverse(dtype, space):
    """Block tridiagonal, and full."""
    for s in [2, 3, 6]:
        with during(s=s):
            for pattern in (sp.diags_array([1.0, 1, 1], offsets=[-1, 0, 1], shape=(12, 12)), np.ones((4, 4))):
                A = sp.csr_array(sp.kron(sp.csr_array(pattern), np.ones((s, s)))).astype(dtype)
                A.data = vector(A.nnz, dtype, 2)
                x = vector(A.shape[0], dtype)
                with space.active():
                    z = applied(built(f"ilu(block={s})", A, space), x)
                    assert np.allclose(A @ z, x, rtol=0, atol=1e-9 * max(abs(z).max(), 1))


def test_zeros_on_the_diagonal_inside_a_block_are_no_breakdown(space):
    A = sp.csr_array(np.kron(np.eye(4) * 3 + np.eye(4, k=1), np.array([[0, 1.0], [2, 0]])))
    x = vector(8)
    with space.active():
        M = built("ilu(block=2)", A, space)
        assert M.notes == () and near(A @ applied(M, x), x)


def test_rows_of_different_scales_are_not_singular(space):
    """One equation of a block 1e18 times as large as the others."""
    A = blocked(3)
    scales = sp.diags_array(np.tile([1.0, 1e18, 1e-3], 30))
    x = vector(90)
    with space.active():
        M, plain = built("ilu(block=3)", scales @ A, space), built("ilu(block=3)", A, space)
        assert M.notes == () and near(applied(M, scales @ x), applied(plain, x), 1e-10)


@pytest.mark.parametrize("ordering", ["natural", "rcm"])
def test_a_size_that_does_not_divide_is_padded_where_asked(ordering, dtype, space):
    for s in [4, 7, 11]:
        with during(s=s):
            A = blocked(1, dtype, count=90)
            n = -(-90 // s) * s
            with space.active():
                with pytest.raises(swell.InputError, match=rf"^ILU\(block={s}\).*1, 2, 3, 5"):
                    built(f"ilu(block={s})", A, space)
                M = built(f"ilu(block={s}, pad=True, ordering={ordering!r})", A, space)
                L, U, pattern = dense(M)
                whole = np.eye(n, dtype=dtype)
                whole[:90, :90] = A.toarray()
                assert abs((L @ U - whole) * pattern).max() <= 1e-14 * abs(A).max()
                x = vector(90, dtype)
                product = (L @ U)[:90, :90]
                assert near(applied(M, x), np.linalg.solve(L @ U, np.append(x, np.zeros(n - 90)))[:90])
                assert near(applied(M, x, adjoint=True), np.linalg.solve(product.conj().T, x))
                S = built(f"ilu(block={s}, pad=True, ordering={ordering!r}, solve='sweeps(count=40)')", A, space)
                assert near(applied(S, x), applied(M, x)) and near(applied(S, x, True), applied(M, x, True))


def test_the_block_size_is_found(space):
    with space.active():
        of_blocks = built("ilu(block=None)", blocked(3), space)
        assert of_blocks.block == 3 and not of_blocks.notes
        assert built("ilu(block=None)", gallery.poisson2d(11), space).block == 1


# -- triangular solves -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("solve", SOLVES)
def test_solves_as_dense_blocks_do(solve, lower, dtype, space):
    for s in [1, 2, 3, 4, 9]:
        with during(s=s):
            A = blocked(s, dtype, count=29)      # an odd number, so that rows of work arrays need not be aligned
            T = A.toarray() * np.kron((np.tril if lower else np.triu)(np.ones((29, 29))), np.ones((s, s)))
            b = vector(T.shape[0], dtype)
            with space.active():
                M = resolve("triangular", solve).build(BSR(s).build(csr(A, space)), lower)
                expected, adjoint = np.linalg.solve(T, b), np.linalg.solve(T.conj().T, b)
                assert near(applied(M, b), expected) and near(applied(M, b, adjoint=True), adjoint)
                x = space.from_host(b.copy())
                M.apply(x, x)
                assert (space.to_host(x) == applied(M, b)).all()
                M.update(BSR(s).build(csr(2 * A, space)))
                assert near(applied(M, b), expected / 2) and near(applied(M, b, adjoint=True), adjoint / 2)


@pytest.mark.parametrize("solve", SOLVES)
def test_unit_triangles_and_orders(solve, space):
    A, order = blocked(3), rng().permutation(30)
    rows = (order[:, None] * 3 + np.arange(3)).reshape(-1)
    L = A.toarray() * np.kron(np.tril(np.ones((30, 30)), -1), np.ones((3, 3))) / 20 + np.eye(90)
    b, expected = vector(90), np.empty(90)
    with space.active():
        M = resolve("triangular", solve).build(BSR(3).build(csr(A / 20, space)), True, unit=True,
                                               order=space.from_host(order))
        for adjoint in (False, True):
            expected[rows] = np.linalg.solve(L.T if adjoint else L, b[rows])
            assert near(applied(M, b, adjoint), expected)


def test_few_sweeps_are_the_truncated_series(dtype, space):
    """Equation 10, without the inverse inside its sum."""
    for s in [1, 2, 3]:
        with during(s=s):
            A = blocked(s, dtype)
            blocks = np.kron(np.eye(30), np.ones((s, s)))
            U = A.toarray() * np.kron(np.triu(np.ones((30, 30))), np.ones((s, s)))
            D, b = np.linalg.inv(U * blocks), vector(A.shape[0], dtype)
            N = D @ (U * (1 - blocks))
            term = expected = D @ b
            with space.active():
                T = BSR(s).build(csr(A, space))
                for count in (1, 2, 3, 4):
                    M = swell.Sweeps(count).build(T, False)
                    assert near(applied(M, b), expected)
                    x = space.from_host(b.copy())
                    M.apply(x, x)
                    assert (space.to_host(x) == applied(M, b)).all() and not M.variable
                    left, right = np.vdot(b, applied(M, b[::-1])), np.vdot(applied(M, b, True), b[::-1])
                    assert complex(left) == pytest.approx(complex(right), rel=1e-12)
                    term = -(N @ term)
                    expected = expected + term


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("ordering", ["natural", "rcm"])
def test_all_forms_of_a_sweep_are_one_map(ordering, pad, dtype, space, monkeypatch):
    """On a GPU a warp has one block row if there are few, else several; rows are longer than a warp's store, and empty."""
    for s in [2, 3, 4, 5, 6, 7, 9]:
        with during(s=s):
            A, x = blocked(1 if pad else s, dtype, count=30 * s + 1 if pad else 30), None
            full = sp.lil_array(A)
            full[-s:, :] = 0.1
            A = sp.csr_array(full + 4 * sp.eye_array(A.shape[0]))
            x = vector(A.shape[0], dtype)
            with space.active():
                found = []
                for limit in (0, 1000):
                    monkeypatch.setattr("swell.preconditioners.block_triangular.WHOLE_WARPS", limit)
                    for count in (2, 3, 5):
                        M = built(f"ilu(block={s}, pad={pad}, ordering={ordering!r}, "
                                  f"solve='sweeps(count={count}, guard=\"off\")')", A, space)
                        found.append((applied(M, x), applied(M, x, True)))
                for several, one in zip(found[:3], found[3:]):
                    assert all(near(a, b, 1e-13) for a, b in zip(several, one))
                exact = applied(built(f"ilu(block={s}, pad={pad}, ordering={ordering!r})", A, space), x)
                assert abs(found[2][0] - exact).max() < abs(found[0][0] - exact).max()


def test_the_factor_is_kept_once(space):
    """The factor has A's blocks, an index each, two pointers and the work vectors a row; solves keep nothing else."""
    A = gallery.coupled_transport((8, 8, 8), 4)
    with space.active():
        for solve, vectors in (("exact", 3), ("sweeps(count=3)", 1), ("sweeps(count=6)", 2)):
            M = built(f"ilu(block=4, solve={solve!r})", A, space)
            blocks, rows = A.nnz * 8, A.shape[0]
            own = M.nbytes - M._factor.nbytes
            assert own <= blocks + 4 * A.nnz / 16 + rows * (8 * vectors + 8) + 1000
            assert M.L.factor is M.U.factor is M.factor if solve == "exact" else True


@pytest.mark.parametrize("method", ["gmres", "bicgstabl", "block_gmres"])
def test_no_method_adds_to_a_product_with_the_factors(method, space, monkeypatch):
    """That would take a buffer: an eighth of the memory of blocks of 2."""
    A, betas, apply = gallery.coupled_transport((4, 4, 4), 2), set(), IncompleteOperator.apply

    def noted(self, x, out, alpha=1, beta=0):
        betas.add(beta)
        apply(self, x, out, alpha, beta)
    monkeypatch.setattr(IncompleteOperator, "apply", noted)
    assert swell.solve(A, np.ones(A.shape[0]), method=method, precond="ilu(block=None)", device=space.name).converged
    assert betas == {0}


def test_sweeps_of_a_bidiagonal_matrix_reach_a_block_each(space):
    """k sweeps on the first block have k blocks that are not zero, and as many as there are give the solution."""
    for s in [1, 2, 3]:
        with during(s=s):
            A = sp.csr_array(np.kron(np.eye(8) + np.eye(8, k=-1), np.eye(s) + 0.1))
            e = np.zeros(8 * s)
            e[0] = 1
            with space.active():
                T = BSR(s).build(csr(A, space))
                exact = applied(swell.Exact().build(T, True), e)
                for count in range(1, 9):
                    found = applied(swell.Sweeps(count, guard="off").build(T, True), e)
                    assert (abs(found.reshape(8, s)).max(axis=1) > 0).sum() == count
                assert (abs(exact) > 0).all() and near(found, exact)


def test_as_many_sweeps_as_block_rows_are_exact(dtype, space):
    A, x = blocked(3, dtype), vector(90, dtype)
    with space.active():
        exact = applied(built("ilu(block=3)", A, space), x)
        errors = [abs(applied(built(f"ilu(block=3, solve='sweeps(count={k})')", A, space), x) - exact).max()
                  for k in (2, 4, 30)]
    assert errors[0] > 2 * errors[1] > 1e-9 and errors[2] <= 1e-14 * abs(exact).max() * 10


def test_single_storage_rounds_the_factor_alone(dtype, space):
    A, x = blocked(3, dtype), vector(90, dtype)
    with space.active():
        exact = applied(built("ilu(block=3)", A, space), x)
        sweeps = [] if dtype == "complex128" and space.name == "cpu" else ["sweeps(count=30, single=True)"]
        for solve in ("exact(single=True)", *sweeps):            # sweeps take longest of all to compile
            found = applied(built(f'ilu(block=3, solve="{solve}")', A, space), x)
            assert near(found, exact, 1e-5) and not near(found, exact, 1e-10)


# -- in place ----------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("precond", ["ilu(block=3, solve='sweeps(count=4, in_place=True)')",
                                     "ilu0(solve='sweeps(count=4, in_place=True)')"])
def test_in_place_sweeps_ask_for_a_flexible_method(precond, device, space):
    A = blocked(3, count=100)
    with space.active():
        assert built(precond, A, space).variable
    result = swell.solve(A, np.ones(300), method="gmres", precond=precond, device=device)
    assert result.converged and result.method == "fgmres"
    with pytest.raises(swell.InputError, match="fgmres"):
        swell.solve(A, np.ones(300), method="bicgstab", precond=precond, device=device)


def test_in_place_sweeps_approach_the_solution(space):
    A, x = blocked(3), vector(90)
    with space.active():
        exact = applied(built("ilu(block=3)", A, space), x)
        found = applied(built("ilu(block=3, solve='sweeps(count=30, in_place=True)')", A, space), x)
        assert near(found, exact)


# -- the guard ---------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("s", [1, 3])
def test_the_remainder_is_what_it_is_called(s, space):
    A = blocked(s)
    blocks, n = np.kron(np.eye(30), np.ones((s, s))), 30 * s
    U = A.toarray() * np.kron(np.triu(np.ones((30, 30))), np.ones((s, s)))
    step = np.eye(n) - np.linalg.solve(U * blocks, U)
    with space.active():
        T = csr(A, space) if s == 1 else BSR(s).build(csr(A, space))
        found = swell.Sweeps(3, guard="off").build(T, False).remainders(5)
    v = random_vector(n, "float64", make_space("cpu"))
    expected = [np.linalg.norm(np.linalg.matrix_power(step, k) @ v) / np.linalg.norm(v) for k in range(1, 6)]
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("s", [1, 3])
def test_sweeps_that_diverge_are_not_used(s, space):
    b = vector(40 * s)
    with space.active():
        T = growing(s, space)
        exact = applied(swell.Exact().build(T, True), b)
        M = swell.Sweeps(4).build(T, True)
        assert (applied(M, b) == exact).all() and "solved with exactly" in M.notes[0] and "4 sweeps" in M.notes[0]
        assert "in place of Sweeps(count=4)" in M.describe()
        assert near(applied(M, b, True), applied(swell.Exact().build(T, True), b, True))
        with pytest.raises(FactorisationError, match="4 sweeps.*guard='more'"):
            swell.Sweeps(4, guard="error").build(T, True)
        free = swell.Sweeps(4, guard="off").build(T, True)
        assert free.notes == () and abs(applied(free, b) - exact).max() > abs(exact).max() * 0.1
        assert swell.Sweeps(4, growth=1e9).build(T, True).notes == ()


@pytest.mark.parametrize("s", [1, 3])
def test_more_sweeps_where_they_help(s, space):
    A = sp.csr_array(np.kron(np.eye(12) + 3 * np.eye(12, k=-1), np.eye(s) + 0.1))
    b = vector(12 * s)
    with space.active():
        T = csr(A, space) if s == 1 else BSR(s).build(csr(A, space))
        M = swell.Sweeps(4, guard="more").build(T, True)
        assert "12 are done" in M.notes[0] and near(applied(M, b), applied(swell.Exact().build(T, True), b))
        M = swell.Sweeps(4, guard="more").build(growing(s, space), True)        # 40 would be needed
        assert "solved with exactly" in M.notes[0]


def test_the_guard_looks_again_at_new_values(space):
    """Good, bad, good: each as built anew, and captured work knows."""
    b = vector(120)
    with space.active():
        good, bad = growing(3, space, 0.5), growing(3, space)
        M, seen = swell.Sweeps(4).build(good, True), []
        for T in (bad, bad, good):
            M.update(T)
            seen.append(M.revision)
            assert (applied(M, b) == applied(swell.Sweeps(4).build(T, True), b)).all()
    assert seen == [1, 1, 2] and M.notes == ()


@pytest.mark.parametrize("precond", ["ilu(block=3, solve='sweeps')", "ilu0(solve='sweeps')",
                                     "ic0(solve='sweeps')"])
def test_the_result_says_what_the_guard_did(precond, device):
    n = 60
    L = np.kron(np.eye(n // 3) + 3 * np.eye(n // 3, k=-1), np.eye(3))
    A = sp.csr_array(L @ L.T)
    result = swell.solve(A, np.ones(n), method="gmres", precond=precond, device=device)
    assert any("solved with exactly" in note for note in result.notes) and np.isfinite(result.x).all()
    solver = swell.prepare(sp.csr_array(A + 1e3 * sp.eye_array(n)), method="gmres", precond=precond, device=device)
    assert not any("sweeps" in note for note in solver.solve(np.ones(n)).notes)
    solver.update(A)
    assert any("solved with exactly" in note for note in solver.solve(np.ones(n)).notes)


# -- breakdowns and bad input ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("factor", ["", ", factor='sweeps', factor_sweeps=9"])
def test_a_singular_diagonal_block_is_named(factor, device):
    A = singular_block()
    result = swell.solve(A, np.ones(12), method="gmres", precond=f"ilu(block=2, pivot='error'{factor})",
                         device=device)
    assert result.reason is Reason.NOT_FACTORED and "diagonal block 4 (rows 8 to 9)" in str(result)
    assert np.isfinite(result.x).all()


@pytest.mark.parametrize("factor", ["", ", factor='sweeps', factor_sweeps=9"])
@pytest.mark.parametrize("ordering", ["natural", "rcm"])
def test_a_singular_diagonal_block_is_shifted_and_said(ordering, factor, space, device):
    A = singular_block()
    text = f"ilu(block=2, ordering={ordering!r}{factor})"
    with space.active():
        M = built(f"ilu(block=2{factor})", A, space)
        assert M.shift >= 1e-3 and "diagonal block 4 (rows 8 to 9)" in M.notes[0] and f"{M.shift:g} S" in M.notes[0]
        assert f"shifted by {M.shift:g}" in M.describe()
        S = np.diag(np.sign(A.diagonal()) * abs(A).max(axis=1).toarray().ravel())
        L, U, pattern = dense(M)
        assert abs((L @ U - A.toarray() - M.shift * S) * pattern).max() <= 2e-12
        M.update(csr(A + sp.eye_array(12), space))
        assert M.shift == 0 and M.notes == ()
    result = swell.solve(A, np.ones(12), method="gmres", precond=text, device=device)
    assert result.converged


@pytest.mark.parametrize("factor", ["", ", factor='sweeps', factor_sweeps=9"])
@pytest.mark.parametrize("phase", [1, 1j])
def test_a_singular_diagonal_block_is_perturbed_and_said(phase, factor, space):
    A = singular_block() * phase
    with space.active():
        M = built(f"ilu(block=2, pivot='perturb'{factor})", A, space)
        assert M.shift == 0 and M.replaced == 1 and "diagonal block 4" in M.notes[0] and "1 of 12" in M.notes[0]
        L, U, pattern = dense(M)
        difference = abs((L @ U - A.toarray()) * pattern)[:10, :10]            # behind it U is as large as 1 / √ε
        assert difference.max() == pytest.approx(4 * np.sqrt(np.finfo(float).eps), rel=0.5)
        assert (difference > 1e-9).sum() == 1


def test_a_block_row_without_diagonal_block_is_named(space):
    A = blocked(3).tolil()
    A[12:15, 12:15] = 0
    A = sp.csr_array(A)
    A.eliminate_zeros()
    for ordering in ("natural", "rcm"):
        with space.active(), pytest.raises(swell.InputError, match=r"1 of 30 .*block 4 \(rows 12 to 14\)"):
            built(f"ilu(block=3, ordering={ordering!r})", A, space)


@pytest.mark.parametrize("text, words", [("ilu(block=33)", "at most 32"), ("ilu(block=-1)", "at least 1"),
                                         ("ilu(block=auto)", "an integer of at least 1"),
                                         ("ilu(block=None, factor='level')", "'levels' or 'sweeps'"),
                                         ("ilu(block=None, solve=\"sweeps(guard='x')\")", "'more'"),
                                         ("ilu(block=None, solve='sweeps(growth=0)')", "positive")])
def test_settings_that_mean_nothing(text, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("precond", text)


# -- new values, and in a solve ----------------------------------------------------------------------------------------

@pytest.mark.parametrize("settings", ["block=3", "block=11, pad=True", "block=3, ordering='multicolor'",
                                      "block=3, solve='sweeps(count=3, upper=5)'", "block=3, solve='isai'",
                                      "block=3, factor='sweeps', factor_sweeps=3"])
def test_new_values_give_what_a_fresh_build_gives(settings, dtype, space):
    A, B, x = blocked(3, dtype), blocked(3, dtype, seed=2), vector(90, dtype)
    with space.active():
        M, fresh = built(f"ilu({settings})", A, space), built(f"ilu({settings})", B, space)
        before = applied(M, x), applied(M, x, True)
        M.update(csr(B, space))
        for adjoint in (False, True):
            found = applied(M, x, adjoint)
            assert (found == applied(fresh, x, adjoint)).all() and (found != before[adjoint]).any()


@pytest.mark.parametrize("s, dtype", [(3, "float64"), (3, "complex128"), (9, "float64")])
def test_levels_on_threads_give_the_factor_of_one_thread(s, dtype, all_threads, monkeypatch):
    """To the bit, at levels of hundreds of block rows, and they count the same tiny pivots."""
    space, count = make_space("cpu"), 900
    A = sp.kron(gallery.poisson2d(30), np.eye(s) * s + rng().random((s, s))).tolil()
    for row in (100, 700):                       # singular, whatever is eliminated before
        own, other = slice(row * s, (row + 1) * s), slice((row + 30) * s, (row + 31) * s)
        A[own, :] = 0
        A[other, own] = 0
        A[own, own], A[own, other.start] = 1e-30, 1
    A = sp.csr_array(A).astype(dtype)
    monkeypatch.setattr("swell.preconditioners.lu_factorisation.levels_pay", lambda rows, size: False)
    one, many = (built(f"ilu(block={s}, pivot='perturb', ordering='multicolor', factor={factor!r})", A, space)
                 for factor in ("exact", "levels"))
    assert isinstance(one._factor, BlockSequential) and (np.diff(many._factor.bounds) > count // 4).any()
    assert one.notes == many.notes and "diagonal block 100" in one.notes[0] and one.replaced == many.replaced > 0
    assert (one.factor.data == many.factor.data).all()


def test_the_devices_give_one_factor(dtype, space):
    A = blocked(3, dtype)
    expected = built("ilu(block=3)", A, make_space("cpu")).factor
    with space.active():
        M = built("ilu(block=3)", A, space)
        assert near(space.to_host(M.factor.data), expected.data)


@pytest.mark.data
@pytest.mark.parametrize("name", list(REAL))
def test_real_blocks_take_no_more_iterations_than_points(name, data, device):
    """Without restarts: these hide what a preconditioner does (of hypre_beam with 30, blocks take twice the iterations,
    without any half)."""
    A = sp.csr_array(real_matrix(data, name)).astype(float)
    b, counts = A @ np.ones(A.shape[0]), []
    for precond in (f"ilu(block={REAL[name]})", "ilu0"):
        result = swell.solve(A, b, method="gmres(restart=300)", precond=precond, device=device, rtol=1e-8)
        assert result.converged, str(result)
        counts.append(result.iterations)
    assert counts[0] <= counts[1]


@pytest.mark.data
@pytest.mark.parametrize("name", list(REAL))
def test_real_blocks_are_factored_and_sweeps_approach_them(name, data, space):
    A = sp.csr_array(real_matrix(data, name)).astype(float)
    s, x = REAL[name], vector(A.shape[0])
    with space.active():
        M = built(f"ilu(block={s})", A, space)
        exact, growth = applied(M, x), []
        assert M.notes == ()
        for count in (4, 16, 64):
            S = built(f"ilu(block={s}, solve='sweeps(count={count}, guard=\"off\")')", A, space)
            growth.append(abs(applied(S, x) - exact).max() / abs(exact).max())
    assert growth[2] < growth[0]
