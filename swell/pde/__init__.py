"""Front ends that turn a PDE on a mesh into systems for swell: `swell.pde.fvm`, finite volumes on polyhedra;
`swell.pde.helmholtz`, acoustics in the frequency domain by finite elements; `swell.pde.poisson_cube`, finite elements
in subdomains, for BDDC."""
import importlib

__all__ = ["fvm", "helmholtz", "poisson_cube"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"swell.pde.{name}")
    raise AttributeError(f"module 'swell.pde' has no attribute {name!r}")


def __dir__():
    return __all__
