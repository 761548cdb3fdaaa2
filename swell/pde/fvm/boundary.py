"""Boundary conditions: Dirichlet, Neumann and Robin (mixed), each as one equation a face: a p + b ∂p/∂n = c.

dₙ is the distance of the cell's centre from the face along the outward normal n. p' is the cell's value carried along
the face to the foot of that normal: p' = p_P + t·∇p (t = 0 on orthogonal meshes). The one-sided difference
∂p/∂n = (p_b − p')/dₙ gives

    p_b = (c dₙ + b p') / (a dₙ + b),    ∂p/∂n = (c − a p') / (a dₙ + b):    (2.10) for b = 0, (2.12) for a = 0.

Patches of kind "empty" (the front and the back of a two-dimensional mesh) need no condition: nothing crosses them.
Patches of kind "cyclic" need none either: they are no boundary (``periodic.py``).
"""
from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from swell.core.arrays import check_finite
from swell.core.errors import InputError, meant
from swell.pde.fvm.mesh import CUT
from swell.pde.fvm.periodic import CYCLIC

UNCONDITIONED = "empty", CUT, CYCLIC         # kinds of patches that take no condition
Values = float | Sequence[float] | np.ndarray | Callable[[np.ndarray], float | np.ndarray]


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """p = value. A number, an array with one value a face, or a function of the faces' centres (k, 3)."""

    value: Values = 0.0

    def line(self):
        return 1.0, 0.0, self.value


@dataclass(frozen=True, eq=False)
class Neumann:
    """∂p/∂n = gradient, along the outward normal. A number, one value a face, or a function of the faces' centres."""

    gradient: Values = 0.0

    def line(self):
        return 0.0, 1.0, self.gradient


@dataclass(frozen=True, eq=False)
class Robin:
    """a p + b ∂p/∂n = c, with the outward normal; a and b must not be of opposite sign."""

    a: Values
    b: Values
    c: Values = 0.0

    def line(self):
        return self.a, self.b, self.c


@dataclass(frozen=True, eq=False)
class Extrapolated:
    """No condition: values on the face are extrapolated from the cell. For gradients, not for a Laplacian."""

    def line(self):
        return 0.0, 0.0, 0.0


@dataclass(frozen=True, eq=False)
class Symmetry:
    """A plane of symmetry, or a wall without friction.

    A scalar and the tangential components of a velocity have ∂/∂n = 0; a velocity's normal component is zero."""

    def line(self):
        return 0.0, 1.0, 0.0


@dataclass(frozen=True, eq=False)
class InletOutlet:
    """For a velocity: ∂/∂n = 0 where the flow leaves, and ``value`` where it enters. The value as for Dirichlet."""

    value: Values = 0.0

    def line(self):
        return 0.0, 1.0, 0.0


KINDS = (Dirichlet, Neumann, Robin, Extrapolated, Symmetry, InletOutlet)


def lines(mesh, conditions, components=1):
    """Turn the conditions of all patches into the arrays a, b, c of a p + b ∂p/∂n = c over the boundary faces.

    Parameters
    ----------
    mesh : Mesh
    conditions : dict
        Patch name, or a pattern for `by_patch`, → condition.
    components : int
        Components of c: 1, or 3 for a vector field, whose values are one vector, or one vector a face.

    Returns
    -------
    a, b : ndarray, shape (nb,)
    c : ndarray, shape (nb,), or (nb, components)

    Raises
    ------
    InputError
        For patches without a condition, conditions without a patch, values of a wrong shape.
    """
    conditions = by_patch(mesh, conditions)
    _check(mesh, conditions)
    first = mesh.neighbour.size
    count = mesh.owner.size - first
    a, b, c = np.zeros(count), np.ones(count), np.zeros((count, components))
    for patch in mesh.patches:
        if patch.name in conditions and patch.size:
            faces = slice(patch.start - first, patch.start - first + patch.size)
            centres = mesh.face_centres[patch.start:patch.start + patch.size]
            p_factor, slope_factor, value = conditions[patch.name].line()
            a[faces] = _values(p_factor, centres, 1, patch.name)[:, 0]
            b[faces] = _values(slope_factor, centres, 1, patch.name)[:, 0]
            c[faces] = _values(value, centres, components, patch.name)
            if ((a[faces] * b[faces]) < 0).any():
                raise InputError(f"patch {patch.name!r}: Robin with a and b of opposite sign makes the matrix "
                                 "indefinite; mind that ∂p/∂n is along the outward normal")
    return a, b, c[:, 0] if components == 1 else c


def check_mesh(mesh):
    """Raise InputError unless ``mesh`` is a mesh."""
    if not hasattr(mesh, "patches"):
        raise InputError(f"mesh is of type {type(mesh).__name__}: expected a Mesh, such as read_mesh('case') or "
                         "box((32, 32))")


