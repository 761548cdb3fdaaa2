"""Matrices of discretised PDEs, by name: for examples, tests and benchmarks.

``get(name)`` makes a matrix of standard size, ``get(name, n)`` one with about n unknowns. A name that ends in ``~``
imitates the SuiteSparse matrix of this name: generated, with a similar size and structure. ``audi3d*~``, ``twingo3d*~``
and ``cylinder3d*~`` have the sizes of the acoustic meshes of "Accelerated solution of Helmholtz equation with Iterative
Krylov Methods on GPU", but are boxes. The functions behind the names have further parameters:

=====================================  ==================================================
`swell.gallery.poisson`                Poisson 1D to 3D, anisotropic, jumping coefficients
`swell.gallery.convection_diffusion`   centred and upwind
`swell.gallery.advection`              upwind, three flows, with little or no diffusion
`swell.gallery.helmholtz`              complex symmetric
`swell.gallery.fem`                    linear triangles: Laplacian, elasticity
`swell.gallery.elasticity`             meshes of boxes, and elastic bodies of triangles or tetrahedra
`swell.gallery.indefinite`             shifted, saddle point, singular
`swell.gallery.stokes`                 slow flow in a driven cavity, with its index sets
`swell.gallery.curl_curl`              Maxwell's equations on edges, with the discrete gradient
`swell.gallery.block_systems`          groups of unknowns: dense small blocks
`swell.gallery.chip_heat`              heat in a chip, with its right-hand side
=====================================  ==================================================
"""
import numpy as np

from swell.core.errors import InputError
from swell.gallery.advection import advection
from swell.gallery.block_systems import coupled_transport, multiconductor, thermal_plate
from swell.gallery.chip_heat import chip_heat
from swell.gallery.convection_diffusion import convection_diffusion
from swell.gallery.elasticity import box_mesh, elastic_body, elastic_subdomains, elasticity3d
from swell.gallery.curl_curl import curl_curl
from swell.gallery.fem import elasticity2d, p1_laplacian
from swell.gallery.helmholtz import helmholtz
from swell.gallery.indefinite import neumann, saddle_point, shifted_laplacian
from swell.gallery.poisson import anisotropic2d, jumping_diffusion, poisson, poisson1d, poisson2d, poisson3d
from swell.gallery.stokes import stokes

__all__ = ["advection", "anisotropic2d", "box_mesh", "chip_heat", "convection_diffusion", "coupled_transport",
           "curl_curl", "elastic_body", "elastic_subdomains", "elasticity2d", "elasticity3d", "get", "helmholtz",
           "jumping_diffusion", "multiconductor", "names", "neumann", "p1_laplacian", "poisson", "poisson1d",
           "poisson2d", "poisson3d", "saddle_point", "shifted_laplacian", "standard_size", "stokes", "thermal_plate"]


def _side(n, axes, least=1):
    """Return the points along one side of a grid with ``axes`` axes and about n points, at least ``least``."""
    return max(least, round(n ** (1 / axes)))


