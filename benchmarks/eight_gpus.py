"""Everything that is to be measured on a host with several GPUs, in parts of limited time.

    python benchmarks/eight_gpus.py OUT [PART ...] [--gpus 8] [--petsc 'mpiexec -n {ranks} ./petsc_bjacobi']
        [--cabin FOLDER] [--list] [--rehearse [--device cuda]]

Each part runs its commands one after the other, and writes what they print to OUT/PART.txt, records of `swell bench`
also to OUT/PART.jsonl. At its limit a part is ended, and so is a command that fails; all others run. FOLDER has K.npz,
M.npz and B.npz of the real cabin. ``--list`` shows the parts with their predicted times and memory for eight GPUs
(benchmarks/notes/many_gpus.md derives them). The exit status is 1 if a command failed or was ended.

``--rehearse`` runs all parts at tiny sizes on ranks with a CPU each; with ``--device cuda`` on emulated GPUs
(PYTHONPATH=tests/emulation:. SWELL_EMULATED_GPUS=2, and --gpus 2), where launches and host reads are counted.
"""
from __future__ import annotations

import argparse
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from swell import gallery
from swell.bench.scaling import start

HERE = pathlib.Path(__file__).parent
COUNTS = (1, 2, 4, 8)
GRACE = 10.0            # seconds between a request to end and the end of all processes of a command
PATIENCE = 4            # times the limit: in a rehearsal ranks wait for cores
SWEEPS = "2,3,5,8"


@dataclass(frozen=True)
class Sizes:
    """Rows, planes of 3D grids a rank, points along an edge, and repetitions."""

    strong: int = 1_000_000
    weak: int = 1_000_000           # a rank
    large: int = 16_000_000
    planes: int = 125               # of side² points, a rank
    weak_planes: int = 100
    side: int = 1000
    flow: int = 200                 # cells along an edge, on one rank
    flow_iterations: int = 15
    columns: int = 100
    edge: int = 464
    iterations: int = 200
    repeat: int = 10


TINY = Sizes(3000, 1500, 6000, 3, 2, 10, 8, 4, 9, 8, 20, 1)
ON_EMULATED = ["-m", "pytest", "-q", "-m", "gpu", str(HERE.parent / "tests" / "bench" / "test_block_gmres.py"), "-k",
               "across_gpus"]


@dataclass(frozen=True)
class Run:
    """What the command line asks for."""

    out: pathlib.Path
    gpus: int
    device: str = "cuda"
    rehearsal: bool = False
    petsc: str | None = None
    cabin: pathlib.Path | None = None

    @property
    def sizes(self) -> Sizes:
        return TINY if self.rehearsal else Sizes()

    @property
    def counts(self) -> list[int]:
        """Numbers of ranks."""
        return [count for count in COUNTS if count < self.gpus] + [self.gpus]

    def script(self, ranks, name, *arguments) -> list[str]:
        """The command of a script of this folder on some ranks."""
        words = [str(HERE / f"{name}.py"), *map(str, arguments), "--device", self.device]
        if self.rehearsal and self.device == "cuda":             # processes cannot share emulated GPUs
            return [sys.executable, str(HERE / "threads_as_ranks.py"), str(ranks), *words]
        return [start.mpiexec("block-gmres"), "-n", str(ranks), sys.executable, *words]

    def block(self, part, ranks, *arguments, petsc=False, sweeps=SWEEPS) -> list[str]:
        """The command of the block paper's experiments, PETSc on as many CPU ranks as there are GPUs. On emulated GPUs,
        where 1500 iterations take minutes, it is their test, with 35."""
        if self.rehearsal and self.device == "cuda":
            return [sys.executable, *ON_EMULATED]
        beside = ["--petsc", self.petsc, "--petsc-ranks", str(self.gpus)] if petsc and self.petsc else []
        return [sys.executable, "-m", "swell", "bench", "block-gmres", "--device", self.device, "--ranks",
                ",".join(map(str, ranks)), "--threads", "1" if self.rehearsal else "8", "--sweeps",
                "2" if self.rehearsal else sweeps, "--no-cusparse", "--no-cpu", "--out",
                str(self.out / f"{part}.jsonl"), *map(str, arguments), *beside]


