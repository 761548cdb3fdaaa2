"""Block structure and hints at definiteness."""
import numpy as np
import pytest
import scipy.sparse as sp

from swell import gallery
from swell.formats.blocks import block_size, fill_ratios
from swell.advisor.definiteness import definiteness
from swell.inputs import read_matrix


def csr(A):
    return read_matrix(A, "cpu").A


@pytest.mark.parametrize("size", range(2, 9))
def test_full_blocks_are_found(size):
    pattern = gallery.poisson2d(5)
    A = csr(sp.kron(pattern, np.ones((size, size))))
    ratios = fill_ratios(A)
    assert ratios[size] == 1 and block_size(ratios) == size


def test_no_blocks():
    ratios = fill_ratios(csr(gallery.poisson2d(12)))
    assert block_size(ratios) == 1 and all(ratio > 1.2 for ratio in ratios.values())
    assert set(ratios) == {2, 3, 4, 6, 8}                    # the sizes that divide 144
    assert fill_ratios(csr(gallery.poisson1d(11))) == {}


def test_fill_is_that_of_scipys_bsr():
    A = gallery.elasticity2d(6)
    for size, ratio in fill_ratios(csr(A)).items():
        assert ratio == pytest.approx(A.tobsr((size, size)).data.size / A.nnz)


@pytest.mark.parametrize("A, words", [
    (gallery.poisson2d(6), "positive definite: "),
    (-gallery.poisson2d(6), "−A may be positive definite"),
    (gallery.neumann((6, 6)), "singular: its rows sum to zero"),
    (sp.block_diag([gallery.poisson1d(4), gallery.neumann((5,))]), "singular: the rows of 1 of 2 connected parts sum"),
    (sp.block_diag([1e6 * gallery.neumann((9,)), 1e-7 * gallery.poisson1d(4)]), "singular: the rows of 1 of 2 conn"),
    (sp.csr_matrix([[1e9, -1e9, 0], [-1e9, 1e9 + 1e-4, -1e-4], [0, -1e-4, 1e-4]]), "singular: its rows sum to zero"),
    (sp.csr_matrix([[1.0, 1.0], [1.0, 1.0]]), "positive semidefinite at least"),
    (gallery.elasticity2d(4), "perhaps positive definite"),
    (sp.csr_matrix([[1.0, 2.0], [2.0, 1.0]]), "indefinite: 1 of its 2 × 2"),
    (sp.csr_matrix([[1.0, 0.0], [0.0, -1.0]]), "indefinite: 1 diagonal"),
    (sp.csr_matrix([[0.0, 1.0], [1.0, 0.0]]), "diagonal entries are zero"),
    (sp.csr_matrix([[1.0, 0.0], [0.0, 0.0]]), "rows are empty"),
    (gallery.convection_diffusion((6, 6), 10.0, "upwind"), "right half plane"),
    (sp.csr_matrix([[1.0, 3.0], [0.0, 1.0]]), "not Hermitian"),
])
def test_definiteness(A, words):
    A = csr(A)
    assert words in definiteness(A, A.facts())


def test_the_hint_agrees_with_the_eigenvalues():
    rng = np.random.default_rng(2)
    for _ in range(30):
        dense = rng.integers(-3, 4, (6, 6)) * (rng.random((6, 6)) < 0.5)
        dense = (dense + dense.T + np.diag(rng.integers(1, 9, 6))).astype(float)
        least = np.linalg.eigvalsh(dense)[0]
        A = csr(sp.csr_matrix(dense))
        text = definiteness(A, A.facts())
        if text.startswith("positive definite"):
            assert least > 0
        if text.startswith(("indefinite:", "not positive")):
            assert least < 0
        if text.startswith("positive semidefinite"):
            assert least > -1e-12
