"""Gradients of swell.torch.solve: right in every layout, type and order, and one adjoint solve each."""
from __future__ import annotations

import gc
import itertools
import weakref

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'swell[torch]'")

from torch.autograd import gradcheck, gradgradcheck

import swell.torch as st
from tests.support.torch_systems import BOTH, LAYOUTS, csr, energy, in_layout, leaf, matrix, vectors


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("shape", [(6,), (6, 3)], ids=["vector", "columns"])
def test_first_and_second_derivatives(dtype, shape):
    values, crow, col = csr(dtype)

    def solve(values, b):
        return st.solve_values(values, crow, col, b, method="direct")
    given = leaf(values), leaf(vectors(*shape, dtype=dtype))
    assert gradcheck(solve, given, check_forward_ad=True)
    assert gradgradcheck(solve, given)


@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_derivatives_in_a_dense_matrix_include_its_zeros(dtype):
    def solve(A, b):
        return st.solve(A, b, method="direct")
    given = leaf(matrix(dtype)), leaf(vectors(6, dtype=dtype))
    assert gradcheck(solve, given, check_forward_ad=True) and gradgradcheck(solve, given)


@pytest.mark.parametrize("named", [{"method": "gmres", "precond": "ilu0"},
                                   {"method": "bicgstab", "scaling": "jacobi"}, {}], ids=["ilu0", "scaled", "advisor"])
def test_iterative_methods(named):
    values, crow, col = csr()
    given = leaf(values), leaf(vectors(6))
    assert gradcheck(lambda values, b: st.solve_values(values, crow, col, b, rtol=1e-12, **named), given)


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_gradient_has_the_layout_and_the_pattern_of_A(layout, dtype):
    dense, b = matrix(dtype), vectors(6, 2, dtype=dtype)
    A, B = in_layout(dense, layout).requires_grad_(), leaf(b)
    of_A, of_b = torch.autograd.grad(energy(st.solve(A, B, rtol=1e-12)), (A, B))
    dense, b = leaf(dense), leaf(b)
    all_of_A, expected = torch.autograd.grad(energy(torch.linalg.solve(dense, b)), (dense, b))
    assert of_A.layout == A.layout and torch.allclose(of_b, expected)
    stored = torch.ones_like(dense) if layout == "dense" else A.detach().to_dense() != 0
    found = of_A.to_dense()
    if layout.startswith("bs"):                  # blocks store zeros, too
        assert of_A.values().shape == A.values().shape
        stored = stored | (found != 0)
    assert torch.allclose(found, all_of_A * stored)


@pytest.mark.parametrize("layout", ["coo", "csr", "dense"])
def test_leaves_accumulate(layout):
    A, b = in_layout(matrix(), layout).requires_grad_(), vectors(6)
    for _ in range(2):
        st.solve(A, b).sum().backward()
    once = torch.autograd.grad(st.solve(A, b).sum(), A)[0]
    assert A.grad.layout == A.layout and torch.allclose(A.grad.to_dense(), 2 * once.to_dense())


def test_a_constructed_tensor_passes_gradients_to_the_values_it_was_made_from():
    """By the constructor's own backward pass torch would make a dense n × n tensor, here of 800 GB."""
    n = 320_000
    eye, values = torch.arange(n), torch.full((n,), 2.0, dtype=torch.float64, requires_grad=True)
    A = torch.sparse_csr_tensor(torch.arange(n + 1), eye, values, (n, n))
    x = st.solve(A, torch.ones(n, dtype=torch.float64), method="cg")
    x.sum().backward()
    assert torch.allclose(values.grad, torch.tensor(-0.25, dtype=torch.float64))


def test_values_in_any_order_and_duplicates():
    """A CSR tensor with unsorted columns, and a COO tensor that stores entries in halves."""
    values, crow, col = csr()
    back = torch.cat([torch.arange(int(i), int(j)).flip(0) for i, j in itertools.pairwise(crow)])
    given, b = leaf(values[back]), vectors(6)
    st.solve_values(given, crow, col[back], b).sum().backward()
    ordered = leaf(values)
    st.solve_values(ordered, crow, col, b).sum().backward()
    assert torch.allclose(given.grad, ordered.grad[back])
    rows = torch.arange(6).repeat_interleave(crow.diff())
    half = leaf(torch.cat([values, values]) / 2)
    st.solve(torch.sparse_coo_tensor(torch.stack([rows.repeat(2), col.repeat(2)]), half, (6, 6)), b).sum().backward()
    assert torch.allclose(half.grad, ordered.grad.repeat(2))


