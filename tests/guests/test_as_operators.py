"""A Solver and its ``M`` as linear operators of SciPy, PyAMG and CuPy."""
import numpy as np
import pytest
import scipy.sparse.linalg as spla
from scipy.optimize import newton_krylov

import swell
from swell.core.errors import InputError, NotConverged

S, A = swell.gallery.poisson2d(20), swell.gallery.convection_diffusion((20, 20))
H = (A + 1j * S).tocsr()
N = 400
B = np.random.default_rng(3).random((N, 3))
TRANSFORMED = {"precond": "ilu0", "ordering": "rcm", "scaling": "ruiz"}


def test_the_inverse_of_eigsh_is_a_solver():
    s = swell.prepare(S, method="direct")
    values = spla.eigsh(S, 4, sigma=0, OPinv=s, return_eigenvectors=False)
    assert np.allclose(values, spla.eigsh(S, 4, sigma=0, return_eigenvectors=False), rtol=1e-12)


@pytest.mark.parametrize("matrix, named", [(A, {"method": "direct"}), (H, {"method": "direct"}),
                                           (A, {"method": "gmres", "rtol": 1e-12})])
def test_a_solver_is_the_inverse_of_its_matrix(matrix, named):
    s = swell.prepare(matrix, **named)
    inverse = np.linalg.inv(matrix.toarray())
    assert s.shape == (N, N) and s.dtype == matrix.dtype
    for one in (s, spla.aslinearoperator(s)):
        for b in (B, B[:, 0], B[:, :1], B * (1 + 2j)):
            assert (one @ b).shape == b.shape and np.allclose(one @ b, inverse @ b)
        assert np.allclose(one.matvec(B[:, :1]), inverse @ B[:, :1])
        assert np.allclose(one.rmatvec(B[:, 0]), inverse.conj().T @ B[:, 0])
        assert np.allclose(one.rmatmat(B), inverse.conj().T @ B)


def test_a_solve_that_fails_is_an_error():
    s = swell.prepare(S, method="cg", maxiter=2)
    for call in (lambda: s @ B[:, 0], lambda: s.matmat(B), lambda: spla.cg(S, B[:, 0], M=s)):
        with pytest.raises(NotConverged, match="iteration limit.*wanted 1.00e-08") as caught:
            call()
        assert not caught.value.result.converged
    singular = swell.prepare(np.ones((2, 2)), method="direct")
    with pytest.raises(RuntimeError, match="singular"):          # as SciPy's factors
        singular @ np.array([1.0, 2.0])
    exact = swell.prepare(S, method="direct", rtol=1e-30)        # more than the type can hold, which is no failure
    assert np.allclose(S @ (exact @ B[:, 0]), B[:, 0])


@pytest.mark.parametrize("matrix, named", [(S, {"precond": "amg"}), (A, TRANSFORMED), (H, TRANSFORMED),
                                           (S, {"precond": "ic0", "scaling": "jacobi"})])
def test_M_is_linear_and_has_its_adjoint(matrix, named):
    M = swell.prepare(matrix, method="gmres", **named).M
    dense = M @ np.eye(N)
    tolerance = 1e-6 if named["precond"] == "amg" else 1e-12        # a cycle in single precision
    assert M.shape == (N, N) and M.dtype == matrix.dtype and dense.dtype == matrix.dtype
    assert np.allclose(M.rmatmat(np.eye(N)), dense.conj().T, atol=tolerance * abs(dense).max())
    b = B @ (1, 1j, 0)
    assert np.allclose(M.matvec(b), dense @ b, rtol=1e-4 if tolerance > 1e-8 else 1e-10)
    assert np.allclose(1e-150 * (M @ B[:, 0]), M @ (1e-150 * B[:, 0]), rtol=1e-5, atol=0)


