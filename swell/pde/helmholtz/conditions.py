"""Boundary conditions of Helmholtz problems: rigid, pressure, velocity (a vibrating panel), impedance, absorbing.

A wall without a condition is rigid. n is the outward normal, and v the velocity of the panel *into* the fluid. In the
weak form of −∇·(1/ρ ∇p) − ω²/(ρc²) p = 0, the boundary has  (1/ρ) ∂p/∂n = iω (v − p/Z).
"""
from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from swell.core.arrays import check_finite
from swell.core.errors import InputError, meant
from swell.pde.helmholtz.table import Table
from swell.pde.helmholtz.velocity_map import VelocityMap

PANEL = 1e-3            # m/s, the velocity of a source wall without a Velocity


@dataclass(frozen=True, eq=False)
class Rigid:
    """A wall that does not move: ∂p/∂n = 0."""


@dataclass(frozen=True, eq=False)
class Pressure:
    """p = value, Pa: a complex number, or a function of points (k, dim)."""

    value: complex | Callable[[np.ndarray], complex | np.ndarray] = 0.0


@dataclass(frozen=True, eq=False)
class Velocity:
    """A panel that vibrates with the normal velocity ``value``, m/s, positive into the fluid.

    ``value`` is a complex number; a function of points (k, dim); a `Table`, the panel's spectrum; or a `VelocityMap`,
    measured at points of it.
    """

    value: complex | Callable[[np.ndarray], complex | np.ndarray] | Table | VelocityMap = PANEL


@dataclass(frozen=True, eq=False)
class Impedance:
    """A locally reacting wall: p = Z v with v the velocity into the wall.

    ``value`` is Z in Pa s/m, with Re Z ≥ 0: a number, or a `Table` over the frequency."""

    value: complex | Table

    def __post_init__(self):
        if isinstance(self.value, Table):
            for value in self.value.values:
                self._check(value)
        else:
            self._check(self.value)

    @property
    def resists(self) -> bool:
        """True if the wall takes energy out of the sound."""
        return bool(np.any(np.real(self.value.values if isinstance(self.value, Table) else self.value) > 0))

    def _check(self, impedance):
        """Raise InputError unless ``impedance`` is a passive impedance."""
        try:
            value = complex(impedance)
        except (TypeError, ValueError):
            raise InputError(f"Impedance({self.value!r}): expected a complex number in Pa s/m, or a Table") from None
        if value == 0:
            raise InputError("Impedance(0): a wall of impedance 0 holds the pressure at 0: use Pressure(0)")
        if not cmath.isfinite(value):
            raise InputError(f"Impedance({self.value!r}): expected a finite number, in Pa s/m; a wall that takes no "
                             "sound is Rigid()")
        if value.real < 0:
            raise InputError(f"Impedance({self.value!r}): expected Re Z ≥ 0; a wall of negative resistance would feed "
                             "energy into the sound")


@dataclass(frozen=True, eq=False)
class Absorbing:
    """The first-order absorbing condition: Z = ρ c of the medium at the wall.

    It absorbs plane waves of normal incidence without reflection."""


KINDS = (Rigid, Pressure, Velocity, Impedance, Absorbing)


def checked(mesh, conditions) -> dict:
    """Return ``conditions`` (name of a boundary → condition, or None) as a dict; raise InputError for bad names or
    kinds, or a face with two conditions."""
    if conditions is None:
        return {}
    if not isinstance(conditions, Mapping):
        raise InputError(f"boundary is of type {type(conditions).__name__}: expected a dictionary from names of "
                         "boundaries to conditions, such as {'roof': Impedance(2000)}")
    owner = {}
    for name, condition in conditions.items():
        facets = boundary(mesh, name)
        if not isinstance(condition, KINDS):
            raise InputError(f"the condition of boundary {name!r} is {condition!r}: expected Rigid(), Pressure(p), "
                             "Velocity(v), Impedance(Z) or Absorbing()")
        for other, theirs in owner.items():
            if not equal(conditions[other], condition):
                require_disjoint(mesh, other, theirs, name, facets, "conditions")
        owner[name] = facets
    return dict(conditions)


def equal(one, other) -> bool:
    """Return True if two boundary conditions have the same type and, if they have one, an equal value."""
    return type(one) is type(other) and (isinstance(one, (Rigid, Absorbing)) or np.array_equal(one.value, other.value))


def require_disjoint(mesh, other, theirs, name, facets, what):
    """Raise InputError if the boundaries ``other`` (facets ``theirs``) and ``name`` (facets ``facets``) share faces;
    ``what``: a word for the message, what differs there."""
    both = np.intersect1d(facets, theirs)
    if both.size:
        place = ", ".join(f"{v:.4g}" for v in mesh.facet_centres[both[0]])
        raise InputError(f"boundaries {other!r} and {name!r} share {both.size} faces (one near ({place})) and have "
                         f"different {what}: put each face into one of them")


def disjoint_facets(mesh, names):
    """Yield (name, facets) of each boundary in ``names``; a facet of several boundaries comes only with the first of
    them."""
    taken = np.zeros(len(mesh.exterior), bool)
    for name in names:
        facets = mesh.boundaries[name]
        yield name, facets[~taken[facets]]
        taken[facets] = True


def boundary(mesh, name):
    """Return the facet numbers of a boundary; raise InputError for an unknown name or facets inside the mesh."""
    if name not in mesh.boundaries:
        raise InputError(f"there is no boundary {name!r}: {meant(name, mesh.boundaries)}The mesh has: "
                         f"{', '.join(mesh.boundaries)}")
    facets = mesh.boundaries[name]
    inside = ~mesh.exterior[facets]
    if inside.any():
        raise InputError(f"boundary {name!r} has {np.count_nonzero(inside)} faces inside the mesh, with cells on both "
                         "sides: conditions hold at the outside only; cut the mesh open there, or name other faces")
    return facets


def values(value, points, what) -> np.ndarray:
    """Evaluate ``value``, a condition's number, array or function, at points (k, dim); return complex numbers, shape
    (k,). ``what``: its name in messages."""
    numbers = value(points) if callable(value) else value
    try:
        numbers = np.asarray(numbers, complex)
    except (TypeError, ValueError):
        raise InputError(f"{what}: its value is {numbers!r}, expected complex numbers") from None
    if numbers.shape not in ((), (len(points),)):
        raise InputError(f"{what}: its function returned shape {numbers.shape} for {len(points)} points, expected "
                         f"({len(points)},): one value a point")
    check_finite(f"{what}: its value", numbers)
    return np.broadcast_to(numbers, len(points))
