"""The gallery: sizes, structure, definiteness, agreement with Kronecker products, order of convergence."""
import functools
import math

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as spla
from tests.conftest import space_or_skip

from swell import gallery
from swell.core.errors import InputError
from swell.gallery.chip_heat import chip_heat
from swell.gallery.fem import elasticity2d, laplacian, p1_laplacian
from swell.gallery.poisson import anisotropic2d, diffusion, jumping_diffusion, poisson
from swell.gallery.stencil import box, star

SPD = ["poisson1d", "poisson2d", "poisson3d", "anisotropic2d", "jumping_diffusion2d", "jumping_diffusion3d",
       "p1_laplacian", "elasticity2d", "elasticity3d", "thermal2~", "parabolic_fem~", "ecology2~", "chip_heat",
       "multiconductor2", "multiconductor4", "thermal_plate5"]
ACOUSTIC = {"audi3d1~": 1727, "audi3d2~": 11637, "audi3d3~": 85001, "audi3d4~": 648849, "twingo3d0~": 8439, "twingo3d1~": 62357,
            "twingo3d2~": 479169, "cylinder3d0~": 2717, "cylinder3d1~": 19041, "cylinder3d2~": 142049}    # table 1 of the paper
SYMMETRIC = SPD + ["shifted_laplacian2d", "saddle_point", "neumann2d", "helmholtz2d", "helmholtz3d", *ACOUSTIC]
STAND_INS = {   # n and nonzeros as in the benchmark's tables
    "thermal2~": (1228045, 8596235), "ecology2~": (999999, 4995995), "parabolic_fem~": (525825, 3680697),
    "atmosmodd~": (1259712, 8748000), "audi3d4~": (658503, 17373979)}


@pytest.mark.parametrize("name", ACOUSTIC)
def test_acoustic_boxes_have_the_sizes_of_the_papers_meshes(name):
    assert gallery.get(name, 1000).shape == (1000, 1000)
    assert round(gallery.standard_size(name) ** (1 / 3)) ** 3 == pytest.approx(ACOUSTIC[name], rel=0.06)


def tridiagonal(m, lower, on, upper):
    return sp.diags_array([np.full(m - 1, float(lower)), np.full(m, float(on)), np.full(m - 1, float(upper))],
                          offsets=[-1, 0, 1])


def kron(*factors):
    return functools.reduce(sp.kron, factors).tocsr()


def kron_sum(*matrices):
    """Sum over axes of I x ... x A_k x ... x I."""
    identities = [sp.eye_array(A.shape[0]) for A in matrices]
    return sum(kron(*identities[:k], A, *identities[k + 1:]) for k, A in enumerate(matrices))


def assert_equal(A, B, rtol=1e-14):
    difference = abs(A - B)
    assert difference.nnz == 0 or difference.max() <= rtol * abs(B).max()


@pytest.mark.parametrize("name", gallery.names())
def test_every_name_gives_about_n_unknowns_in_canonical_form(name):
    A = gallery.get(name, 600)
    assert A.format == "csr" and A.shape[0] == A.shape[1] and 0.5 * 600 < A.shape[0] < 2 * 600
    assert A.indices.dtype == A.indptr.dtype == np.int32
    assert A.dtype == (np.complex128 if name in ("helmholtz2d", "helmholtz3d", *ACOUSTIC) else np.float64)
    B = A.copy()
    B.has_canonical_format = False
    B.sum_duplicates()
    assert np.array_equal(A.indices, B.indices) and np.all(np.isfinite(A.data)) and np.all(A.data != 0)


@pytest.mark.parametrize("name", gallery.names())
def test_symmetry(name):
    A = gallery.get(name, 600)
    assert (abs(A - A.T).nnz == 0) == (name in SYMMETRIC)


@pytest.mark.parametrize("name", SPD)
def test_positive_definite(name):
    assert np.linalg.eigvalsh(gallery.get(name, 150).toarray())[0] > 0


@pytest.mark.parametrize("name", ["shifted_laplacian2d", "saddle_point"])
def test_indefinite_and_nonsingular(name):
    eigenvalues = np.linalg.eigvalsh(gallery.get(name, 300).toarray())
    assert eigenvalues[0] < 0 < eigenvalues[-1] and np.abs(eigenvalues).min() > 1e-4


