"""Block ILU(k) and block ILUT: against dense references, the point methods and LU; real systems; bad input."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.blocks import applied, blocked, built, csr, near, singular_block, vector
from tests.support.cases import real_matrix
from tests.support.during import during

import swell
from swell import gallery
from swell.core.cpu import CpuSpace
from swell.core.devices import make_space
from swell.core.registry import resolve
from swell.core.stopping import Reason

REAL = {"ml_elasticity": 3, "hypre_beam_tet_dof2475": 3, "fasp_spe01_bsr3": 3}
FULL = "ilu(block={}, level=1000{})", "ilu(block={}, drop=0.0, fill=1e9{})"
ORDERINGS = "natural", "multicolor", "rcm"


def in_blocks(A, s):
    """The blocks of a dense matrix, an array (block rows, block columns, s, s)."""
    count = A.shape[0] // s
    return A.reshape(count, s, count, s).transpose(0, 2, 1, 3)


def joined(B):
    """The inverse of `in_blocks`."""
    count, s = B.shape[0], B.shape[2]
    return B.transpose(0, 2, 1, 3).reshape(count * s, count * s)


def norms(B, scale):
    """Frobenius norms of the blocks of a block row after division by its rows' largest moduli."""
    return np.linalg.norm(B / scale[None, :, None], axis=(1, 2))


def eliminated(A, s, keep_l, keep_u):
    """(L, U), dense, of A's blocks, row by row. ``keep_l(i, row)`` and ``keep_u(i, row)`` get the blocks of row i as
    they are eliminated, and say which of them are kept: before they are used, and at the end; a bool for each."""
    B = in_blocks(A.astype(complex if A.dtype.kind == "c" else float).copy(), s)
    count = B.shape[0]
    L, U = np.zeros_like(B), np.zeros_like(B)
    L[range(count), range(count)] = np.eye(s)
    for i in range(count):
        row = B[i].copy()
        for m in range(i):
            if keep_l(i, row)[m]:
                L[i, m] = row[m] @ np.linalg.inv(U[m, m])
                row[m + 1:] -= L[i, m] @ U[m, m + 1:]
        L[i, :i] *= keep_u(i, L[i])[:i, None, None]
        U[i, i:] = (row * keep_u(i, row)[:, None, None])[i:]
    return joined(L), joined(U)


def levels_of(A, s, level):
    """The pattern of block ILU(k) by the definition, a bool for each block."""
    lev = np.where(abs(in_blocks(A, s)).max(axis=(2, 3)) > 0, 0, 10**6)
    for m in range(len(lev)):
        later = np.arange(len(lev)) > m
        lev = np.where(later[:, None] & later[None, :], np.minimum(lev, lev[:, [m]] + lev[[m], :] + 1), lev)
        lev[lev > level] = 10**6
    return lev <= level


def by_size(A, s, drop, fill):
    """The two rules of `eliminated` for block ILUT."""
    B, scale = in_blocks(A, s), abs(A).max(axis=1).reshape(-1, s)
    length = (abs(B).max(axis=(2, 3)) > 0).sum(axis=1)

    def large(i, row):
        kept = norms(row, scale[i]) >= drop * np.sqrt((norms(B[i], scale[i])**2).sum())
        kept[i] = True
        return kept & (abs(row).max(axis=(1, 2)) > 0)

    def largest(i, row):
        """Of L the largest alone; of U the large ones, then the largest."""
        own, size = np.zeros(len(row), bool), norms(row, scale[i])
        below = abs(row[i] - np.eye(s)).max() == 0
        side = np.arange(i) if below else i + 1 + np.flatnonzero(large(i, row)[i + 1:])
        own[side[np.argsort(-size[side], kind="stable")[:int(np.ceil(fill * length[i] / 2))]]] = True
        own[i] = True
        return own

    return large, largest


