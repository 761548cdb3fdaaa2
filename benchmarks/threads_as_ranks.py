"""Ranks as threads of one process, where mpiexec's processes cannot be: on emulated GPUs, which processes cannot share.

    PYTHONPATH=tests/emulation:. SWELL_EMULATED_GPUS=2 python benchmarks/threads_as_ranks.py 2 \\
        benchmarks/multigrid_ranks.py --planes 8 --side 8 --device cuda

Runs a script that calls ``swell.distributed.init()`` on as many threads as the first argument says. Times say nothing,
since Python runs one thread at a time.
"""
from __future__ import annotations

import importlib.util
import pathlib
import sys
import threading

from swell import distributed
from swell.distributed import launcher

here = threading.local()


def init(messages=None, share_gpus=False):
    """This thread's communicator, in the place of `swell.distributed.init`."""
    here.communicator.messages, here.communicator.share_gpus = messages, share_gpus
    return here.communicator


def main():
    ranks, path = int(sys.argv[1]), pathlib.Path(sys.argv[2])
    sys.argv = sys.argv[2:]
    sys.path.insert(0, str(path.parent))
    distributed.init, launcher.launched = init, lambda: ranks
    spec = importlib.util.spec_from_file_location(path.stem, path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def rank(communicator):
        here.communicator = communicator
        script.main()

    distributed.run(ranks, rank)


if __name__ == "__main__":
    main()