def test_saddle_point_has_a_zero_block():
    A = gallery.get("saddle_point", 300)
    assert np.count_nonzero(A.diagonal() == 0) == 100


def test_neumann_is_singular_with_constants():
    A = gallery.neumann((5, 1, 7))
    eigenvalues = np.linalg.eigvalsh(A.toarray())
    assert np.all(A @ np.ones(35) == 0) and abs(eigenvalues[0]) < 1e-13 and eigenvalues[1] > 0.1


def test_helmholtz_is_indefinite_with_damping():
    A = gallery.get("audi3d4~", 125).toarray()
    real = np.linalg.eigvalsh(A.real)
    assert real[0] < 0 < real[-1]
    assert np.linalg.eigvalsh(A.imag)[0] > 0        # energy is only lost


@pytest.mark.parametrize("name", STAND_INS)
def test_small_stand_ins_equal_kronecker_products(name):
    A = gallery.get(name, 343)
    if name == "ecology2~":
        m, n = 20, 18
        B = kron_sum(tridiagonal(m, -1, 2, -1), tridiagonal(n, -1, 2, -1))
    elif name == "atmosmodd~":
        B = kron_sum(*[tridiagonal(7, -1.5, 2, -0.5)] * 3)
    elif name == "audi3d4~":
        K, M = tridiagonal(7, -1.0, 2, -1).tolil(), tridiagonal(7, 1 / 6, 2 / 3, 1 / 6).tolil()
        K[0, 0] = K[6, 6] = 1
        M[0, 0] = M[6, 6] = 1 / 3
        B = kron(K, M, M) + kron(M, K, M) + kron(M, M, K) - 0.3 * (1 - 0.02j) * kron(M, M, M)
    else:   # a triangulation with free boundary: constants, and Euler's bound on the edges
        shift = A @ np.ones(343)
        np.testing.assert_allclose(shift, 1e-6 * (A.diagonal().mean() / (1 + 1e-6)), rtol=1e-4)
        assert 343 * 5 < A.nnz < 343 * 7
        return
    assert A.nnz == B.nnz
    assert_equal(A, B)


def test_standard_sizes_without_generating():
    for name, (n, _) in STAND_INS.items():
        assert gallery._CATALOGUE[name][0] == n


@pytest.mark.slow
def test_stand_ins_at_full_size():
    for name, (n, nonzeros) in STAND_INS.items():
        if name == "thermal2~":
            continue                             # triangles as of parabolic_fem~, and the most of all
        A = gallery.get(name)
        assert A.shape == (n, n) and A.nnz == nonzeros, name


def test_star_takes_numbers_and_arrays():
    shape = (3, 4, 2)
    faces = [np.random.default_rng(k).random([m - (axis == k) for axis, m in enumerate(shape)]) for k in range(3)]
    A = star(shape, np.arange(24.0).reshape(shape), faces, [0.5, -1.0, 2.0]).toarray()
    index = np.arange(24).reshape(shape)
    assert A[index[1, 2, 1], index[0, 2, 1]] == faces[0][0, 2, 1]
    assert A[index[1, 2, 1], index[1, 1, 1]] == faces[1][1, 1, 1]
    assert A[index[1, 2, 0], index[1, 2, 1]] == 2.0 and A[index[1, 2, 0], index[1, 3, 0]] == -1.0
    assert np.array_equal(A.diagonal(), np.arange(24))
    assert np.count_nonzero(A) == 23 + 2 * sum(face.size for face in faces)


@pytest.mark.parametrize("shape", [(1,), (2,), (5,), (1, 4), (2, 3), (1, 1, 1), (2, 3, 4), (1, 5, 2)])
def test_box_equals_kronecker_products(shape):
    bands = [np.random.default_rng(m).random((m, 3)) + 1 for m in shape]
    dense = []
    for band in bands:
        D = np.diag(band[:, 1])
        D += np.diag(band[1:, 0], -1) + np.diag(band[:-1, 2], 1) if len(band) > 1 else 0
        dense.append(sp.csr_array(D))
    A = box([tuple(bands), tuple(2 * band for band in bands)])
    assert A.has_canonical_format
    assert_equal(A, (1 + 2 ** len(shape)) * kron(*dense))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(7,), (5, 1), (4, 3, 6)])
