# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily.
from swell.pde import elasticity_cube as elasticity_cube
from swell.pde import fvm as fvm
from swell.pde import helmholtz as helmholtz
from swell.pde import poisson_cube as poisson_cube
