"""Prepared systems: training steps, setups and their number, copies, failures."""
from __future__ import annotations

import copy
import pickle
import threading
import warnings

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'swell[torch]'")

import swell
import swell.torch as st
from tests.support.torch_systems import csr, energy, leaf, matrix, vectors


def laplacian(n=8):
    return torch.from_numpy(swell.gallery.poisson2d(n).toarray()).to_sparse_csr()


@pytest.mark.parametrize("keep", [False, True], ids=["new", "kept"])
def test_a_fit_survives_the_steps_of_an_optimizer(keep):
    """The parameter is the values themselves: an optimizer changes them in place, and the setup follows."""
    A, b = laplacian(), vectors(64)
    target = torch.linalg.solve(A.to_dense() + torch.eye(64), b)
    values = torch.nn.Parameter(A.values().clone())
    p = st.prepare(A, method="gmres", precond="ilu0", keep_preconditioner=keep)
    adam, losses = torch.optim.Adam([values], lr=0.05), []
    for _ in range(30):
        adam.zero_grad()
        loss = ((p.update(values).solve(b) - target)**2).sum()
        loss.backward()
        adam.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.02 * losses[0]
    assert (p.setups, p.updates, p.solves, p.adjoint_solves) == (1, 29, 30, 30)


def test_the_gradient_of_updated_values_is_theirs():
    values, crow, col = csr()
    p, b = st.prepare(matrix().to_sparse_csr(), method="direct"), vectors(6)
    first, second = leaf(values), leaf(2 * values)
    one = p.update(first).solve(b)
    two = p.update(torch.sparse_csr_tensor(crow, col, second, (6, 6))).solve(b)
    (energy(one) + energy(two)).backward()       # the backward pass sets up each node's values again
    for given in (first, second):
        same = leaf(given)
        energy(st.solve_values(same, crow, col, b, method="direct")).backward()
        assert torch.allclose(given.grad, same.grad)
    assert p.setups == 1 and p.adjoint_solves == 2


def test_equal_values_cost_no_setup():
    p, b = st.prepare(laplacian(), method="gmres", precond="ilu0"), vectors(64)
    for _ in range(3):
        p.update(laplacian()).solve(b)
    assert (p.setups, p.updates, p.solves) == (1, 0, 3)


def test_values_changed_in_place_are_seen():
    A, b = laplacian(), vectors(64)
    p = st.prepare(A)
    x = p.solve(b)
    A.values().mul_(2)
    assert torch.allclose(p.solve(b), x / 2)


def test_a_dense_matrix_may_change_its_zeros():
    A, b = matrix(), vectors(6)
    p = st.prepare(A, method="direct")
    for other in (A, 2 * A, A.T.contiguous()):
        assert torch.allclose(p.update(other).solve(b), torch.linalg.solve(other, b))
    assert (p.setups, p.updates) == (2, 1)


def test_a_prepared_batch():
    values, crow, col = csr()
    A = torch.sparse_compressed_tensor(crow.expand(3, -1), col.expand(3, -1), values * torch.ones(3, 1), (3, 6, 6),
                                       layout=torch.sparse_csr)
    p, b = st.prepare(A, method="lu"), leaf(vectors(3, 6))
    for k in (1, 2):
        p.update(k * A.values()).solve(b).sum().backward()
    assert (p.setups, p.solves, p.adjoint_solves) == (2, 2, 2) and p.result.all_converged


def test_other_types_after_real_ones():
    p, b = st.prepare(matrix().to_sparse_csr()), vectors(6)
    assert p.solve(b).dtype == torch.float64
    assert torch.allclose(p.solve(b * 1j), 1j * p.solve(b))


def test_copies_and_pickles():
    p, b = st.prepare(matrix().to_sparse_csr().requires_grad_(), method="gmres", precond="ilu0"), vectors(6)
    x = p.solve(b)
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert torch.equal(other.solve(b), x) and (other.setups, other.solves) == (1, 1)
        assert not other.values.requires_grad
    assert (p.setups, p.solves) == (1, 1)


def test_threads_share_a_prepared_system():
    values = matrix().to_sparse_csr().values().clone()
    p, b, found = st.prepare(matrix().to_sparse_csr(), method="direct"), vectors(6), {}

    def work(k):
        mine = leaf(k * values)
        x = p.solve(b, mine)
        x.sum().backward()
        found[k] = x.detach(), mine.grad
    threads = [threading.Thread(target=work, args=(k,)) for k in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in (1, 2, 3, 4):
        assert torch.allclose(found[k][0], found[1][0] / k) and torch.allclose(found[k][1], found[1][1] / k**2)


def test_a_solve_that_does_not_converge_raises():
    p = st.prepare(laplacian(), method="cg", maxiter=2)
    with pytest.raises(st.NotConverged, match="the solve did not converge: NOT converged .MAXITER. in 2") as e:
        p.solve(vectors(64))
    assert isinstance(e.value, swell.SwellError) and e.value.result.reason is swell.Reason.MAXITER
    assert e.value.result is p.result and pickle.loads(pickle.dumps(e.value)).result.iterations == 2
    with pytest.raises(st.NotConverged):
        st.solve_values(*csr(), vectors(6, 2), method="bicgstab", maxiter=1)


def test_an_adjoint_solve_that_does_not_converge_raises():
    """b is an eigenvector: cg needs one iteration forward, and more for another right-hand side."""
    A = laplacian()
    b = leaf(torch.linalg.eigh(A.to_dense())[1][:, 3].contiguous())
    p = st.prepare(A, method="cg", maxiter=4)
    loss = (vectors(64) * p.solve(b)).sum()
    with pytest.raises(st.NotConverged, match="the adjoint solve, for the gradient, did not converge") as error:
        loss.backward()
    assert error.value.result.reason is swell.Reason.MAXITER and b.grad is None


def test_a_warning_instead_of_an_error():
    p, b = st.prepare(laplacian(), method="cg", maxiter=2, on_failure="warn"), leaf(vectors(64))
    with pytest.warns(UserWarning, match="the solve did not converge"):
        x = p.solve(b)
    with pytest.warns(UserWarning, match="the adjoint solve, for the gradient, did not converge"):
        x.sum().backward()
    assert b.grad.any() and not p.result.converged
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        st.solve(laplacian(), b, on_failure="warn").sum().backward()


def test_the_repr_tells_size_and_counts():
    p = st.prepare(laplacian(), method="direct")
    p.solve(vectors(64))
    assert repr(p) == "Prepared(64 unknowns, float64, cpu: 1 solves, 0 adjoint ones, 1 setups, 0 updates)"
