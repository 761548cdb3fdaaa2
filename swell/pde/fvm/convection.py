"""Convection: ∇·(u p) from the volume flux φ = u·s of each face, by upwind, linear, or linear-upwind differencing.

    upwind          p_f = p_U, U the cell that φ comes from: first order, bounded, an M-matrix where Σ φ = 0
    linear          p_f = w p_O + (1 − w) p_N: second order; oscillates where |φ| dₙ exceeds 2 k |s| (cell Péclet)
    linear_upwind   p_f = p_U + (x_f − x_U)·(∇p)_U: second order (Warming and Beam 1976)

At the boundary p_f is the value of the condition. Upwind takes the cell's value instead where φ leaves: a value imposed
on an outflow makes a layer too thin for a coarse mesh, and the matrix would lose its diagonal dominance.

The two second-order schemes can be deferred (Khosla and Rubin 1974): the matrix is upwind's, and the difference to the
scheme is explicit, from the last solution. linear_upwind is always deferred.
"""
from __future__ import annotations

from swell.core.arrays import check_finite
from swell.core.errors import InputError
from swell.pde.fvm.flux import Flux
from swell.pde.fvm.metrics import numbers

SCHEMES = ("upwind", "linear", "linear_upwind")


def check_scheme(scheme):
    """Raise InputError for an unknown scheme."""
    if scheme not in SCHEMES:
        raise InputError(f"scheme={scheme!r}: expected one of {', '.join(SCHEMES)}")


def face_flux(metrics, velocity):
    """Return the volume flux φ = u·s of every face, shape (f,), for a velocity u; s: the face's area vector.

    The velocity is three numbers, one vector a cell (n, 3), or a function of points (k, 3). A function is evaluated at
    the faces' centres. Cell vectors are interpolated linearly; a boundary face takes its cell's vector.
    """
    to_space = metrics.space.from_host
    if callable(velocity):
        u, expected = velocity(metrics.mesh.face_centres), (metrics.owner.size, 3)
    else:
        u, expected = velocity, (metrics.own, 3)
    u = numbers(u, "velocity")
    with metrics.space.ranks.agreed():
        if u.shape not in ((3,), expected):
            raise InputError(f"velocity has shape {u.shape}: expected (3,), one vector a cell ({metrics.own}, 3), or a "
                             "function of points (k, 3) that returns (k, 3)")
        check_finite("velocity", u)
    u = u if callable(velocity) or u.shape == (3,) else metrics.with_ghosts(u)
    u = to_space(u).astype(metrics.dtype).reshape(-1, 3).T
    if not callable(velocity) and u.shape[1] > 1:
        of_cells, u = u, u[:, metrics.owner]
        u[:, :metrics.n_internal] = metrics.interpolate(of_cells)
    return (u * metrics.s).sum(0)


class Convection:
    """∇·(u p) for the conditions of one field.

    Parameters
    ----------
    metrics : Metrics
    boundary : Boundary
    phi : array of the space, shape (f,)
        Volume flux of each face.
    scheme : {"upwind", "linear", "linear_upwind"}
    deferred : bool
        For ``linear`` only. False: it is in the matrix. True: the matrix is upwind's, and the difference is explicit.
    """

    def __init__(self, metrics, boundary, phi, scheme="upwind", deferred=False):
        check_scheme(scheme)
        self.metrics, self.boundary, self.phi, self.scheme = metrics, boundary, phi, scheme
        self.deferred = scheme == "linear_upwind" or (deferred and scheme == "linear")

    def flux(self) -> Flux:
        """The implicit part of the fluxes F = φ p_f, a new Flux; ``explicit`` returns the rest."""
        metrics, boundary, phi, xp = self.metrics, self.boundary, self.phi, self.metrics.space.xp
        inside, outside = slice(0, metrics.n_internal), slice(metrics.n_internal, None)
        a, c = xp.empty_like(phi), xp.zeros_like(phi)
        if self.scheme == "linear" and not self.deferred:
            a[inside] = metrics.weight * phi[inside]
            b = (1 - metrics.weight) * phi[inside]
            leaving, entering = 0, phi[outside]                  # p_b for both directions of φ
        else:
            a[inside] = xp.maximum(phi[inside], 0)
            b = xp.minimum(phi[inside], 0)
            leaving, entering = xp.maximum(phi[outside], 0), xp.minimum(phi[outside], 0)
        a[outside] = leaving + entering * boundary.share
        c[outside] = entering * boundary.offset
        return Flux(a, b, c)

    def explicit(self, p, gradient):
        """Return the explicit part of the fluxes, shape (f,), from cell values p (n,) and their gradient (3, n)."""
        metrics, boundary, phi, xp = self.metrics, self.boundary, self.phi, self.metrics.space.xp
        inside, outside = slice(0, metrics.n_internal), slice(metrics.n_internal, None)
        c = xp.zeros_like(phi)
        if self.deferred:
            c[inside] = phi[inside] * self._beyond_upwind(p, gradient)
            c[outside] = xp.maximum(phi[outside], 0) * (boundary.values(p, gradient) - p[boundary.cells])
        entering = phi[outside] if self.scheme == "linear" and not self.deferred else xp.minimum(phi[outside], 0)
        c[outside] += entering * boundary.share * boundary.along(gradient)
        return c

    def _beyond_upwind(self, p, gradient):
        """Return p_f of the scheme minus upwind's p_f, on the internal faces; p and ``gradient`` as in ``explicit``."""
        metrics, xp = self.metrics, self.metrics.space.xp
        inside = slice(0, metrics.n_internal)
        owner, neighbour = metrics.owner[inside], metrics.neighbour
        out = self.phi[inside] >= 0
        if self.scheme == "linear":
            jump = metrics.difference(p)
            return xp.where(out, (1 - metrics.weight) * jump, -metrics.weight * jump)
        upwind = xp.where(out, owner, neighbour)
        reach = xp.where(out, metrics.face_centres[:, inside], metrics.far_centres) - metrics.centres[:, upwind]
        return (reach * gradient[:, upwind]).sum(0)
