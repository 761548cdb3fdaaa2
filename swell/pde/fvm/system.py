"""A scalar equation on one device: its terms, its matrix, its right-hand side, and the fluxes of a solution.

∂p/∂t + ∇·(u p) − ∇·(k ∇p) = q, integrated over cells: V ∂p/∂t + Σ F = V q. F is the sum of the convective and the
diffusive flux through a face. It includes the explicit terms (non-orthogonal correction, deferred schemes). Fluxes
through internal faces therefore cancel in the sum over all cells, to rounding, for every p.
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
    """The equation of a problem in one space; made by ``Problem.assemble``. ``metrics``: the mesh's, if they are known.

    Attributes
    ----------
    A : CSRMatrix
        The matrix of the implicit terms, without the time term.
    b : array of the space, shape (n,)
        V q minus the explicit fluxes of the boundary data.
    flux : Flux
        The implicit fluxes.
    source : array of the space, shape (n,)
        V q.
    deferred : bool
        True if there are explicit terms that depend on the solution.
    floating : bool
        True if p is determined only up to a constant.
    """

    def __init__(self, problem, space, dtype, metrics=None):
        self.metrics = metrics = Metrics(problem.mesh, space, dtype) if metrics is None else metrics
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

    def flux_at(self, p):
        """Return a Flux that includes the explicit terms at cell values p; its implicit part equals ``flux``'s."""
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
        """Return V q minus the divergence of the explicit fluxes flux.c (2.16), shape (n,)."""
        return self.source - self.metrics.divergence(flux.c)

    def implicit(self, flux, p):
        """Return A p, shape (n,): the divergence of the implicit part of ``flux`` at p."""
        return self.metrics.divergence(flux.of(self.metrics, p) - flux.c)

    def through(self, flux, p):
        """Return Σ |flux| through the boundary faces of each cell, shape (n,), at cell values p."""
        sizes = abs(flux.of(self.metrics, p))
        sizes[:self.metrics.n_internal] = 0
        return self.metrics.pattern.collect(sizes, 1)

    def norm(self, v) -> float:
        """‖v‖₂."""
        return float(self.space.xp.linalg.norm(v))

    def totals(self, *vectors) -> list[float]:
        """Return the list of Σ v for each vector v."""
        return [float(v.sum()) for v in vectors]

    def span(self, p):
        """(minimum, maximum) of p over the cells and boundary faces."""
        values = self.space.xp.concatenate([p, self.boundary.values(p)])
        return float(values.min()), float(values.max())

    def any(self, flag) -> bool:
        """Return ``flag`` as a bool; `RankSystem.any` asks all ranks."""
        return bool(flag)

    def fixed(self):
        """A bool array on the host, shape (f,): True for faces whose condition fixes a value."""
        slopes = self.space.to_host(self.boundary.slope)
        return self.metrics.mesh.on_mesh(np.concatenate([np.zeros(self.metrics.n_internal), slopes])) != 0

    def require_fixed(self, mesh):
        """Raise InputError if a connected component of the mesh has no face that fixes the solution."""
        every_part_is_fixed(mesh, self.fixed()[mesh.n_internal:])

    def levelled(self, p, mean):
        """Return p plus a constant, such that its volume average is ``mean``."""
        volumes = self.metrics.volumes
        return p + (mean - (volumes * p).sum() / volumes.sum())

    def on_mesh(self, p, flux, source):
        """Return (p, fluxes through the faces, source) on the host, for the whole mesh; ``flux``: a Flux."""
        host = self.space.to_host
        return host(p), self.metrics.mesh.on_mesh(host(flux.of(self.metrics, p))), host(source)

    def balanced(self, b, shift):
        """Check that b adds up to zero, as a system needs that determines p only up to a constant. With ``shift``, a
        constant is subtracted from q if it does not. Return (b, note).

        Returns
        -------
        b : array
        note : str
            A sentence about the shift; empty if there was none.

        Raises
        ------
        InputError
            If b does not add up to zero and ``shift`` is False; the message says by how much.
        """
        volumes = self.metrics.volumes
        mean, note = compatible(float(b.sum()), float(abs(b).sum()), float(self.source.sum()), float(volumes.sum()),
                                shift)
        return (b - mean * volumes if mean else b), note


def compatible(total, size, source, volume, shift):
    """Return (number to subtract from q, note) for a system that determines p only up to a constant.

    Parameters
    ----------
    total, size : float
        Σ b and Σ |b|.
    source, volume : float
        Σ V q and Σ V.
    shift : bool
        See ``System.balanced``; this function raises its error.
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
