"""FieldSplit: the definitions of its kinds and Schur complements, index sets, saddle points, and what it refuses."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.during import during

import swell
from swell import FieldSplit, distributed, gallery
from swell.formats.csr import CSRMatrix

KINDS = "diagonal", "lower", "upper", "full"
N = 30
FIELDS = {"a": slice(3, 13), "b": np.r_[29, 13:20, 0], "c": np.r_[1:3, 20:29]}      # rows in the user's own order
ORDER = np.concatenate([np.arange(N)[rows] for rows in FIELDS.values()])
ENDS = 0, 10, 19, 30


def matrix(dtype, seed=0):
    """A dense matrix, diagonally dominant."""
    random = np.random.default_rng(seed)
    A = random.standard_normal((N, N)) + (1j * random.standard_normal((N, N)) if np.dtype(dtype).kind == "c" else 0)
    return sp.csr_array((A + 12 * np.eye(N)).astype(dtype))


def saddle(seed=1):
    """[F Bᵀ; B −C] with 20 rows before and 10 after, in an order of its own: the matrix and the fields."""
    random = np.random.default_rng(seed)
    F = sp.random_array((20, 20), density=0.2, rng=random) + sp.diags_array(4 + random.random(20))
    B = sp.random_array((10, 20), density=0.3, rng=random) + sp.eye_array(10, 20)
    order = random.permutation(30)
    A = sp.csr_array(sp.block_array([[F, B.T], [B, sp.csr_array((10, 10))]]).tocsr()[order][:, order])
    place = np.argsort(order)
    return A, {"u": place[:20], "p": place[20:]}


def blocks(A, fields):
    u, p = (np.asarray(fields[name]) for name in "up")
    A = A.toarray()
    return A[np.ix_(u, u)], A[np.ix_(u, p)], A[np.ix_(p, u)], A[np.ix_(p, p)]


def dense(M, adjoint=False):
    """The matrix of an operator."""
    xp, n = M.space.xp, M.shape[0]
    columns = []
    for k in range(n):
        x, out = M.space.from_host(np.eye(1, n, k, M.dtype)[0]), xp.full(n, np.nan, M.dtype)
        (M.apply_adjoint if adjoint else M.apply)(x, out)
        columns.append(M.space.to_host(out))
    return np.array(columns).T


def on(A, space):
    """A matrix of the space."""
    A = sp.csr_matrix(A)
    A.sum_duplicates()
    return CSRMatrix.from_scipy(A, space)


def built(A, space, **settings):
    return FieldSplit(**settings).build(on(A, space))


def expected(A, kind):
    """The textbook's M of a dense matrix in the order of the fields."""
    inside = np.searchsorted(ENDS, np.arange(N), side="right")
    D = np.where(inside[:, None] == inside, A, 0)
    L, U = np.where(inside[:, None] > inside, A, 0), np.where(inside[:, None] < inside, A, 0)
    inverse = np.linalg.inv
    return {"diagonal": inverse(D), "lower": inverse(D + L), "upper": inverse(D + U),
            "full": inverse(D + U) @ D @ inverse(D + L)}[kind]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_the_definition(dtype, space):
    """Three fields, rows in any order, exact inner solves, the adjoint, and new values."""
    with space.active():
        for kind in KINDS:
            with during(kind=kind):
                M = built(matrix(dtype), space, fields=FIELDS, inner="direct", kind=kind)
                for seed in (0, 1):
                    A = matrix(dtype, seed)
                    M.update(on(A, space))
                    wanted = np.empty((N, N), dtype)
                    wanted[np.ix_(ORDER, ORDER)] = expected(A.toarray()[np.ix_(ORDER, ORDER)], kind)
                    allowed = 1e-4 if dtype == "float32" else 1e-12
                    assert np.allclose(dense(M), wanted, atol=allowed)
                    assert np.allclose(dense(M, adjoint=True), wanted.conj().T, atol=allowed)


