"""The order of the choices: predicted seconds, the watch, what is learnt, and what is told."""
from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.conftest import space_or_skip

import swell
from swell import gallery
from swell.solver import Solver
from swell.advisor import machine as speeds
from swell.advisor.choose import choose
from swell.advisor.costs import COSTS, Cost
from swell.advisor.machine import Machine
from swell.advisor.order import Choices
from swell.advisor.predictions import Prediction, direct, iterative
from swell.advisor.watch import Watch, remaining
from swell.core.configuration import Configuration
from swell.core.cpu import CpuSpace
from swell.core.guests import TABLE, Guest
from swell.core.stopping import Reason
from swell.formats.csr import CSRMatrix
from swell.orderings.cuthill_mckee import layers
from swell.krylov.cg import CG
from swell.transforms.jacobi import JacobiScaling

B = np.random.default_rng(3).standard_normal


def csr(A):
    return CSRMatrix.from_scipy(sp.csr_array(A), CpuSpace())


def listed(A, space=None):
    with (space or CpuSpace()).active():
        matrix = CSRMatrix.from_scipy(sp.csr_array(A), space) if space else csr(A)
        return [(c.name("method"), c.part) for c in choose(matrix, Configuration(None))[0]]


class TestWatch:
    def test_a_steady_fall_is_extrapolated(self):
        assert remaining([10.0**-k for k in range(5)], 1e-8) == pytest.approx(4)
        assert remaining([1.0, 1.0, 1.0], 1e-8) == math.inf
        assert remaining([1.0, 1e-9], 1e-8) == 0 and remaining([1.0, 0.1, 0.01], 0.0) == math.inf

    def test_a_fast_method_is_left_alone(self):
        watch = Watch(1e-3, lambda taken, seconds: 1e-9)
        assert not any(watch(10.0**-k, 1e-8) for k in range(8))

    def test_a_slow_one_is_left_when_waiting_has_cost_its_share(self):
        watch = Watch(1e-3, lambda taken, seconds: 0.1)
        ended = next(k for k in range(1000) if watch(0.999**k, 1e-8))
        assert 8 <= ended < 60 and watch.iterations_left > 1000

    def test_what_is_not_finite_is_left_to_the_judge(self):
        watch = Watch(1e-3, lambda taken, seconds: 0.0)
        assert not any(watch(norm, 1e-8) for norm in 100 * [math.nan, math.inf])

    def test_nobody_is_asked_who_is_never_sooner(self):
        watch, asked = Watch(1e-3, lambda taken, seconds: asked.append(seconds) or 1.0, least=0.5), []
        assert not any(watch(0.9**k, 1e-8) for k in range(170)) and not asked

    def test_it_is_not_left_for_something_slower(self):
        watch = Watch(1e-3, lambda taken, seconds: 1e9)
        assert not any(watch(0.9**k, 1e-8) for k in range(170))


class Choice:
    """As much of a Configuration as `Choices` needs."""

    part = "none"

    def __init__(self, prediction):
        self.prediction = prediction

    def name(self, kind):
        return "cg"


class Outcome:
    """As much of a Result."""

    def __init__(self, choice, reason, iterations, residual=0.5):
        self.choice, self.reason, self.iterations, self.residual = choice, reason, iterations, residual
        self.converged = self.final = reason is Reason.CONVERGED
        self.x, self.timings = "x", {"setup": 1.0, "solve": 2.0}


