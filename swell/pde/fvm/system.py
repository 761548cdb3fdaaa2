"""A scalar equation on one device: its terms, its matrix, its right-hand side, and the fluxes of a solution.

∂p/∂t + ∇·(u p) − ∇·(k ∇p) = q, integrated over cells: V ∂p/∂t + Σ F = V q, where F adds up what convection and
diffusion send through a face. What is explicit (non-orthogonal correction, deferred schemes) is in the flux as well, so
that the balance of the whole domain is that of its boundary, to rounding, whatever p is.
"""
from __future__ import annotations

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.boundary import Boundary
from swell.pde.fvm.check import every_part_is_fixed
from swell.pde.fvm.convection import Convection, face_flux
from swell.pde.fvm.laplacian import Laplacian
from swell.pde.fvm.metrics import Metrics

COMPATIBLE = 1e-10      # |Σ b| over Σ |b| up to which a system without Dirichlet data has a solution


class System:
    """The equation of a problem in one space; made by ``Problem.assemble``.

    Attributes
    ----------
    A : CSRMatrix
        Of the implicit terms, steady.
    b : array of the space, shape (n,)
        V q less the explicit fluxes of the boundary data.
    flux : Flux
        The implicit fluxes.
    source : array of the space, shape (n,)
        V q.
    deferred : bool
        True if there are explicit terms that depend on the solution.
    floating : bool
        True if p is determined up to a constant only.
    """

    def __init__(self, problem, space, dtype):
        self.metrics = metrics = Metrics(problem.mesh, space, dtype)
        self.space = space
        self.boundary = Boundary.of(metrics, problem.conditions)
        self.laplacian = Laplacian(metrics, self.boundary, problem.diffusivity, problem.correction,
                                   problem.interpolation, problem.gradient)
        self.flux, self.convection = self.laplacian.flux(), None
        if problem.velocity is not None:
            self.convection = Convection(metrics, self.boundary, face_flux(metrics, problem.velocity), problem.scheme)
            self.flux = self.flux + self.convection.flux()
        self.source = metrics.volumes * metrics.full(problem.source, "source")
        self.skewed = self.laplacian.corrected and not metrics.orthogonal
        self.deferred = self.skewed or (self.convection is not None and self.convection.deferred)
        self.floating = self.boundary.floating and self.convection is None
        self.A = metrics.pattern.matrix(self.flux)
        self.b = self.source - metrics.divergence(self.flux.c)

    def whole(self, p):
        """The fluxes with the explicit terms for p."""
        if not self.deferred:
            return self.flux
        gradient = self.laplacian.gradient(p)
        flux = self.flux
        if self.skewed:
            flux = flux.with_explicit(self.laplacian.explicit(gradient))
        if self.convection is not None:
            flux = flux.with_explicit(self.convection.explicit(p, gradient))
        return flux

    def rhs(self, flux):
        """V q less what is explicit in the fluxes (2.16)."""
        return self.source - self.metrics.divergence(flux.c)

    def implicit(self, flux, p):
        """What the implicit part of the fluxes takes out of each cell, A p."""
        return self.metrics.divergence(flux.of(self.metrics, p) - flux.c)

    def through(self, flux, p):
        """Σ |flux| through the boundary faces of each cell."""
        sizes = abs(flux.of(self.metrics, p))
        sizes[:self.metrics.n_internal] = 0
        return self.metrics.pattern.collect(sizes, 1)

    def norm(self, v) -> float:
        """‖v‖₂."""
        return float(self.space.xp.linalg.norm(v))

    def totals(self, *vectors) -> list[float]:
        """Σ of each vector."""
        return [float(v.sum()) for v in vectors]

    def span(self, p):
        """(least, largest) of the values of cells and boundary faces."""
        values = self.space.xp.concatenate([p, self.boundary.values(p)])
        return float(values.min()), float(values.max())

    def any(self, flag) -> bool:
        """True if it is, on any rank."""
        return bool(flag)

    def fixed(self):
        """For each face of the mesh, on the host, whether its condition fixes a value."""
        slopes = self.space.to_host(self.boundary.slope)
        return self.metrics.mesh.on_mesh(np.concatenate([np.zeros(self.metrics.n_internal), slopes])) != 0

    def require_fixed(self, mesh):
        """Each connected part of the mesh has a face on which the solution is fixed; else InputError."""
        every_part_is_fixed(mesh, self.fixed()[mesh.n_internal:])

    def levelled(self, p, mean):
        """p with that mean over the volume."""
        volumes = self.metrics.volumes
        return p + (mean - (volumes * p).sum() / volumes.sum())

    def on_mesh(self, p, flux, source):
        """(p, fluxes through the faces, source) on the host, for the whole mesh."""
        host = self.space.to_host
        return host(p), self.metrics.mesh.on_mesh(host(flux.of(self.metrics, p))), host(source)

    def balanced(self, b, shift):
        """b of an equation that determines p up to a constant: checked, or shifted so that it adds up to zero.

        Returns
        -------
        b : array
        note : str
            What was done; empty if nothing was.

        Raises
        ------
        InputError
            That says by how much sources and fluxes through the boundary differ.
        """
        volumes = self.metrics.volumes
        mean, note = compatible(float(b.sum()), float(abs(b).sum()), float(self.source.sum()), float(volumes.sum()),
                                shift)
        return (b - mean * volumes if mean else b), note


def compatible(total, size, source, volume, shift):
    """(what to subtract from the source, a word on it) of an equation that determines p up to a constant.

    Parameters
    ----------
    total, size : float
        Σ b and Σ |b|.
    source, volume : float
        Σ V q and Σ V.
    shift : bool
        As of ``System.balanced``, whose error it raises.
    """
    if abs(total) <= COMPATIBLE * size:
        return 0.0, ""
    what = (f"no patch fixes a value, so that the source must equal what leaves through the boundary: the source adds "
            f"up to {source:.6g}, the fluxes given at the boundary to {source - total:.6g}, which differ by "
            f"{total:.3g}")
    if not shift:
        raise InputError(f"{what}: subtract {total / volume:.15g} from the source (or give balance=True, --balance on "
                         "the command line, which does it and says so), correct the gradients, or give one patch a "
                         "Dirichlet or Robin condition")
    mean = total / volume
    return mean, f"{what}; {mean:.3g} was subtracted from the source, as asked"
