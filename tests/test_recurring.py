"""``Recurring``: which matrices update the setup, and which are prepared."""
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import linalg as theirs

import swell
from swell.core.errors import InputError

A = swell.gallery.convection_diffusion((15, 15)).tocsr()
N = A.shape[0]
B = np.random.default_rng(3).random(N)


def without(matrix, step):
    """The matrix without every ``step``-th entry off the diagonal, as SciPy's sums drop zeros."""
    matrix = matrix.tocoo()
    kept = (np.arange(matrix.nnz) % step != 0) | (matrix.row == matrix.col)
    return sp.csr_array((matrix.data[kept], (matrix.row[kept], matrix.col[kept])), matrix.shape)


@pytest.mark.parametrize("named", [{"method": "direct"}, {"method": "gmres", "precond": "ilu0"},
                                   {"method": "bicgstab", "precond": "amg", "scaling": "jacobi"}, {}])
def test_a_loop_in_which_the_pattern_shrinks_and_grows(named):
    step = swell.Recurring(rtol=1e-10, **named)
    did = []
    for matrix in (without(A, 5), A, 2 * without(A, 5), A, A, without(A, 7), without(A, 7).tocsc(), 3 * A):
        r = step.solve(matrix, B)
        did.append(step.last)
        assert r.converged and np.linalg.norm(B - matrix @ r.x) <= 1e-9 * np.linalg.norm(B) and r is step.result
    assert did == ["prepared", "prepared", "updated", "updated", "kept", "updated", "kept", "updated"]
    assert repr(step) == "Recurring(2 setups, 4 updates)" and step.setups == 2 and step.updates == 4


def test_a_new_setup_is_told():
    step = swell.Recurring(method="direct")
    assert not step.solve(without(A, 5), B).notes
    assert any("setup 2, after 0 updates" in note for note in step.solve(A, B).notes)


def test_a_pattern_that_has_little_in_common_is_not_joined():
    step = swell.Recurring(method="direct")
    step.solve(A, B)
    shifted = (8 * sp.eye_array(N) + sum(sp.eye_array(N, k=k) for k in (50, -60, 70, -80))).tocsr()
    for k, matrix in enumerate((shifted, 3 * sp.eye_array(N, format="csr"), A), 2):
        r = step.solve(matrix, B)
        assert step.setups == k and step._solver.A.nnz == matrix.nnz and np.allclose(matrix @ r.x, B)


@pytest.mark.parametrize("make", [sp.csc_array, sp.csc_matrix, sp.coo_array, np.asarray])
def test_every_kind_of_matrix(make):
    step = swell.Recurring(method="direct")
    for factor in (1.0, 2.0, 2.0, 3.0):
        matrix = make(factor * A.toarray())
        assert np.allclose(step.solve(matrix, B).x, theirs.spsolve(factor * A.tocsc(), B))
    assert (step.setups, step.updates) == (1, 2)


def test_other_types_and_shapes_are_prepared():
    step = swell.Recurring(method="direct")
    step.solve(A, B)
    assert np.allclose(step.solve(A, 1j * B).x, 1j * step.solve(A, B).x) and step.setups == 2
    assert step.solve(A.astype(complex), B).converged and step.setups == 3
    assert step.solve(A.astype(np.float32), B).x.dtype == np.float32 and step.setups == 4
    small = swell.gallery.convection_diffusion((5, 5))
    assert step.solve(small, B[:25]).converged and step.setups == 5
    free = theirs.aslinearoperator(A)
    step = swell.Recurring(method="gmres")
    assert step.solve(free, B).converged and step.solve(free, B).converged and step.setups == 2


def test_a_matrix_that_cannot_be_set_up_leaves_an_error_and_the_next_is_solved():
    step = swell.Recurring(method="cg", precond="ic0")
    S = swell.gallery.poisson2d(15)
    step.solve(S, B)
    with pytest.raises(InputError):
        step.solve(S + sp.eye_array(N, k=1, format="csr"), B)    # not symmetric
    assert step.solve(S, B).converged
    with pytest.raises(InputError, match="precon='ic0': no such option; did you mean precond"):
        swell.Recurring(precon="ic0")