# name: (standard n, function of n)
_CATALOGUE = {
    "poisson1d": (1_000, poisson1d),
    "poisson2d": (10_000, lambda n: poisson2d(_side(n, 2))),
    "poisson3d": (27_000, lambda n: poisson3d(_side(n, 3))),
    "anisotropic2d": (10_000, lambda n: anisotropic2d(_side(n, 2))),
    "jumping_diffusion2d": (10_000, lambda n: jumping_diffusion((_side(n, 2),) * 2)),
    "jumping_diffusion3d": (27_000, lambda n: jumping_diffusion((_side(n, 3),) * 3)),
    "convection_diffusion2d": (10_000, lambda n: convection_diffusion((_side(n, 2),) * 2)),
    "convection_diffusion3d": (27_000, lambda n: convection_diffusion((_side(n, 3),) * 3)),
    "upwind2d": (10_000, lambda n: convection_diffusion((_side(n, 2),) * 2, 10.0, "upwind")),
    "upwind3d": (27_000, lambda n: convection_diffusion((_side(n, 3),) * 3, 10.0, "upwind")),
    "advection2d": (10_000, lambda n: advection((_side(n, 2),) * 2, "inset")),
    "advection3d": (27_000, lambda n: advection((_side(n, 3),) * 3, "inset")),
    "helmholtz2d": (10_000, lambda n: helmholtz((_side(n, 2, 2),) * 2)),
    "helmholtz3d": (27_000, lambda n: helmholtz((_side(n, 3, 2),) * 3)),
    "p1_laplacian": (10_000, p1_laplacian),
    "elasticity2d": (9_940, lambda n: elasticity2d(_side(n / 2, 2))),
    "elasticity3d": (9_720, lambda n: elasticity3d(_side(n / 3, 3))),
    "shifted_laplacian2d": (10_000, lambda n: shifted_laplacian((_side(n, 2),) * 2)),
    "saddle_point": (10_045, lambda n: saddle_point(_side(n / 3, 2))),
    "neumann2d": (10_000, lambda n: neumann((_side(n, 2),) * 2)),
    "coupled_transport3": (292_008, lambda n: coupled_transport((_side(n / 3, 3),) * 3, 3)),
    "coupled_transport4": (296_352, lambda n: coupled_transport((_side(n / 4, 3),) * 3, 4)),
    "coupled_transport5": (296_595, lambda n: coupled_transport((_side(n / 5, 3),) * 3, 5)),
    "multiconductor2": (299_538, lambda n: multiconductor(max(4, n // 2), 2)),
    "multiconductor4": (298_116, lambda n: multiconductor(max(4, n // 4), 4)),
    "thermal_plate5": (300_000, lambda n: thermal_plate(max(3, n // 5), 4)),
    "chip_heat": (262_144, lambda n: chip_heat(_side(n, 3, 8))[0]),
    "thermal2~": (1_228_045, p1_laplacian),
    "parabolic_fem~": (525_825, lambda n: p1_laplacian(n, seed=1)),
    "ecology2~": (999_999, lambda n: poisson((_side(n + 1, 2, 2) + 1, _side(n + 1, 2, 2) - 1))),
    "atmosmodd~": (1_259_712, lambda n: convection_diffusion((_side(n, 3),) * 3)),
    **{name: (n, lambda n: helmholtz((_side(n, 3, 2),) * 3)) for name, n in (
        ("audi3d4~", 658_503), ("audi3d1~", 1_727), ("audi3d2~", 11_637), ("audi3d3~", 85_001), ("twingo3d0~", 8_439),
        ("twingo3d1~", 62_357), ("twingo3d2~", 479_169), ("cylinder3d0~", 2_717), ("cylinder3d1~", 19_041),
        ("cylinder3d2~", 142_049))},
}


def names():
    """The names that `get` knows, a list of str."""
    return list(_CATALOGUE)


def standard_size(name):
    """The number of unknowns that `get` aims at for a name, if n is not given."""
    return _CATALOGUE[name][0]


def get(name, n=None):
    """Generate a matrix of the gallery.

    Parameters
    ----------
    name : str
        One of `names`.
    n : int, optional
        Number of unknowns wanted; a grid takes the nearest size that it can have. By default the standard size.

    Returns
    -------
    A : scipy.sparse.csr_matrix
        float64, or complex128 for the Helmholtz family and ``audi3d4~``; sorted int32 indices.

    Raises
    ------
    InputError
        If the name is unknown, or n is below 1.

    Examples
    --------
    >>> from swell import gallery
    >>> gallery.get("poisson2d", n=100).shape
    (100, 100)
    """
    if name not in _CATALOGUE:
        raise InputError(f"The gallery has no matrix {name!r}. Expected one of: {', '.join(_CATALOGUE)}.")
    standard, build = _CATALOGUE[name]
    n = standard if n is None else n
    if not isinstance(n, int | np.integer) or n < 1:
        raise InputError(f"n = {n!r} came for {name}, expected the number of unknowns: an integer of at least 1.")
    return build(n)