@pytest.mark.parametrize("named", [TRANSFORMED, {"precond": "ilu0"}, {"precond": "amg"}])
def test_M_does_in_scipy_and_in_swell_what_it_does_in_its_own_solve(named):
    s = swell.prepare(A, method="gmres", **named)
    own = s.solve(B[:, 0]).iterations
    assert abs(swell.solve(A, B[:, 0], method="gmres", M=s.M).iterations - own) <= 1
    residuals = []
    x, info = spla.gmres(A, B[:, 0], M=s.M, rtol=1e-8, restart=N, callback=residuals.append, callback_type="pr_norm")
    assert info == 0 and abs(len(residuals) - own) <= 3


def test_M_follows_updates():
    s = swell.prepare(A, method="gmres", precond="ilu0")
    M = s.M
    before = M @ B[:, 0]
    s.update(2 * A)
    assert np.allclose(M @ B[:, 0], before / 2)


def test_multigrid_in_scipy_and_pyamg():
    M = swell.prepare(S, method="cg", precond="amg").M
    assert M.hierarchy.levels and "AMGOperator" in repr(M)
    iterations = []
    assert spla.cg(S, B[:, 0], M=M, rtol=1e-8, callback=iterations.append)[1] == 0 and len(iterations) < 12
    values, _ = spla.lobpcg(S, B, M=M, largest=False, tol=1e-7, maxiter=60)
    assert np.allclose(sorted(values), spla.eigsh(S, 3, sigma=0, return_eigenvectors=False), rtol=1e-6)
    pyamg = pytest.importorskip("pyamg", reason="needs PyAMG: pip install 'swell[guests]'")
    residuals = []
    pyamg.krylov.cg(S, B[:, 0], M=M, tol=1e-8, residuals=residuals)
    assert len(residuals) < 13


def test_newton_krylov():
    def residual(u):
        return S @ u + 0.001 * u**3 - 0.001
    s = swell.prepare(S, method="cg", precond="amg")
    for M in (s.M, spla.aslinearoperator(s)):
        u = newton_krylov(residual, np.zeros(N), inner_M=M, f_tol=1e-9)
        assert abs(residual(u)).max() <= 1e-9
    with pytest.raises(InputError, match="aslinearoperator"):
        newton_krylov(residual, np.zeros(N), inner_M=s)          # it would call s.update(x, f)


def test_bad_input():
    s = swell.prepare(S, method="cg", precond="ic0")
    for one in (s, s.M):
        for wrong in (B[1:], np.zeros((N, 2, 2)), [1.0]):
            with pytest.raises(InputError, match=r"expected an array of shape \(400,\) or \(400, k\)"):
                one @ wrong
        with pytest.raises(TypeError):
            B[:, 0] @ one
    assert swell.prepare(S, method="cg").M is None
    with pytest.raises(InputError, match="has no levels"):
        s.M.hierarchy
    assert s.M.fixed is s.M.operator and swell.prepare(A, method="gmres", **TRANSFORMED).M.fixed is None
    broken = swell.prepare(np.ones((2, 2)), method="direct")
    with pytest.raises(swell.SwellError, match="singular"):
        spla.cg(np.ones((2, 2)), np.ones(2), M=broken.M)         # not None, which SciPy takes for no preconditioner


@pytest.mark.gpu
@pytest.mark.parametrize("matrix, named", [(S, {"method": "cg", "precond": "ic0", "scaling": "jacobi"}),
                                           (H, {"method": "gmres", "precond": "ilu0", "ordering": "rcm"})])
def test_on_a_gpu_vectors_stay_there(matrix, named):
    import cupy
    s = swell.prepare(matrix, device="cuda", rtol=1e-12, **named)
    on_cpu = swell.prepare(matrix, rtol=1e-12, **named)
    b = cupy.asarray(B.astype(matrix.dtype))
    for one, cpu in ((s, on_cpu), (s.M, on_cpu.M)):
        for call in ("matvec", "rmatvec"):
            image = getattr(one, call)(b[:, 0])
            assert isinstance(image, cupy.ndarray) and np.allclose(image.get(), getattr(cpu, call)(B[:, 0]))
        assert np.allclose((one @ b).get(), cpu @ B) and isinstance(one @ B, np.ndarray)
