"""PML: a perfectly matched layer around a box, which takes all outgoing sound (Bérenger 1994).

In the layer each coordinate is stretched into the complex plane, s = 1 − iσ/ω with e^{+iωt}. So a wave that leaves the
box decays in the layer, and its entry into the layer reflects nothing. The weak form gets the factors

    1/ρ ∂p/∂xₐ ∂q/∂xₐ · s₁s₂s₃/sₐ²,        1/(ρc²) p q · s₁s₂s₃,

so A stays complex symmetric. The profile is σ = c / (t − d), with d the depth and t the thickness of the layer
(Bermúdez, Hervella-Nieto, Prieto and Rodríguez 2007): its integral is infinite, so that the outer wall reflects
nothing, and it has no parameter. What remains is the error of the discretisation.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.varying import Varying, keys, numbered

OUTSIDE = 1e-9          # a point counts as outside the box from this fraction of the mesh's extent on


@dataclass(frozen=True)
class PML:
    """A perfectly matched layer: everything in the mesh outside a box.

    Attributes
    ----------
    lower, upper : tuple of float
        Opposite corners of the box, m. The mesh reaches past some of its sides, or all; there it ends in a box too.
        The layer needs the medium of the box beside it, and no conditions on its outer walls.
    """

    lower: tuple
    upper: tuple

    def __post_init__(self):
        for name in ("lower", "upper"):
            try:
                value = tuple(float(v) for v in getattr(self, name))
            except (TypeError, ValueError):
                value = ()
            if len(value) not in (2, 3) or not np.isfinite(value).all():
                raise InputError(f"PML({name}={getattr(self, name)!r}): expected a corner of the box, 2 or 3 "
                                 "coordinates in m")
            object.__setattr__(self, name, value)
        if len(self.lower) != len(self.upper) or not (np.array(self.lower) < self.upper).all():
            raise InputError(f"PML(lower={self.lower}, upper={self.upper}): expected opposite corners of a box, upper "
                             "above lower on every axis")

    def cells(self, mesh):
        """Return a bool array: the cells of ``mesh`` that reach outside the box."""
        if len(self.lower) != mesh.dim:
            raise InputError(f"PML(lower={self.lower}): the mesh has {mesh.dim} dimensions")
        slack = OUTSIDE * np.ptp(mesh.points, axis=0).max()
        outside = ((mesh.points < np.array(self.lower) - slack) | (mesh.points > np.array(self.upper) + slack)).any(1)
        layer = outside[mesh.cells].any(axis=1)
        if not layer.any():
            raise InputError(f"PML: the mesh, {self._extent(mesh)}, does not reach outside the box from {self.lower} "
                             f"to {self.upper}: make the mesh larger, or the box smaller")
        if layer.all():
            raise InputError(f"PML: no cell lies in the box from {self.lower} to {self.upper}; the mesh reaches "
                             f"{self._extent(mesh)}: expected a box inside the mesh")
        return layer

    @staticmethod
    def _extent(mesh):
        return "from {} to {}".format(*(tuple(v.tolist()) for v in (mesh.points.min(axis=0), mesh.points.max(axis=0))))


class Layer(Varying):
    """The cells of the layer: their part of K(ω) − ω² M(ω), stretched.

    Parameters
    ----------
    problem : Helmholtz
        With the attributes ``pml`` and ``in_layer``.
    """

    def __init__(self, problem):
        import scipy.sparse as sp
        self._problem, mesh, self._space = problem, problem.mesh, problem.space
        self._cells = np.flatnonzero(problem.in_layer)
        box = np.array([problem.pml.lower, problem.pml.upper])
        ends = np.array([mesh.points.min(axis=0), mesh.points.max(axis=0)])
        self._box = np.array([np.maximum(box[0], ends[0]), np.minimum(box[1], ends[1])])
        self._thickness = abs(ends - self._box)
        dofs = self._space.cell_dofs[self._cells]
        functions = dofs.shape[1]
        rows, columns = np.repeat(dofs, functions, axis=1).ravel(), np.tile(dofs, functions).ravel()
        pattern = sp.coo_matrix((np.ones(rows.size), (rows, columns)), shape=(self._space.n,) * 2)
        super().__init__("layer", numbered(pattern.tocsr()))
        self._places = np.searchsorted(keys(self.numbers), rows.astype(np.int64) * self._space.n + columns)

    def values(self, omega):
        if omega == 0:
            raise InputError("frequency 0: a perfectly matched layer takes waves, and there is none: begin above 0 Hz")
        problem = self._problem
        density, bulk = problem.fluids(omega)
        speed = np.sqrt(bulk / density).real[self._cells]
        K, M = self._space.elements(self._cells, 1 / density, 1 / bulk,
                                    lambda x, cells: self._stretch(x, speed[cells, None], omega))
        A = K - omega ** 2 * M
        A = (0.5 * (A + A.swapaxes(1, 2))).ravel()               # symmetric to the bit
        count = self.numbers.nnz
        return np.bincount(self._places, A.real, count) + 1j * np.bincount(self._places, A.imag, count)

    def _stretch(self, x, speed, omega):
        """Return s for each axis at points x, shape (dim, cells, points); ``speed``: shape (cells, 1)."""
        s = np.ones(x.shape, complex)
        for axis in range(len(x)):
            for side, outward in ((0, -1.0), (1, 1.0)):
                depth = outward * (x[axis] - self._box[side, axis])
                remaining = self._thickness[side, axis] - depth
                inside = (depth > 0) & (remaining > 0)
                s[axis] -= np.where(inside, 1j * speed / (omega * np.where(inside, remaining, 1.0)), 0)
        return s
