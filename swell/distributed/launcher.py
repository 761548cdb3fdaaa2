"""Detection of a launcher that started several processes. Every command asks, so nothing heavy is imported here."""
from __future__ import annotations

import os

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")      # set by launchers

RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
GRACE_SECONDS = 2.0     # seconds that other ranks leave to rank 0 to report an error of all ranks and end them


def first() -> bool:
    """True if the launcher says that this is rank 0, or if there is no launcher."""
    return next((os.environ[name] == "0" for name in RANKS if name in os.environ), True)


def launched() -> int:
    """Number of ranks that a launcher says it started; 1 without a launcher."""
    return max([int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()], default=1)
