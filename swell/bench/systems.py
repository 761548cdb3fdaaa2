"""Generated systems of ``swell bench auto``, from every class that swell is for.

The list was fixed before the advisor's constants were chosen. Each function returns a new SciPy CSR matrix of about n
rows (or m² or m³ grid points); ``seed``: of the random numbers.
"""
from functools import partial

import numpy as np
import scipy.sparse as sp

from swell import gallery


def circuit(n, hubs=3, seed=0):
    """Return a conductance network with about n nodes, ``hubs`` of which have many neighbours, and controlled sources:
    unsymmetric."""
    rng = np.random.default_rng(seed)
    side = int(np.sqrt(n))
    n = side * side
    grid = sp.coo_matrix(gallery.poisson2d(side))
    off = grid.row < grid.col
    i, j = grid.row[off], grid.col[off]
    kept = rng.random(i.size) < 0.7
    i, j = i[kept], j[kept]
    for hub in rng.integers(0, n, hubs):
        far = rng.integers(0, n, n // 20)
        i, j = np.concatenate([i, np.full(far.size, hub)]), np.concatenate([j, far])
    g = 10 ** rng.uniform(-3, 3, i.size)
    W = sp.coo_matrix((g, (i, j)), (n, n)).tocsr()
    W = W + W.T
    A = sp.diags_array(np.asarray(W.sum(axis=1)).ravel() + 1e-6) - W
    sources = sp.random(n, n, density=0.5 / n, random_state=rng, data_rvs=lambda k: rng.normal(size=k))
    return sp.csr_matrix(A + sources)


def power_grid(n, seed=0):
    """Return a power network's Laplacian: a tree with some loops, conductances over four decades: SPD."""
    rng = np.random.default_rng(seed)
    parent = (np.arange(1, n) * rng.uniform(0.7, 1, n - 1)).astype(int)
    i = np.concatenate([np.arange(1, n), rng.integers(0, n, n // 5)])
    j = np.concatenate([parent, rng.integers(0, n, n // 5)])
    g = 10 ** rng.uniform(-2, 2, i.size)
    W = sp.coo_matrix((g, (i, j)), (n, n)).tocsr()
    W = W + W.T
    return sp.csr_matrix(sp.diags_array(np.asarray(W.sum(axis=1)).ravel() + 1e-3 * rng.random(n)) - W)


def random_graph(n, degree=6, shift=1e-2, seed=0):
    """Return a random graph's Laplacian plus ``shift`` I, with much fill in its factors: SPD. ``degree``: mean number
    of neighbours."""
    rng = np.random.default_rng(seed)
    W = sp.coo_matrix((rng.random(n * degree // 2), (rng.integers(0, n, n * degree // 2),
                                                     rng.integers(0, n, n * degree // 2))), (n, n)).tocsr()
    W = W + W.T
    return sp.csr_matrix(sp.diags_array(np.asarray(W.sum(axis=1)).ravel() + shift) - W)


def markov(n, discount=0.99, seed=0):
    """Return I − discount P, with the n × n transition matrix P of a random walk with drift: diagonally dominant,
    unsymmetric."""
    rng = np.random.default_rng(seed)
    i = np.repeat(np.arange(n), 4)
    P = sp.coo_matrix((rng.random(i.size), (i, (i + rng.integers(1, 200, i.size)) % n)), (n, n)).tocsr()
    return sp.csr_matrix(sp.eye_array(n) - discount * (sp.diags_array(1 / np.asarray(P.sum(axis=1)).ravel()) @ P))


def grcar(n):
    """Return Grcar's Toeplitz matrix of n rows: far from normal, well conditioned."""
    return sp.csr_matrix(sp.diags_array((-1.0, 1.0, 1.0, 1.0, 1.0), offsets=(-1, 0, 1, 2, 3), shape=(n, n)))


def arrow(n):
    """Return a tridiagonal matrix of n rows with a full last row and column: SPD."""
    A = sp.lil_matrix(sp.diags_array((-1.0, 2.1, -1.0), offsets=(-1, 0, 1), shape=(n, n)))
    A[n - 1, :] = A[:, n - 1] = 1 / np.sqrt(n)
    A[n - 1, n - 1] = 10
    return sp.csr_matrix(A)


def biharmonic(m):
    """Return the square of Poisson's matrix on m × m points: SPD, condition of order m⁴, no M-matrix."""
    A = gallery.poisson2d(m)
    return sp.csr_matrix(A @ A)


def mass(m):
    """Return the mass matrix of trilinear elements on m³ nodes: SPD, small condition."""
    M = sp.diags_array((1 / 6, 2 / 3, 1 / 6), offsets=(-1, 0, 1), shape=(m, m))
    return sp.csr_matrix(sp.kron(sp.kron(M, M), M))


def dense(n, seed=0):
    """Return a dense n × n matrix of standard normal numbers plus √n I, as CSR: unsymmetric."""
    return sp.csr_matrix(np.random.default_rng(seed).standard_normal((n, n)) + np.sqrt(n) * np.eye(n))


def unstructured(n, seed=0):
    """Return random normal entries, about four a row, and ±3 added to the diagonal: n rows, unsymmetric, indefinite."""
    rng = np.random.default_rng(seed)
    A = sp.random(n, n, density=4 / n, random_state=rng, data_rvs=lambda k: rng.normal(size=k))
    return sp.csr_matrix(A + sp.diags_array(3 * rng.choice([-1.0, 1.0], n)))


def magnetic(m, flux=0.1):
    """Return Peierls' magnetic Laplacian on m × m points: complex Hermitian, positive definite. ``flux``: through a
    cell, as a fraction of the flux quantum."""
    A = sp.coo_matrix(gallery.poisson2d(m)).astype(complex)
    up = A.col == A.row + m
    down = A.row == A.col + m
    phase = np.exp(2j * np.pi * flux * (np.minimum(A.row, A.col) % m))
    A.data[up] *= phase[up]
    A.data[down] *= phase[down].conj()
    return sp.csr_matrix(A)


def eddy(m, sigma=0.3):
    """Return Poisson's matrix on m × m points plus i sigma I, as in eddy-current problems: complex symmetric."""
    return sp.csr_matrix(gallery.poisson2d(m) + 1j * sigma * sp.eye_array(m * m))


def complex_transport(m):
    """Return convection and diffusion on m × m points in the frequency domain (plus 0.2 i I): complex, unsymmetric."""
    return sp.csr_matrix(gallery.convection_diffusion((m, m), 1.0) + 0.2j * sp.eye_array(m * m))


def _named(name, n):
    return f"{name}:{n}", partial(gallery.get, name, n)


GENERATED = dict([
    _named("poisson1d", 100_000), _named("poisson2d", 10_000), _named("poisson2d", 90_000),
    _named("poisson2d", 490_000), _named("poisson3d", 8_000), _named("poisson3d", 64_000),
    _named("poisson3d", 262_144), _named("anisotropic2d", 40_000), _named("anisotropic2d", 160_000),
    _named("jumping_diffusion2d", 90_000), _named("jumping_diffusion3d", 27_000),
    _named("jumping_diffusion3d", 125_000),
    _named("elasticity2d", 9_940), _named("elasticity2d", 60_000), _named("p1_laplacian", 20_000),
    _named("p1_laplacian", 200_000), _named("multiconductor2", 30_000), _named("thermal_plate5", 30_000),
    _named("chip_heat", 32_768),
    ("power_grid:5000", partial(power_grid, 5_000)), ("power_grid:100000", partial(power_grid, 100_000)),
    ("random_graph:3000", partial(random_graph, 3_000)), ("random_graph:50000", partial(random_graph, 50_000)),
    ("arrow:20000", partial(arrow, 20_000)), ("biharmonic:40", partial(biharmonic, 40)),
    ("biharmonic:150", partial(biharmonic, 150)), ("mass:16", partial(mass, 16)), ("mass:40", partial(mass, 40)),
    ("magnetic:150", partial(magnetic, 150)),
    _named("convection_diffusion2d", 10_000), _named("convection_diffusion2d", 160_000),
    _named("convection_diffusion3d", 27_000), _named("convection_diffusion3d", 125_000),
    _named("upwind2d", 90_000), _named("upwind3d", 64_000), _named("coupled_transport3", 24_000),
    _named("coupled_transport5", 40_000), ("circuit:2500", partial(circuit, 2_500)),
    ("circuit:40000", partial(circuit, 40_000)), ("markov:5000", partial(markov, 5_000)),
    ("markov:100000", partial(markov, 100_000)), ("grcar:2000", partial(grcar, 2_000)),
    ("grcar:50000", partial(grcar, 50_000)), ("dense:300", partial(dense, 300)), ("dense:1500", partial(dense, 1_500)),
    ("unstructured:1000", partial(unstructured, 1_000)), ("unstructured:8000", partial(unstructured, 8_000)),
    _named("shifted_laplacian2d", 10_000), _named("shifted_laplacian2d", 90_000), _named("saddle_point", 3_000),
    _named("saddle_point", 40_000),
    _named("helmholtz2d", 10_000), _named("helmholtz2d", 90_000), _named("helmholtz3d", 8_000),
    _named("helmholtz3d", 50_000), ("eddy:60", partial(eddy, 60)), ("eddy:300", partial(eddy, 300)),
    ("complex_transport:50", partial(complex_transport, 50)),
    ("complex_transport:200", partial(complex_transport, 200)),
])
