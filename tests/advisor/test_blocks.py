"""What the advisor does about dense blocks on a CPU, and what it says of them."""
import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import gallery


def nearly_full(count=200):
    """Blocks of 3 with one entry in nine missing off the diagonal: a fill of about 1.12."""
    A = sp.csr_array(sp.kron(sp.diags_array([-1.0, 6, -2], offsets=[-1, 0, 1], shape=(count, count)),
                             np.eye(3) * 3 + np.random.default_rng(0).random((3, 3))))
    off = A.tocoo()
    gone = (off.row // 3 != off.col // 3) & (off.row % 3 == 0) & (off.col % 3 == 2)
    off.data[gone] = 0
    A = sp.csr_array(off)
    A.eliminate_zeros()
    return A


@pytest.mark.parametrize("A, block, words", [
    (lambda: gallery.coupled_transport((5, 5, 5), 3), 1, "blocks of 3 are full"),
    (nearly_full, 3, "blocks of 3 are nearly full"),
    (lambda: sp.csr_array(sp.kron(gallery.convection_diffusion((9, 9), 5.0), [[2.0, 1], [0, 3]], format="coo")), 1,
     "A is unsymmetric")])
def test_blocks_on_a_cpu(A, block, words):
    A = A()
    A.eliminate_zeros()
    factored = with_incomplete_lu(A)
    assert factored.precond.block == block and words in factored.why[0]
    assert swell.solve(A, A @ np.ones(A.shape[0]), method="bicgstab", precond=factored.precond).converged


def with_incomplete_lu(A):
    """The choice of bicgstab with an incomplete LU."""
    return next(c for c in swell.prepare(A).choices if c.name("precond") == "ilu")


def test_nothing_is_said_where_there_are_none():
    factored = with_incomplete_lu(gallery.convection_diffusion((12, 12), 5.0))
    assert factored.precond == swell.ILU() and "blocks of" not in factored.why[0]


@pytest.mark.parametrize("kind", [sp.bsr_array, sp.bsr_matrix])
def test_blocks_that_the_user_gives_are_kept(kind):
    """Places that hold zeros count as entries of A, so that the block size that SciPy was given is found again."""
    A = kind(gallery.convection_diffusion((20, 20), 5.0), blocksize=(4, 4))
    factored = with_incomplete_lu(A)
    assert factored.name("format") == "bsr" and "blocks of 4" in factored.why[0]
    result = swell.solve(A, np.ones(400), method="bicgstab", precond=factored.precond)
    assert result.converged and result.format == "bsr" and any("BSR" in l or "bsr" in l for l in result.configuration)
