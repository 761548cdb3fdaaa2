"""swell.torch on a GPU: the same gradients, on torch's stream, from backward threads, without copies to the host."""
from __future__ import annotations

import gc
import threading
import weakref

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'swell[torch]'")

import swell
import swell.torch as st
from swell.core.errors import InputError
from tests.support.torch_systems import BOTH, LAYOUTS, csr, energy, in_layout, leaf, matrix, vectors

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def torch_sees_a_gpu():
    """Skip, visibly, where torch was built without CUDA, as beside the emulated GPU."""
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA GPU")


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("shape", [(6,), (6, 2)], ids=["vector", "columns"])
def test_first_and_second_derivatives(dtype, shape):
    values, crow, col = csr(dtype, device="cuda")

    def solve(values, b):
        return st.solve_values(values, crow, col, b, method="direct")
    given = leaf(values), leaf(vectors(*shape, dtype=dtype, device="cuda"))
    assert torch.autograd.gradcheck(solve, given, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(solve, given)


@pytest.mark.parametrize("dtype", BOTH, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_as_on_the_cpu(layout, dtype):
    found = []
    for device in ("cpu", "cuda"):
        A = in_layout(matrix(dtype).to(device), layout).requires_grad_()
        b = leaf(vectors(6, 2, dtype=dtype, device=device))
        x = st.solve(A, b, rtol=1e-12)
        of_A, of_b = torch.autograd.grad(energy(x), (A, b))
        assert x.device == b.device and of_A.device == A.device and of_A.layout == A.layout
        found.append([x.detach().cpu(), of_A.to_dense().cpu(), of_b.cpu()])
    for host, here in zip(*found):
        assert torch.allclose(host, here)


def poisson(n=200, device="cuda"):
    """A Poisson matrix of n² unknowns, and its values apart."""
    A = swell.gallery.poisson2d(n)
    crow, col = (torch.from_numpy(part).to(device) for part in (A.indptr, A.indices))
    return torch.from_numpy(A.data).to(device), crow, col, (n * n, n * n)


def test_work_on_another_stream_is_waited_for_and_waits():
    """b, and the cotangent, are still being computed when the solve is called; x is used at once."""
    values, crow, col, shape = poisson()
    p = st.prepare(torch.sparse_csr_tensor(crow, col, values, shape), method="cg", precond="amg", rtol=1e-10)
    start = leaf(torch.rand(shape[0], dtype=torch.float64, device="cuda"))
    big = torch.rand(4096, 4096, device="cuda")

    def late(tensor):
        """The tensor, after some milliseconds of other work on the current stream."""
        work = big
        for _ in range(10):
            work = work @ big
            work = work / work.norm()
        return tensor + 0 * work[0, 0].double()

    def run():
        x = p.solve(late(start))
        (late(x)**2).sum().backward()
        found = x.detach().clone(), start.grad.clone()
        start.grad = None
        return found
    expected = run()
    torch.cuda.synchronize()
    for _ in range(3):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            found = run()
        stream.synchronize()
        for one, other in zip(found, expected):
            assert torch.allclose(one, other, rtol=1e-7)


def test_backward_passes_of_several_threads():
    values, crow, col, shape = poisson(60)
    p, b, found = st.prepare(torch.sparse_csr_tensor(crow, col, values, shape), method="cg"), torch.ones(
        shape[0], dtype=torch.float64, device="cuda"), {}

    def work(k):
        with torch.cuda.stream(torch.cuda.Stream()):         # which does not wait for torch's default stream
            mine = leaf(k * values)
            p.solve(b, mine).sum().backward()
            torch.cuda.current_stream().synchronize()
        found[k] = mine.grad
    torch.cuda.synchronize()
    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in (2, 4):
        assert torch.allclose(found[k], found[1] / k**2, rtol=1e-5)


def test_arrays_are_shared_and_not_copied():
    import cupy

    from swell.torch.arrays import array_of, tensor_of
    b = torch.rand(6, dtype=torch.float64, device="cuda")
    assert array_of(b).data.ptr == b.data_ptr()
    x = cupy.ones(6)
    assert tensor_of(x).data_ptr() == x.data.ptr


def own_memory():
    """Bytes that the pools of this process hold. The device's free memory changes with every process that uses it."""
    import cupy
    return cupy.get_default_memory_pool().total_bytes() + torch.cuda.memory_reserved()


def test_steps_do_not_gather_memory():
    values, crow, col, shape = poisson()
    values, b = leaf(values), torch.ones(shape[0], dtype=torch.float64, device="cuda")
    p = st.prepare(torch.sparse_csr_tensor(crow, col, values.detach(), shape), method="cg", precond="amg")
    held = []
    for _ in range(6):
        values.grad = None
        p.update(values).solve(b).sum().backward()
        with torch.no_grad():
            values.mul_(1.01)
        torch.cuda.synchronize()
        held.append(own_memory())
    assert held[-1] - held[2] < 8 * values.nbytes and p.setups == 1 and p.updates == 5


def test_a_graph_frees_the_setup():
    A = matrix(device="cuda").to_sparse_csr().requires_grad_()
    p = st.prepare(A)
    x, system = p.solve(vectors(6, device="cuda")), weakref.ref(p._system)
    del p
    x.sum().backward()
    gc.collect()
    assert system() is None


@pytest.mark.parametrize("dtype", BOTH, ids=str)
def test_vmap_and_batches(dtype):
    values, crow, col = csr(dtype, device="cuda")
    b, many = vectors(4, 6, dtype=dtype, device="cuda"), torch.stack([values, 2 * values])
    dense = matrix(dtype, device="cuda")

    def solve(values, b):
        return st.solve_values(values, crow, col, b, rtol=1e-12)
    x = torch.func.vmap(solve, (None, 0))(values, b)
    assert torch.allclose(x, torch.linalg.solve(dense, b.T).T)
    assert torch.allclose(torch.func.vmap(solve, (0, None))(many, b[0])[1], x[0] / 2)
    found = torch.func.vmap(torch.func.grad(lambda values, b: energy(solve(values, b))), (0, None))(many, b[0])
    same = leaf(2 * values)
    energy(solve(same, b[0])).backward()
    assert torch.allclose(found[1], same.grad)


def test_a_full_graph():
    values, b = csr(device="cuda")[0], vectors(6, device="cuda")
    p = st.prepare(matrix(device="cuda").to_sparse_csr(), method="direct")
    torch._dynamo.reset()
    compiled = torch.compile(lambda values, b: 2 * p.solve(3 * b, values), fullgraph=True, backend="aot_eager")
    assert torch.autograd.gradcheck(compiled, (leaf(values), leaf(b)))


def test_devices_that_differ():
    A, b = matrix(device="cuda").to_sparse_csr(), vectors(6)
    with pytest.raises(InputError, match=r"A lies on cuda:0 and b on cpu: move one of them, as in b.to\('cuda:0'\)"):
        st.solve(A, b)
    p = st.prepare(A)
    with pytest.raises(InputError, match="the prepared matrix lies on cuda:0 and the new one on cpu"):
        p.update(A.values().cpu())