def test_poisson_on_a_gpu(shape):
    space = space_or_skip("cuda")
    with space.active():
        A = poisson(shape, space.xp)
    assert A.has_canonical_format and (A.get() != poisson(shape)).nnz == 0


@pytest.mark.parametrize("axes, meshes", [(1, (15, 31, 63)), (2, (15, 31, 63)), (3, (7, 15, 31))])
def test_poisson_converges_with_order_two(axes, meshes):
    errors = []
    for m in meshes:
        h = 1 / (m + 1)
        x = np.meshgrid(*[h * np.arange(1, m + 1)] * axes, indexing="ij")
        exact = functools.reduce(np.multiply, [np.sin(math.pi * xk) * np.exp(xk) for xk in x])
        # -(sin(pi x) e^x)'' = e^x ((pi^2 - 1) sin(pi x) - 2 pi cos(pi x))
        # so that, over sin(pi x) e^x, each axis contributes:
        source = exact * sum(math.pi**2 - 1 - 2 * math.pi / np.tan(math.pi * xk) for xk in x)
        u, info = spla.cg(poisson((m,) * axes), h**2 * source.ravel(), rtol=1e-10)
        assert info == 0
        errors.append(np.abs(u - exact.ravel()).max())
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert np.all(np.abs(orders - 2) < 0.1), orders


def test_p1_converges_with_order_two():
    errors = []
    for m in (8, 16, 32):
        x, y = (axis.ravel() for axis in np.meshgrid(np.linspace(0, 1, m + 1), np.linspace(0, 1, m + 1), indexing="ij"))
        corner = (np.arange(m)[:, None] * (m + 1) + np.arange(m)).ravel()
        triangles = np.concatenate([np.column_stack([corner, corner + m + 1, corner + m + 2]),
                                    np.column_stack([corner, corner + 1, corner + m + 2])])   # both orientations
        A = laplacian(np.column_stack([x, y]), triangles)
        inner = np.flatnonzero((x > 0) & (x < 1) & (y > 0) & (y < 1))
        exact = np.sin(math.pi * x) * np.sin(2 * math.pi * y)
        u = spla.spsolve(A[inner][:, inner].tocsc(), (5 * math.pi**2 * exact / m**2)[inner])
        errors.append(np.abs(u - exact[inner]).max())
    assert np.all(np.abs(np.log2(np.array(errors[:-1]) / errors[1:]) - 2) < 0.1)


def test_anisotropic_at_angle_zero_and_isotropic():
    K, M = tridiagonal(6, -1.0, 2, -1), tridiagonal(6, 1 / 6, 2 / 3, 1 / 6)
    assert_equal(anisotropic2d(6, 0.01, 0.0), kron(M, K) + 0.01 * kron(K, M))
    assert_equal(anisotropic2d(6, 1.0, 0.7), kron(M, K) + kron(K, M))


def test_anisotropic_is_exact_for_quadratics():
    """-div(K grad u) of u = x y is -2 Kxy, which bilinear elements reproduce inside."""
    m, epsilon, angle = 9, 0.1, 0.6
    h = 1 / (m + 1)
    y, x = np.meshgrid(h * np.arange(1, m + 1), h * np.arange(1, m + 1), indexing="ij")
    product = (anisotropic2d(m, epsilon, angle) @ (x * y).ravel()).reshape(m, m)[1:-1, 1:-1]
    np.testing.assert_allclose(product, -2 * (1 - epsilon) * math.sin(angle) * math.cos(angle) * h**2, rtol=1e-10)


def test_diffusion_is_exact_through_layers():
    """The flux through layers in series, between a face at 0 and cells at a given source, by hand."""
    k = np.array([1.0, 10.0, 1000.0, 0.1])
    A = diffusion(k, (0.5,), np.array([2 * k[0] / 0.5, 0, 0, 0]))
    u = np.linalg.solve(A.toarray(), [0, 0, 0, 1.0])          # all heat enters the last cell
    half = 0.25 / k                     # resistance of half a cell
    np.testing.assert_allclose(u, np.cumsum(half + np.r_[0, half[:-1]]))


