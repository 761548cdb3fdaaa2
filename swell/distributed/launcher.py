"""Was this process started beside others? Asked by every command, so that nothing heavy is imported here."""
from __future__ import annotations

import os

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE", "SLURM_STEP_NUM_TASKS")      # what launchers tell a process


def launched() -> int:
    """How many ranks a launcher says that it started; 1 where there is none."""
    return max([int(os.environ[name]) for name in SIZES if os.environ.get(name, "").isdigit()], default=1)