def permuted(M, A, s):
    """The dense matrix in the elimination order of M, and the rows of A in that order."""
    blocks = np.arange(A.shape[0] // s) if M.order is None else M.space.to_host(M.order)
    rows = (blocks[:, None] * s + np.arange(s)).reshape(-1)
    return A.toarray()[rows][:, rows], rows


def solved(L, U, rows, x, adjoint):
    """(L U)⁻¹ x, or its adjoint's, for factors in the order ``rows``."""
    z = np.empty_like(x)
    z[rows] = np.linalg.solve((L @ U).conj().T if adjoint else L @ U, x[rows])
    return z


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_fill_by_levels_of_blocks(ordering, dtype, space):
    for s in [2, 3, 11] if ordering == "natural" else [3]:
        A, x = blocked(s, dtype), vector(30 * s, dtype)
        for level in (0, 1, 3):
            with during(s=s, level=level), space.active():
                M = built(f"ilu(level={level}, block={s}, ordering={ordering!r})", A, space)
                B, rows = permuted(M, A, s)
                pattern = levels_of(B, s, level)
                L, U = eliminated(B, s, lambda i, row: pattern[i], lambda i, row: pattern[i])
                assert M.factor.indices.size == pattern.sum() and M.notes == () and f"blocks of {s}" in M.describe()
                for adjoint in (False, True):
                    assert near(applied(M, x, adjoint), solved(L, U, rows, x, adjoint), 1e-11)


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_blocks_are_kept_by_their_size(ordering, dtype, space):
    for s in [2, 3, 11] if ordering == "natural" else [3]:
        A, x = blocked(s, dtype), vector(30 * s, dtype)
        for drop, fill in ((0.3, 1e9), (1e-2, 1e9), (0.0, 0.0), (0.0, 1.0), (1e-2, 2.5)):
            with during(s=s, drop=drop, fill=fill), space.active():
                M = built(f"ilu(drop={drop}, fill={fill}, block={s}, ordering={ordering!r})", A, space)
                B, rows = permuted(M, A, s)
                L, U = eliminated(B, s, *by_size(B, s, drop, fill))
                kept = (abs(in_blocks(L + U, s)).max(axis=(2, 3)) > 0).sum()
                assert M.factor.indices.size == kept
                for adjoint in (False, True):
                    assert near(applied(M, x, adjoint), solved(L, U, rows, x, adjoint), 1e-10)
                assert space.name == "cpu" or "on the host" in M.notes[0]


@pytest.mark.parametrize("settings", ["ilu(level=0{})", "ilu(level=2{})", "ilu(level=2, factor='sweeps'{})",
                                      "ilu(drop=1e-2{})", "ilu(drop=0.0, fill=1.5{})", "ilu(drop=1e-3, fill=3.0{})"])
def test_blocks_of_one_are_points(settings, dtype, space):
    A, x = blocked(1, dtype, count=90), vector(90, dtype)
    for ordering in ("natural", "rcm"):
        with during(ordering=ordering), space.active():
            point = built(settings.format(f", ordering={ordering!r}"), A, space)
            M = built(settings.format(f", ordering={ordering!r}, block=1"), A, space)
            assert M.factor.indices.size == point.factor.nnz
            for adjoint in (False, True):
                assert near(applied(M, x, adjoint), applied(point, x, adjoint), 1e-13)


@pytest.mark.parametrize("settings", FULL)
def test_all_fill_is_the_inverse(settings, dtype, space):
    """Also where the last block is padded, in single precision, and with sweeps."""
    for s in [2, 3, 4, 7, 11]:
        A, x = blocked(1, dtype, count=90), vector(90, dtype)
        for more in ("", ", ordering='rcm'"):
            with during(s=s, more=more), space.active():
                M = built(settings.format(s, f", pad=True{more}"), A, space)
                for adjoint, matrix in ((False, A.toarray()), (True, A.toarray().conj().T)):
                    assert near(applied(M, x, adjoint), np.linalg.solve(matrix, x), 1e-11)
    with space.active():
        A = blocked(3, dtype)
        M = built(settings.format("None", ""), A.astype("complex64" if A.dtype.kind == "c" else "float32"), space)
        x = vector(90, dtype)
        assert M.dtype.itemsize < A.dtype.itemsize and M.block == 3
        assert near(applied(M, x), np.linalg.solve(A.toarray(), x), 1e-4)


def test_the_estimate_is_exact_for_few_block_rows(space):
    with space.active():
        for s in (1, 3):
            A = csr(blocked(s), space)
            for level in (0, 1, 3):
                settings = swell.ILU(level=level, block=s)
                assert settings.estimate(A) == settings.build(A).factor.indices.size


def test_more_fill_is_closer_to_the_inverse(space):
    A, x = blocked(3, dominance=2.0), vector(90)
    exact = np.linalg.solve(A.toarray(), x)
    with space.active():
        for text, numbers in (("ilu(block=3, level={})", (0, 1, 3)), ("ilu(block=3, drop={})", (0.3, 1e-2, 1e-4))):
            errors = [abs(applied(built(text.format(number), A, space), x) - exact).max() for number in numbers]
            assert errors[0] > errors[1] > errors[2]


def test_equations_of_different_scales_keep_the_same_blocks(space):
    """One equation of a block 1e9 times as large as the others."""
    A, x = blocked(3), vector(90)
    scales = sp.diags_array(np.tile([1.0, 2.0**30, 2.0**-10], 30))
    with space.active():
        M, plain = (built("ilu(block=None, drop=0.1, fill=1e9)", B, space) for B in (scales @ A, A))
        assert 30 < M.factor.indices.size < built(FULL[1].format("None", ""), A, space).factor.indices.size
        assert near(applied(M, scales @ x), applied(plain, x), 0.1) and M.notes == plain.notes


@pytest.mark.parametrize("factor", [2.0**-1000, 2.0**-520, 2.0**520, 2.0**1000])
def test_a_matrix_in_other_units_keeps_the_same_blocks(factor, space):
    """Squares of its entries leave the range of double precision."""
    if factor < 1 and space.name == "cuda":
        pytest.skip("the square of a solution leaves that range, too, and counts as a breakdown")
    A = blocked(3)
    with space.active():
        M, plain = (built("ilu(block=None, drop=0.1, fill=0.5)", B, space) for B in (A * factor, A))
        for own, other in ((M.factor.lower, plain.factor.lower), (M.factor.indices, plain.factor.indices)):
            assert np.array_equal(space.to_host(own), space.to_host(other))


@pytest.mark.parametrize("settings", ["ilu(level=1, block=3)", "ilu(level=1, block=11, pad=True)",
                                      "ilu(level=1, block=3, ordering='multicolor')",
                                      "ilu(level=1, block=3, factor='sweeps', factor_sweeps=3)",
                                      "ilu(level=1, block=3, solve='sweeps(count=3, upper=5)')",
                                      "ilu(level=1, block=3, solve='isai')", "ilu(drop=0.1, block=3)",
                                      "ilu(drop=0.1, block=3, ordering='rcm')",
                                      "ilu(drop=0.1, block=11, pad=True)",
                                      "ilu(drop=0.1, block=3, solve='sweeps(count=3)')",
                                      "ilu(drop=0.1, block=3, solve='isai')"])
def test_new_values_give_what_a_fresh_build_gives(settings, dtype, space):
    A, B, x = blocked(3, dtype), blocked(3, dtype, seed=2), vector(90, dtype)
    with space.active():
        M, fresh = built(settings, A, space), built(settings, B, space)
        before = applied(M, x)
        M.update(csr(B, space))
        assert (applied(M, x) != before).any()
        for adjoint in (False, True):
            assert (applied(M, x, adjoint) == applied(fresh, x, adjoint)).all()


def test_the_devices_give_one_factor(dtype, space):
    A, x = blocked(3, dtype), vector(90, dtype)
    for text in ("ilu(block=None, level=2)", "ilu(block=None, drop=0.05, ordering='rcm')"):
        expected = applied(built(text, A, make_space("cpu")), x)
        with space.active():
            assert near(applied(built(text, A, space), x), expected)


@pytest.mark.parametrize("text", ["ilu(level=1, block=2{})", "ilu(drop=0.0, block=2{})"])
def test_a_singular_diagonal_block_is_shifted_and_said(text, space, device):
    A = singular_block()
    with space.active():
        M = built(text.format(""), A, space)
        assert M.shift >= 1e-3 and "diagonal block 4 (rows 8 to 9)" in M.notes[0] and f"{M.shift:g} S" in M.notes[0]
        M.update(csr(A + sp.eye_array(12), space))
        assert M.shift == 0 and not any("diagonal block" in note for note in M.notes)
        M = built(text.format(", pivot='perturb'"), A, space)
        assert M.replaced == 1 and any("diagonal block 4" in note for note in M.notes)
    result = swell.solve(A, np.ones(12), method="gmres", precond=text.format(", pivot='error'"), device=device)
    assert result.reason is Reason.NOT_FACTORED and "diagonal block 4 (rows 8 to 9)" in str(result)


def test_a_block_row_without_diagonal_block(space):
    """Named, unless fill by levels makes one."""
    A = sp.csr_array(np.kron([[2.0, 0, 1], [0, 3, 1], [1, 1, 0]], [[2.0, 1], [1, 3]]))
    A.eliminate_zeros()
    x = vector(6)
    with space.active():
        assert near(A @ applied(built("ilu(block=2, level=1)", A, space), x), x)
        for text in ("ilu(block=2, level=0)", "ilu(drop=0.001, block=2)"):
            for ordering in ("natural", "rcm"):
                with pytest.raises(swell.InputError, match=r"1 of 3 .*block 2 \(rows 4 to 5\)"):
                    built(text.replace(")", f", ordering={ordering!r})"), A, space)


def test_fill_that_does_not_fit_is_refused(monkeypatch):
    A, space = sp.csr_array(sp.kron(gallery.poisson2d(40), np.eye(3) + 1)), make_space("cpu")
    monkeypatch.setattr(CpuSpace, "memory", lambda self: (2_000_000, 2**30))
    with pytest.raises(swell.OutOfMemory, match=r"block ILU\(30\), its factors of about .* blocks, .* a lower level"):
        built("ilu(block=None, level=30)", A, space)
    with pytest.raises(swell.OutOfMemory, match="^ILU: .* blocks after .* a larger drop"):
        built("ilu(block=None, drop=0.0, fill=1e9)", A, space)


@pytest.mark.parametrize("text, words", [("ilu(block=None, level=-1)", "ILU.*at least 0"),
                                         ("ilu(level=1, block=33)", "at most 32"),
                                         ("ilu(level=1, block=None, fill=2)", "level=1.*no effect"),
                                         ("ilu(level=1, block=None, factor='level')", "'levels' or 'sweeps'"),
                                         ("ilu(block=None, drop=-1.0)", "ILU.*at least 0"),
                                         ("ilu(block=None, fill='much')", "ILU.*at least 0"),
                                         ("ilu(drop=0.001, block=-1)", "at least 1"),
                                         ("ilu(fill=3, block=None, factor='sweeps')", "no effect")])
def test_settings_that_mean_nothing(text, words):
    with pytest.raises(swell.InputError, match=words):
        resolve("precond", text)


@pytest.mark.parametrize("name", ["level=1", "drop=0.001"])
def test_a_size_that_does_not_divide(name, space):
    with space.active(), pytest.raises(swell.InputError, match=r"^ILU\(block=4\).*1, 2, 3, 5"):
        built(f"ilu({name}, block=4)", blocked(1, count=90), space)


@pytest.mark.parametrize("precond", ["ilu(block=None, level=1)", "ilu(block=None, drop=1e-2)",
                                     "ilu(level=1, block=None, factor='sweeps')",
                                     "ilu(level=1, block=None, solve='sweeps(count=4)')",
                                     "ilu(drop=0.001, block=None, solve='exact(single=True)')",
                                     "schwarz(domains=3, inner='ilu(level=1, block=None)')",
                                     "schwarz(domains=3, inner='ilu(drop=0.001, block=None)')"])
def test_in_a_solve(precond, device):
    A = gallery.coupled_transport((6, 6, 6), 3)
    b = A @ np.random.default_rng(0).standard_normal(A.shape[0])
    result = swell.solve(A, b, method="gmres", precond=precond, block=3, device=device)
    assert result.converged and np.linalg.norm(b - A @ result.x) <= 1e-8 * np.linalg.norm(b)
    assert any("blocks of 3" in line for line in result.configuration)


def test_a_symmetric_matrix_keeps_its_symmetry(space):
    """Block ILU(k) of it serves cg."""
    A = sp.csr_array(sp.kron(gallery.poisson2d(8), np.array([[2.0, 1], [1, 3]])))
    x, y = vector(A.shape[0]), vector(A.shape[0], seed=1)
    with space.active():
        M = built("ilu(level=1, block=2)", A, space)
        assert np.vdot(y, applied(M, x)) == pytest.approx(np.vdot(applied(M, y), x), rel=1e-12)


@pytest.mark.data
@pytest.mark.parametrize("name", list(REAL))
def test_real_blocks_take_fewer_iterations_with_more_fill(name, data, device):
    A = sp.csr_array(real_matrix(data, name)).astype(float)
    b = vector(A.shape[0])

    def iterations(precond):
        result = swell.solve(A, b, method="gmres(restart=300)", precond=precond, block=REAL[name], device=device)
        assert result.converged, str(result)
        return result.iterations

    zero, one, three = (iterations(f"ilu(block=None, level={k})") for k in (0, 1, 3))
    assert zero == iterations("ilu(block=None)") and zero > one > three
    assert iterations("ilu(block=None, drop=1e-2)") > iterations("ilu(block=None, drop=1e-4)")
