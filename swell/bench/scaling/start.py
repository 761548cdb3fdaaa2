"""Start of the measuring ranks under mpiexec, and collection of their records."""
from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from swell.core.errors import InputError, MissingDependency, SwellError
from swell.distributed.launcher import launched

INSTALL = "pip install 'swell[mpi]' mpich (or an MPI of your system)"
THREADS = ("SWELL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def mpiexec(benchmark: str) -> str:
    """Return the path of mpiexec: the one beside this Python, else the first on PATH. ``benchmark``: its name, for
    messages.

    Raises
    ------
    MissingDependency
        If mpi4py or mpiexec is missing.
    InputError
        If mpiexec has started this process itself.
    """
    if launched() > 1:
        raise InputError(f"swell bench {benchmark} was itself started by mpiexec: start it without, and name the "
                         "numbers of ranks as --ranks 1,2")
    if importlib.util.find_spec("mpi4py") is None:
        raise MissingDependency(f"swell bench {benchmark} needs mpi4py, which is not installed: {INSTALL}")
    beside = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
    path = beside or shutil.which("mpiexec")
    if path is None:
        raise MissingDependency(f"there is no mpiexec beside {sys.executable} or on the path: {INSTALL}")
    return path


def records(program, ranks, threads, settings, module):
    """Start ``ranks`` ranks with ``threads`` threads each; yield their records (dicts) as they arrive. ``program``: the
    path of mpiexec; ``settings``: a dict for the ranks; ``module``: the name of the module that they run.

    Raises
    ------
    InputError
        If the ranks agreed on an error; it has their message.
    SwellError
        If the ranks ended with a nonzero status; their stderr says why.
    """
    command = [program, "-n", str(ranks), sys.executable, "-m", module, json.dumps(settings)]
    variables = {**os.environ, **dict.fromkeys(THREADS, str(threads))}
    error = None
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env=variables)
    except OSError as reason:
        raise MissingDependency(f"{program} could not be started: {reason.strerror}; {INSTALL}") from None
    with process:
        try:
            for line in process.stdout:
                if not line.startswith("{"):
                    print(line, end="", file=sys.stderr)         # output of a library or of the launcher
                    continue
                record = json.loads(line)
                if set(record) == {"error"}:
                    error = record["error"]
                else:
                    yield record
        except BaseException:
            process.terminate()
            raise
    if error is not None:
        raise InputError(f"{error} (on {ranks} rank{'s' if ranks > 1 else ''})")
    if process.returncode:
        raise SwellError(f"mpiexec -n {ranks} ended with status {process.returncode}; its ranks' messages are above. "
                         f"If it could not start them, mpiexec and mpi4py may belong to different MPIs: {INSTALL}")
