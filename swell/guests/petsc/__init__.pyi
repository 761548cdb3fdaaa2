# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily.
from swell.guests.petsc.ksp import KSP as KSP
from swell.guests.petsc.pc import PC as PC
from swell.guests.petsc.ksp import reason_of as reason_of
