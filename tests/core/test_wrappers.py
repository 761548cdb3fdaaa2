"""Operators around others: what they take over from `LinearOperator`'s contract, and that nothing of it is lost."""
from __future__ import annotations

import importlib
import inspect
import pkgutil

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import gallery
from swell.core.operator import Composite, LinearOperator, Wrapper
from swell.core.space import accumulator
from swell.formats.csr import CSRMatrix
from swell.solving.adjoint import Adjoint

FOLLOWS = {"apply_dots", "apply_dot", "apply_plus", "residual", "residual_terms"}        # from ``apply``
OF_MATRICES = {"has_entries", "precise_residual", "norm_inf", "diagonal_block"}
OF_THE_CLASS = {"scratch", "hints"}
CONTRACT = {name for name in vars(LinearOperator) if not name.startswith("_")} - FOLLOWS - OF_MATRICES - OF_THE_CLASS
PRODUCTS = {"apply", "apply_adjoint"}


def every(base):
    """All classes of the package that are derived from ``base``."""
    for package in ("core", "distributed", "krylov", "preconditioners", "smoothers", "solving", "transforms"):
        for module in pkgutil.walk_packages(importlib.import_module(f"swell.{package}").__path__, f"swell.{package}."):
            if ".kernels" not in module.name:
                importlib.import_module(module.name)
    found, waiting = [], [base]
    while waiting:
        found += (derived := waiting.pop().__subclasses__())
        waiting += derived
    return [cls for cls in found if cls.__module__.startswith("swell.")]


def definer(cls, name):
    """The class that defines the attribute for ``cls``."""
    return next(base for base in cls.__mro__ if name in vars(base))


def test_no_wrapper_loses_a_part_of_the_contract():
    classes = every(Wrapper)
    assert len(classes) >= 8
    lost = [(cls.__name__, name) for cls in (Wrapper, *classes) for name in CONTRACT
            if definer(cls, name) is LinearOperator]
    assert not lost, "neither passed on nor overridden"
    own = {name for name in OF_MATRICES if definer(Adjoint, name) is not LinearOperator}
    assert own == OF_MATRICES - {"has_entries"}, "it is around matrices; the constructor sets has_entries"


def test_a_wrapper_with_a_product_of_its_own_has_both_products():
    for cls in every(Wrapper):
        own = {name for name in PRODUCTS if definer(cls, name) is not Wrapper}
        assert own in (set(), PRODUCTS), f"{cls.__name__} would have one product of its own and inner's other"


def test_a_composite_describes_itself():
    for cls in set(every(Composite)) - {Wrapper}:
        lost = [name for name in ("apply_adjoint", "nbytes", "describe") if definer(cls, name) is LinearOperator]
        assert not lost, cls.__name__


class Everything(LinearOperator):
    """An operator in which no attribute has its default; it records its calls."""

    name, nnz, origin, nbytes, notes, revision = "everything", 7, "a test", 5, ("a note",), 3
    spd = symmetric = hermitian = self_adjoint = variable = True
    capturable, arithmetic = False, np.dtype(np.float32)

    def __init__(self):
        super().__init__((1, 1), np.dtype(float), None)
        self.calls = []

    def apply(self, x, out, alpha=1, beta=0):
        self.calls.append(("apply", x, out, alpha, beta))


def recorder(name):
    return lambda self, *arguments: self.calls.append((name, *arguments))


for called in CONTRACT - {"apply"}:
    if inspect.isfunction(vars(LinearOperator)[called]):
        setattr(Everything, called, recorder(called))


class Plain(Wrapper):
    def __init__(self, inner):
        super().__init__(inner.shape, inner.dtype, None)
        self.inner = inner


def test_a_plain_wrapper_passes_everything_on():
    inner = Everything()
    outer = Plain(Plain(inner))
    for name in CONTRACT:
        value = vars(LinearOperator)[name]
        if not inspect.isfunction(value):
            assert getattr(outer, name) == getattr(inner, name) != value, name
            continue
        arguments = [object() for _ in list(inspect.signature(value).parameters)[1:]]
        getattr(outer, name)(*arguments)
        assert inner.calls.pop() == (name, *arguments)