def test_a_symmetric_matrix_by_cg():
    """The parameter keeps A symmetric; cg, with its own preconditioner, solves the adjoint system too."""
    import swell
    A = torch.from_numpy(swell.gallery.poisson2d(8).toarray()).to_sparse_csr()
    rows = torch.arange(64).repeat_interleave(A.crow_indices().diff())
    b = vectors(64)

    def values(shift):
        return A.values() + torch.where(rows == A.col_indices(), shift, 0.0)
    shift = leaf(torch.tensor(0.5, dtype=torch.float64))
    p = st.prepare(torch.sparse_csr_tensor(A.crow_indices(), A.col_indices(), values(shift), A.shape), method="cg",
                   precond="amg", rtol=1e-12)
    energy(p.solve(b)).backward()
    same = leaf(shift)
    energy(torch.linalg.solve(A.to_dense() + same * torch.eye(64), b)).backward()
    assert torch.allclose(shift.grad, same.grad) and (p.setups, p.solves, p.adjoint_solves) == (1, 1, 1)


def test_a_backward_pass_is_one_adjoint_solve_with_the_same_setup():
    A, b = matrix().to_sparse_csr().requires_grad_(), leaf(vectors(6, 3))
    p = st.prepare(A, method="gmres", precond="ilu0")
    x = p.solve(b)
    assert (p.setups, p.solves, p.adjoint_solves) == (1, 1, 0)
    for k in (1, 2, 3):
        x.sum().backward(retain_graph=k < 3)
        assert (p.setups, p.updates, p.solves, p.adjoint_solves) == (1, 0, 1, k)
    assert p.adjoint_result.converged and p.adjoint_result.residual <= 1e-8
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        x.sum().backward()


def test_a_graph_frees_the_setup_after_its_backward_pass():
    A, b = matrix().to_sparse_csr().requires_grad_(), vectors(6)
    p = st.prepare(A)
    x, system = p.solve(b), weakref.ref(p._system)
    del p
    gc.collect()
    assert system() is not None                  # the backward pass needs it
    x.sum().backward(retain_graph=True)
    assert system() is not None
    x.sum().backward()
    gc.collect()
    assert system() is None and x.grad_fn is not None


def test_no_graph_no_setup_kept():
    with torch.no_grad():
        p = st.prepare(matrix().to_sparse_csr().requires_grad_())
        x, system = p.solve(vectors(6)), weakref.ref(p._system)
    del p
    gc.collect()
    assert system() is None and not x.requires_grad


def test_only_the_gradients_that_are_asked_for():
    A, b = matrix().to_sparse_csr(), leaf(vectors(6))
    p = st.prepare(A)
    x = p.solve(b)
    assert x.grad_fn.saved_tensors[1] is None    # x, which the gradient of the values needs
    x.sum().backward()
    assert torch.allclose(b.grad, torch.linalg.solve(matrix().T, torch.ones(6, dtype=torch.float64)))
    A.requires_grad_()
    st.solve(A, b.detach()).sum().backward()
    assert A.grad is not None and p.adjoint_solves == 1


def test_values_changed_in_place_before_the_backward_pass():
    values, crow, col = csr()
    b = leaf(vectors(6))
    x = st.solve_values(values, crow, col, b)
    values.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


def test_zero_right_hand_sides():
    A, b = matrix().to_sparse_csr().requires_grad_(), leaf(torch.zeros(6, dtype=torch.float64))
    x = st.solve(A, b)
    (x**2).sum().backward()                      # a cotangent of zeros
    assert not x.any() and not b.grad.any() and not A.grad.values().any()
    x = st.solve(A, torch.zeros(6, 2, dtype=torch.float64))
    (x**2).sum().backward()
    assert x.shape == (6, 2) and not x.any()


def test_small_gradients_are_as_accurate_as_large_ones():
    """atol is for the forward solve only: it would call a small adjoint solution of zeros converged."""
    b = leaf(vectors(6))
    p = st.prepare(matrix().to_sparse_csr(), method="gmres", rtol=1e-10, atol=1e-6)
    (1e-20 * p.solve(b).sum()).backward()
    expected = torch.linalg.solve(matrix().T, torch.ones(6, dtype=torch.float64))
    assert torch.allclose(1e20 * b.grad, expected, rtol=1e-8)
    assert p.result.tolerance > 1e-10 and p.adjoint_result.tolerance == 1e-10