@pytest.mark.parametrize("schur", ["diagonal", "l1", "lsc", "matrix"])
def test_schur_complements(schur, space):
    """Each approximation in each kind against NumPy; F and B of another seed for new values."""
    given = sp.csr_array(np.diag(np.arange(1.0, 11)))
    with space.active():
        for kind in KINDS:
            with during(kind=kind):
                A, fields = saddle()
                M = built(A, space, fields=fields, inner=("direct", "direct"), kind=kind,
                          schur=given if schur == "matrix" else schur)
                A = A.copy()
                A.data *= 1 + 0.1 * np.sin(np.arange(A.nnz))
                M.update(on(A, space))
                F, Bt, B, _ = blocks(A, fields)
                D = np.diag(1 / (abs(F).sum(axis=1) if schur == "l1" else np.diag(F)))
                P = B @ D @ Bt
                S = given.toarray() if schur == "matrix" else P
                if schur == "lsc":
                    S = P @ np.linalg.inv(B @ D @ F @ D @ Bt) @ P
                sign, zero = (1 if kind == "diagonal" else -1), np.zeros_like(B)
                D, lower, upper = (np.block(parts) for parts in (
                    [[F, zero.T], [zero, sign * S]], [[F, zero.T], [B, sign * S]], [[F, Bt], [zero, sign * S]]))
                inverse = np.linalg.inv
                wanted = {"diagonal": inverse(D), "lower": inverse(lower), "upper": inverse(upper),
                          "full": inverse(upper) @ D @ inverse(lower)}[kind]
                order, found = np.concatenate([fields["u"], fields["p"]]), dense(M)
                assert np.allclose(found[np.ix_(order, order)], wanted, atol=1e-10 * abs(wanted).max())
                assert np.allclose(dense(M, adjoint=True), found.T, atol=1e-10 * abs(wanted).max())


def test_the_sign_of_the_schur_complement(space):
    """[F Bᵀ; −B C] has a positive one; its rows are solved for with no sign."""
    A, fields = saddle()
    A = A.tolil()
    A[fields["p"]] = -A[fields["p"]]
    A = sp.csr_array(A)
    with space.active():
        F, Bt, B, _ = blocks(A, fields)
        M = built(A, space, fields=fields, inner="direct", kind="full", schur=-B @ np.linalg.inv(F) @ Bt)
        assert np.allclose(dense(M), np.linalg.inv(A.toarray()), atol=1e-9)


@pytest.mark.parametrize("kind, method, steps", [("diagonal", "minres", 3), ("lower", "gmres", 2), ("upper", "gmres", 2),
                                                 ("full", "gmres", 1)])
def test_exact_parts_leave_few_steps(kind, method, steps, device):
    """Murphy, Golub and Wathen 2000."""
    A, fields = saddle()
    F, Bt, B, _ = blocks(A, fields)
    F = (F + F.T) / 2
    Bt = B.T
    order = np.concatenate([fields["u"], fields["p"]])
    S = B @ np.linalg.inv(F) @ Bt
    A = np.empty((30, 30))
    A[np.ix_(order, order)] = np.block([[F, Bt], [B, np.zeros((10, 10))]])
    precond = FieldSplit(fields=fields, inner="direct", kind=kind, schur=S)
    r = swell.solve(sp.csr_array(A), np.ones(30), method=method, precond=precond, device=device)
    assert r.converged and r.iterations <= steps, r


def stokes(m, device, kind, method, **settings):
    """Iterations for the driven cavity of m × m cells."""
    A, b, fields, mass = gallery.stokes((m, m), **settings)
    pressure = np.zeros(A.shape[0])
    pressure[fields["p"]] = 1
    precond = FieldSplit(fields=fields, inner={"u": "amg", "p": "jacobi"}, kind=kind, schur=mass)
    r = swell.solve(A, b, method=method, precond=precond, nullspace=pressure, device=device, maxiter=200)
    assert r.converged and r.residual <= 1e-8, r
    assert np.linalg.norm(A @ r.x - b) <= 1e-8 * np.linalg.norm(b)
    assert abs(r.x[fields["p"]].sum()) < 1e-6
    return r.iterations


def test_iterations_on_a_driven_cavity(device):
    """Nearly equal for meshes of half the width, and for any viscosity; fewer from kind to kind."""
    for kind, method, most in (("diagonal", "minres", 48), ("lower", "gmres", 30), ("full", "gmres", 24)):
        with during(kind=kind):
            sizes = (16, 32) if device == "cuda" else (16, 32, 64)
            counts = [stokes(m, device, kind, method) for m in sizes]
            assert max(counts) <= most and max(counts[1:]) - min(counts[1:]) <= 3, counts
            assert abs(stokes(32, device, kind, method, viscosity=1e-3) - counts[1]) <= 10