def test_jumping_diffusion_without_jump_is_poisson_inside():
    A = jumping_diffusion((6, 6), contrast=1.0, block=2).toarray()
    inside = np.arange(36).reshape(6, 6)[1:-1, 1:-1].ravel()
    np.testing.assert_array_equal(A[inside], poisson((6, 6)).toarray()[inside])
    assert A[0, 0] == 6


def test_convection_diffusion_schemes():
    assert_equal(gallery.convection_diffusion((8,), 0.5), tridiagonal(8, -1.25, 2.0, -0.75).tocsr())
    assert_equal(gallery.convection_diffusion((8,), 3.0, "upwind"), tridiagonal(8, -4.0, 5.0, -1.0).tocsr())
    assert_equal(gallery.convection_diffusion((8,), -3.0, "upwind"), tridiagonal(8, -1.0, 5.0, -4.0).tocsr())
    A = gallery.convection_diffusion((6, 7), (100.0, -50.0), "upwind")
    assert np.all(A.diagonal() > 0) and np.all((A - sp.diags_array(A.diagonal())).data <= 0)
    assert np.all(A @ np.ones(42) >= 0)


@pytest.mark.parametrize("field", ["oblique", "rotating", "inset"])
def test_advection_looks_upwind(field):
    for shape in ((7, 9), (5, 6, 4)):
        A, h = gallery.advection(shape, field), 1 / max(shape)
        n, off = A.shape[0], A - sp.diags_array(A.diagonal())
        inside = np.arange(n).reshape(shape)[(slice(1, -1),) * len(shape)].ravel()
        assert np.all(A.diagonal() > 0) and np.all(off.data < 0) and np.all(A @ np.ones(n) >= -1e-15)
        assert abs((A @ np.ones(n))[inside]).max() < 1e-15
        both = off.multiply(off.T)                       # no flow goes both ways through a face
        assert both.nnz == 0 or both.max() == 0
        B = gallery.advection(shape, field, 0.5)
        assert_equal(B, (A + 0.5 / h * gallery.poisson(shape)).tocsr())


def test_advection_of_a_linear_function_is_the_speed():
    m = 8
    for field, speed in (("oblique", (0.8, -0.6)), ("rotating", None)):
        A = gallery.advection((m, m), field)
        x, y = np.meshgrid(*((np.arange(m) + 0.5) / m,) * 2, indexing="ij")
        inside = np.arange(m * m).reshape(m, m)[1:-1, 1:-1].ravel()
        expected = speed or (1.5 / np.pi - y.ravel()[inside], x.ravel()[inside] - 1.5 / np.pi)
        for u, v in zip((x, y), expected):
            assert np.allclose(m * (A @ u.ravel())[inside], v)


def test_elasticity_has_rigid_body_modes_inside():
    m = 6
    A = elasticity2d(m, young=3.0, poisson=0.3)
    assert A.shape == (2 * m * (m + 1),) * 2
    x, y = np.meshgrid(np.arange(1, m + 1) / m, np.arange(m + 1) / m, indexing="ij")
    away = (x > 1.5 / m).ravel().repeat(2)      # rows without a clamped neighbour
    for mode in ([1, 0], [0, 1], None):
        u = np.tile(mode, x.size) if mode else np.column_stack([-y.ravel(), x.ravel()]).ravel()
        assert np.abs((A @ u)[away]).max() < 1e-12


def test_p1_laplacian_is_reproducible_and_seeded():
    assert abs(p1_laplacian(200) - p1_laplacian(200)).nnz == 0
    assert abs(p1_laplacian(200) - p1_laplacian(200, seed=1)).nnz > 0


def test_chip_heat_balances_and_is_plausible():
    A, b, shape, description = chip_heat(16)
    assert A.shape == (4096, 4096) and shape == (16, 16, 16) and b.sum() == pytest.approx(100)
    assert "16 x 16 x 16" in description
    rise = spla.spsolve(A.tocsc(), b).reshape(shape)
    leaving = (A @ np.ones(4096)).reshape(shape)         # conductance of each cell to the coolant, W/K
    assert np.all(np.abs(leaving[:-1]) < 1e-9) and np.all(leaving[-1] > 0)
    assert (leaving * rise).sum() == pytest.approx(100, rel=1e-6)
    assert rise.min() > 0 and 60 < rise.max() < 90      # 50 K over the film alone, were the face uniform
    hottest = np.unravel_index(rise.argmax(), shape)
    assert b.reshape(shape)[hottest] > 0


