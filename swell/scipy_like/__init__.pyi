# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily.
from swell.scipy_like.general import bicgstab as bicgstab
from swell.scipy_like.symmetric import cg as cg
from swell.scipy_like.direct import factorized as factorized
from swell.scipy_like.general import gmres as gmres
from swell.scipy_like.symmetric import minres as minres
from swell.scipy_like.general import qmr as qmr
from swell.scipy_like.direct import splu as splu
from swell.scipy_like.direct import spsolve as spsolve
from swell.scipy_like.general import tfqmr as tfqmr