@pytest.mark.parametrize("of_A, of_b, named, of_x", [
    ("float64", "float32", None, "float64"), ("float32", "float64", None, "float32"),
    ("float64", "complex64", None, "complex128"), ("complex128", "float64", None, "complex128"),
    ("int64", "float32", None, "float64"), ("float32", "float32", "float64", "float64"),
    ("bfloat16", "float16", "float32", "float32"), ("float64", "float64", torch.complex64, "complex64")])
def test_types(of_A, of_b, named, of_x):
    """x has the type of the solve; each gradient has the type of its tensor."""
    A, b = matrix().to(getattr(torch, of_A)), vectors(6).to(getattr(torch, of_b))
    A, b = A.requires_grad_(of_A != "int64"), b.requires_grad_()
    x = st.solve(A, b, dtype=named, rtol=1e-5)
    energy(x).backward()
    assert x.dtype == getattr(torch, of_x) and b.grad.dtype == b.dtype and b.grad.any()
    assert of_A == "int64" or A.grad.dtype == A.dtype and A.grad.any()


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 2)], ids=["vectors", "columns"])
@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "dense"])
def test_batches(layout, shape, dtype):
    dense = matrix(dtype) * torch.tensor([1.0, 2.0, 3.0])[:, None, None]
    A = torch.stack([in_layout(one, layout) for one in dense]) if layout == "dense" else batch_of(dense, layout)
    A, b = A.requires_grad_(), leaf(vectors(*shape, dtype=dtype))
    x = st.solve(A, b, rtol=1e-12)
    of_A, of_b = torch.autograd.grad(energy(x), (A, b))
    assert x.shape == b.shape and of_A.shape == A.shape and of_A.layout == A.layout
    for k in range(3):
        one, right = in_layout(dense[k], layout).requires_grad_(), leaf(b[k])
        expected = torch.autograd.grad(energy(st.solve(one, right, rtol=1e-12)), (one, right))
        assert torch.allclose(of_b[k], expected[1])
        mine = of_A[k] if layout == "dense" else of_A.values()[k]
        assert torch.allclose(mine, expected[0] if layout == "dense" else expected[0].values())


def batch_of(dense, layout):
    """Matrices of one pattern as one compressed tensor."""
    parts = [in_layout(one, layout) for one in dense]
    one = parts[0]
    index = (one.crow_indices(), one.col_indices()) if layout in ("csr", "bsr") else (
        one.ccol_indices(), one.row_indices())
    return torch.sparse_compressed_tensor(*(part.expand(len(parts), -1) for part in index),
                                          torch.stack([part.values() for part in parts]), dense.shape,
                                          layout=parts[0].layout)


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("method", ["lu", "bicgstab"])
def test_derivatives_of_batches(dtype, method):
    values, crow, col = csr(dtype)
    given = leaf(torch.stack([values, 2 * values])), leaf(vectors(2, 6, dtype=dtype))

    def solve(values, b):
        return st.solve_values(values, crow, col, b, method=method, rtol=1e-13)
    assert gradcheck(solve, given) and gradgradcheck(solve, given)


def test_no_derivative_has_an_absolute_tolerance():
    """Tangents and second derivatives are solves with A, too: their size is unknown as that of a gradient."""
    A, b, tangent = matrix(), vectors(6), 1e-12 * vectors(6)
    p = st.prepare(A.to_sparse_csr(), method="gmres", rtol=1e-10, atol=1e-8)
    _, found = torch.func.jvp(p.solve, (b,), (tangent,))
    exact = torch.linalg.solve(A, tangent)
    assert (found - exact).norm() <= 1e-8 * exact.norm()

    def second(x, given):
        first, = torch.autograd.grad(1e-12 * x.square().sum(), given, create_graph=True)
        return torch.autograd.grad(1e12 * first.square().sum(), given)[0]
    b, same = leaf(b), leaf(b)
    exact = second(torch.linalg.solve(A, same), same)
    assert (second(p.solve(b), b) - exact).norm() <= 1e-6 * exact.norm()