@dataclass(frozen=True)
class Part:
    """One part: what it shows, predicted seconds and GiB a GPU on eight GPUs, its limit, and its commands for a Run."""

    shows: str
    seconds: float
    limit: float
    memory: float
    commands: object


def sized(rows, *words):
    """NAME:ROWS, or NAME:ROWS/BLOCK, of each NAME or NAME/BLOCK, separated by commas."""
    return ",".join(f"{name}:{rows}{slash}{block}" for name, slash, block in (word.partition("/") for word in words))


def check(run):
    return [run.script(run.gpus, "many_gpus", "--edge", 8, "--matrices", "", "--iterations", 30)]


def poisson(run):
    s = run.sizes
    return [run.script(run.gpus, "multigrid_ranks", "--planes", s.planes * run.gpus, "--side", s.side, "--repeat", 2,
                       "--lean", *(["--malloc-async"] if run.device == "cuda" else []))]


def poisson_weak(run):
    s = run.sizes
    return [run.script(count, "multigrid_ranks", "--planes", s.weak_planes * count, "--side", s.side, "--repeat", 2,
                       "--lean", *(["--malloc-async"] if run.device == "cuda" else [])) for count in run.counts]


def block(run):
    s = run.sizes
    points = sized(s.strong, "atmosmodd~/4") if run.rehearsal else "atmosmodd~/4"        # the paper's 1.26 million
    named = sized(s.strong, "coupled_transport3", "coupled_transport4", "multiconductor2")
    return [run.block("block", run.counts, "--repeat", s.repeat, "--matrices", f"{named},{points}", petsc=True)]


