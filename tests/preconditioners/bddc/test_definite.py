"""Inexact local problems may make M indefinite: that is found, tolerances become smaller, and the notes say so."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix
from swell.pde.elasticity_cube import ElasticityCube
from swell.pde.poisson_cube import PoissonCube
from swell.preconditioners.bddc.definite import is_definite


class Dense:
    """M as a dense matrix."""

    def __init__(self, M):
        self.M = M

    def apply(self, x, out):
        out[:] = self.M @ x


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
def test_one_negative_eigenvalue_is_found(dtype):
    rng, n = np.random.default_rng(1), 60
    R = rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if dtype == np.complex128 else 0)
    H = (R @ R.conj().T / n + np.eye(n)).astype(dtype)
    A = CSRMatrix.from_scipy(sp.csr_matrix(H), make_space("cpu"))
    inverse, q = np.linalg.inv(H.astype(np.result_type(dtype, np.float64))), R[:, 0] / np.linalg.norm(R[:, 0])
    E = np.outer(q, q.conj())
    for M, definite in ((inverse, True), (inverse + E, True), (inverse - 3 * E, False), (-inverse, False)):
        assert is_definite(A, Dense(M.astype(dtype))) is definite
    against = CSRMatrix.from_scipy(sp.csr_matrix(-H), make_space("cpu"))
    assert is_definite(against, Dense(-inverse.astype(dtype)))               # A is not definite: no question, no answer


def test_few_rows_exhaust_the_krylov_space():
    A = CSRMatrix.from_scipy(sp.identity(3, format="csr") * 2, make_space("cpu"))
    assert is_definite(A, Dense(np.eye(3) / 2)) and not is_definite(A, Dense(np.diag([1.0, -1, 1])))


@pytest.mark.parametrize("solver", ["trsm", "inverse"])
def test_icm_on_an_elastic_bracket(solver):
    """The setting of docs/BDDC.md; with its tolerance M is indefinite here."""
    pytest.importorskip("pymetis", reason="METIS: pip install pymetis")
    pytest.importorskip("gmsh", reason="needs gmsh: pip install gmsh")
    from tests.support.bracket import bracket
    points, cells = bracket(0.05)
    parts, nodes = swell.gallery.elastic_subdomains(points, cells, points[:, 2] > 0.79, parts=12)
    system = swell.Subdomains(parts)
    A, b = system.assemble(), np.random.default_rng(0).standard_normal(3 * len(nodes))
    def precond(dense_lu):
        return swell.BDDC(subdomains=system, near_nullspace=swell.rigid_body_modes(nodes), dense_lu=dense_lu,
                          dense_solver=solver)
    exact = swell.solve(A, b, method="cg", precond=precond("getrf"))
    prepared = swell.prepare(A, method="cg", precond=precond("icm(x=8, tolerance=1e-3)"))
    found = prepared.solve(b)
    assert found.converged and abs(found.iterations - exact.iterations) <= 2
    note = next(note for note in found.notes if "M was indefinite" in note)
    assert "ICM(x=8, tolerance=0.001)" in note and "all local problems were solved with ICM(x=8, tolerance=1e-05)" in note
    prepared.update(A)
    again = prepared.solve(b)
    assert again.converged and note in again.notes                           # it begins with what was good enough


def test_exact_local_problems_are_not_probed(monkeypatch):
    monkeypatch.setattr("swell.preconditioners.bddc.settings.is_definite", None)
    assert PoissonCube(3, 3).solve().result.converged
    assert ElasticityCube(2, 2).solve(dense_lu="pcm(x=8)", dense_solver="trsm").result.converged
