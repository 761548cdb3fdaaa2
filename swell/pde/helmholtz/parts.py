"""The parts of A(ω) = K − ω² M + iω B + Σ V(ω), and of b(ω) = iω f(ω) − A(ω) p for given pressures p.

Media and walls with constant values make K, M and B. Those with a `Table`, and a perfectly matched layer, make V.
"""
from __future__ import annotations

import math

import numpy as np

from swell.pde.helmholtz import conditions as walls
from swell.pde.helmholtz.pml import Layer
from swell.pde.helmholtz.table import Table
from swell.pde.helmholtz.varying import Combination


def constant(problem, cells=None):
    """Return (K, M, B) over all dofs: K and M integrated over the given cells (default: all), B over all walls.

    Cells in the layer or in media with a Table, and walls with a Table, are left out: they belong to `varying`."""
    import scipy.sparse as sp
    fixed = ~problem.in_layer & ~np.array([m.varies for m in problem.media])[problem.medium_of]
    wanted = np.flatnonzero(fixed) if cells is None else cells[fixed[cells]]
    K, M = problem.space.volume(*problem.coefficients, wanted)
    B = sp.csr_matrix((problem.space.n, problem.space.n))
    for facets, admittance in problem.admittances():
        B = B + problem.space.facets(facets, admittance)
    return K, M, B


def varying(problem) -> list:
    """Return the list of `Varying` parts of a problem."""
    parts, space = [], problem.space
    for number, medium in enumerate(problem.media):
        cells = np.flatnonzero((problem.medium_of == number) & ~problem.in_layer)
        if medium.varies and cells.size:
            one = np.ones(len(problem.medium_of))
            K, M = space.volume(one, one, cells)
            parts.append(Combination("medium", [(K, lambda w, m=medium: 1 / _fluid(m, w)[0]),
                                                (M, lambda w, m=medium: -w ** 2 / _fluid(m, w)[1])]))
    terms = [(space.facets(facets, np.ones(len(facets))), factor) for facets, factor in _walls(problem)]
    if terms:
        parts.append(Combination("walls", terms))
    if problem.pml is not None:
        parts.append(Layer(problem))
    return parts


def _walls(problem):
    """Yield (facets, iω/Z as a function of ω) for every wall whose impedance depends on the frequency."""
    for name, facets in walls.disjoint_facets(problem.mesh, problem.conditions):
        condition = problem.conditions[name]
        if isinstance(condition, walls.Impedance) and isinstance(condition.value, Table):
            yield facets, lambda w, Z=condition.value: 1j * w / complex(Z.at(w / (2 * math.pi)))
        elif isinstance(condition, walls.Absorbing):
            medium = problem.medium_of[problem.mesh.fem.f2t[0, facets]]
            for number in np.unique(medium):
                if problem.media[number].varies:
                    yield facets[medium == number], lambda w, m=problem.media[number]: 1j * w / _plane(m, w)


def _fluid(medium, omega):
    """Return (ρ, ρc²) of a medium at an angular frequency."""
    return medium.at(omega / (2 * math.pi))


def _plane(medium, omega):
    """Return the impedance of a plane wave, √(ρ · ρc²), at an angular frequency."""
    density, bulk = _fluid(medium, omega)
    return np.sqrt(complex(density * bulk))


class RightHandSide:
    """b(ω) = iω f(ω) − A(ω) p over the free dofs of this rank, on a device.

    Parameters
    ----------
    problem : Helmholtz
    loads : list of Load
    several : bool
        True: b has a column for each load. False: there is one load, and b is a vector.
    free : int array
        The free dofs.
    """

    def __init__(self, problem, loads, several, free):
        self._problem, self._loads, self._several, self._free = problem, loads, several, free
        self._constant = self._gathered([load.constant for load in loads])
        self._varies = any(load.varies for load in loads)
        self._value = problem._given[1] if problem._given[0].any() else None
        self._lifted = None if self._value is None else [A[free] @ self._value for A in problem.matrices]

    def _gathered(self, columns):
        stacked = np.stack([f[self._free] for f in columns], axis=1)
        return stacked if self._several else stacked[:, 0]

    def on_host(self, omega):
        """Return b at an angular frequency, over all free dofs, a new host array."""
        f = self._gathered([load.at(omega) for load in self._loads]) if self._varies else self._constant
        b = (1j * omega) * f
        if self._value is not None:
            K, M, B = self._lifted
            taken = K - omega ** 2 * M + (1j * omega) * B
            for part in self._problem.varying:
                taken = taken + part.matrix(omega)[self._free] @ self._value
            b -= taken if b.ndim == 1 else taken[:, None]
        return b

    def bind(self, space, rows, dtype):
        """Keep the parts that do not depend on the frequency on a sweep's device. ``rows``, the rank's rows of the free
        dofs; ``dtype``: the type of b."""
        self._space, self._rows, self._dtype = space, rows, dtype
        simple = not self._varies and (self._value is None or not self._problem.varying)
        self._kept = [space.from_host(np.ascontiguousarray(v[rows]).astype(dtype))
                      for v in (self._constant, *(self._lifted or ()))] if simple else None

    def at(self, omega):
        """Return b at an angular frequency on the device, after `bind`."""
        if self._kept is None:
            return self._space.from_host(np.ascontiguousarray(self.on_host(omega)[self._rows]).astype(self._dtype))
        f, *lifted = self._kept
        b = (1j * omega) * f
        if lifted:
            taken = lifted[0] - omega ** 2 * lifted[1] + (1j * omega) * lifted[2]
            b -= taken if b.ndim == 1 else taken[:, None]
        return b