def by_patch(mesh, conditions) -> dict:
    """Return the conditions as patch name → condition, with a name in place of each pattern.

    A pattern, such as "*" or "wall*", stands for all patches that fit it and need a condition. A patch's own name
    counts before any pattern, and an earlier pattern before a later one. A key that fits no patch raises InputError.
    """
    if not isinstance(conditions, Mapping):
        raise InputError(f"conditions are of type {type(conditions).__name__}: expected a dictionary from names of "
                         "patches to conditions, such as {'inlet': Dirichlet(1.0)}")
    names = [patch.name for patch in mesh.patches]
    by_name = {name: condition for name, condition in conditions.items() if name in names}
    for pattern in conditions:
        if pattern in names:
            continue
        fitting = [patch.name for patch in mesh.patches
                   if patch.kind not in UNCONDITIONED and fnmatch.fnmatchcase(patch.name, str(pattern))]
        if not fitting:
            raise InputError(f"there is no patch {pattern!r}: {meant(pattern, names)}The mesh has: {', '.join(names)}")
        for name in fitting:
            by_name.setdefault(name, conditions[pattern])
    return by_name


def _check(mesh, conditions):
    """Raise InputError unless ``conditions`` (patch name → condition) has a condition for each patch that needs one,
    and for no other."""
    names = {patch.name: patch for patch in mesh.patches}
    for name, condition in conditions.items():
        if not isinstance(condition, KINDS):
            raise InputError(f"the condition of patch {name!r} is {condition!r}: expected Dirichlet(value), "
                             "Neumann(gradient) or Robin(a, b, c)")
        if names[name].kind in UNCONDITIONED:
            raise InputError(f"patch {name!r} is of kind {names[name].kind!r} and takes no condition: leave it out")
    for patch in mesh.patches:
        if patch.kind == "processor" and patch.size:
            raise InputError(f"patch {patch.name!r} is of kind 'processor': the mesh continues in another part of a "
                             "decomposed case. Start a rank for each part, or put the mesh together "
                             "(reconstructParMesh -constant)")
    missing = [p.name for p in mesh.patches if p.name not in conditions and p.kind not in UNCONDITIONED and p.size]
    if missing:
        raise InputError(f"no condition for {'patch' if len(missing) == 1 else 'patches'} {', '.join(missing)}: give "
                         "each a Dirichlet(value), Neumann(gradient) or Robin(a, b, c); Neumann(0) is a wall, and "
                         "the name '*' stands for all other patches")


def _values(value, centres, components, patch):
    """Return a condition's ``value`` as a checked array of shape (faces, components). A function is evaluated at
    ``centres``, the faces' centres; ``patch`` names the patch in messages."""
    raw = value(centres) if callable(value) else value
    try:
        if np.iscomplexobj(raw):
            raise TypeError                      # NumPy would drop the imaginary part
        value = np.asarray(raw, float)
    except (TypeError, ValueError):
        raise InputError(f"patch {patch!r}: the condition's value is {raw!r}, expected numbers") from None
    k = len(centres)
    shapes = [(), (k,)] if components == 1 else [(), (components,), (k, components)]
    if value.shape not in shapes:
        raise InputError(f"patch {patch!r}: the condition's values have shape {value.shape}, expected one of "
                         f"{', '.join(map(str, shapes))} for its {k} faces")
    check_finite(f"patch {patch!r}: the condition's value", value)
    if components == 1:
        value = value.reshape(-1, 1)
    return np.broadcast_to(value, (k, components))


class Boundary:
    """The conditions of one scalar field on all boundary faces, as arrays of the space.

    Attributes
    ----------
    share, offset : arrays, shape (nb,)
        p_b = share p' + offset.
    slope, rate : arrays, shape (nb,)
        ∂p/∂n = rate − slope p'.
    free : bool array
        True for faces without a condition (a = b = 0).
    natural : bool array
        True for faces with only the normal derivative given (a = 0, b ≠ 0).
    """

    def __init__(self, metrics, a, b, c):
        self.metrics = metrics
        xp = metrics.space.xp
        a, b, c = (metrics.space.from_host(v).astype(metrics.dtype, copy=False) for v in (a, b, c))
        self.faces = slice(metrics.n_internal, None)
        self.cells = metrics.owner[self.faces]
        distance = metrics.normal_distance[self.faces]
        self.free = (a == 0) & (b == 0)
        self.natural = (a == 0) & ~self.free
        below = xp.where(self.free, 1, a * distance + b)
        self.slope, self.rate = a / below, c / below
        self.share, self.offset = xp.where(self.free, 1, b / below), c * distance / below

    @classmethod
    def of(cls, metrics, conditions):
        """Return a Boundary made from ``conditions``, a dictionary from patch names to conditions; ``metrics``: the
        mesh's Metrics."""
        return cls(metrics, *lines(metrics.mesh, conditions))

    @property
    def floating(self) -> bool:
        """True if no face of any rank fixes a value, so that p is determined only up to a constant."""
        return not self.metrics.space.ranks.max(bool((self.slope != 0).any()))

    def along(self, gradient):
        """Return t·∇p = p' − p_P, shape (nb,), from the cells' gradients, shape (3, n); 0 if ``gradient`` is None."""
        if gradient is None:
            return 0
        return (self.metrics.tangent * gradient[:, self.cells]).sum(0)

    def values(self, p, gradient=None):
        """Return the values p_b on the boundary faces, shape (nb,), from the cell values p and their gradient (3, n),
        or None for none. On free faces p_b is extrapolated with the gradient."""
        p_b = self.share * (p[self.cells] + self.along(gradient)) + self.offset
        if gradient is not None and bool(self.free.any()):
            normal = self.metrics.d[:, self.faces] - self.metrics.tangent
            p_b += self.free * (normal * gradient[:, self.cells]).sum(0)
        return p_b
