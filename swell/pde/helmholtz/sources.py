"""Sources of sound, for the right-hand side b = iω f of the weak form: vibrating panels and point sources."""
from __future__ import annotations

import cmath
from dataclasses import dataclass
from functools import partial

import numpy as np

from swell.core.errors import InputError
from swell.pde.helmholtz.conditions import (Pressure, Rigid, Velocity, boundary, disjoint_facets, equal,
                                            require_disjoint, values)
from swell.pde.helmholtz.locating import locate


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


def vibrating(mesh, conditions, sources) -> tuple[dict, list]:
    """Collect all vibrating panels and monopoles, from ``conditions`` (name of a boundary → condition) and from
    ``sources``.

    Parameters
    ----------
    sources : str, point, Monopole, dict of str to Velocity, a sequence of these, or None
        A name is a panel, with its own Velocity or else ``PANEL``. A point becomes a Monopole.

    Returns
    -------
    (dict of str to Velocity, list of Monopole)
    """
    panels = {name: c for name, c in conditions.items() if isinstance(c, Velocity)}
    monopoles = []
    for source in _each(sources):
        if isinstance(source, Monopole):
            monopoles.append(source)
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
    return panels, monopoles


def separate(sources) -> list:
    """Check a list of sources, each of which sounds on its own, and return it as a list.

    Raises
    ------
    InputError
        For one source that is not in a list, and for an empty list.
    """
    try:
        found = None if isinstance(sources, (str, dict)) else list(sources)
    except TypeError:
        found = None
    if found is None or found and _is_point(found):
        raise InputError(f"sources={sources!r}: expected a list of sources, each of which sounds on its own; give one "
                         "alone as source=")
    if not found:
        raise InputError("sources is empty: expected a list of names of boundaries, points or Monopoles")
    return found


def label(source) -> str:
    """Return the name of a checked source, as in ``vibrating``: a boundary's own, a point's coordinates."""
    names = []
    for part in _each(source):
        if isinstance(part, (str, dict)):
            names += [part] if isinstance(part, str) else part
        else:
            position = part.position if isinstance(part, Monopole) else part
            names.append(",".join(f"{v:g}" for v in position))
    return "+".join(names) or "walls"


def _each(sources):
    """Return ``sources`` (as in ``vibrating``) as a list of single sources."""
    if sources is None:
        return []
    if isinstance(sources, (str, Monopole, dict)):
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


def load(space, mesh, panels, monopoles) -> np.ndarray:
    """Return the vector f of b = iω f, shape (n,), complex; ``panels``, ``monopoles`` as ``vibrating`` returns them."""
    f = np.zeros(space.n, complex)
    for name, facets in disjoint_facets(mesh, panels):
        f += space.load(facets, partial(values, panels[name].value, what=f"boundary {name!r}"))
    for source in monopoles:
        dofs, weights = space.at(*locate(mesh, source.position, "source"))
        f[dofs] += source.strength * weights
    return f


def drives(panels, monopoles, conditions) -> bool:
    """Return True if any velocity, pressure or monopole is not zero, so that there is sound."""
    given = [c.value for c in (*panels.values(), *conditions.values()) if isinstance(c, (Velocity, Pressure))]
    given += [source.strength for source in monopoles]
    return any(callable(value) or np.any(np.asarray(value) != 0) for value in given)
