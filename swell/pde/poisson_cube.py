"""Poisson's equation on the unit cube by trilinear hexahedra, in subdomains for BDDC: −∇·(k ∇u) = 1, u = 0 on the
boundary.

    cube = poisson_cube.PoissonCube(elements=8, subdomains=4, levels=2)
    r = cube.solve(dense_lu="icm(x=32)")
    print(r)                                     # times of loading, setup and Krylov; the spectrum by CG's coefficients

The benchmark of section 3.2 of L. M. Čejka's thesis, with its three parameters and its three stages. What differs from
the thesis: boundary values are eliminated, while the thesis keeps these dofs. Subdomains at the boundary are therefore
smaller (elements=5: 68 to 178 rows instead of 104 to 178).
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from swell.core.errors import InputError
from swell.core.settings import real
from swell.pde.cube import Cube
from swell.pde.stencils import derivative_products


@dataclass(frozen=True, eq=False)
class PoissonCube(Cube):
    """The problem, with the thesis' parameters.

    Attributes
    ----------
    elements, subdomains, levels : int
        See ``Cube``.
    coefficient : str or array, shape (e, e, e) or (s, s, s)
        k > 0 in each element, with e = elements * subdomains, or in each subdomain; or a name. "constant": 1.
        "checkerboard": 1 and ``jump`` in alternating subdomains. "channels": ``jump`` in a straight channel through the
        middle of every row of subdomains along the last axis, 1 around it.
    jump : float
        See ``coefficient``.
    """

    coefficient: Any = "constant"
    jump: float = 1e4

    title = "Poisson"

    def __post_init__(self):
        super().__post_init__()
        if not real(self.jump) or not 0 < self.jump < np.inf:
            raise InputError(f"PoissonCube(jump={self.jump!r}): expected a positive number")
        self.check_values("coefficient", self.coefficient)
        if not isinstance(self.coefficient, str):
            k = np.asarray(self.coefficient)
            good = (k > 0) & np.isfinite(k)
            if not good.all():
                at = np.unravel_index(good.argmin(), k.shape)
                raise InputError(f"PoissonCube(coefficient=...) is {k[at]} in element {tuple(map(int, at))}: expected "
                                 "finite and positive numbers")

    @property
    def ends(self):
        return [(1, self.edge)] * 3

    @property
    def load(self) -> float:
        """The right-hand side's entry in every row: a node has an eighth of each of eight elements."""
        return 1 / self.edge ** 3

    def coefficients(self, box=(slice(None),) * 3) -> np.ndarray:
        """Return k in every element, or in the elements of a box, given as a slice for each axis."""
        return self.values(self.coefficient, self.jump, box)

    def terms(self, box):
        return [(element_matrix(1 / self.edge), self.coefficients(box), 1)]


def element_matrix(h) -> np.ndarray:
    """Return ∫ ∇u·∇v over a cube of edge h, shape (8, 8); node (i, j, k) has the index 4 i + 2 j + k."""
    products = derivative_products(3, h)
    return sum(products[axis, axis] for axis in range(3))
