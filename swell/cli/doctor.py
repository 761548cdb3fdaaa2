"""List installed and missing parts, their purpose, the commands that install missing ones, and the GPU.

Solves a small system on the CPU, and on the GPU if there is one. Exit status 0 if the CPU works.
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

HELP = "list installed and missing parts, and how to install them"
CHECK_SIDE = 50         # points along an edge of the small Poisson problem: 2500 unknowns
PETSC = "pip install petsc petsc4py, which builds both for this NumPy (a distribution's may be built for NumPy 1)"
GPU_EXTRA = "pip install 'swell[cuda13]'   (CUDA 12: 'swell[cuda12]')"


@dataclass(frozen=True)
class Part:
    """One package, library or device that swell uses.

    Attributes
    ----------
    name, purpose : str
    found : str
        Version or description; empty if it is missing.
    remedy : str
        The command that installs it.
    """

    name: str
    found: str
    purpose: str
    remedy: str = ""


# (name, names of distributions that may provide it, purpose, how to install it)
PACKAGES = (
    ("NumPy", ("numpy",), "arrays", "pip install numpy"),
    ("SciPy", ("scipy",), "sparse input, SuperLU", "pip install scipy"),
    ("RSLAB", ("rslab",), "faster direct solver for symmetric matrices", "pip install 'swell[direct]'"),
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
    ("h5py", ("h5py",), "HDF5 files, Matlab's of version 7.3 among them", "pip install 'swell[files]'"),
    ("torch", ("torch",), "tensors, and gradients through solves", "pip install 'swell[torch]'"),
    ("petsc4py", ("petsc4py",), "swell inside PETSc, and its matrices", PETSC),
)


def add_arguments(parser):
    """Add the arguments of ``swell doctor``."""
    parser.add_argument("--json", action="store_true", help="print the findings as one JSON object")


def run(arguments) -> int:
    """Look for all parts, solve on the CPU and the GPU, print the findings; return the exit status."""
    system = f"{platform.python_version()}, {platform.system()} {platform.machine()}"
    parts = [Part("Python", system, "the interpreter")]
    parts += [Part(name, _version(distributions), purpose, remedy)
              for name, distributions, purpose, remedy in PACKAGES]
    parts = [replace(part, found=part.found or _nccl()) if part.name == "NCCL" else part for part in parts]
    parts = [_loaded(part) if part.name == "petsc4py" and part.found else part for part in parts]
    parts.append(Part("MPI", _mpi(), "the library under mpi4py", "apt install libopenmpi-dev, or pip install mpich"))
    parts.append(Part("NVIDIA driver and GPU", _driver(), "computing on a GPU", "the driver of your system's packages"))
    parts.append(Part("memory", _copy_speed(), "scales the advisor's predictions"))
    cpu_works, cpu = _try_cpu()
    gpu_works, gpu = _try_gpu(parts)
    if arguments.json:
        print(as_json({"parts": [asdict(part) for part in parts], "cpu_works": cpu_works, "cpu": cpu,
                       "gpu_works": gpu_works, "gpu": gpu}))
    else:
        _show(parts, cpu, gpu)
    return 0 if cpu_works else 2


def _version(distributions) -> str:
    """Return the version of the first installed one of these distributions (names of packages), or ""."""
    for name in distributions:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return ""


def _copy_speed() -> str:
    """Return one thread's copy speed as text: as the advisor stored it in a file, or measured now."""
    from swell.advisor.machine import complaints, machine
    from swell.core.devices import make_space
    speed = machine(make_space("cpu")).copy
    return "; ".join([f"one thread copies {speed / 1e9:.3g} GB/s", *complaints()])


def _mpi() -> str:
    """Return the version of the MPI library as text, or "" if there is none.

    MPI is not started, since this command must not join a parallel job. A separate process loads it, since MPI ends a
    process that loads it in this way and uses it later.
    """
    asked = subprocess.run([sys.executable, "-c", "import mpi4py; mpi4py.rc.initialize = False\n"
                            "from mpi4py import MPI; print(MPI.Get_library_version())"],
                           capture_output=True, text=True, timeout=60, check=False)
    return " ".join(asked.stdout.split("\n")[0].split(",")[0].strip("\0").split()) if asked.returncode == 0 else ""


def _loaded(petsc):
    """Return ``petsc``, the Part petsc4py; marked as missing if it does not load (as one built for NumPy 1 with NumPy
    2).

    A separate process tries to load it, since loading starts MPI.
    """
    asked = subprocess.run([sys.executable, "-c", "from petsc4py import PETSc"], capture_output=True, text=True,
                           timeout=60, check=False)
    if asked.returncode == 0:
        return petsc
    last = (asked.stderr.strip().splitlines() or [f"it ended with status {asked.returncode}"])[-1]
    return replace(petsc, found="", remedy=f"{PETSC}; {petsc.found} is installed and does not load: {last}")


def _nccl() -> str:
    """Return the NCCL version that CuPy finds, if no package provides NCCL; or ""."""
    try:
        with warnings.catch_warnings():          # CuPy warns if there is no NCCL
            warnings.simplefilter("ignore")
            from cupy.cuda import nccl           # importing cupy.cuda does not load this module
        return f"as CuPy finds it, {nccl.get_version()}" if nccl.available else ""
    except Exception:  # noqa: BLE001            CuPy without a driver fails in many ways
        return ""


def _driver() -> str:
    """Return the GPUs as nvidia-smi lists them, or ""."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ""
    asked = subprocess.run([tool, "--query-gpu=name,memory.total,compute_cap,driver_version", "--format=csv,noheader"],
                           capture_output=True, text=True, timeout=30, check=False)
    return "; ".join(asked.stdout.strip().splitlines()) if asked.returncode == 0 else ""


def _solve(device):
    """Solve 2500 unknowns on a device; return (True if converged, a sentence on the result)."""
    import numpy as np

    import swell
    A = swell.gallery.poisson2d(CHECK_SIDE)
    result = swell.solve(A, np.ones(A.shape[0]), device=device)
    counted = f"{result.iterations} iteration{'s' * (result.iterations != 1)}"
    return result.converged, (f"solved {A.shape[0]} unknowns with {result.method} in {counted} on {result.device}, "
                              f"true residual {result.residual:.1e}")


def _try_cpu():
    """Solve a small system on the CPU; return (True if this works, a sentence on it). Any error becomes the sentence;
    none is raised."""
    try:
        return _solve("cpu")
    except Exception as error:  # noqa: BLE001
        return False, f"a small solve failed with {type(error).__name__}: {error}"


def _try_gpu(parts):
    """Solve a small system on the GPU, if there is one; return (True if this works, a sentence on it). Any error
    becomes the sentence; none is raised. ``parts``: the list of all Parts found."""
    versions = {part.name: part.found for part in parts}
    if not versions["CuPy"]:
        if versions["NVIDIA driver and GPU"]:
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
    except Exception as error:  # noqa: BLE001     drivers fail in many ways
        words = " ".join(str(error).split())
        return False, f"CuPy is installed, but the GPU does not work: {type(error).__name__}: {words}"


def _cuda(version):
    """Return CUDA's version number as text: 13000 becomes 13.0."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _show(parts, cpu, gpu):
    """Print ``parts`` as a table, the commands that install missing ones, and the sentences ``cpu`` and ``gpu``."""
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