class TestOrder:
    def test_the_fastest_is_first_and_failures_leave(self):
        given = [Choice(Prediction(1, 1, 10)), Choice(Prediction(2, 0, 1, False)), Choice(Prediction(0, 1, 5))]
        order = Choices(given).order([])
        tried = []
        while (k := order.next()) is not None:
            tried.append(k)
            order.ended(k, Outcome(k, Reason.STAGNATED, 3))
        assert tried == [1, 2, 0]

    @pytest.mark.parametrize("reason, second", [(Reason.CONVERGED, 2), (Reason.STAGNATED, 1)])
    def test_where_small_rows_are_unsolved_another_kind_comes_next(self, reason, second):
        """Other Krylov methods would leave them unsolved, too."""
        given = [Choice(Prediction(0, 1, 2)), Choice(Prediction(0, 1, 3)), Choice(Prediction(9, 0, 1, False))]
        order = Choices(given).order([])
        assert order.next() == 0
        order.ended(0, Outcome(0, reason, 2))
        assert order.next() == second

    def test_one_that_was_left_is_resumed_only_where_others_fail(self):
        given = [Choice(Prediction(0, 1e-3, 5)), Choice(Prediction(0.01, 0, 1, False))]
        order = Choices(given).order([])
        assert order.next() == 0
        watch = order.watch(0)
        while not watch(1.0, 1e-8):
            pass
        order.ended(0, Outcome(0, Reason.OVERTAKEN, 10))
        assert order.start(None) == "x" and order.next() == 1 and order.watch(1) is None
        order.ended(1, Outcome(1, Reason.NOT_FACTORED, 0))
        assert order.next() == 0 and order.watch(0) is None

    def test_a_lower_bound_that_would_win_is_refined(self):
        asked = []

        def refine(limit):
            asked.append(limit)
            return Prediction(5.0, 0, 1, False)
        for refining, expected in ((0.1, [20]), (1.0, [])):      # if it takes long, it is not worth it
            asked.clear()
            given = [Choice(Prediction(0, 1, 2)), Choice(Prediction(1, 0, 1, False, refine=refine, refining=refining))]
            assert Choices(given).order([]).next() == 0 and asked == expected

    def test_what_one_needs_more_the_others_need_too(self):
        """Jacobi takes ten times what was expected: IC(0) will, so it is no reason to change; AMG will not."""
        for grows, changes in ((True, False), (False, True)):
            given = [Choice(Prediction(0, 1e-3, 30)), Choice(Prediction(0.005, 2e-3, 20, grows))]
            watch = Choices(given).order([]).watch(0)
            assert any(watch(10 ** (-8 * k / 300), 1e-8) for k in range(300)) == changes

    def test_setups_are_shared_among_solves(self):
        given = [Choice(Prediction(0, 1, 10)), Choice(Prediction(30, 1, 1, False))]
        choices, firsts = Choices(given), []
        for _ in range(4):
            order = choices.order([0])
            firsts.append(order.next())
            order.finished([Outcome(firsts[-1], Reason.CONVERGED, 10 if firsts[-1] == 0 else 1)])
        assert firsts == [0, 0, 0, 1]

    @pytest.mark.parametrize("setup, explored", [(1.5, True), (3, False)])
    def test_what_has_not_run_is_explored_only_if_it_costs_little(self, setup, explored):
        """A solve takes 10 s. Jacobi was given up in the first one, and promises a second each time; it does not run again."""
        given = [Choice(Prediction(0, 1, 1)), Choice(Prediction(0, 1, 10, False)), Choice(Prediction(setup, 1, 4))]
        choices, firsts, told = Choices(given), [], []
        order = choices.order([])
        order.next()
        order.ended(0, given_up := Outcome(0, Reason.STAGNATED, 1))
        order.finished([given_up, Outcome(1, Reason.CONVERGED, 10)])
        for _ in range(3):
            order = choices.order([1])
            firsts.append(order.next())
            told += order.notes
            order.finished([Outcome(firsts[-1], Reason.CONVERGED, 10 if firsts[-1] == 1 else 12)])
        assert firsts == ([2, 1, 1] if explored else [1, 1, 1]) and len(told) == explored

    def test_a_choice_that_fails_later_opens_all_others(self):
        given = [Choice(Prediction(0, 1, 10)), Choice(Prediction(50, 1, 4))]
        choices = Choices(given)
        choices.order([]).finished([Outcome(0, Reason.CONVERGED, 10)])
        order = choices.order([0])
        assert order.next() == 0
        order.ended(0, Outcome(0, Reason.STAGNATED, 10))
        assert order.next() == 1

    def test_a_solve_without_iterations_tells_nothing(self):
        """As for b = 0, and for a start from the solution."""
        given = [Choice(Prediction(0, 1, 10)), Choice(Prediction(300, 1, 1, False))]
        choices = Choices(given)
        for iterations, expected in ((0, 10), (12, 12), (0, 12)):
            order = choices.order([0])
            assert order.next() == 0
            order.finished([Outcome(0, Reason.CONVERGED, iterations)])
            assert choices.predictions[0].iterations == expected

    def test_something_is_tried_though_nothing_is_promised(self):
        """After all iterations failed, and with factors that do not fit; also where nothing else was ever there."""
        given = [Choice(Prediction(0, 1, 10)), Choice(Prediction(math.inf, 0, 1, False))]
        choices = Choices(given)
        for _ in range(2):
            order = choices.order([0])
            assert order.next() == 0
            order.ended(0, failed := Outcome(0, Reason.MAXITER, 10))
            assert order.next() is None
            order.finished([failed])
        assert Choices(given[1:]).order([]).next() == 0

    def test_without_adapting_each_solve_takes_the_first_path(self):
        given = [Choice(Prediction(0, 1, 10)), Choice(Prediction(11, 0, 1, False))]
        choices = Choices(given, adapt=False)
        for _ in range(3):
            order = choices.order([0])
            assert order.next() == 0
            order.finished([Outcome(0, Reason.CONVERGED, 500)])


