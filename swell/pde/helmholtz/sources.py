"""Sources of sound, for the right-hand side b = iω f(ω) of the weak form: vibrating panels, point sources, plane waves
that a body scatters."""
from __future__ import annotations

import cmath
import math
from dataclasses import dataclass

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.conditions import (Pressure, Rigid, Velocity, boundary, disjoint_facets, equal,
                                            require_disjoint, values)
from swell.pde.helmholtz.locating import locate
from swell.pde.helmholtz.table import Table
from swell.pde.helmholtz.velocity_map import VelocityMap


@dataclass(frozen=True)
class Monopole:
    """A point source.

    Attributes
    ----------
    position : tuple of float
        Coordinates, m.
    strength : complex
        Volume velocity, m³/s.
    """

    position: tuple
    strength: complex = 1e-3

    def __post_init__(self):
        try:
            strength = complex(self.strength)
        except (TypeError, ValueError):
            raise InputError(f"Monopole(strength={self.strength!r}): expected a complex number, in m³/s") from None
        if not cmath.isfinite(strength):
            raise InputError(f"Monopole(strength={self.strength!r}): expected a finite number, in m³/s")


@dataclass(frozen=True)
class PlaneWave:
    """A plane wave p = amplitude · exp(−i k d·x) that a rigid body scatters; the solution is the scattered pressure.

    Attributes
    ----------
    direction : tuple of float
        The direction in which it travels; its length does not matter.
    on : str
        The boundary that scatters it, rigid for the whole pressure.
    amplitude : complex
        Pa, at the origin.
    """

    direction: tuple
    on: str
    amplitude: complex = 1.0

    def __post_init__(self):
        try:
            direction, amplitude = tuple(float(v) for v in self.direction), complex(self.amplitude)
        except (TypeError, ValueError):
            direction, amplitude = (), 0j
        if len(direction) not in (2, 3) or not np.isfinite(direction).all() or not any(direction):
            raise InputError(f"PlaneWave(direction={self.direction!r}): expected 2 or 3 numbers, not all zero")
        if not cmath.isfinite(amplitude):
            raise InputError(f"PlaneWave(amplitude={self.amplitude!r}): expected a finite number, in Pa")
        size = float(np.linalg.norm(direction))
        object.__setattr__(self, "direction", tuple(v / size for v in direction))

    def pressure(self, x, wavenumber):
        """Return the incident pressure at points x, shape (k, dim), for a wavenumber in 1/m."""
        return self.amplitude * np.exp(-1j * wavenumber * (x @ np.array(self.direction)))


def vibrating(mesh, conditions, sources) -> tuple[dict, list, list]:
    """Collect all sources of sound, from ``conditions`` (name of a boundary → condition) and from ``sources``.

    Parameters
    ----------
    sources : str, point, Monopole, PlaneWave, dict of str to Velocity, a sequence of these, or None
        A name is a panel, with its own Velocity or else ``PANEL``. A point becomes a Monopole.

    Returns
    -------
    (dict of str to Velocity, list of Monopole, list of PlaneWave)
    """
    panels = {name: c for name, c in conditions.items() if isinstance(c, Velocity)}
    monopoles, waves = [], []
    for source in _each(sources):
        if isinstance(source, Monopole):
            monopoles.append(source)
        elif isinstance(source, PlaneWave):
            boundary(mesh, source.on)
            held = conditions.get(source.on, Rigid())
            if not isinstance(held, Rigid):
                raise InputError(f"PlaneWave(on={source.on!r}): the boundary has the condition {type(held).__name__}: "
                                 "expected a rigid one")
            if len(source.direction) != mesh.dim:
                raise InputError(f"PlaneWave(direction={source.direction}): the mesh has {mesh.dim} dimensions")
            waves.append(source)
        elif isinstance(source, str):
            _add(mesh, conditions, panels, source, panels.get(source) or Velocity())
        elif isinstance(source, dict):
            for name, velocity in source.items():
                if not isinstance(velocity, Velocity):
                    raise InputError(f"source {{{name!r}: {velocity!r}}}: expected a Velocity, the name of a boundary, "
                                     "or a point")
                _add(mesh, conditions, panels, name, velocity)
        else:
            monopoles.append(Monopole(tuple(source)))
    return panels, monopoles, waves


def separate(sources) -> list:
    """Check a list of sources, each of which sounds on its own, and return it as a list.

    Raises
    ------
    InputError
        For one source that is not in a list, and for an empty list.
    """
    try:
        listed = None if isinstance(sources, (str, dict)) else list(sources)
    except TypeError:
        listed = None
    if listed is None or listed and _is_point(listed):
        raise InputError(f"sources={sources!r}: expected a list of sources, each of which sounds on its own; give one "
                         "alone as source=")
    if not listed:
        raise InputError("sources is empty: expected a list of names of boundaries, points or Monopoles")
    return listed


