"""Was this process started beside others? Asked by every command, so that nothing heavy is imported here."""
from __future__ import annotations

import os

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")      # what launchers tell a process

RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
PATIENCE = 2.0          # seconds that rank 0 has to end all ranks with an error that is every rank's


def first() -> bool:
    """Is this rank 0, as far as a launcher says?"""
    return next((os.environ[name] == "0" for name in RANKS if name in os.environ), True)


def launched() -> int:
    """How many ranks a launcher says that it started; 1 where there is none."""
    return max([int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()], default=1)
