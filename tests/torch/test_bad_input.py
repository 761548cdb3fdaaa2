"""What swell.torch refuses, and how it says so."""
from __future__ import annotations

import numpy as np
import pytest

import swell
from swell.core.errors import InputError, MissingDependency

try:
    import torch
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="needs torch: pip install 'swell[torch]'")


@pytest.mark.skipif(torch is not None, reason="needs an environment without torch")
def test_without_torch_the_error_says_how_to_install_it():
    A, b = np.eye(2), np.ones(2)
    for call in (lambda: swell.torch.solve(A, b), lambda: swell.torch.prepare(A),
                 lambda: swell.torch.solve_values(b, b, b, b), lambda: swell.torch.solve_batch(A[None], b)):
        with pytest.raises(MissingDependency, match=r"swell.torch needs torch .*: pip install 'swell\[torch\]'"):
            call()


def system():
    from tests.support.torch_systems import matrix, vectors
    return matrix().to_sparse_csr(), vectors(6)


@needs_torch
@pytest.mark.parametrize("change, message", [
    (lambda A, b: (np.eye(6), b), "A is a ndarray: expected a torch tensor; swell.solve takes arrays"),
    (lambda A, b: (A, b.numpy()), "b is a ndarray: expected a torch tensor; swell.solve takes arrays"),
    (lambda A, b: (A.to_dense()[:4], b), r"A has shape \(4, 6\): expected a square matrix \(n, n\), or a batch"),
    (lambda A, b: (A, b[:5]), r"b has shape \(5,\): expected \(6,\) or \(6, k\)"),
    (lambda A, b: (A, b[:, None, None]), r"b has shape \(6, 1, 1\): expected"),
    (lambda A, b: (A, b.to_sparse_coo()), "b is a tensor of layout torch.sparse_coo: expected a dense one"),
    (lambda A, b: (A.to_dense().to_sparse(1), b), "A is a tensor of layout torch.sparse_coo .*: expected dense"),
    (lambda A, b: (torch.stack([A.to_dense()] * 2).to_sparse_coo(), b.expand(2, -1)), "COO with two sparse dimensions"),
    (lambda A, b: (A.to_dense().to_mkldnn() if A.dtype == torch.float32 else A.float().to_dense().to_mkldnn(), b),
     "A is a tensor of layout torch._mkldnn .*: expected dense .torch.strided., torch.sparse_coo, sparse_csr"),
    (lambda A, b: (A.half(), b), r"A has dtype float16, in which swell does not compute: .*dtype='float32'"),
    (lambda A, b: (A.to(torch.bfloat16), b), "A has dtype bfloat16"),
    (lambda A, b: (A, b.to(torch.bfloat16)), r"b has dtype bfloat16.*b\.to\(torch.float32\)"),
    (lambda A, b: (A, b.to(torch.float8_e4m3fn)), "b has dtype float8_e4m3fn"),
    (lambda A, b: (A, b.to("meta")), "A lies on cpu and b on meta: move one of them, as in b.to"),
    (lambda A, b: (A.to_dense().to("meta"), b), "A lies on device 'meta': expected cpu or cuda"),
])
def test_tensors_that_cannot_be_solved(change, message):
    A, b = change(*system())
    with pytest.raises(InputError, match=message):
        swell.torch.solve(A, b)


@needs_torch
def test_a_batch_of_different_patterns():
    one, other = torch.eye(2).to_sparse_csr(), torch.eye(2).flip(0).contiguous().to_sparse_csr()
    A = torch.sparse_compressed_tensor(*(torch.stack([part(one), part(other)]) for part in (
        torch.Tensor.crow_indices, torch.Tensor.col_indices, torch.Tensor.values)), (2, 2, 2), layout=torch.sparse_csr)
    with pytest.raises(InputError, match="its matrix 1 has another pattern than matrix 0"):
        swell.torch.solve(A, torch.ones(2, 2))
    with pytest.raises(InputError, match=r"A has shape \(2, 2\): expected a batch \(m, n, n\)"):
        swell.torch.solve_batch(one, torch.ones(2))


@needs_torch
@pytest.mark.parametrize("crow, col, message", [
    ([0, 2, 4], [0, 0, 0, 1], "A stores an entry twice"), ([0, 3, 2], [0, 1, 0, 1], "row pointers are inconsistent"),
    ([0, 2], [0, 1, 0, 1], "row pointers are inconsistent: expected 2 ascending"),
    ([0, 2, 4], [0, 7, 0, 1], "A has an index of 7: expected 0 to 1"),
    ([1, 2, 4], [0, 1, 0, 1], "row pointers are inconsistent: expected 3 ascending integers from 0 to 4"),
    ([0, 2, 9], [0, 1, 0, 1], "row pointers are inconsistent"),
    ([0, 4, 2, 4], [0, 1, 2, 3], "row pointers are inconsistent"),
    ([0, 2, 4], [0, 1, 0, 1 + 2**32], "A has an index of 4294967297: expected 0 to 1"),
    ([0, 2, 4], [0, 1, -1, 1], "A has an index of -1: expected 0 to 1"),
    ([0, 2, 4], [0, 1, 0], "crow has 3 entries, col 3, and there are 4"),
    ([0.0, 2.0, 4.0], [0, 1, 0, 1], "crow is torch.float32 .*: expected a one-dimensional tensor of int32 or int64")])