def label(source) -> str:
    """Return the name of a checked source, as in ``vibrating``: a boundary's own, a point's coordinates."""
    names = []
    for part in _each(source):
        if isinstance(part, (str, dict)):
            names += [part] if isinstance(part, str) else part
        elif isinstance(part, PlaneWave):
            names.append(f"wave along {','.join(f'{v:.3g}' for v in part.direction)}")
        else:
            position = part.position if isinstance(part, Monopole) else part
            names.append(",".join(f"{v:g}" for v in position))
    return "+".join(names) or "walls"


def _each(sources):
    """Return ``sources`` (as in ``vibrating``) as a list of single sources."""
    if sources is None:
        return []
    if isinstance(sources, (str, Monopole, PlaneWave, dict)):
        return [sources]
    try:
        parts = list(sources)
    except TypeError:
        parts = []
    if not parts:
        raise InputError(f"source={sources!r}: expected the name of a boundary, a point, a Monopole, or a list of "
                         "these")
    return [parts] if _is_point(parts) else parts


def _is_point(parts):
    """True for a list of numbers: one point, not several sources."""
    return all(np.isscalar(p) and not isinstance(p, str) for p in parts)


def _add(mesh, conditions, panels, name, velocity):
    """Add the boundary ``name``, vibrating with ``velocity``, to the dict ``panels``; raise InputError if it
    contradicts a condition or another panel."""
    facets = boundary(mesh, name)
    held = conditions.get(name, Rigid())
    if not isinstance(held, (Rigid, Velocity)):
        raise InputError(f"boundary {name!r} is the source and has the condition {type(held).__name__}: a face is "
                         "moved or has another condition, not both; name another source")
    for other, theirs in conditions.items():
        if other != name and not isinstance(theirs, (Rigid, Velocity)):
            if np.intersect1d(facets, mesh.boundaries[other]).size:
                raise InputError(f"boundary {name!r} is the source and shares faces with {other!r}, which has the "
                                 f"condition {type(theirs).__name__}: put each face into one of them")
    for other, theirs in panels.items():
        if other != name and not equal(theirs, velocity):
            require_disjoint(mesh, other, mesh.boundaries[other], name, facets, "velocities")
    panels[name] = velocity


class Load:
    """f(ω) of b = iω f(ω), over all dofs.

    Parameters
    ----------
    problem : Helmholtz
    panels, monopoles, waves
        As ``vibrating`` returns them.

    Attributes
    ----------
    constant : array, shape (n,), complex
        The part that does not depend on the frequency.
    varies : bool
        True if there is another part.
    """

    def __init__(self, problem, panels, monopoles, waves):
        space, mesh = problem.space, problem.mesh
        self._problem, self._waves, self._spectra, self._maps = problem, waves, [], []
        self.constant = np.zeros(space.n, complex)
        for name, facets in disjoint_facets(mesh, panels):
            value, what = panels[name].value, f"boundary {name!r}"
            if isinstance(value, Table):
                self._spectra.append((space.load(facets, lambda x, normals: np.ones(len(x))), value))
            elif isinstance(value, VelocityMap):
                self._maps.append((facets, value))
            else:
                self.constant += space.load(facets, lambda x, normals, g=value, w=what: values(g, x, w))
        for source in monopoles:
            dofs, weights = space.at(*locate(mesh, source.position, "source"))
            self.constant[dofs] += source.strength * weights
        self.varies = bool(self._spectra or self._maps or waves)

    def at(self, omega):
        """Return f at an angular frequency (1/s), a new array of shape (n,)."""
        problem, f, frequency = self._problem, self.constant.copy(), omega / (2 * math.pi)
        space = problem.space
        for unit, table in self._spectra:
            f += complex(table.at(frequency)) * unit
        for facets, measured in self._maps:
            velocity = measured.at(frequency)
            f += space.load(facets, lambda x, normals, v=velocity: v(x))
        for wave in self._waves:
            facets = problem.mesh.boundaries[wave.on]
            density, bulk = (np.unique(v[problem.mesh.fem.f2t[0, facets]]) for v in problem.fluids(omega))
            if density.size > 1 or bulk.size > 1:
                raise InputError(f"PlaneWave(on={wave.on!r}): several media touch that boundary: expected one")
            speed = np.sqrt(complex(bulk[0] / density[0]))
            f += space.load(facets, lambda x, normals, w=wave, Z=density[0] * speed, k=omega / speed: (
                normals @ np.array(w.direction)) * w.pressure(x, k) / Z)
        return f


def drives(panels, monopoles, waves, conditions) -> bool:
    """Return True if any velocity, pressure, monopole or wave is not zero, so that there is sound."""
    strengths = [c.value for c in (*panels.values(), *conditions.values()) if isinstance(c, (Velocity, Pressure))]
    strengths += [source.strength for source in monopoles] + [wave.amplitude for wave in waves]
    return any(callable(value) or isinstance(value, VelocityMap)
               or np.any(np.asarray(value.values if isinstance(value, Table) else value) != 0) for value in strengths)
