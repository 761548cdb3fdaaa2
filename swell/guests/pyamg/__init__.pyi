# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily.
from swell.guests.pyamg.calls import bicgstab as bicgstab
from swell.guests.pyamg.calls import cg as cg
from swell.guests.pyamg.calls import fgmres as fgmres
from swell.guests.pyamg.calls import gmres as gmres
