"""Several right-hand sides at once: each column gets the bits, the record and the history of its own solve."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.core.test_canaries import CHOICES, system
from tests.support.during import during

import swell
from swell import gallery
from swell.core.errors import InputError
from swell.core.stopping import Reason
from swell.solving.together import MAX_COLUMNS, bound, obstacle

N = 133                 # no multiple of a warp, a pack or a slice
LIBRARY = ("direct", "bddc", "smoothed_aggregation")     # matrix products of LAPACK and BLAS: other bits for k columns


def right_hand_sides(n, k, dtype="float64"):
    """k columns: random, and from the second on easier, zero, or of another size."""
    rng = np.random.default_rng(k)
    B = rng.standard_normal((n, k)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        B = B + 1j * rng.standard_normal((n, k)).astype(dtype)
    if k > 1:
        B[:, 1] = 0
    if k > 2:
        B[:, 2] = 1e5
    return B.astype(dtype)


def on_host(x):
    """x as a NumPy array."""
    return x.get() if hasattr(x, "get") else np.asarray(x)


def check_columns(solver, B, exact=True):
    """Solve together and one by one; compare every column."""
    together, alone = solver.solve(B, together=True), solver.solve(B, together=False)
    assert together.notes[0].startswith("solved together") and alone.notes[0].startswith("solved one by one")
    assert together.x.shape == B.shape and len(together) == B.shape[1]
    for j, (one, single) in enumerate(zip(together, alone)):
        assert one.reason is single.reason, f"column {j}: {one}\n{single}"
        if exact:
            assert np.array_equal(on_host(one.x), on_host(single.x)), f"column {j}"
            assert one.iterations == single.iterations and np.array_equal(one.history, single.history)
            assert one.products == single.products and one.reductions == single.reductions
            assert one.preconditioner_applications == single.preconditioner_applications
        else:
            scale = max(abs(on_host(single.x)).max(), 1e-30)
            assert abs(on_host(one.x) - on_host(single.x)).max() <= 1e-5 * scale
        assert np.array_equal(on_host(together.x)[:, j], on_host(one.x))
    return together


@pytest.mark.parametrize("named", CHOICES, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_every_algorithm(named, dtype, device):
    hermitian = named.get("method", "").split("(")[0] not in ("cocg", "cocr")
    A, _ = system(N, dtype, hermitian)
    with during(**named):
        try:
            s = swell.prepare(A, device=device, maxiter=300, **named)
        except InputError as refused:            # real matrices only, a GPU only, and the like
            assert "16 bytes at a time" not in str(refused)              # our own arrays are aligned
            pytest.skip(str(refused))
        with s.space.active(N):
            why = obstacle(s._prepare(0))
        B = right_hand_sides(N, 3, dtype)
        if why is None:
            shared = s._prepare(0).setup.configuration.method.shared_space
            check_columns(s, B, not shared and not any(part in str(named) for part in LIBRARY))
            return
        with pytest.raises(InputError, match="leave together out"):
            s.solve(B, together=True)
        assert why in s.solve(B).notes[0]


@pytest.mark.parametrize("k", [1, 3, 8, 33])
@pytest.mark.parametrize("named", [{"method": "cg", "precond": "amg"}, {"method": "single_reduction_cg"},
                                   {"method": "bicgstab", "precond": "ilu0"}, {"method": "idrs"},
                                   {"method": "gmres(restart=7)", "precond": "ilu0(solve=sweeps)"},
                                   {"method": "fgmres(restart=7)"}], ids=str)
def test_any_number_of_columns(named, k, device):
    s = swell.prepare(gallery.poisson2d(12), device=device, **named)
    B = right_hand_sides(144, k)
    found = check_columns(s, B) if k > 1 else s.solve(B)
    assert found.converged and found.x.shape == B.shape
    A = gallery.poisson2d(12)
    assert (np.linalg.norm(B - A @ on_host(found.x), axis=0) <= 1.01e-8 * np.linalg.norm(B, axis=0)).all()
    if k > MAX_COLUMNS:
        assert "in groups of 32, 1" in found.notes[0]


def test_complex_symmetric_columns(device):
    s = swell.prepare(gallery.helmholtz((13, 11), 0.3, 0.2), method="cocg", precond="ilu0", device=device)
    assert check_columns(s, right_hand_sides(143, 5, "complex128")).converged


def test_transformed_systems(device):
    A = gallery.poisson2d(12)
    s = swell.prepare(A, method="cg", scaling="jacobi", ordering="rcm", precond="ic0", device=device)
    check_columns(s, right_hand_sides(144, 4))


def test_starting_vectors(device):
    s = swell.prepare(gallery.poisson2d(12), method="cg", device=device)
    B = right_hand_sides(144, 4)
    X = on_host(s.solve(B).x)
    again = s.solve(B, X, together=True)
    assert again.converged and again.iterations == 0
    near = s.solve(B, X + 1e-3, together=True)
    alone = s.solve(B, X + 1e-3, together=False)
    assert np.array_equal(on_host(near.x), on_host(alone.x)) and near.iterations == alone.iterations


def test_nan_in_one_column_leaves_the_others_right(device):
    """Input with NaN is refused at the door; here it comes in behind it, as an overflow would."""
    s = swell.prepare(gallery.poisson2d(12), method="cg", device=device)
    B = right_hand_sides(144, 4)
    right = [on_host(r.x) for r in s.solve(B)]
    B[3, 2] = np.nan
    with s.space.active(144):
        results = bound(s._prepare(0), 4).run(B)
    assert [r.reason for r in results] == [Reason.CONVERGED, Reason.CONVERGED, Reason.NONFINITE, Reason.CONVERGED]
    assert all(np.array_equal(on_host(results[j].x), right[j]) for j in (0, 1, 3))


def test_a_column_that_fails_is_one_record(device):
    """The third right-hand side has a part outside of the range of a singular matrix."""
    A = gallery.neumann((6, 6))
    B = np.stack([A @ np.arange(36.0), A @ np.sin(np.arange(36.0)), np.ones(36)], axis=1)
    found = swell.solve(A, B, method="minres", device=device, together=True, maxiter=100)
    assert found[0].converged and found[1].converged and not found[2].converged and not found.converged
    assert found.reasons[:2] == [Reason.CONVERGED] * 2 and found.reason is found[2].reason
    assert str(found).index("[2]") < str(found).index("[0]"), "the worst first"


def test_updates_and_tolerances(device):
    A = gallery.poisson2d(12)
    s = swell.prepare(A, method="cg", precond="ic0", device=device)
    B = right_hand_sides(144, 3)
    s.solve(B, together=True)
    s.update(2 * A)
    check_columns(s, B)
    s.stop_by(swell.Stopping(rtol=1e-3))
    assert check_columns(s, B).iterations < s.stop_by(swell.Stopping(rtol=1e-10)).solve(B, together=True).iterations


def test_a_zero_column_has_no_norm_of_an_earlier_solve(device):
    s, seen = swell.prepare(gallery.poisson2d(12), method="gmres", device=device), []
    B = right_hand_sides(144, 3)
    B[:, 1] = 1e3
    s.solve(B, together=True)
    B[:, 0], B[:, 1] = B[:, 2] / abs(B).max(), 0
    s.solve(B, monitor=lambda k, norm: seen.append(norm), together=True)
    assert seen[0] <= 1 + 1e-12


def test_monitor_and_interruption(device):
    seen = []
    s = swell.prepare(gallery.poisson2d(12), method="cg", device=device)
    B = right_hand_sides(144, 3)
    r = s.solve(B, monitor=lambda k, norm: seen.append((k, norm)), together=True)
    assert [k for k, _ in seen] == list(range(max(one.iterations for one in r) + 1))
    assert seen[-1][1] <= 1e-8 < seen[0][1]
    stopped = s.solve(B, monitor=lambda k, norm: k == 3, together=True)
    assert stopped.reasons[0] is Reason.STOPPED and stopped.x.shape == B.shape
    B = right_hand_sides(144, 40)
    B[:, 31] = 0                                 # the last column of the first group needs no iteration
    stopped = s.solve(B, monitor=lambda k, norm: k == 3, together=True)
    assert len(stopped) == 32 and stopped.reason is Reason.STOPPED, "no second group"


def test_a_users_operator_takes_one_vector_at_a_time():
    from scipy.sparse.linalg import LinearOperator
    A = gallery.poisson2d(12)
    calls = []

    def product(x):
        calls.append(x.shape)
        return A @ x
    operator = LinearOperator(A.shape, product, dtype=float)
    B = right_hand_sides(144, 3)
    found = swell.solve(operator, B, method="cg", M=lambda r: r / 4, together=True)
    assert found.converged and set(calls) == {(144,)}


@pytest.mark.parametrize("precond", sorted({str(named["precond"]) for named in CHOICES if "precond" in named}))
def test_every_preconditioner_adds_to_what_is_there(precond, device):
    """GMRES applies M as x = x + M V y, which the other methods do not."""
    A, _ = system(N, "float64", True)
    try:
        s = swell.prepare(A, method="gmres(restart=4)", precond=precond, maxiter=300, device=device)
    except InputError as refused:
        assert "16 bytes at a time" not in str(refused)
        pytest.skip(str(refused))
    with s.space.active(N):
        if obstacle(s._prepare(0)) is None:
            check_columns(s, right_hand_sides(N, 3), exact=False)


GOES_ON = [({"method": "gmres(restart=3)", "maxiter": 60}, 0), ({"method": "gmres(restart=3)", "maxiter": 20}, 0),
           ({"method": "bicgstab", "maxiter": 30}, 1), ({"method": "bicgstab", "maxiter": 200}, 1)]


@pytest.mark.parametrize("named, skew", GOES_ON, ids=str)
def test_a_column_that_goes_on_alone_keeps_its_limits(named, skew, device):
    """Slow cycles are followed by longer ones, and a breakdown by a new start, as in a single solve."""
    A = sp.diags_array([np.full(143, 1.0), 0.01, np.full(143, -1.0)], offsets=[1, 0, -1], shape=(144, 144)).tocsr()
    stopping = swell.Stopping(rtol=1e-8, maxiter=named["maxiter"], relative_to="b" if skew else "r0")
    s = swell.prepare(A if skew else gallery.poisson2d(12), method=named["method"], stopping=stopping, device=device)
    B = right_hand_sides(144, 3)
    start = None if skew else np.full(B.shape, 1e3)
    together, alone = s.solve(B, start, together=True), s.solve(B, start, together=False)
    assert any("went on alone" in note for r in together for note in r.notes)
    for one, single in zip(together, alone):
        assert one.iterations <= named["maxiter"] and len(one.history) == one.iterations + 1
        assert one.reason is single.reason and one.tolerance == pytest.approx(single.tolerance, rel=1e-12)
        assert np.allclose(one.history[:10], single.history[:10], rtol=1e-6)


def test_launches_do_not_grow_with_the_columns():
    pytest.importorskip("cupy")
    launches = []
    for k in (2, 8):
        s = swell.prepare(gallery.poisson2d(12), method="cg", precond="amg", device="cuda")
        with s.space.active(144):
            group = bound(s._prepare(0), k)
        group.run(right_hand_sides(144, k))
        before = group.space.launches
        results = group.run(right_hand_sides(144, k))
        launches.append(group.space.launches - before)
        assert all(r.host_reads == 0 for r in results)
    assert launches[0] == launches[1]


test_launches_do_not_grow_with_the_columns = pytest.mark.gpu(test_launches_do_not_grow_with_the_columns)


def test_what_results_say():
    B = right_hand_sides(144, 20)
    found = swell.solve(gallery.poisson2d(12), B, method="cg", together=True)
    text = str(found)
    assert text.startswith("20 of 20 right-hand sides converged in 0 to ") and text.count("CG()") == 1
    assert "and 4 more, no worse" in text and "note: solved together" in text
    assert found.history.shape == (max(r.iterations for r in found) + 1, 20) and np.isnan(found.history[-1, 1])
    assert found.timings["solve"] == pytest.approx(sum(r.timings["solve"] for r in found))
    assert len(found[2:5]) == 3 and found[2:5].x.shape == (144, 3) and found[2:5][0] is found[2]
    assert found.residuals.shape == (20,) and found.residual == found.residuals.max()
    assert "<table>" in found._repr_html_() and "20 of 20" in found._repr_html_()
    assert found.as_dict()["notes"] == found.notes


def test_bad_input():
    A = gallery.poisson2d(5)
    for together in ("yes", 0, np.ones(2)):
        with pytest.raises(InputError, match="together=.*: expected True"):
            swell.solve(A, np.ones((25, 2)), together=together)
    for scale in (1e200, 1e-300):
        with pytest.raises(InputError, match="column 1 of b has entries up to .*, whose squares leave the range"):
            swell.solve(A, np.ones((25, 2)) * [1, scale], method="cg", together=True)
    with pytest.raises(InputError, match="together=True: with a null space"):
        swell.solve(gallery.neumann((5, 5)), np.zeros((25, 2)) + np.arange(25)[:, None] - 12, method="cg",
                    nullspace="constants", together=True)
    with pytest.raises(InputError, match="has shape .25, 0.: expected at least one column"):
        swell.solve(A, np.ones((25, 0)))


def test_the_choice_says_what_it_takes_and_why(nothing_outright):
    A, B = gallery.poisson3d(20), right_hand_sides(8000, 3)
    found = swell.solve(A, B)
    assert found.converged and found.notes[0].startswith("solved together")
    assert "predicted again" in str(found)


def test_block_cg_takes_the_place_of_cg_with_ic0(nothing_outright):
    """From four columns on, where nothing is named."""
    A = gallery.jumping_diffusion((15, 15, 15))         # too few rows for multigrid
    B = right_hand_sides(A.shape[0], 6)
    s = swell.prepare(A)
    found = s.solve(B)
    assert found[0].precond == "ic" and found[0].method == "block_cg" and found.converged
    assert "block_cg took the place of cg" in found.notes[0]
    few = swell.solve(A, B[:, :3])
    assert few.converged and few[0].method != "block_cg" and few.notes == ["solved together"]
    assert swell.solve(A, B, method="cg", precond="ic0")[0].method == "cg", "what is named stays"


def test_what_cannot_be_factored_is_a_record_for_each(device):
    A = gallery.poisson2d(8).tolil()
    A[5, :] = 0
    A[:, 5] = 0
    found = swell.solve(A.tocsr(), right_hand_sides(64, 3), method="direct", device=device, together=True)
    assert not found.converged and found[0].reason is Reason.SINGULAR and len(found) == 3
    assert "could not be factored" in found.notes[0]


def test_what_is_predicted_to_be_faster_one_by_one(nothing_outright):
    """If further columns cost more than solves of their own."""
    from dataclasses import replace
    s = swell.prepare(gallery.poisson2d(20))
    s._choices.predictions = [replace(p, further=10 * p.iteration + 1) for p in s._choices.predictions]
    found = s.solve(right_hand_sides(400, 3))
    assert found.converged and found.notes[0].startswith("solved one by one: predicted ")


@pytest.mark.gpu
def test_columns_at_odd_distances_are_refused():
    """A kernel that reads 16 bytes at once would use misaligned addresses."""
    cupy = pytest.importorskip("cupy")
    from swell.core.columns import Columns
    from swell.core.devices import make_space
    space = make_space("cuda").for_columns(2)
    with space.active(), pytest.raises(InputError, match="do not begin at multiples of 16 bytes"):
        space.scale(2.0, Columns(cupy.zeros((2, 7))))