def test_a_viscosity_that_jumps(device):
    nu = np.ones((24, 24))
    nu[8:16, 8:16] = 100.0
    assert stokes(24, device, "lower", "gmres", viscosity=nu) <= 60


def test_fields_are_found_in_a_saddle_point(device):
    """Without index sets: the rows with zeros on the diagonal."""
    A, _, fields, _ = gallery.stokes((8, 8))
    M = swell.prepare(A, method="gmres", device=device, precond=FieldSplit(schur="diagonal")).M.operator
    assert M.fields.names == ["u", "p"]
    assert (M.fields.rows[1] == np.arange(A.shape[0])[fields["p"]]).all()
    assert "'u', 112 rows" in M.describe() and "Schur complement diagonal" in M.describe()


def test_ways_to_name_the_same_fields(space):
    A = matrix("float64")
    mask = np.arange(N) % 2 == 0
    with space.active():
        found = [dense(built(A, space, fields=fields, inner="direct")) for fields in (
            2, np.arange(N) % 2, {"even": mask, "odd": ~mask}, {"even": range(0, N, 2), "odd": slice(1, None, 2)})]
    assert all((one == found[0]).all() for one in found)


def test_flags():
    A, _, fields, mass = gallery.stokes((4, 4))
    A = CSRMatrix.from_scipy(A, swell.core.devices.make_space("cpu"))
    with A.space.active():
        flags = {kind: FieldSplit(fields=fields, inner="amg", kind=kind, schur=mass).build(A) for kind in KINDS}
        assert [M.self_adjoint for M in flags.values()] == [True, False, False, True]
        assert flags["diagonal"].spd and not flags["full"].spd
        assert FieldSplit(fields=fields, inner=("amg", "jacobi"), kind="diagonal", schur=mass).build(A).self_adjoint is None
        assert FieldSplit(fields=fields, inner=("ilu(fill=10)", "jacobi"), kind="diagonal", schur=mass).build(A).self_adjoint is False


def refused(A=None, **settings):
    space = swell.core.devices.make_space("cpu")
    with space.active():
        built(matrix("float64") if A is None else A, space, **settings)


@pytest.mark.parametrize("settings, words", [
    ({"fields": {"a": slice(0, 12), "b": slice(13, 30)}}, "row 12 is in no field: expected each of the 30 rows"),
    ({"fields": {"a": slice(0, 12), "b": slice(10, 30)}}, "row 10 is in 'a' and 'b'"),
    ({"fields": {"a": [0, 0], "b": slice(1, 30)}}, "row 0 is in 'a' and 'a'"),
    ({"fields": {"a": slice(0, 30), "b": []}}, "field 'b' has"),
    ({"fields": {"a": slice(0, 30), "b": np.zeros(30, bool)}}, "field 'b' has no rows: leave it out"),
    ({"fields": {"a": [30], "b": slice(0, 30)}}, "field 'a' has the row 30: expected rows from 0 to 29"),
    ({"fields": {"a": np.ones(29, bool), "b": [29]}}, r"shape \(29,\) and type bool: expected row numbers, a boolean mask"),
    ({"fields": {"a": [0.5], "b": slice(0, 30)}}, "type float64"),
    ({"fields": 7}, "7 fields that alternate cannot divide the 30 rows"), ({"fields": 0}, "0 fields"),
    ({"fields": np.ones(29, int)}, r"shape \(29,\) and type int64: expected a dict"),
    ({"fields": np.arange(30) % 3 - 1}, "row 0 has field -1"), ({"fields": np.arange(30) % 2 * 2}, "field 1 has no row"),
    ({}, "no diagonal entry of A is zero or negative"),
    ({"fields": 2, "inner": ("ilu0",) * 3}, "3 preconditioners: expected one for each of the 2 fields '0', '1'"),
    ({"fields": 2, "inner": {"0": "ilu0", "2": "ilu0"}}, "names '0', '2': expected the fields '0', '1'"),
    ({"fields": 2, "inner": None}, "expected a preconditioner for each field"),
    ({"fields": 2, "inner": "smoothed_aggregation"}, "field '0': SmoothedAggregation needs a Hermitian matrix"),
    ({"fields": 2, "kind": "both"}, "kind='both'.*'full'"), ({"fields": 2, "schur": "mass"}, "schur='mass'.*'lsc'"),
    ({"fields": 2, "schur": 3}, "schur=.*type int: expected"), ({"fields": 3, "schur": "l1"}, "two fields, and there are 3"),
    ({"fields": 2, "schur": "lsc"}, r"schur='lsc'\) needs A₂₂ = 0, and the second field's block has 225 entries"),
    ({"fields": 2, "schur": np.eye(4)}, r"schur\) has shape \(4, 4\): expected \(15, 15\)"),
    ({"fields": 2, "schur": 1j * np.eye(15)}, "is complex and the system is real"),
    ({"fields": 2, "schur": np.full((15, 15), np.nan)}, "NaN or Inf"),
    ({"A": sp.csr_array(np.eye(4)[::-1]), "fields": 2, "schur": "diagonal"}, "diagonal has 2 zeros, the first in its row 0")])
