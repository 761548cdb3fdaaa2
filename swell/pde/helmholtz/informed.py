"""Extra data from a sweep for preconditioners: the mass matrix, faces between subdomains, subdomain matrices,
A(ω)."""
from dataclasses import replace

from swell.pde.helmholtz.mesh_subdomains import MeshSubdomains
from swell.preconditioners.bddc.settings import BDDC
from swell.preconditioners.deflation import Deflation
from swell.preconditioners.schwarz import Schwarz
from swell.preconditioners.shifted_laplacian import ShiftedLaplacian
from swell.preconditioners.user import resolve_preconditioner


def informed(choice, system, interface=None):
    """Return a preconditioner's settings, with the system's data in fields that the user left empty.

    Parameters
    ----------
    choice : str, settings object, or None
    system : System
    interface : callable, optional
        ``interface(system)`` returns the `Interface` of a mesh; None: there is no mesh.
    """
    settings = resolve_preconditioner(choice)
    if isinstance(settings, ShiftedLaplacian) and settings.mass is None and settings.shift:
        return replace(settings, mass=system.mass)
    if isinstance(settings, Deflation):
        family = settings.family or (system if system.quadratic else None)     # else A U is computed anew
        return replace(settings, inner=informed(settings.inner, system, interface), family=family)
    if isinstance(settings, Schwarz) and settings.as_given and settings.interface is None and interface is not None:
        return replace(settings, interface=interface(system))
    if isinstance(settings, BDDC) and settings.subdomains is None and interface is not None:
        faces = interface(system)
        return replace(settings, domains=None, subdomains=MeshSubdomains(faces.problem, faces.free, settings.domains,
                                                                      system=system))
    return settings
