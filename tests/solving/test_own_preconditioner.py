"""A user's own M in a method that needs a self-adjoint one."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import swell
from swell import distributed, gallery


def notes(A, M, method="cg", **options):
    r = swell.solve(A, np.ones(A.shape[0]), method=method, M=M, maxiter=3, **options)
    return [note for note in r.notes if note.startswith("M is not")]


@pytest.mark.parametrize("method", ["cg", "minres", "single_reduction_cg"])
def test_an_unsymmetric_m_is_named(method):
    """A forward sweep of Gauss–Seidel as a matrix, a function and an operator. Its symmetric form is not named."""
    A = gallery.poisson2d(12)
    L = spla.splu(sp.csc_matrix(sp.tril(A)))
    forward = [sp.csr_array(np.tril(np.linalg.inv(sp.tril(A).toarray()))), L.solve,
               spla.LinearOperator(A.shape, L.solve, dtype=float)]
    for M in forward:
        note, = notes(A, M, method)
        assert "self-adjoint" in note and method in note and "use method='gmres'" in note
        assert not notes(A, M, "gmres")
    d = A.diagonal()
    assert not notes(A, lambda r: L.solve(d * L.solve(r, "T")), method)
    assert not notes(A, lambda r: L.solve((d * L.solve(r, "T")).astype("f")).astype(float), method)


def test_the_transpose_decides_for_cocg():
    A = gallery.poisson2d(8) + 0.5j * sp.eye_array(64)
    hermitian = sp.diags_array(np.ones(63) * 0.5j, offsets=1) - sp.diags_array(np.ones(63) * 0.5j, offsets=-1)
    M = sp.csr_array(hermitian + 2 * sp.eye_array(64))
    assert "M is not symmetric" in notes(A, M, "cocg")[0] and "Mᵀ" in notes(A, M, "cocg")[0]
    assert not notes(A, sp.csr_array((1 + 1j) * sp.eye_array(64)), "cocg")
    H = sp.csr_array(gallery.poisson2d(8) + hermitian)
    assert not notes(H, M, "cg") and "self-adjoint" in notes(H, sp.csr_array((1 + 1j) * sp.eye_array(64)), "cg")[0]


def test_a_variable_m_is_not_measured():
    A, calls = gallery.poisson2d(8), []
    M = swell.User(lambda r: calls.append(1) or r / 4, variable=True)
    r = swell.solve(A, np.ones(64), method="fgmres", precond=M)
    assert r.converged and len(calls) == r.preconditioner_applications


def test_across_ranks():
    A = sp.csr_matrix(gallery.poisson2d(12))
    def of(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        b = np.ones(M.rows.stop - M.rows.start)
        L = np.tril(np.ones((b.size, b.size)))
        found = [swell.solve(M, b, method="cg", M=P, maxiter=2).notes for P in (lambda r: L @ r, lambda r: r / 4)]
        return ["M is not self-adjoint" in " ".join(some) for some in found]
    assert distributed.run(2, of) == [[True, False]] * 2


def test_an_m_that_fails_on_one_rank():
    """All ranks raise its error; none waits for the numbers of the one that failed."""
    A = sp.csr_matrix(gallery.poisson2d(12))
    def of(communicator):
        M = distributed.scatter(communicator, A if communicator.rank == 0 else None)
        def precond(r):
            if communicator.rank == 1:
                raise ValueError("no preconditioner here")
            return r / 4
        with pytest.raises(Exception, match="no preconditioner here"):
            swell.solve(M, np.ones(M.rows.stop - M.rows.start), method="cg", M=precond)
        return True
    assert distributed.run(2, of) == [True, True]