def test_arrays_that_are_no_matrix(crow, col, message):
    values = torch.tensor([2.0, 1.0, 1.0, 3.0])
    with pytest.raises(InputError, match=message):
        swell.torch.solve_values(values, torch.tensor(crow), torch.tensor(col), torch.ones(len(crow) - 1))


@needs_torch
def test_arrays_of_other_libraries_are_no_values():
    index = torch.tensor([0, 1, 2]), torch.tensor([0, 1])
    for values, message in ((np.ones(2), "values is a ndarray: expected a torch tensor"),
                            ([1.0, 1.0], "values is a list: expected a torch tensor"),
                            (torch.tensor(1.0), r"values has shape \(\): expected \(nnz,\)"),
                            (torch.ones(2, 2, 2), r"values has shape \(2, 2, 2\): expected")):
        with pytest.raises(InputError, match=message):
            swell.torch.solve_values(values, *index, torch.ones(2))


@needs_torch
def test_quantized_tensors():
    A = torch.quantize_per_tensor(torch.eye(2), 0.1, 0, torch.qint8)
    with pytest.raises(InputError, match=r"A is quantized \(qint8\): .*A.dequantize\(\)"):
        swell.torch.solve(A, torch.ones(2))


@needs_torch
@pytest.mark.parametrize("named, message", [
    ({"dtype": "float16"}, "dtype='float16': expected one of float32"),
    ({"dtype": "int32"}, "dtype=.int32.: expected one of float32"),
    ({"on_failure": "ignore"}, "on_failure='ignore': expected 'raise' or 'warn'"),
    ({"method": "nothing"}, "nothing")])
def test_options(named, message):
    with pytest.raises(InputError, match=message):
        swell.torch.solve(*system(), **named)


@needs_torch
def test_options_without_effect_in_a_batch():
    A, b = system()
    with pytest.raises(InputError, match="scaling='jacobi' has no effect in a batch"):
        swell.torch.solve(torch.stack([A.to_dense()] * 2), b.expand(2, -1), scaling="jacobi")
    with pytest.raises(InputError, match="keep_preconditioner=1: expected True or False"):
        swell.torch.prepare(A, keep_preconditioner=1)


@needs_torch
def test_imaginary_parts_are_not_dropped():
    A, b = system()
    with pytest.raises(InputError, match="dtype=float64 would drop the imaginary part of a complex b"):
        swell.torch.solve(A, b * 1j, dtype="float64")


@needs_torch
def test_a_method_without_an_adjoint_is_refused_before_the_forward_solve():
    from tests.support.torch_systems import leaf
    A, b = system()
    calls = []

    def M(r):
        calls.append(1)
        return r / 4
    p = swell.torch.prepare(A, method="gmres", M=M)
    assert torch.allclose(p.solve(b), torch.linalg.solve(A.to_dense(), b)) and calls
    calls.clear()
    for given in (leaf(b), torch.stack([leaf(b)], 1)):
        with pytest.raises(InputError, match="adjoint=True: the preconditioner.* has no adjoint"):
            p.solve(given)
    with pytest.raises(InputError, match="has no adjoint"):
        torch.func.grad(lambda b: p.solve(b).sum())(b)
    with torch.no_grad():
        assert p.solve(b).shape == b.shape
    assert p.solves == 2


@needs_torch
def test_an_absolute_tolerance_alone_has_no_gradient():
    from tests.support.torch_systems import leaf
    A, b = system()
    with pytest.raises(InputError, match="rtol=0 with atol=1e-06: a derivative needs a relative tolerance"):
        swell.torch.solve(A, leaf(b), rtol=0, atol=1e-6)
    assert swell.torch.solve(A, b, rtol=0, atol=1e-6).shape == b.shape


@needs_torch
def test_updates_of_other_matrices():
    A, b = system()
    p = swell.torch.prepare(A)
    for other in (torch.eye(6, dtype=torch.float64).to_sparse_csr(), A.to_dense().to_sparse_bsr((2, 2))):
        with pytest.raises(InputError, match="update needs a matrix with the pattern, block size and device"):
            p.update(other)
    with pytest.raises(InputError, match=r"values has shape \(2,\): expected \(\d+\), the values of A in the order"):
        p.update(torch.ones(2))
    with pytest.raises(InputError, match="the prepared matrix lies on cpu and the new one on meta"):
        p.update(A.values().to("meta"))
    assert torch.allclose(p.solve(b), torch.linalg.solve(A.to_dense(), b))


@needs_torch
@pytest.mark.parametrize("call", ["solve", "lstsq", "solve_batch"])
def test_calls_without_a_graph_refuse_tensors_that_require_grad(call):
    """x would have no graph, silently."""
    A, b = system()
    given = {"solve": (A, b), "lstsq": (A, b), "solve_batch": (A, A.values()[None], b[None])}[call]
    name = "B" if call == "solve_batch" else "b"
    with pytest.raises(InputError, match=rf"{name} requires grad, .*use swell.torch.solve.*{name}.detach\(\)"):
        getattr(swell, call)(*given[:-1], given[-1].clone().requires_grad_())
    with torch.no_grad():
        assert getattr(swell, call)(*given[:-1], given[-1].clone().requires_grad_()).x.shape == given[-1].shape
    if call != "solve_batch":
        with pytest.raises(InputError, match="A requires grad, and this call returns no graph"):
            getattr(swell, call)(A.clone().requires_grad_(), b)
