"""RSLAB's factors: the inverse and its adjoint, new values, what it refuses, and SuperLU in its place, which notes say."""
from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import of_type, rng
from tests.support.during import during

import swell
from swell import gallery
from swell.advisor import costs, predictions
from swell.advisor.machine import Machine
from swell.core.devices import make_space
from swell.core.errors import FactorisationError, InputError, MissingDependency
from swell.formats.csr import CSRMatrix
from swell.gallery.elasticity import elasticity3d
from swell.preconditioners import rslab_factors

SYSTEMS = {"grid": lambda: gallery.poisson2d(20), "elasticity": lambda: elasticity3d(5),
           "indefinite": lambda: gallery.shifted_laplacian((12,) * 3), "complex": lambda: gallery.helmholtz((10,) * 3),
           "saddle point": lambda: gallery.saddle_point(9), "1 x 1": lambda: sp.csr_array([[3.0]])}
MUCH_FILL = {"elasticity": lambda: elasticity3d(7), "complex": lambda: gallery.helmholtz((12,) * 3)}


def csr(A):
    A = sp.csr_matrix(A)
    A.sum_duplicates()
    return CSRMatrix.from_scipy(A, make_space("cpu"))


@pytest.fixture
def rslab():
    """RSLAB; the test is skipped, visibly, where it is missing."""
    return pytest.importorskip("rslab", reason="needs RSLAB: pip install 'swell[direct]'")


def mixed_poisson():
    """Lowest Raviart–Thomas elements and constants on triangles: well conditioned, and without pivots in a supernode."""
    skfem = pytest.importorskip("skfem")
    from skfem.helpers import div, dot
    mesh = skfem.MeshTri().refined(3)
    flux, pressure = (skfem.Basis(mesh, e, intorder=2) for e in (skfem.ElementTriRT0(), skfem.ElementTriP0()))
    A = skfem.BilinearForm(lambda u, v, w: dot(u, v)).assemble(flux)
    B = skfem.BilinearForm(lambda u, q, w: -div(u) * q).assemble(flux, pressure)
    return sp.csr_array(sp.block_array([[A, B.T], [B, None]]))


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_inverse_and_its_adjoint(name, rslab):
    A = sp.csr_array(SYSTEMS[name]())
    M, x = swell.Direct(package="rslab").build(csr(A)), rng().standard_normal(A.shape[0]).astype(A.dtype)
    out = rng().random(A.shape[0]).astype(A.dtype)
    M.apply(A @ x, out)
    assert np.allclose(out, x, atol=1e-8) and not M.repairs and "RSLAB" in M.describe() and M.nbytes > 0
    M.apply(A @ x, out, 2, 1)
    assert np.allclose(out, 3 * x, atol=1e-8)
    M.apply_adjoint(A.conj().T @ x, out)
    assert np.allclose(out, x, atol=1e-8)
    assert (M.loose is None) == (name in ("grid", "elasticity", "1 x 1"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_it_solves_in_a_step_or_two_and_columns_together(dtype, rslab):
    for name in SYSTEMS:
        with during(name=name):
            A = of_type(SYSTEMS[name](), dtype)
            X = rng().standard_normal((A.shape[0], 3)).astype(dtype)
            tolerance = 1e-5 if dtype in ("float32", "complex64") else 1e-10
            s = swell.prepare(A, method="direct(package='rslab')", rtol=tolerance)
            r = s.solve(A @ X[:, 0])
            assert r.converged and r.iterations <= 2 and not r.notes
            for r in s.solve(A @ X, together=True):
                assert r.converged and r.iterations <= 2


def test_auto_takes_it_for_much_fill(rslab):
    for name, make in MUCH_FILL.items():
        with during(name=name):
            assert "RSLAB" in swell.Direct().build(csr(make())).describe()
            assert "SuperLU" in swell.Direct(package="superlu").build(csr(make())).describe()
            assert "SuperLU" in swell.Direct(ordering="colamd").build(csr(make())).describe()
    for thin in (gallery.poisson2d(20), gallery.saddle_point(9), gallery.convection_diffusion((15,) * 3)):
        assert "SuperLU" in swell.Direct().build(csr(thin)).describe()


def test_new_values_keep_the_analysis(rslab):
    A = sp.csr_array(elasticity3d(7))
    solver, x = swell.prepare(A, method="direct"), rng().standard_normal(A.shape[0])
    for values in (A, 3 * A, A + sp.diags_array(rng().random(A.shape[0]))):
        solver.update(values)
        r = solver.solve(values @ x)
        assert np.allclose(r.x, x) and not r.notes and "RSLAB" in "\n".join(r.configuration)
    unsymmetric = A.copy()
    unsymmetric.data[unsymmetric.indices > np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))] *= 0.9
    solver.update(unsymmetric)
    r = solver.solve(unsymmetric @ x)
    assert np.allclose(r.x, x) and "not symmetric: SuperLU factored in its place" in " ".join(r.notes)
    solver.update(A)
    assert np.allclose(solver.solve(A @ x).x, x) and not solver.solve(A @ x).notes