def test_bad_input(settings, words):
    with pytest.raises(swell.InputError, match=words):
        refused(**settings)


def test_a_triangle_is_refused_by_minres():
    A, b, fields, mass = gallery.stokes((4, 4))
    with pytest.raises(swell.InputError, match="minres needs a preconditioner that is its own adjoint"):
        swell.solve(A, b, method="minres", device="cpu",
                    precond=FieldSplit(fields=fields, inner=("amg", "jacobi"), schur=mass))


def test_orderings_are_refused():
    A, b, fields, _ = gallery.stokes((4, 4))
    with pytest.raises(swell.InputError, match="without ordering and scaling: leave out ordering"):
        swell.solve(A, b, method="gmres", device="cpu", ordering="rcm", precond=FieldSplit(fields=fields, schur="diagonal"))


def test_ranks_refuse_it_together():
    def of(communicator):
        A = distributed.scatter(communicator, gallery.stokes((4, 4))[0] if communicator.rank == 0 else None)
        with pytest.raises(swell.InputError, match="FieldSplit works on one device, and A is distributed"):
            swell.solve(A, np.ones(A.rows.stop - A.rows.start), method="gmres", precond="field_split")
        return True
    assert distributed.run(2, of) == [True, True]


def test_a_field_that_cannot_be_factored_is_an_outcome(device):
    """A named field, and a reason, as of any factorisation."""
    A, b, fields, mass = gallery.stokes((4, 4))
    r = swell.solve(-A, b, method="gmres", device=device,
                    precond=FieldSplit(fields=fields, inner=("amg", "jacobi"), schur=mass))
    assert not r.converged and any("field 'u': AMG needs a positive diagonal" in note for note in r.notes)


@pytest.mark.parametrize("arguments, words", [
    (((4,),), "two or three axes"), (((4, 1),), "at least 2 cells"), (((4, 4), -1.0), "positive number"),
    (((4, 4), np.ones((3, 4))), r"shape \(3, 4\)"), (((4, 4), 1.0, -1.0), "speed of at least 0")])
def test_stokes_refuses(arguments, words):
    with pytest.raises(swell.InputError, match=words):
        gallery.stokes(*arguments)


def test_stokes_is_consistent():
    """Symmetric without wind, singular by constant pressures, and the exact flow is found again in three dimensions."""
    for shape in ((5, 7), (4, 3, 5)):
        A, b, fields, mass = gallery.stokes(shape)
        constant = np.zeros(A.shape[0])
        constant[fields["p"]] = 1
        assert abs(A - A.T).max() < 1e-14 and abs(A @ constant).max() < 1e-14 and b.sum() > 0
        assert mass.sum() == pytest.approx(1)
        N = gallery.stokes(shape, wind=3.0)[0] - A
        assert abs(N - N.T).max() > 0.1 and N.diagonal().min() >= 0
        assert abs(N[:, fields["p"]]).max() == 0 == abs(N[fields["p"]]).max()