def test_chip_heat_of_the_demo_is_large():
    A, b, shape, _ = chip_heat()
    assert A.shape[0] == len(b) == math.prod(shape) == 262144
    assert abs(A - A.T).nnz == 0 and A.diagonal().min() > 0


@pytest.mark.parametrize("call, message", [
    (lambda: gallery.get("poisson4d"), "no matrix 'poisson4d'. Expected one of: poisson1d"),
    (lambda: gallery.get("poisson2d", 0), "at least 1"), (lambda: gallery.get("poisson2d", 1e4), "an integer"),
    (lambda: poisson((3, -1)), "a positive integer for each axis"), (lambda: poisson(()), "for each axis"),
    (lambda: gallery.coupled_transport(6, 4), "shape=6: expected"), (lambda: poisson(None), "shape=None: expected"),
    (lambda: gallery.stokes(2.5), "shape=2.5: expected"), (lambda: p1_laplacian((6, 6)), r"n=\(6, 6\): expected"),
    (lambda: anisotropic2d(4, 0.0), "positive number"), (lambda: jumping_diffusion((4,), -1.0), "positive numbers"),
    (lambda: gallery.convection_diffusion((4,), 1.0, "central"), "'centred' or 'upwind'"),
    (lambda: gallery.convection_diffusion((4, 4), (1.0,)), "one per axis"),
    (lambda: gallery.advection((4,)), "2 or 3 axes"), (lambda: gallery.advection((4, 4), "curved"), "'oblique', 'rotating'"),
    (lambda: gallery.advection((4, 4), diffusion=-1), "at least 0"), (lambda: gallery.helmholtz((1, 4)), "two nodes"), (lambda: p1_laplacian(2), "at least 3"),
    (lambda: elasticity2d(3, poisson=0.5), "poisson < 0.5"), (lambda: chip_heat(4), "at least 8")])
def test_bad_arguments(call, message):
    with pytest.raises(InputError, match=message):
        call()


@pytest.mark.parametrize("name, size", [("coupled_transport3", 3), ("coupled_transport4", 4), ("coupled_transport5", 5),
                                        ("multiconductor2", 2), ("multiconductor4", 4), ("thermal_plate5", 5)])
def test_block_systems_are_made_of_full_blocks(name, size):
    A = gallery.get(name, 1500)
    assert A.tobsr((size, size)).data.size == A.nnz
    assert spla.norm(A, 1) > 0 and A.nnz / A.shape[0] > 4 * size


def test_coupled_transport_of_one_component_is_convection_diffusion():
    one = gallery.coupled_transport((6, 5), 1, peclet=0.4, reaction=0.0)
    scalar = gallery.convection_diffusion((6, 5), 0.4)
    D = (one.diagonal()[0] / scalar.diagonal()[0])
    symmetric, skew = (one + one.T) / 2, (one - one.T) / 2
    assert_equal(symmetric, D * (scalar + scalar.T) / 2)
    assert_equal(skew, (scalar - scalar.T) / 2)


def test_a_thermal_plate_conducts_as_its_mesh_does_where_nothing_varies_across_it():
    """Of x ⊗ 1 the energy is that of x on the mesh, and that of 1 ⊗ t the energy of a line of length 2, t linear."""
    plate, mesh = gallery.thermal_plate(200, 3, seed=4, mass=0.0), p1_laplacian(200, 4, 0.0)
    x = np.random.default_rng(0).standard_normal(200)
    flat, tilted = np.kron(x, np.ones(4)), np.kron(np.ones(200), np.cos(np.pi * np.arange(4) / 3))
    assert flat @ plate @ flat == pytest.approx(x @ mesh @ x)
    assert tilted @ plate @ tilted == pytest.approx(200 * 2 * 2)
    assert abs(np.linalg.eigvalsh(plate.toarray())[0]) < 1e-10


@pytest.mark.parametrize("make", [lambda: gallery.coupled_transport((4, 4), 0), lambda: gallery.multiconductor(100, 33),
                                  lambda: gallery.multiconductor(3), lambda: gallery.thermal_plate(9, 0), lambda: gallery.coupled_transport((0, 4))])
def test_block_systems_that_mean_nothing(make):
    with pytest.raises(InputError, match="expected"):
        make()