def block_weak(run):
    s = run.sizes
    return [run.block("block-weak", run.counts, "--repeat", max(1, s.repeat // 2), "--unknowns", s.weak, "--matrices",
                      "coupled_transport3,coupled_transport4,multiconductor2,atmosmodd~/4", sweeps="3,8")]


def block_large(run):
    s, ranks = run.sizes, sorted({max(1, run.gpus // 4), run.gpus})
    return [run.block("block-large", ranks, "--repeat", max(1, s.repeat // 2), "--matrices", sized(s.large, *words),
                      petsc=petsc, sweeps="3,8") for words, petsc in
            ((("coupled_transport4",), True), (("atmosmodd~/4", "coupled_transport3", "multiconductor2"), False))]


def flow(run):
    s = run.sizes
    grown = round(s.flow * run.gpus ** (1 / 3))                  # as many cells a rank as on one
    return [run.script(ranks, "flow_ranks", cells, "--iterations", s.flow_iterations)
            for ranks, cells in dict.fromkeys(((run.gpus, grown), (run.gpus, s.flow), (1, s.flow)))]


def cabin(run):
    return [run.script(count, "right_hand_sides_ranks", "--cabin", run.cabin, "--columns", run.sizes.columns)
            for count in dict.fromkeys((run.gpus, 1))]


def many(run):
    s = run.sizes
    return [run.script(count, "many_gpus", "--edge", s.edge, "--matrices", "", "--iterations", s.iterations)
            for count in run.counts]


PARTS = {
    "check": Part("a tiny system on all GPUs: they reach one another, and kernels compile", 25, 60, 1, check),
    "poisson": Part("a billion rows on eight GPUs: setup, solve, again, bytes a row", 35, 90, 87, poisson),
    "block": Part("block GMRES, a million rows, strong, beside PETSc", 125, 170, 3, block),
    "flow": Part("SIMPLE on 64 and 8 million cells", 115, 170, 75, flow),
    "cabin": Part("100 sources in the cabin", 30, 50, 3, cabin),
    "poisson-weak": Part("100 million rows a GPU", 110, 140, 70, poisson_weak),
    "block-weak": Part("block GMRES, a million rows a GPU", 190, 230, 3, block_weak),
    "block-large": Part("block GMRES, 16 million rows, strong, one of them beside PETSc", 250, 290, 16, block_large),
    "many": Part("products and CG on 100 million rows, strong and weak", 110, 150, 50, many),
}
USUAL = [name for name in PARTS if name != "many"]               # 20 minutes


def ended(process):
    """End a command and all that it started."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, kind)         # mpiexec passes SIGTERM on to its ranks
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            continue
        except ProcessLookupError:
            return


def ran(name, commands, limit, out) -> tuple[float, list[str]]:
    """Run the commands of a part for ``limit`` seconds in all; return (seconds, how each ended)."""
    begin, states = time.monotonic(), []
    with open(out / f"{name}.txt", "w", encoding="utf-8") as record:
        for words in commands:
            left = limit - (time.monotonic() - begin)
            if left <= 0:
                states.append("not begun")
                continue
            print("$", shlex.join(words), file=record, flush=True)
            process = subprocess.Popen(words, stdout=record, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                status = process.wait(left)
                states.append("done" if status == 0 else f"failed with status {status}")
            except subprocess.TimeoutExpired:
                states.append(f"ended after {left:.0f} s")
            finally:
                ended(process)
            print(f"# {states[-1]}; {time.monotonic() - begin:.1f} s of the part", file=record, flush=True)
    return time.monotonic() - begin, states


def small_cabin(folder):
    """Write matrices in the place of the real cabin's."""
    n = 6
    for name, matrix in {"K": gallery.poisson3d(n), "M": 0.03 * sp.eye_array(n**3),
                         "B": sp.diags_array(0.5 * (np.arange(n**3) % n == 0))}.items():
        sp.save_npz(folder / f"{name}.npz", sp.csr_matrix(matrix))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path, help="folder for the records")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all but many")
    parser.add_argument("--gpus", type=int, default=8, help="ranks at most")
    parser.add_argument("--device", choices=("cuda", "cpu"), help="default: cuda, of a rehearsal cpu")
    parser.add_argument("--petsc", metavar="COMMAND", help="starts the program made from petsc_bjacobi.c")
    parser.add_argument("--cabin", type=pathlib.Path, help="without it this part is left out")
    parser.add_argument("--limit", type=float, help="seconds of each part; default: its own limit, four times "
                        "that in a rehearsal")
    parser.add_argument("--list", action="store_true", help="show the parts, and run nothing")
    parser.add_argument("--rehearse", action="store_true")
    given = parser.parse_args()
    if unknown := [name for name in given.parts if name not in PARTS]:
        parser.error(f"PART {', '.join(unknown)}: expected some of {', '.join(PARTS)}")
    if given.gpus < 1:
        parser.error(f"--gpus {given.gpus}: expected a positive number")
    if given.list:
        print(f"{'part':14}{'seconds':>8}{'limit':>8}{'GiB a GPU':>12}  shows")
        for name, part in PARTS.items():
            print(f"{name:14}{part.seconds:8.0f}{part.limit:8.0f}{part.memory:12.0f}  {part.shows}")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))     # so that commands end with this
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if given.rehearse and given.cabin is None:
            given.cabin = pathlib.Path(folder)
            small_cabin(given.cabin)
        return all_parts(given)


def all_parts(given) -> int:
    """Run the parts of the command line; return the exit status."""
    device = given.device or ("cpu" if given.rehearse else "cuda")
    run = Run(given.out, given.gpus, device, given.rehearse, given.petsc, given.cabin)
    failed = False
    for name in given.parts or USUAL:
        part = PARTS[name]
        if name == "cabin" and given.cabin is None:
            print(f"{name:14} left out: name the folder by --cabin", flush=True)
            failed = failed or name in given.parts
            continue
        limit = given.limit or part.limit * (PATIENCE if given.rehearse else 1)
        seconds, states = ran(name, part.commands(run), limit, given.out)
        predicted = "" if given.rehearse else f", predicted {part.seconds:.0f} on eight GPUs"
        print(f"{name:14} {seconds:7.1f} s{predicted}: {', '.join(states)}", flush=True)
        failed = failed or any(state != "done" for state in states)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