class TestChoices:
    @pytest.mark.parametrize("A, first", [
        (sp.csr_array(np.eye(300) + np.ones((300, 300))), "direct"), (gallery.saddle_point(60), "direct"),
        (sp.csr_array(np.random.default_rng(0).random((300, 300))), "direct"), (gallery.poisson3d(24), "cg"),
        (gallery.convection_diffusion((30, 30, 30)), "bicgstab"), (gallery.helmholtz((24, 24, 24)), "cocg")])
    def test_first(self, A, first):
        assert listed(A)[0][0] == first

    def test_all_are_there(self):
        found = listed(gallery.poisson2d(200))
        assert {("cg", "jacobi"), ("cg", "ic"), ("cg", "amg"), ("direct", "none"), ("gmres", "jacobi")} == set(found)
        assert ("minres", "jacobi") in listed(gallery.shifted_laplacian((20, 20), 0.5))
        assert ("minres", "none") in listed(gallery.saddle_point(9))

    @pytest.mark.parametrize("A", [lambda: gallery.elasticity2d(110), lambda: gallery.elasticity3d(19)])
    def test_elastic_bodies_get_aggregates_of_points(self, A):
        """Classical multigrid is no choice there: it takes 5 to 28 times the iterations."""
        found = listed(A())
        assert ("cg", "smoothed_aggregation") in found and ("cg", "amg") not in found

    def test_blocks_that_are_no_points_of_a_body(self):
        """As of elements of higher degree: a constant in one unknown of each block is no motion that costs nothing."""
        A = gallery.poisson2d(60) @ gallery.poisson2d(60)                         # positive entries
        held = sp.kron(A, np.eye(2)) + 100 * sp.kron(np.eye(A.shape[0]), np.array([[1, -1], [-1, 1]]))
        held = sp.csr_array(held)
        held.sum_duplicates()
        assert not any(part == "smoothed_aggregation" for _, part in listed(held))

    def test_multigrid_is_a_choice_for_convection(self):
        A = gallery.advection((24, 24, 24), "rotating", 0.01)
        assert ("bicgstab", "amg") in listed(A)
        assert ("bicgstab", "amg") not in listed(gallery.convection_diffusion((24, 24, 24), 3.0))        # no M-matrix

    def test_multigrid_is_a_choice_where_rows_sum_to_zero(self):
        """Flat cells, on which CG takes hundreds of iterations with Jacobi. Factors of a singular matrix are none."""
        A = sp.csr_array(sp.kronsum(1e4 * gallery.neumann((70,)), gallery.neumann((70,))))
        assert ("cg", "amg") in listed(A) and ("direct", "none") not in listed(A)
        b = np.random.default_rng(0).standard_normal(4900)
        assert swell.solve(A, b - b.mean()).converged

    @pytest.mark.parametrize("adapt", [True, False])
    def test_many_columns_share_the_factors_that_were_made_for_them(self, adapt):
        """For one column a lower bound of the factorisation's seconds suffices; for forty it is refined, and wins."""
        solver = swell.prepare(gallery.poisson2d(120), adapt=adapt)
        one = solver.solve(B(14400))
        many = solver.solve(np.random.default_rng(0).standard_normal((14400, 40)))
        assert one.method == "cg" and {r.method for r in many.columns} == {"direct"}
        assert many.notes[0].startswith("solved together")
        assert solver.solve(B(14400)).method == ("direct" if adapt else "cg")

    def test_dominant_rows_bound_jacobis_iterations_for_unsymmetric_systems(self):
        """As short time steps have them: multigrid would be set up in vain."""
        A = sp.csr_array(gallery.advection((24, 24, 24), "rotating", 0.01))
        A = csr(A + 10 * A.diagonal().max() * sp.eye_array(A.shape[0]))
        choices = {(c.name("method"), c.part): c.prediction for c in choose(A, Configuration(None))[0]}
        assert choices["bicgstab", "jacobi"].iterations < 10

    def test_coupled_diffusion_keeps_classical_multigrid(self):
        found = listed(gallery.multiconductor(6000, 4))
        assert ("cg", "amg") in found and ("cg", "smoothed_aggregation") not in found

    def test_aggregates_are_first_in_a_large_body(self):
        A = gallery.elasticity2d(150)
        result = swell.solve(A, B(A.shape[0]))
        assert result.converged and "SmoothedAggregation" in str(result)

    @pytest.mark.gpu
    def test_on_a_gpu(self, monkeypatch):
        space = space_or_skip("cuda")
        monkeypatch.setattr("swell.advisor.choices.unavailable", lambda space: None)
        found = listed(gallery.poisson2d(60), space)
        assert {("cg", "jacobi"), ("resident_cg", "jacobi"), ("cg", "ic"), ("cg", "amg"), ("direct", "none"),
                ("gmres", "jacobi")} == set(found)
        assert found[0][1] == "jacobi"

    @pytest.mark.gpu
    def test_a_long_grid_on_a_gpu(self):
        """AMG is first if the long sides are insulated; if their values are fixed, Jacobi takes few iterations."""
        for across, first in ((gallery.neumann((20,)), "amg"), (gallery.poisson1d(20), "jacobi")):
            long = sp.kronsum(sp.csr_array(across), gallery.poisson1d(5000))
            assert listed(long, space_or_skip("cuda"))[0][1] == first

    @pytest.mark.gpu
    def test_a_gpu_without_a_direct_solver(self, monkeypatch):
        monkeypatch.setattr("swell.advisor.choices.unavailable", lambda space: "it is not installed")
        assert ("direct", "none") not in listed(gallery.poisson2d(60), space_or_skip("cuda"))

    def test_jacobi_carries_values_from_layer_to_layer(self):
        long, square = (csr(sp.kronsum(gallery.poisson1d(shape[0]), gallery.poisson1d(shape[1]))) for shape in ((20, 500), (100, 100)))
        scaled = replace(Configuration(CG()), scaling=JacobiScaling())
        few, many = (iterative(A, A.facts(), scaled, Machine(), layers=layers(A)).iterations for A in (square, long))
        assert many >= 2 * few > 200

    def test_layers_do_not_depend_on_the_numbering(self):
        A = sp.csr_array(gallery.poisson2d(40))
        shuffled = np.random.default_rng(0).permutation(1600)
        assert listed(A) == listed(A[shuffled][:, shuffled].sorted_indices())

    def test_costs_grow_with_the_matrix_and_shrink_with_the_machine(self):
        space, slow, fast = CpuSpace(), Machine(5e9), Machine(20e9)
        small, large = (CSRMatrix.from_scipy(sp.csr_array(gallery.poisson2d(m)), space) for m in (200, 400))
        choice = Configuration(CG())
        one, other = (iterative(A, A.facts(), choice, slow) for A in (small, large))
        assert one.iteration < other.iteration and one.setup < other.setup and one.iterations < other.iterations
        assert iterative(large, large.facts(), choice, fast).iteration < other.iteration
        assert direct(small, slow, 1e9).setup < direct(large, slow, 1e9).setup

    def test_an_analysis_that_stops_is_a_lower_bound(self):
        A = csr(gallery.poisson3d(16))
        bound, whole = direct(A, Machine(), 0.02), direct(A, Machine(), math.inf)
        assert bound.refine is not None and bound.setup <= whole.setup and whole.refine is None
        assert bound.refine(1e9) == whole


