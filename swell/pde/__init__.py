"""Front ends that turn a PDE on a mesh into linear systems for swell.

`swell.pde.fvm`: finite volumes on polyhedra. `swell.pde.helmholtz`: acoustics in the frequency domain by finite
elements. `swell.pde.poisson_cube`, `swell.pde.elasticity_cube`: finite elements in subdomains, for BDDC."""
from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {}, modules=("elasticity_cube", "fvm", "helmholtz", "poisson_cube"))
