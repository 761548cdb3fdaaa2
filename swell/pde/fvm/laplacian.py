"""Laplacian: −∇·(k ∇p) by face fluxes, (2.7)–(2.16), with variable k and Jasak's non-orthogonal correction (1996).

Through an internal face, −k ∇p·s = −k g (p_N − p_O) − k (s − g d)·(∇p)_f. The first part is implicit. It has b = −a for
every g and k, so that the matrix is symmetric by construction (2.14). The second part, the correction, is explicit,
from the gradient of the last solution. Both cells use the same number (footnote 3 of the paper). On orthogonal faces
the correction is zero.

    correction       g              the paper's |s|/|Δf| (2.9)
    over_relaxed     |s|²/(d·s)     converges on the strongest non-orthogonality; the default
    orthogonal       |s|/|d|
    minimum          d·s/|d|²       the smallest explicit part, and the first to diverge: on a box sheared by 39 degrees
    none             |s|²/(d·s), and no explicit part

What differs from the textbook: at a boundary face, the cell's gradient carries the cell's value to the foot of the
face's normal (``boundary.py``); there g = |s|/dₙ. The correction restores the order on non-orthogonal meshes, but not
on skewed ones, where lines between centres miss the centres of faces.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.flux import Flux
from swell.pde.fvm.gradient import gradient as scheme

CORRECTIONS = ("over_relaxed", "orthogonal", "minimum", "none")
INTERPOLATIONS = ("harmonic", "linear")


class Laplacian:
    """−∇·(k ∇p) on a mesh, for the conditions of one field.

    Parameters
    ----------
    metrics : Metrics
    boundary : Boundary
    diffusivity : number, array or function
        k > 0: a number, one value a cell (n,), one a face (f,), or a function of the cells' centres (n, 3).
    correction : {"over_relaxed", "orthogonal", "minimum", "none"}
    interpolation : {"harmonic", "linear"}
        How a k given by cells is taken to the faces; harmonic is exact for layers that meet at faces.
    gradient : {"least_squares", "gauss"}
        The gradient scheme of the explicit part.

    Attributes
    ----------
    g : array, shape (f,)
        The factor g of each face, as in the table above.
    k : array, shape (f,)
        The diffusivity on the faces.
    """

    def __init__(self, metrics, boundary, diffusivity=1.0, correction="over_relaxed", interpolation="harmonic",
                 gradient="least_squares"):
        if correction not in CORRECTIONS:
            raise InputError(f"correction={correction!r}: expected one of {', '.join(CORRECTIONS)}")
        if interpolation not in INTERPOLATIONS:
            raise InputError(f"interpolation={interpolation!r}: expected one of {', '.join(INTERPOLATIONS)}")
        if bool(boundary.free.any()):
            raise InputError("a Laplacian needs a condition on every face of the boundary: give Dirichlet, Neumann or "
                             "Robin")
        self.metrics, self.boundary, self.interpolation = metrics, boundary, interpolation
        self.corrected = correction != "none"
        self.gradient = scheme(gradient, metrics, boundary)
        inside, d = slice(0, metrics.n_internal), metrics.d
        self.g = metrics.area / metrics.normal_distance                         # |s|²/(d·s)
        if correction == "orthogonal":
            self.g[inside] = metrics.area[inside] / metrics.space.xp.sqrt((d * d).sum(0)[inside])
        elif correction == "minimum":
            self.g[inside] = metrics.area[inside] * metrics.normal_distance[inside] / (d * d).sum(0)[inside]
        self.diffuse(diffusivity)

    def diffuse(self, diffusivity):
        """Set k; see the class for ``diffusivity``."""
        metrics = self.metrics
        by_faces = not callable(diffusivity) and np.shape(diffusivity) == (metrics.mesh.whole.n_faces,)
        metrics.space.ranks.require_equal(by_faces, "whether the diffusivity has one value a face")
        k = metrics.of_faces(diffusivity) if by_faces else metrics.full(diffusivity, "diffusivity")
        with metrics.space.ranks.agreed():
            if not bool((k > 0).all()):
                raise InputError("diffusivity must be positive everywhere, and its least value is "
                                 f"{float(k.min()):.3g}: the matrix would not be definite")
        self.k = k if by_faces else self.on_faces(k)

    def on_faces(self, k):
        """Return cell values k, shape (n,), interpolated to the faces, shape (f,): harmonically (resistances in series)
        or linearly."""
        metrics = self.metrics
        faces = metrics.space.empty(metrics.owner.size, metrics.dtype)
        kernels = metrics.space.kernels("swell.pde.fvm", "interpolation", metrics.dtype)
        kernels.to_faces(metrics.owner, metrics.neighbour, metrics.weight, k, self.interpolation == "harmonic", faces)
        return faces

    def flux(self) -> Flux:
        """Return the implicit part of the fluxes −k ∇p·s, a Flux: F = a p_O + b p_N + c through each face from its
        owner O to its neighbour N, with c from the boundary data.

        Summed over a cell's faces, Σ F = ∫ −∇·(k ∇p) dV, so that Σ F = V q is (2.12).
        """
        metrics, boundary, inside = self.metrics, self.boundary, slice(0, self.metrics.n_internal)
        xp, outside = metrics.space.xp, slice(metrics.n_internal, None)
        a, c = self.k * self.g, xp.zeros(metrics.owner.size, metrics.dtype)
        b = -a[inside]                                                          # (2.14)
        size = self.k[outside] * metrics.area[outside]
        a[outside] = size * boundary.slope                                      # (2.13)
        c[outside] = -size * boundary.rate                                      # (2.16)
        return Flux(a, b, c)

    def explicit(self, gradient):
        """Return the explicit part of the fluxes (non-orthogonal correction), shape (f,), from the gradient of p in the
        cells, shape (3, n)."""
        metrics, boundary, inside = self.metrics, self.boundary, slice(0, self.metrics.n_internal)
        outside = slice(metrics.n_internal, None)
        c = metrics.space.xp.empty(metrics.owner.size, metrics.dtype)
        oblique = metrics.s[:, inside] - self.g[inside] * metrics.d[:, inside] # s − g d
        c[inside] = -self.k[inside] * (oblique * metrics.interpolate(gradient)).sum(0)
        c[outside] = self.k[outside] * metrics.area[outside] * boundary.slope * boundary.along(gradient)
        return c
