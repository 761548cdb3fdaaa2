"""Forces of a flow on its walls, for a fluid of density 1: ∫ p s, and of friction −∫ ν ∂u/∂n along the wall.

The pressure on a wall is extrapolated with the cell's gradient; the normal derivative is the one-sided difference that
the momentum equation takes. A call costs one gradient of p, and one transfer of 6 numbers a wall to the host.
"""
import fnmatch

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.boundary import Boundary, Dirichlet, Extrapolated, lines
from swell.pde.fvm.gradient import LeastSquares

THROUGH = 0.05          # share of Σ |u| |s| that Σ |u·s| exceeds on an inlet; a moving wall of flat faces stays below


class Forces:
    """Forces on patches of given velocity: walls, lids, inlets.

    Parameters
    ----------
    flow : Flow
    metrics : Metrics
    names : sequence of str
        Names or patterns of patches, such as "cylinder" or "wing*"; "*" stands for all walls: the patches of given
        velocity that no fluid passes.

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
        dirichlet = [p for p in mesh.patches if isinstance(flow.velocity.get(p.name), Dirichlet)
                     and any(of_rank.get(p.name) for of_rank in sizes)]
        for name in names:
            if name != "*" and not any(fnmatch.fnmatchcase(patch.name, name) for patch in dirichlet):
                raise InputError(f"forces: {name!r} is no patch of given velocity, such as a wall. There are: "
                                 f"{', '.join(patch.name for patch in dirichlet) or 'none'}")
        inlets = _inlets(flow, mesh.whole)
        walls = [patch for patch in dirichlet if any(
            patch.name not in inlets if name == "*" else fnmatch.fnmatchcase(patch.name, name) for name in names)]
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
        totals = [both[..., faces].sum(-1) for faces in self.faces]
        totals = space.to_host(xp.stack(totals) if totals else xp.zeros((0, 2, 3)))
        return sum(self.metrics.mesh.whole.of_ranks(totals))


def _inlets(flow, whole):
    """Return the names of the patches whose given velocity passes through them. All ranks call it together; ``whole``
    is the mesh that knows them."""
    first = flow.mesh.neighbour.size
    u, s = lines(flow.mesh, flow.velocity, components=3)[2], flow.mesh.face_areas[first:]
    through, sizes = abs((u * s).sum(1)), np.linalg.norm(u, axis=1) * np.linalg.norm(s, axis=1)
    faces = {patch.name: slice(patch.start - first, patch.start - first + patch.size) for patch in flow.mesh.patches}
    of_ranks = whole.of_ranks({name: (through[span].sum(), sizes[span].sum()) for name, span in faces.items()})
    sums = {name: np.sum([of_rank[name] for of_rank in of_ranks if name in of_rank], axis=0)
            for name in {name for of_rank in of_ranks for name in of_rank}}
    return {name for name, (passes, size) in sums.items() if passes > THROUGH * size}
