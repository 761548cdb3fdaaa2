"""The options that the calls of `swell.torch` take."""
from swell.autodiff.options import IN_BATCH, Options
from swell.options import Accepted

PREPARE = Accepted(Options, without=("device",))
SOLVE = Accepted(Options, without=("device", "keep_preconditioner"))
BATCH = Accepted(Options, without=("device", *(name for name in PREPARE.names if name not in IN_BATCH)))
