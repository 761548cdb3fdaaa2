# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily.
from swell.distributed.matrix import DistributedMatrix as DistributedMatrix
from swell.distributed.parts import from_parts as from_parts
from swell.distributed.parts import from_rows as from_rows
from swell.distributed.subdomains import from_subdomains as from_subdomains
from swell.distributed.mpi import init as init
from swell.distributed.distribute import read as read
from swell.distributed.threads import run as run
from swell.distributed.distribute import scatter as scatter
