"""An elastic cube or square by bilinear elements, in subdomains for BDDC: clamped at x = 0, free elsewhere, under its
weight.

    cube = elasticity_cube.ElasticityCube(elements=6, subdomains=3, young="checkerboard", jump=1e4, poisson=0.3)
    r = cube.solve()
    print(r)                                     # times, iterations and the spectrum

All subdomains but those at x = 0 float: a cube has six rigid motions, a square three. BDDC holds them by averages and
first moments over edges and faces (Klawonn and Widlund 2006), from the rigid motions as ``near_nullspace``. The square
is in plane strain. Near ν = ½ bilinear elements lock. ``pressure="patches"`` takes the mean of div u over patches of
two elements along each axis: this is a stable pair of displacements and pressures, the pressures being eliminated.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.cube import Cube
from swell.pde.stencils import derivative_products
from swell.transforms.nullspace import rigid_body_modes


@dataclass(frozen=True, eq=False)
class ElasticityCube(Cube):
    """The problem.

    Attributes
    ----------
    elements, subdomains, levels : int
        See ``Cube``.
    young : str or array, shape (e, …) or (s, …) with ``axes`` axes
        Young's modulus in each element, with e = elements * subdomains, or in each of the s subdomains along an edge;
        or a name, as for ``PoissonCube``: "constant", "checkerboard" or "channels".
    jump : float
        The larger modulus of "checkerboard" and "channels"; the other is 1.
    poisson : float or array
        Poisson's ratio, in (−1, ½); an array as for ``young``.
    axes : int
        3: the cube; 2: the square.
    pressure : {"none", "patches"}
        "patches": constant pressures on patches of 2 elements along each axis; ``elements`` must be even, and Young's
        modulus and Poisson's ratio be equal in a patch.
    """

    young: Any = "constant"
    jump: float = 1e4
    poisson: Any = 0.3
    axes: int = 3
    pressure: str = "none"

    title = "Elasticity"
    assembly = 4000

    def __post_init__(self):
        if self.axes not in (2, 3):
            raise InputError(f"ElasticityCube(axes={self.axes!r}): expected 2, a square, or 3, a cube")
        super().__post_init__()
        if not real(self.jump) or not 0 < self.jump < np.inf:
            raise InputError(f"ElasticityCube(jump={self.jump!r}): expected a positive number")
        if self.pressure not in ("none", "patches"):
            raise InputError(f"ElasticityCube(pressure={self.pressure!r}): expected 'none' or 'patches'")
        if self.pressure == "patches" and self.elements % 2:
            raise InputError(f"ElasticityCube(elements={self.elements}, pressure='patches'): expected an even number "
                             "of elements along an edge of a subdomain")
        self.check_values("young", self.young)
        if np.ndim(self.poisson):
            self.check_values("poisson", self.poisson)
        young = np.asarray(1.0 if isinstance(self.young, str) else self.young)
        poisson = np.asarray(self.poisson)
        if young.dtype.kind not in "iuf" or not ((young > 0) & np.isfinite(young)).all():
            raise InputError("ElasticityCube(young=...): expected finite and positive numbers")
        if poisson.dtype.kind not in "iuf" or not ((poisson > -1) & (poisson < 0.5)).all():
            raise InputError(f"ElasticityCube(poisson={self.poisson!r}): expected numbers between -1 and 0.5")

    @property
    def size(self):
        """Unknowns of a node."""
        return self.axes

    @property
    def ends(self):
        return [(1, self.edge + 1)] + [(0, self.edge + 1)] * (self.axes - 1)

    @property
    def points(self) -> np.ndarray:
        """Positions of the nodes that are not clamped, shape (nodes, axes), in the order of the unknowns."""
        lines = [np.arange(*ends) / self.edge for ends in self.ends]
        return np.stack(np.meshgrid(*lines, indexing="ij"), axis=-1).reshape(-1, self.axes)

    @property
    def near_nullspace(self) -> np.ndarray:
        """The rigid motions, shape (n, 6) or (n, 3)."""
        return rigid_body_modes(self.points)

    @property
    def _weights(self) -> np.ndarray:
        """The volume around each node, in elements, shape (nodes,): half as much for each free side that it lies in."""
        weight = np.ones(())
        for first, stop in self.ends:
            along = np.ones(stop - first)
            along[-1] = 0.5
            along[0] = 1 if first else 0.5
            weight = np.multiply.outer(weight, along)
        return weight.ravel()

    @property
    def load(self) -> np.ndarray:
        """A weight of 1 for a unit of volume, along the last axis."""
        b = np.zeros((self.n // self.axes, self.axes))
        b[:, -1] = -self._weights / self.edge ** self.axes
        return b.ravel()

    @property
    def reach(self):
        """Intervals along an edge of the largest element."""
        return 2 if self.pressure == "patches" else 1

    def terms(self, box):
        young = self.values(self.young, self.jump, box)
        poisson = self.values(self.poisson, 1, box) if np.ndim(self.poisson) else self.poisson
        bulk, step = young * poisson / ((1 + poisson) * (1 - 2 * poisson)), self.reach
        volumetric, shear = element_matrices(self.axes, 1 / self.edge)
        if step > 1:
            volumetric, whole = patch_matrix(self.axes, 1 / self.edge), bulk
            bulk = whole[(slice(None, None, step),) * self.axes]
            if (np.kron(bulk, np.ones((step,) * self.axes)) != whole).any():
                raise InputError("ElasticityCube(pressure='patches'): Young's modulus or Poisson's ratio differs "
                                 "within a patch of 2 elements along each axis: expected equal values there")
        return [(volumetric, bulk, step), (shear, young / (2 * (1 + poisson)), 1)]


def element_matrices(axes, h):
    """Return the element matrices of λ = 1 and of μ = 1: ∫ div u div v, and 2 ∫ ε(u) : ε(v), over a cube or square of
    edge h. Rows are the displacements of its nodes, node after node."""
    products, count = derivative_products(axes, h), 2 ** axes
    volumetric, shear = np.zeros((2, count, axes, count, axes))
    for i in range(axes):
        for j in range(axes):
            volumetric[:, i, :, j] = products[i, j]
            shear[:, i, :, j] = products[j, i]
        shear[:, i, :, i] += sum(products[a, a] for a in range(axes))
    return volumetric.reshape(count * axes, -1), shear.reshape(count * axes, -1)


def patch_matrix(axes, h):
    """Return (∫ div u)(∫ div v) / (2 h)ᵃ over a patch of 2 elements of edge h along each of ``axes`` axes; rows are the
    displacements of its 3ᵃ nodes, node after node."""
    slope, mass = np.array([-1.0, 0, 1]), np.array([0.5, 1, 0.5]) * h          # ∫ φ' and ∫ φ of a line's three nodes
    divergence = np.stack([reduce(np.kron, [slope if axis == a else mass for axis in range(axes)])
                           for a in range(axes)], axis=1).ravel()
    return np.outer(divergence, divergence) / (2 * h) ** axes
