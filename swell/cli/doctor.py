"""Say what is installed, which GPU there is, what is missing, what it is for, and the command that installs it.

Solves a small system on the CPU, and on a GPU where there is one. Exit status 0 if the CPU works.
"""
from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass, replace
from importlib import metadata

from swell.cli.output import as_json

HELP = "what is installed, what is missing, and how to get it"
CHECK_SIDE = 50         # of the Poisson problem that is solved: 2500 unknowns
PETSC = "pip install petsc petsc4py, which builds both for this NumPy (a distribution's may be built for NumPy 1)"
GPU_EXTRA = "pip install 'swell[cuda13]'   (CUDA 12: 'swell[cuda12]')"


@dataclass(frozen=True)
class Part:
    """One thing that swell uses.

    Attributes
    ----------
    name, purpose : str
    found : str
        Version or description; empty where it is missing.
    remedy : str
        The command that installs it.
    """

    name: str
    found: str
    purpose: str
    remedy: str = ""


# (name, distributions under which it may be installed, purpose, how to install)
PACKAGES = (
    ("NumPy", ("numpy",), "arrays", "pip install numpy"),
    ("SciPy", ("scipy",), "sparse input, SuperLU", "pip install scipy"),
    ("Numba", ("numba",), "kernels on the CPU", "pip install numba"),
    ("rich", ("rich",), "progress display and tables", "pip install rich"),
    ("matplotlib", ("matplotlib",), "plots and reports", "pip install matplotlib"),
    ("CuPy", ("cupy-cuda13x", "cupy-cuda12x", "cupy"), "arrays and kernels on the GPU", GPU_EXTRA),
    ("NVRTC", ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"), "compiles kernels for the GPU",
     GPU_EXTRA),
    ("nvmath-python", ("nvmath-python",), "the way to cuDSS", GPU_EXTRA),
    ("cuDSS", ("nvidia-cudss-cu13", "nvidia-cudss-cu12"), "direct solver on the GPU", GPU_EXTRA),
    ("NCCL", ("nvidia-nccl-cu13", "nvidia-nccl-cu12"), "several GPUs together", GPU_EXTRA),
    ("mpi4py", ("mpi4py",), "solves across ranks", "pip install 'swell[mpi]'"),
    ("scikit-fem", ("scikit-fem",), "finite elements", "pip install 'swell[pde]'"),
    ("meshio", ("meshio",), "mesh files", "pip install 'swell[pde]'"),
    ("gmsh", ("gmsh",), "making meshes", "pip install 'swell[pde]'"),
    ("pymetis", ("pymetis",), "partitions of graphs and meshes", "pip install 'swell[partition]'"),
    ("torch", ("torch",), "takes and gives torch tensors", "pip install torch"),
    ("petsc4py", ("petsc4py",), "swell inside PETSc, and its matrices", PETSC),
)


def add_arguments(parser):
    """The arguments of ``swell doctor``."""
    parser.add_argument("--json", action="store_true", help="print what was found as one JSON object")


def run(arguments) -> int:
    """Look, try, print."""
    system = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    parts = [Part("Python", system, "the interpreter")]
    parts += [Part(name, _version(distributions), purpose, remedy)
              for name, distributions, purpose, remedy in PACKAGES]
    parts = [replace(part, found=part.found or _nccl()) if part.name == "NCCL" else part for part in parts]
    parts = [_loaded(part) if part.name == "petsc4py" and part.found else part for part in parts]
    parts.append(Part("MPI", _mpi(), "the library under mpi4py", "apt install libopenmpi-dev, or pip install mpich"))
    parts.append(Part("NVIDIA driver and GPU", _driver(), "computing on a GPU", "the driver of your system's packages"))
    parts.append(Part("memory", _copy_speed(), "what the advisor's predictions are scaled by"))
    cpu_works, cpu = _try_cpu()
    gpu_works, gpu = _try_gpu(parts)
    if arguments.json:
        print(as_json({"parts": [asdict(part) for part in parts], "cpu_works": cpu_works, "cpu": cpu,
                       "gpu_works": gpu_works, "gpu": gpu}))
    else:
        _show(parts, cpu, gpu)
    return 0 if cpu_works else 2


def _version(distributions) -> str:
    """The version of the first distribution that is installed."""
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _copy_speed() -> str:
    """How fast one thread copies, from the file where the advisor keeps it, or measured now."""
    from swell.advisor.machine import complaints, machine
    from swell.core.devices import make_space
    speed = machine(make_space("cpu")).copy
    return "; ".join([f"one thread copies {speed / 1e9:.3g} GB/s", *complaints()])