class Opaque:
    """A vector of a library whose arrays NumPy cannot read."""

    __module__ = "opaque"

    def __init__(self, hidden):
        self.hidden = hidden


class OpaqueGuest(Guest):
    def dtype_of(self, given, name):
        return given.hidden.dtype

    def read_matrix(self, A):
        raise NotImplementedError

    def read_vector(self, v, name):
        return v.hidden

    def give_back(self, x, like):
        return Opaque(x)


class TestSolves:
    def test_the_next_choice_starts_from_an_x_of_any_library(self, monkeypatch):
        """torch's tensors on a GPU are such arrays."""
        A = gallery.poisson2d(60) @ gallery.poisson2d(60)
        monkeypatch.setitem(COSTS, "cpu", replace(COSTS["cpu"], direct=Cost(5000)))
        monkeypatch.setitem(TABLE, "opaque", "tests.advisor.test_order:OpaqueGuest")
        r = swell.solve(A, Opaque(A @ B(3600)))
        assert r.converged and r.attempts[0].reason is Reason.OVERTAKEN and isinstance(r.x, Opaque)

    def test_a_hopeless_iteration_gives_way_and_says_so(self, monkeypatch):
        A = gallery.poisson2d(60) @ gallery.poisson2d(60)
        monkeypatch.setitem(COSTS, "cpu", replace(COSTS["cpu"], direct=Cost(5000)))
        r = swell.solve(A, A @ B(3600))
        assert r.converged and r.attempts and r.attempts[0].reason is Reason.OVERTAKEN
        assert {c.outcome for c in r.choices} >= {"CONVERGED", "OVERTAKEN", "not tried"}
        shown = str(r).splitlines()
        start = next(k for k, line in enumerate(shown) if "predicted s: setup + solve" in line)
        assert any(line.endswith("OVERTAKEN") for line in shown[start:]) and any("direct, none" in line for line in shown)
        assert "predicted again" in shown[start] and "(1 iteration)" in str(r) and "(1 iterations)" not in str(r)

    @pytest.mark.parametrize("first", ["zero", "solution", "zero columns", "columns of the solution"])
    def test_a_load_after_no_load(self, first, nothing_outright):
        """First time steps and first Newton steps have b = 0, or start from the solution."""
        A = gallery.poisson2d(100)
        b, s = B(10_000), swell.prepare(A)
        x = swell.solve(A, b, method="direct").x
        load, start = {"zero": (0 * b, None), "solution": (b, x), "zero columns": (np.zeros((10_000, 3)), None),
                       "columns of the solution": (np.stack([b, 0 * b, b], 1), np.stack([x, x, x], 1))}[first]
        none = s.solve(load, x0=start)
        assert not any(r.iterations for r in (none if load.ndim > 1 else [none]))
        for right in (b, np.stack([0 * b, b, 2 * b], 1), b):
            again = s.solve(right)
            assert np.linalg.norm(right - A @ again.x) <= 1.01e-8 * np.linalg.norm(right) and str(again)
        assert s.update(2 * A).solve(b).converged

    def test_the_same_call_takes_the_same_path(self):
        A = gallery.jumping_diffusion((40, 40), 1e6)
        b = A @ B(1600)
        first, second = swell.solve(A, b), swell.solve(A, b)
        assert first.iterations == second.iterations and np.array_equal(first.x, second.x)
        assert [(c.choice, c.outcome) for c in first.choices] == [(c.choice, c.outcome) for c in second.choices]

    def test_where_all_fail_each_has_a_reason_and_the_best_x_comes_back(self):
        A = sp.csr_array(gallery.poisson2d(40) @ sp.diags_array(np.r_[np.zeros(3), np.ones(1597)]))
        r = swell.solve(A, B(1600), maxiter=20)
        assert not r.converged and np.isfinite(r.x).all() and r.attempts
        tried = [c for c in r.choices if not math.isnan(c.spent_solve)]
        assert len(tried) >= 2 and all(c.outcome in Reason.__members__ and c.setup > 0 for c in tried)
        assert r.residual == min(a.residual for a in [r, *r.attempts])

    def test_a_first_choice_without_room_gives_way(self, monkeypatch):
        prepare = Solver._prepare

        def short(self, k):
            if self.choices[k].name("method") == "direct":
                raise swell.OutOfMemory("too little is left")
            return prepare(self, k)
        monkeypatch.setattr(Solver, "_prepare", short)
        r = swell.solve(gallery.poisson2d(20), B(400))
        assert r.converged and r.method == "cg" and any("direct" in note and "too little" in note for note in r.notes)

    def test_factors_that_do_not_fit_are_not_tried(self, monkeypatch):
        monkeypatch.setattr(CpuSpace, "memory", lambda self: (2**20, 2**30))
        A = csr(gallery.poisson2d(60))
        assert math.isinf(direct(A, Machine(), 1e9).setup)
        found = choose(A, Configuration(None))[0]
        assert found[0].name("method") == "cg"

    def test_named_methods_have_no_choices(self):
        assert not swell.solve(gallery.poisson2d(9), B(81), method="cg").choices

    def test_a_copy_has_its_own_memory(self):
        s = swell.prepare(gallery.poisson2d(30))
        c = s.copy()
        c.solve(B(900))
        assert (s._choices.solves, c._choices.solves) == (0, 1)