def test_superlu_factors_what_it_gives_up(rslab):
    A = mixed_poisson()
    x = rng().standard_normal(A.shape[0])
    r = swell.solve(A, A @ x, method=swell.Direct(package="rslab"))
    assert r.converged and np.allclose(r.x, x)
    assert any("RSLAB found no pivot" in note and "SuperLU factored in its place" in note for note in r.notes)
    assert "SuperLU" in "\n".join(r.configuration)


def test_a_residual_that_does_not_fall_is_repaired(rslab, monkeypatch):
    A = sp.csr_array(gallery.helmholtz((12,) * 3))
    x = rng().standard_normal(A.shape[0]).astype(complex)
    solve = rslab_factors.RSLABOperator._solve
    monkeypatch.setattr(rslab_factors.RSLABOperator, "_solve", lambda M, b: 1e-3 * solve(M, b))
    r = swell.solve(A, A @ x, method="direct")
    assert r.converged and np.allclose(r.x, x) and "SuperLU factored in its place" in " ".join(r.notes)


def test_a_singular_matrix_is_refused_as_by_superlu(rslab):
    A = csr(sp.block_diag([elasticity3d(3), sp.csr_array((2, 2))]))
    with pytest.raises(FactorisationError, match="zero pivot"):
        swell.Direct(package="rslab").build(A)


def test_fill_that_is_refused_before_it_is_computed(rslab, monkeypatch):
    A = csr(elasticity3d(7))
    entries = swell.Direct().build(A)._analysis.factor_nnz
    swell.Direct(largest=entries).build(A)
    monkeypatch.setattr(rslab_factors.RSLABOperator, "_factor", lambda *_: pytest.fail("it has begun"))
    with pytest.raises(FactorisationError, match=f"{entries} entries, more than {entries - 1}"):
        swell.Direct(largest=entries - 1).build(A)
    monkeypatch.setattr(type(A.space), "memory", lambda space: (1 << 20, 1 << 30))
    with pytest.raises(FactorisationError, match="GiB are free"):
        swell.Direct(package="rslab").build(A)


def test_what_the_settings_refuse(monkeypatch):
    with pytest.raises(InputError, match="None, superlu, rslab"):
        swell.Direct(package="mumps")
    with pytest.raises(InputError, match="ordering"):
        swell.Direct(package="rslab", ordering="colamd")
    monkeypatch.setattr(rslab_factors, "installed", lambda: False)
    with pytest.raises(MissingDependency, match=r"pip install 'swell\[direct\]'"):
        swell.Direct(package="rslab").build(csr(gallery.poisson2d(5)))
    assert "SuperLU" in swell.Direct().build(csr(elasticity3d(7))).describe()


def test_a_matrix_that_is_not_symmetric_is_refused(rslab):
    with pytest.raises(InputError, match="not symmetric"):
        swell.Direct(package="rslab").build(csr(gallery.convection_diffusion((9, 9))))


FORK = """
import os
import numpy as np
import swell
from swell.gallery.elasticity import elasticity3d
A = elasticity3d(7)
x = np.ones(A.shape[0])
solver = swell.prepare(A, method="direct")
solver.solve(A @ x)
if os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]))
assert np.allclose(solver.solve(A @ x).x, x)
solver.update(2 * A)
r = solver.solve(2 * A @ x)
assert np.allclose(r.x, x) and "forked" in " ".join(r.notes), r.notes
r = swell.solve(A, A @ x, method="direct")
assert np.allclose(r.x, x) and "SuperLU" in "\\n".join(r.configuration)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_fork_solves_with_the_factors_and_factors_by_superlu(rslab):
    subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK], check=True, timeout=300)


def test_the_advisor_foretells_the_package(monkeypatch):
    A, machine = csr(gallery.poisson3d(20)), Machine(costs.CPU.reference)
    monkeypatch.setattr(predictions, "unsuited", lambda A: "it is missing")
    without = predictions.direct(A, machine, 100.0)
    monkeypatch.setattr(predictions, "unsuited", lambda A: None)
    assert predictions.direct(A, machine, 100.0).setup < 0.8 * without.setup
    thin = csr(gallery.poisson2d(30))
    monkeypatch.setattr(predictions, "unsuited", lambda A: "it is missing")
    without = predictions.direct(thin, machine, 100.0)
    monkeypatch.setattr(predictions, "unsuited", lambda A: None)
    assert predictions.direct(thin, machine, 100.0).setup == without.setup
