"""Kinds of systems beside the gallery's for ``swell bench amg``: what engineers bring that no constant was fitted to.

Each function returns a new SciPy CSR matrix; ``scale``: a factor for the number of unknowns.
"""
from functools import partial

import numpy as np
import scipy.sparse as sp

from swell import gallery
from swell.bench.elements import lagrange
from swell.gallery.poisson import diffusion


def _side(m, scale, axes=3):
    """Return m, the unknowns along an axis, for ``scale`` times the unknowns."""
    return max(8, round(m * scale ** (1 / axes)))


def log_normal(scale=1.0, deviation=3.0, seed=0):
    """Return diffusion on 128³ cells whose conductivity has a normal logarithm, correlated over some cells: SPD."""
    from scipy.ndimage import gaussian_filter
    m = _side(128, scale)
    field = gaussian_filter(np.random.default_rng(seed).standard_normal((m, m, m)), 3, mode="wrap")
    return diffusion(np.exp(deviation * field / field.std()), (1.0,) * 3, np.full((m, m, m), 1.0))


def boundary_layers(scale=1.0, ratio=1.2):
    """Return Poisson's equation on 120³ cells, each ``ratio`` times as wide as the one nearer to a wall: SPD."""
    m = _side(120, scale)
    widths = ratio ** np.minimum(np.arange(m), m - 1 - np.arange(m)).clip(max=20).astype(float)
    mass = sp.diags_array(widths)
    inner = 2 / (widths[1:] + widths[:-1])
    ends = np.zeros(m)
    ends[0], ends[-1] = 2 / widths[0], 2 / widths[-1]
    line = sp.diags_array((-inner, np.r_[0, inner] + np.r_[inner, 0] + ends, -inner), offsets=(-1, 0, 1))
    along = (line, mass, mass), (mass, line, mass), (mass, mass, line)
    return _csr(sum(sp.kron(sp.kron(a, b), c) for a, b, c in along))


def points27(scale=1.0):
    """Return the stencil of 27 points on 128³ points, as in HPCG: 26 on the diagonal, −1 beside it: SPD."""
    m = _side(128, scale)
    ones = sp.diags_array((np.ones(m - 1), np.ones(m), np.ones(m - 1)), offsets=(-1, 0, 1))
    return _csr(27 * sp.eye_array(m**3) - sp.kron(sp.kron(ones, ones), ones))


def fourth_order(scale=1.0, n=400_000):
    """Return Poisson's equation by hierarchical elements of degree 4 on squares: SPD, rows of different lengths."""
    from swell.bench.elements import hierarchical
    return hierarchical(round(n * scale), 4)


def convection(scale=1.0, peclet=10.0):
    """Return upwind convection and diffusion in a rotating flow on 100³ cells, of a cell Péclet number: unsymmetric."""
    m = _side(100, scale)
    return gallery.advection((m,) * 3, "rotating", 1 / (m * peclet))


def beam(scale=1.0):
    """Return a clamped elastic beam, 8 × 1 × 1, by linear tetrahedra: SPD."""
    m = _side(26, scale)
    return _elastic((8 * m, m, m), (8.0, 1.0, 1.0))


def plate(scale=1.0, aspect=10.0):
    """Return a clamped elastic plate of two layers of cells that are ``aspect`` times as wide as thick: SPD."""
    m = _side(150, scale, 2)
    return _elastic((m, m, 2), (float(m), float(m), 2 / aspect))


def _elastic(shape, size):
    points, cells = gallery.box_mesh(shape, size)
    return gallery.elastic_body(points, cells, points[:, 0] == 0)[0]


def _csr(A):
    A = sp.csr_matrix(A)
    A.sort_indices()
    return A


KINDS = {
    "log_normal": log_normal, "boundary_layers": boundary_layers, "points27": points27,
    "tetrahedra_p2": lambda scale=1.0: lagrange(round(150_000 * scale), "tetrahedra", 2),
    "triangles_p3": lambda scale=1.0: lagrange(round(200_000 * scale), "triangles", 3),
    "fourth_order": fourth_order,
    "rotated": lambda scale=1.0: gallery.anisotropic2d(_side(1000, scale, 2), 1e-3),
    "convection10": convection, "convection100": partial(convection, peclet=100.0),
    "beam": beam, "plate": plate,
}