def _mpi() -> str:
    """The MPI library, without starting it: looking must not join a parallel job. Asked in a process of its own, since
    one that has loaded MPI so is ended by MPI when it goes on to use it."""
    asked = subprocess.run([sys.executable, "-c", "import mpi4py; mpi4py.rc.initialize = False\n"
                            "from mpi4py import MPI; print(MPI.Get_library_version())"],
                           capture_output=True, text=True, timeout=60, check=False)
    return " ".join(asked.stdout.split("\n")[0].split(",")[0].strip("\0").split()) if asked.returncode == 0 else ""


def _loaded(petsc):
    """petsc4py as missing where it is installed and does not load, as one built for NumPy 1 does not beside NumPy 2.
    Tried in a process of its own, since loading it starts MPI."""
    asked = subprocess.run([sys.executable, "-c", "from petsc4py import PETSc"], capture_output=True, text=True,
                           timeout=60, check=False)
    if asked.returncode == 0:
        return petsc
    last = (asked.stderr.strip().splitlines() or [f"it ended with status {asked.returncode}"])[-1]
    return replace(petsc, found="", remedy=f"{PETSC}; {petsc.found} is installed and does not load: {last}")


def _nccl() -> str:
    """What CuPy finds of it where no package has brought it."""
    try:
        with warnings.catch_warnings():          # CuPy's own, where there is none
            warnings.simplefilter("ignore")
            from cupy.cuda import nccl           # a module of its own, which importing cupy.cuda does not load
        return f"as CuPy finds it, {nccl.get_version()}" if nccl.available else ""
    except Exception:  # noqa: BLE001            CuPy without a driver fails in many ways
        return ""


def _driver() -> str:
    """The GPUs as the driver's own tool names them."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    asked = subprocess.run([tool, "--query-gpu=name,memory.total,compute_cap,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, timeout=30, check=False)
    return "; ".join(asked.stdout.strip().splitlines()) if asked.returncode == 0 else ""


def _solve(device):
    """Solve 2500 unknowns on a device and say how it went."""
    import numpy as np

    import swell
    A = swell.gallery.poisson2d(CHECK_SIDE)
    result = swell.solve(A, np.ones(A.shape[0]), device=device)
    return result.converged, (f"solved {A.shape[0]} unknowns with {result.method} in {result.iterations} iterations "
                              f"on {result.device}, true residual {result.residual:.1e}")


def _try_cpu():
    """(does it work, a sentence) for the CPU; whatever is broken there must be told, not raised."""
    try:
        works, sentence = _solve("cpu")
        from numba import threading_layer
        return works, f"{sentence}; Numba's threading layer is {threading_layer()}"
    except Exception as error:  # noqa: BLE001
        return False, f"a small solve failed with {type(error).__name__}: {error}"


def _try_gpu(parts):
    """(does it work, a sentence) for the GPU."""
    found = {part.name: part.found for part in parts}
    if not found["CuPy"]:
        if found["NVIDIA driver and GPU"]:
            return False, f"there is a GPU, but CuPy is missing: {GPU_EXTRA}"
        return False, ("no GPU was found (nvidia-smi is missing or finds none), and CuPy is not installed; swell uses "
                       "the CPU")
    try:
        import cupy
        runtime = cupy.cuda.runtime
        if not runtime.getDeviceCount():
            return False, "CuPy is installed and finds no GPU; swell uses the CPU"
        properties = runtime.getDeviceProperties(0)
        free, total = runtime.memGetInfo()
        works, sentence = _solve("cuda")
        capability = f"{properties['major']}.{properties['minor']}"
        return works, (f"{properties['name'].decode()}, compute capability {capability}, "
                       f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB free, driver for CUDA "
                       f"{_cuda(runtime.driverGetVersion())}, runtime {_cuda(runtime.runtimeGetVersion())}: {sentence}")
    except Exception as error:  # noqa: BLE001     drivers fail in many ways; each is a sentence here
        words = " ".join(str(error).split())
        return False, f"CuPy is installed, but the GPU does not work: {type(error).__name__}: {words}"


def _cuda(version):
    """13000 as 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _show(parts, cpu, gpu):
    """What is there as a table, what is missing by the command that installs it, then the two sentences."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in ("part", "found", "for"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "part")
    for part in parts:
        table.add_row(part.name, escape(part.found) or "[red]missing[/]", part.purpose)
    console = Console(highlight=False)
    console.print(table)
    for remedy in dict.fromkeys(part.remedy for part in parts if not part.found):
        missing = ", ".join(part.name for part in parts if part.remedy == remedy and not part.found)
        console.print(f"for {missing}: {remedy}", markup=False, soft_wrap=True)
    console.print(f"\nCPU: {cpu}\nGPU: {gpu}", markup=False, soft_wrap=True)
