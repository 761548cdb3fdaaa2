"""An elastic cube or square by bilinear elements, in subdomains for BDDC: clamped at x = 0, free elsewhere, under its
weight.

    cube = elasticity_cube.ElasticityCube(elements=6, subdomains=3, young="checkerboard", jump=1e4, poisson=0.3)
    r = cube.solve()
    print(r)                                     # times, iterations and the spectrum

All subdomains but those at x = 0 float: a cube has six rigid motions, a square three. BDDC holds them by averages and
first moments over edges and faces (Klawonn and Widlund 2006), from the rigid motions as ``near_nullspace``. The square
is in plane strain. Near ν = ½ the elements with full integration lock. ``integration="reduced"`` takes the mean of
div u over each element, which is the element of bilinear displacements and constant pressures.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.cube import Cube, derivative_products
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
    integration : {"full", "reduced"}
        Of the volumetric energy.
    """

    young: Any = "constant"
    jump: float = 1e4
    poisson: Any = 0.3
    axes: int = 3
    integration: str = "full"

    title = "Elasticity"
    assembly = 4000

    def __post_init__(self):
        if self.axes not in (2, 3):
            raise InputError(f"ElasticityCube(axes={self.axes!r}): expected 2, a square, or 3, a cube")
        super().__post_init__()
        if not real(self.jump) or not 0 < self.jump < np.inf:
            raise InputError(f"ElasticityCube(jump={self.jump!r}): expected a positive number")
        if self.integration not in ("full", "reduced"):
            raise InputError(f"ElasticityCube(integration={self.integration!r}): expected 'full' or 'reduced'")
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
    def load(self) -> np.ndarray:
        """A weight of 1 for a unit of volume, along the last axis."""
        weight = np.ones(())
        for first, stop in self.ends:
            along = np.ones(stop - first) / self.edge
            along[[k for k in (0, -1) if (first, stop - 1)[k] in (0, self.edge)]] /= 2
            weight = np.multiply.outer(weight, along)
        b = np.zeros((weight.size, self.axes))
        b[:, -1] = -weight.ravel()
        return b.ravel()

    def terms(self, box):
        young = self.values(self.young, self.jump, box)
        poisson = self.values(self.poisson, 1, box) if np.ndim(self.poisson) else self.poisson
        volumetric, shear = element_matrices(self.axes, 1 / self.edge, self.integration)
        return [(volumetric, young * poisson / ((1 + poisson) * (1 - 2 * poisson))),
                (shear, young / (2 * (1 + poisson)))]


def element_matrices(axes, h, integration="full"):
    """Return the element matrices of λ = 1 and of μ = 1: ∫ div u div v, and 2 ∫ ε(u) : ε(v), over a cube or square of
    edge h. Rows are the displacements of its nodes, node after node. ``integration`` as in `ElasticityCube`."""
    products = derivative_products(axes, h)
    count = 2 ** axes
    volumetric, shear = np.zeros((2, count, axes, count, axes))
    for i in range(axes):
        for j in range(axes):
            volumetric[:, i, :, j] = products[i, j]
            shear[:, i, :, j] = products[j, i]
        shear[:, i, :, i] += sum(products[a, a] for a in range(axes))
    volumetric, shear = (part.reshape(count * axes, -1) for part in (volumetric, shear))
    if integration == "reduced":
        signs = np.array(np.unravel_index(np.arange(count), (2,) * axes)).T * 2 - 1            # of ∂φ, by node and axis
        divergence = (signs * h ** (axes - 1) / 2 ** (axes - 1)).ravel()                       # ∫ div u
        volumetric = np.outer(divergence, divergence) / h ** axes
    return volumetric, shear
