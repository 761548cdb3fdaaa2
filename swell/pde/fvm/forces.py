"""Forces of a flow on its walls, for a fluid of density 1: ∫ p s, and of friction −∫ ν ∂u/∂n along the wall.

The pressure on a wall is extrapolated with the cell's gradient; the normal derivative is the one-sided difference that
the momentum equation takes. A call costs one gradient of p, and one transfer of 6 numbers a wall to the host.
"""
from __future__ import annotations

import fnmatch

from swell.core.errors import InputError
from swell.pde.fvm.boundary import Boundary, Dirichlet, Extrapolated
from swell.pde.fvm.gradient import LeastSquares


class Forces:
    """Forces on patches of given velocity: walls, lids, inlets.

    Parameters
    ----------
    flow : Flow
    metrics : Metrics
    names : sequence of str
        Names or patterns of patches, such as "cylinder" or "wing*".

    Attributes
    ----------
    patches : list of str

    Raises
    ------
    InputError
        If a name fits no patch of given velocity.
    """

    def __init__(self, flow, metrics, names=("*",)):
        first, mesh = metrics.n_internal, metrics.mesh
        sizes = mesh.whole.of_ranks({patch.name: patch.size for patch in mesh.patches})
        walls = [p for p in mesh.patches if isinstance(flow.velocity.get(p.name), Dirichlet)
                 and any(of_rank.get(p.name) for of_rank in sizes)]
        for name in names:
            if name != "*" and not any(fnmatch.fnmatchcase(patch.name, name) for patch in walls):
                raise InputError(f"forces: {name!r} is no patch of given velocity, such as a wall. There are: "
                                 f"{', '.join(patch.name for patch in walls) or 'none'}")
        walls = [patch for patch in walls if any(fnmatch.fnmatchcase(patch.name, name) for name in names)]
        outside = slice(first, None)
        self.metrics, self.patches = metrics, [patch.name for patch in walls]
        self.faces = [slice(patch.start - first, patch.start - first + patch.size) for patch in walls]
        known = {name: flow.pressure.get(name, Extrapolated()) for name in flow.velocity}
        self.p_sides = Boundary.of(metrics, known)
        self.slope = LeastSquares(metrics, self.p_sides)
        self.sides = {i: Boundary(metrics, *flow.of_component(i, mesh)) for i in metrics.dimensions}
        self.cells, self.s, area = metrics.owner[outside], metrics.s[:, outside], metrics.area[outside]
        self.normal = self.s / area
        self.stiffness = metrics.full(flow.viscosity, "viscosity")[self.cells] * area

    def __call__(self, u, p):
        """Return the forces (pressure, viscous) as an array on the host, shape (patches, 2, 3); ``u``: axis → array of
        shape (n,), ``p``: shape (n,)."""
        space = self.metrics.space
        xp = space.xp
        slope = xp.zeros_like(self.s)
        for i, side in self.sides.items():
            slope[i] = side.rate - side.slope * u[i][self.cells]
        slope -= (slope * self.normal).sum(0) * self.normal
        both = xp.stack([self.p_sides.values(p, self.slope(p)) * self.s, -self.stiffness * slope])
        found = [both[..., faces].sum(-1) for faces in self.faces]
        found = space.to_host(xp.stack(found) if found else xp.zeros((0, 2, 3)))
        return sum(self.metrics.mesh.whole.of_ranks(found))
