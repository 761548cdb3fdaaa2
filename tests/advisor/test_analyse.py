"""What the analysis finds in matrices whose nature is known, the real ones included."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from tests.support.cases import REAL, empty_rows, hermitian, neumann, real_matrix, rng
from tests.conftest import space_or_skip

from swell import gallery
from swell.advisor.choose import choose, default_format, setting
from swell.core.configuration import Configuration
from swell.core.cpu import CpuSpace
from swell.formats.csr import CSRMatrix


def facts(A, space=None):
    space = space or space_or_skip("cpu")
    A = sp.csr_array(A)
    A.sum_duplicates()
    with space.active():
        return CSRMatrix.from_scipy(A, space).facts()


def lopsided(missing):
    """A symmetric matrix without one entry above the diagonal, below it, or one of each, not of the same pair."""
    A = sp.random_array((60, 60), density=0.1, rng=rng())
    A = sp.lil_array(A + A.T)
    one, other = zip(*(k[:2] for k in sp.triu(A, 1).nonzero()))
    for row, column in {"none": [], "above": [one], "below": [one[::-1]], "both": [one, other[::-1]]}[missing]:
        A[row, column] = 0
    return A


@pytest.mark.parametrize("make", [
    hermitian, neumann, empty_rows, lambda: gallery.helmholtz((6, 6)), lambda: gallery.convection_diffusion((6, 6)),
    lambda: 1j * hermitian(), lambda: sp.tril(gallery.poisson2d(5)), lambda: sp.csr_array((7, 7)),
    *(lambda m=m: lopsided(m) for m in ("none", "above", "below", "both"))])
def test_mirrored(make, space):
    A = sp.csr_array(make())
    A.sum_duplicates()
    A.eliminate_zeros()
    dense = A.toarray()
    f = facts(A, space)
    assert f.pattern_symmetric == np.array_equal(dense != 0, dense.T != 0)
    for conjugate, other, largest in ((False, dense.T, f.difference), (True, dense.T.conj(), f.hermitian_difference)):
        assert largest == abs(dense - other).max()
        assert f.asymmetry(conjugate) == pytest.approx(np.linalg.norm(dense - other), rel=1e-12)


def test_a_model_problem(space):
    f = facts(gallery.poisson2d(20), space)
    assert f.symmetric and f.hermitian and f.positive_diagonal and f.dominant and f.dominant_rows == 1
    assert (f.n, f.bandwidth, f.zero_diagonal, f.empty_rows, f.zero_row_sums) == (400, 20, 0, 0, False)
    assert f.symmetry == "symmetric"


@pytest.mark.parametrize("make, symmetry", [
    (hermitian, "Hermitian"), (lambda: gallery.helmholtz((6, 6)), "complex symmetric"),
    (lambda: gallery.convection_diffusion((6, 6)), "unsymmetric (symmetric pattern)"),
    (lambda: sp.tril(gallery.poisson2d(5)), "unsymmetric")])
def test_symmetry(make, symmetry, space):
    assert facts(make(), space).symmetry == symmetry


def test_singular(space):
    assert facts(neumann(), space).zero_row_sums
    f = facts(empty_rows(), space)
    assert (f.empty_rows, f.zero_diagonal, f.positive_diagonal) == (3, 3, False)


def test_dominance_does_not_drown_in_long_sums():
    """Equality in every row of a long matrix whose entries are no round numbers."""
    d = rng().uniform(1e-6, 1e6, 200_001)
    A = sp.diags_array([-d[1:-1], d[:-1] + d[1:], -d[1:-1]], offsets=[-1, 0, 1])
    assert facts(A).dominant


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_single_precision(dtype):
    f = facts(gallery.p1_laplacian(300).astype(dtype))
    assert f.hermitian and f.positive_diagonal


def test_no_rows():
    assert facts(sp.csr_array((0, 0))).n == 0


SYMMETRIC = {"1138_bus", "4elt_lap", "bcsstk14", "bcsstk16", "bcsstk18", "bcsstm13", "foam_hump_p", "foam_motorBike_ldu",
             "gr_30_30", "hangGlider_2", "hypre_ams_A", "hypre_beam_tet_dof2475", "ml_elasticity", "nos5", "nos7",
             "resolve_ACTIVSg200_KKT", "mhd1280b"}
COMPLEX_SYMMETRIC = {"qc324", "dwg961b", "pyamg_helmholtz_2D", "car_cabin"}
PATTERN = {"sherman4", "orsirr_1", "pde2961", "add32", "rdb2048", "cage10", "foam_hump_U", "Grond4e4", "muelu_condif2",
           "teko_ns_F", "young1c", "fasp_spe01_bsr3"}
ZERO_DIAGONAL = {"west0479": 471, "west0156": 156, "resolve_ACTIVSg200_KKT": 1882, "hangGlider_2": 733, "bcsstm13": 762,
                 "rajat01": 271}


@pytest.mark.data
@pytest.mark.parametrize("name", [case.name for case in REAL])
def test_real(name, data):
    f = facts(real_matrix(data, name))
    assert f.hermitian == (name in SYMMETRIC)
    assert (f.symmetric and not f.hermitian) == (name in COMPLEX_SYMMETRIC)
    if not f.symmetric and not f.hermitian:
        assert f.pattern_symmetric == (name in PATTERN)
    assert f.zero_diagonal == ZERO_DIAGONAL.get(name, 0)


def test_the_default_format():
    space = space_or_skip("cpu")

    def chosen(A):
        return type(default_format(CSRMatrix.from_scipy(sp.csr_array(A), space))).__name__
    assert chosen(gallery.poisson2d(30)) == "SELL" and chosen(gallery.poisson2d(5)) == "CSR"
    assert chosen(sp.kron(gallery.poisson2d(20), np.ones((3, 3)))) == "BSR"
    assert chosen(sp.kron(gallery.poisson2d(20), np.ones((2, 2)))) == "SELL"    # no faster in blocks
    arrow = sp.lil_array(sp.eye_array(1000))
    arrow[0, :] = np.arange(1.0, 1001)
    assert chosen(arrow) == "CSR"


@pytest.mark.parametrize("A, method", [(gallery.helmholtz((8, 8)), "cocg"),
                                       (gallery.convection_diffusion((8, 8)), "bicgstab")])
@pytest.mark.parametrize("device, precond", [("cpu", "ilu"), ("cuda", "jacobi")])
def test_a_gpu_is_not_given_triangular_solves_first(A, method, device, precond):
    """They take a step for every level. The choice rests on the name of the space, so that it is made here as there.
    On a CPU predicted seconds decide, unless a part is left out by name, as here."""
    space = CpuSpace()
    A = CSRMatrix.from_scipy(sp.csr_array(A), space)
    space.name = device
    named = Configuration(None, format=setting("format", "csr"), without=frozenset({"ordering"}))
    first = choose(A, named)[0][0]
    assert (first.name("method"), first.name("precond"), first.scaling) == (method, precond, None)
    assert ("a step for each of their levels" in first.why[0]) == (device == "cuda")