class TestMachine:
    @pytest.fixture
    def file(self, tmp_path, monkeypatch):
        monkeypatch.setenv("SWELL_CACHE", str(tmp_path))
        monkeypatch.setattr(speeds, "_known", {})
        return tmp_path / speeds.NAME

    def test_measured_once_and_kept(self, file, monkeypatch, own_cache):
        monkeypatch.setattr(speeds, "measure", own_cache)        # as users have it
        found = speeds.machine(CpuSpace())
        assert not speeds.complaints() and 1e8 < found.copy < 1e13
        monkeypatch.setattr(speeds, "_known", {})
        monkeypatch.setattr(speeds, "measure", None)
        assert speeds.machine(CpuSpace()) == found

    @pytest.mark.parametrize("text", ["{", "[]", '{"%s": {"copy": -1.0}}', '{"%s": {"copy": "fast"}}'])
    def test_a_damaged_file_is_said_and_replaced(self, file, text, monkeypatch):
        key = speeds.name_of_device(CpuSpace())
        file.write_text(text.replace("%s", key))
        speeds.machine(CpuSpace())
        said = speeds.complaints()
        assert len(said) == 1 and str(file) in said[0] and not speeds.complaints()
        assert json.loads(file.read_text())[key]["copy"] > 1e8

    def test_another_machine_s_entry_is_left_alone(self, file):
        file.write_text('{"another": {"copy": 1e10}}')
        speeds.machine(CpuSpace())
        assert "another" in json.loads(file.read_text())

    def test_a_folder_that_cannot_be_written_is_said(self, file, monkeypatch, tmp_path):
        blocked = tmp_path / "file"
        blocked.write_text("")
        monkeypatch.setenv("SWELL_CACHE", str(blocked / "below"))
        assert speeds.machine(CpuSpace()).copy > 1e8
        notes = speeds.complaints() or swell.prepare(gallery.poisson2d(9)).notes
        assert any("speeds of this machine" in note for note in notes)
