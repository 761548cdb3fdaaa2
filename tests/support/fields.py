"""Fields with known derivatives, and what several tests of the discretisation need."""
from __future__ import annotations

import numpy as np

from swell.core.devices import make_space
from swell.pde import fvm

PI = np.pi


def wave(x):
    """sin πx cos πy + x², in two or three dimensions."""
    return np.sin(PI * x[:, 0]) * np.cos(PI * x[:, 1]) + x[:, 0] ** 2


def wave_gradient(x):
    return np.stack([PI * np.cos(PI * x[:, 0]) * np.cos(PI * x[:, 1]) + 2 * x[:, 0],
                     -PI * np.sin(PI * x[:, 0]) * np.sin(PI * x[:, 1]), 0 * x[:, 0]], axis=1)


def wave_laplacian(x):
    return -2 * PI**2 * np.sin(PI * x[:, 0]) * np.cos(PI * x[:, 1]) + 2


def plane(x):
    """A linear field."""
    return 1 + 2 * x[:, 0] - 3 * x[:, 1] + 0.5 * x[:, 2]


def outer(mesh):
    """The names of the patches that need a condition."""
    return [p.name for p in mesh.patches if p.kind != "empty"]


def on_all_patches(mesh, condition):
    return {name: condition for name in outer(mesh)}


def metrics_of(mesh, device="cpu"):
    return fvm.Metrics(mesh, make_space(device))


def normals(mesh, patch):
    """Outward unit normals of a patch."""
    s = mesh.face_areas[patch.start:patch.start + patch.size]
    return s / np.linalg.norm(s, axis=1)[:, None]


def mixed(mesh, field=wave, gradient=wave_gradient):
    """Dirichlet, Neumann and Robin conditions that a field meets, on patches in turn."""
    conditions = {}
    for k, patch in enumerate(p for p in mesh.patches if p.kind != "empty"):
        n, x = normals(mesh, patch), mesh.face_centres[patch.start:patch.start + patch.size]
        slope = (gradient(x) * n).sum(1)
        kinds = fvm.Dirichlet(field(x)), fvm.Neumann(slope), fvm.Robin(2.0, 0.5, 2 * field(x) + 0.5 * slope)
        conditions[patch.name] = kinds[k % 3]
    return conditions


def error(mesh, p, exact=wave):
    """‖p − exact‖₂ over the volume."""
    e = p - exact(mesh.centres)
    return float(np.sqrt((e * e * mesh.volumes).sum() / mesh.volumes.sum()))


def orders(errors):
    """Measured orders between meshes that are refined by two."""
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))
