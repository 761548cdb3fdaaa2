"""The iterations of CG with Jacobi that smooth vectors foresee."""
from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import swell
from swell import gallery
from swell.advisor import smooth_vectors
from swell.advisor.predictions import DOUBT
from swell.advisor.smooth_vectors import jacobi_iterations
from swell.bench.kinds import boundary_layers
from swell.core.devices import make_space
from swell.formats.csr import CSRMatrix


def channel(long, wide, ratio=1.3):
    """Poisson's equation in a long channel, cells stretched across, with one value fixed at the outlet only."""
    widths = ratio ** np.arange(wide)
    along = gallery.poisson1d(long).tolil()
    along[0, 0] = 1
    gaps = 2 / (widths[1:] + widths[:-1])
    across = sp.diags_array((-gaps, np.r_[0, gaps] + np.r_[gaps, 0], -gaps), offsets=(-1, 0, 1))
    return sp.csr_array(sp.kron(along, sp.diags_array(widths)) + sp.kron(sp.eye_array(long), across))


SYSTEMS = {
    "poisson2d": lambda: gallery.poisson2d(80), "poisson3d": lambda: gallery.poisson3d(20),
    "jumping": lambda: gallery.jumping_diffusion((24, 24, 24)), "channel": lambda: channel(300, 24),
    "boundary_layers": lambda: boundary_layers(0.01), "elasticity": lambda: gallery.elasticity2d(24),
}


def foreseen(A, device="cpu"):
    space, A = make_space(device), sp.csr_matrix(A)
    A.sort_indices()
    with space.active():
        return jacobi_iterations(CSRMatrix.from_scipy(A, space))


@pytest.mark.parametrize("system", SYSTEMS)
def test_within_a_factor_of_two_and_a_half(system):
    A = SYSTEMS[system]()
    b = A @ np.random.default_rng(1).random(A.shape[0])
    taken = swell.solve(A, b, method="cg", scaling="jacobi", rtol=1e-8, device="cpu")
    iterations, sure = foreseen(A)
    assert taken.converged and sure
    assert iterations / 2.5 <= taken.iterations <= 2.5 * iterations, (iterations, taken.iterations)


def test_a_channel_is_told_from_a_square_of_as_many_rows():
    """In rows, entries, bandwidth and signs the two are alike."""
    assert foreseen(channel(300, 24))[0] > 5 * foreseen(gallery.poisson2d(85))[0]


def test_a_numbering_that_does_not_follow_the_mesh_gives_a_lower_bound():
    A, order = gallery.poisson2d(80), np.random.default_rng(2).permutation(6400)
    (known, sure), (bound, shuffled_sure) = foreseen(A), foreseen(A[order][:, order])
    assert sure and not shuffled_sure and 0 < bound < known


def test_nothing_is_known_of_numbers_that_are_not_finite_or_not_definite():
    A = gallery.poisson2d(10).astype(float)
    assert foreseen(-A) == (0.0, False)
    A.data[3] = np.nan
    assert foreseen(A) == (0.0, False)
    assert foreseen(sp.eye_array(2, format="csr")) == (0.0, False)          # four vectors of two numbers are dependent


def test_nothing_is_looked_at_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(smooth_vectors, "UNCHECKED", 0)
    monkeypatch.setattr(type(make_space("cpu")), "memory", lambda self: (10**5, 10**9))
    assert foreseen(gallery.poisson2d(80)) == (0.0, False)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_device_foresees_the_same(device, dtype):
    A = channel(60, 12).astype(dtype)
    assert foreseen(A, device)[0] == pytest.approx(foreseen(A)[0], rel=1e-3)


@pytest.mark.gpu
def test_predictions_on_a_gpu_count_these_iterations():
    A = channel(600, 24)
    solver = swell.prepare(A, device="cuda")
    predicted = [c.prediction.iterations for c in solver.choices if c.name("method") == "cg" and c.scaling is not None]
    assert predicted == [pytest.approx(DOUBT * foreseen(A)[0], rel=1e-3)]
