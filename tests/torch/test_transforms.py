"""torch.func and torch.compile: vmap, grad, jvp, hessian, full graphs."""
from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'swell[torch]'")

from torch.func import grad, hessian, jacfwd, jacrev, jvp, vmap

import swell
import swell.torch as st
from swell.torch.function import solve_op
from tests.support.torch_systems import BOTH, csr, energy, leaf, matrix, vectors

FORWARD = {"adjoint": False, "batched": False, "derivative": False, "differentiable": False}


def prepared(dtype=torch.float64, **named):
    """A prepared system, and its values."""
    A = matrix(dtype).to_sparse_csr()
    return st.prepare(A, rtol=1e-12, **named), A.values().clone()


def gradients(solve, values, b):
    """Those of `energy`, without torch.func."""
    values, b = leaf(values), leaf(b)
    return torch.autograd.grad(energy(solve(values, b)), (values, b))


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 2)], ids=["vectors", "columns"])
def test_vmap_over_b_is_one_solve_of_columns(dtype, shape):
    p, _ = prepared(dtype)
    b = vectors(*shape, dtype=dtype)
    x = vmap(p.solve)(b)
    assert (p.solves, p.setups) == (1, 1) and len(p.result) == b.numel() // 6
    assert torch.allclose(x, torch.linalg.solve(matrix(dtype), b if b.ndim == 3 else b[..., None]).reshape(b.shape))
    assert torch.allclose(vmap(p.solve, in_dims=1, out_dims=1)(b.movedim(0, 1)), x.movedim(0, 1))


@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_vmap_over_values_is_a_batch(dtype):
    p, values = prepared(dtype)
    many, b = torch.stack([values, 2 * values, 4 * values]), vectors(6, dtype=dtype)
    x = vmap(lambda values: p.solve(b, values))(many)
    expected = p.solve(b)
    assert torch.allclose(x, torch.stack([expected, expected / 2, expected / 4])) and p.solves == 2
    several = vectors(3, 6, dtype=dtype)
    both = vmap(p.solve)(several, many)
    assert torch.allclose(both, torch.stack([p.solve(one, other) for one, other in zip(several, many)]))
    nested = vmap(vmap(p.solve, (0, None)), (None, 0))(several, many)
    assert torch.allclose(nested[1], vmap(p.solve)(several) / 2)
    assert torch.allclose(vmap(vmap(lambda values: p.solve(b, values)))(many[None])[0], x)


@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_grad_and_vmap_of_grad(dtype):
    p, values = prepared(dtype, method="direct")
    many, several = torch.stack([values, 3 * values]), vectors(2, 6, dtype=dtype)

    def loss(values, b):
        return energy(p.solve(b, values))

    def plainly(values, b):
        return gradients(lambda values, b: p.solve(b, values), values, b)
    for found, expected in zip(grad(loss, (0, 1))(values, several[0]), plainly(values, several[0])):
        assert torch.allclose(found, expected)
    p = st.prepare(matrix(dtype).to_sparse_csr(), rtol=1e-12)
    one_by_one = [plainly(one, other) for one, other in zip(many, several)]
    assert torch.allclose(vmap(grad(loss, 1), (None, 0))(values, several)[0], one_by_one[0][1])
    for k, found in enumerate(vmap(grad(loss, (0, 1)))(many, several)):
        assert torch.allclose(found, torch.stack([each[k] for each in one_by_one]))


def test_forward_mode_and_hessians():
    p, values = prepared(method="direct")
    b, A = vectors(6), matrix()
    assert torch.allclose(jvp(p.solve, (b,), (2 * b,))[1], 2 * p.solve(b))
    inverse = torch.linalg.inv(A)
    assert torch.allclose(jacfwd(p.solve)(b), inverse) and torch.allclose(jacrev(p.solve)(b), inverse)
    weights = torch.diag(torch.arange(1.0, 7, dtype=torch.float64))
    assert torch.allclose(hessian(lambda b: energy(p.solve(b)))(b), 2 * inverse.T @ weights @ inverse)
    found = hessian(lambda values: energy(p.solve(b, values)))(values)
    expected = torch.autograd.functional.hessian(lambda values: energy(p.solve(b, values)), values)
    assert torch.allclose(found, expected) and found.any()


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("form", ["values", "prepared", "fixed", "batch"])
def test_full_graphs_and_their_gradients(form, dtype):
    """torch.compile with one graph; mixtures of autograd.Function and custom_op were once silently wrong in it."""
    values, crow, col = csr(dtype)
    p, b = st.prepare(matrix(dtype).to_sparse_csr(), method="gmres", rtol=1e-12), vectors(6, dtype=dtype)
    if form == "batch":
        values, b = torch.stack([values, 2 * values]), vectors(2, 6, dtype=dtype)
    plain = {"values": lambda values, b: 2 * st.solve_values(values, crow, col, b * 3, method="gmres", rtol=1e-12),
             "prepared": lambda values, b: 2 * p.solve(b * 3, values),
             "fixed": lambda values, b: 2 * p.solve(b * 3),
             "batch": lambda values, b: 2 * st.solve_values(values, crow, col, b * 3, method="lu")}[form]
    torch._dynamo.reset()
    compiled = torch.compile(plain, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(values, b), plain(values, b))
    assert torch.autograd.gradcheck(compiled, (leaf(values), leaf(b)))


def test_compiled_graphs_take_no_prepared_values_with_a_graph():
    p = st.prepare(matrix().to_sparse_csr().requires_grad_())
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"pass them, as in\s+p.solve\(b, values\)"):
        torch.compile(p.solve, fullgraph=True, backend="aot_eager")(vectors(6))


def test_the_operation_keeps_torchs_rules():
    """Schema, aliasing, and the shapes that a compiled graph assumes."""
    p, values = prepared()
    index = p._index
    for b in (vectors(6), vectors(6, 2)):
        torch.library.opcheck(solve_op, (values, b, index.crow, index.col, p._system.key), FORWARD,
                              test_utils=("test_schema", "test_faketensor"))


def test_a_system_that_is_gone():
    p, values = prepared()
    key, index = p._system.key, p._index
    del p
    with pytest.raises(swell.SwellError, match="no longer exists: keep the object"):
        solve_op(values, vectors(6), index.crow, index.col, key, **FORWARD)