def test_fused_products_of_a_wrapper_are_its_own(dtype, space):
    """Aᴴ of an operator without a stored adjoint has no fused products of its own."""
    with space.active():
        A = CSRMatrix.from_scipy(sp.csr_array(gallery.convection_diffusion((8, 8), 5.0)).astype(dtype), space)
        M = Adjoint(swell.ILU0().build(A))
        x, w, out, y = (space.empty(64, dtype) for _ in range(4))
        space.random(1, x)
        space.random(2, w)
        M.apply(x, y)
        for product in (M.apply_dots, M.apply_dot):
            dots = space.empty(2, accumulator(dtype))
            product(x, out, w, dots)
            assert bool((out == y).all())
            assert complex(space.to_host(dots)[0]) == pytest.approx(complex(space.xp.vdot(w, y)), rel=1e-12)


def poisson(space, k=20):
    return CSRMatrix.from_scipy(gallery.poisson2d(k), space)


@pytest.mark.parametrize("build", [
    lambda A: swell.FieldSplit(fields=2, inner="amg").build(A), lambda A: swell.Schwarz(inner="amg").build(A),
    lambda A: swell.Schwarz(inner="amg", domains=4, coarse="nicolaides", kind="additive").build(A),
    lambda A: swell.Deflation(inner="amg", vectors=2).build(A),
    lambda A: swell.BDDC(domains=4, interior="smoothed_aggregation").build(A)])
def test_precision_within(build, space):
    """What applies a cycle in single precision says so."""
    with space.active():
        assert build(poisson(space)).arithmetic == np.float32


@pytest.mark.parametrize("solvers", [{"coarse": "smoothed_aggregation"}, {"interior": "smoothed_aggregation"}], ids=str)
def test_right_hand_sides_of_any_size_reach_bddc(solvers, device):
    """Its solvers in single precision learn the norm of the vectors: 1e-60 would vanish, 1e100 would overflow."""
    A = gallery.poisson2d(20)
    s = swell.prepare(A, method="cg", precond=swell.BDDC(domains=8, **solvers), device=device)
    b = np.random.default_rng(0).random(A.shape[0])
    usual, *others = (s.solve(size * b) for size in (1, 1e-60, 1e100))
    assert usual.converged
    for other in others:
        assert other.converged and abs(other.iterations - usual.iterations) <= 1


def test_deflation_hands_new_values_to_what_is_within(space):
    """AMS within it, say, multiplies by the matrix."""
    with space.active():
        M, A = swell.Deflation(inner="jacobi", vectors=2).build(poisson(space)), poisson(space)
        told = []
        M.inner.keep_for = told.append
        M.keep_for(A)
        assert told == [A]


def test_the_shifted_laplacian_keeps_what_is_within(space):
    with space.active():
        A = CSRMatrix.from_scipy(sp.csr_array(gallery.poisson2d(10).astype(complex)), space)
        M = swell.ShiftedLaplacian(inner="jacobi").build(A)
        M.inner.keep_for = lambda A: pytest.fail("it was built from another matrix")
        M.keep_for(A)


class Mine(LinearOperator):
    """A user's operator, for one vector."""

    def apply(self, x, out, alpha=1, beta=0):
        assert isinstance(x, self.space.xp.ndarray)
        out[...] = alpha * x / 4 + (beta * out if beta else 0)


def test_a_users_operator_within_another_takes_one_vector_at_a_time(device):
    A = gallery.poisson2d(12)
    n = A.shape[0] // 2
    s = swell.prepare(A, precond="jacobi", device=device)
    own = Mine((n, n), A.dtype, s.space)
    split = swell.FieldSplit(fields=np.repeat([0, 1], n), inner=(own, "jacobi"))
    s = swell.prepare(A, method="gmres", precond=split, device=device)
    assert s.solve(np.random.default_rng(0).random((2 * n, 3))).converged
    with pytest.raises(swell.InputError, match="Mine, an operator of your own, takes one vector at a time"):
        s.solve(np.ones((2 * n, 3)), together=True)
