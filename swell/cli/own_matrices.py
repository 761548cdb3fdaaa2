"""``swell helmholtz --matrices K M B``: sweeps of one's own matrices."""
from __future__ import annotations

import time

from swell.cli.arguments import named_solver
from swell.cli.output import as_json, for_shell
from swell.core.errors import InputError

# Options that need a mesh, and their defaults.
MESHED = {"source": [], "at_once": False, "ear": [], "wall": [], "medium": [], "velocity": None, "pml": None,
          "density": "1.204", "damping": "0.0", "degree": 1, "modes": None, "near": None, "vtu": None,
          "picture": None, "vtu_at": None,
          "wav": None, "save_mesh": None}
OWN = ("load", "row", "wavenumber")


def add_matrices(parser):
    """Add the options for one's own matrices."""
    parser.add_argument("--matrices", nargs=3, metavar=("K", "M", "B"), help="in place of MESH: files of your own "
                        "matrices; solves (K - w^2 M + iw B) x = iw f with w = 2 pi times the frequency; B may be none")
    parser.add_argument("--load", metavar="FILE|ROW", action="append", default=[], help="with --matrices: a file with "
                        "f (columns are several), or the row of a unit load; may be repeated")
    parser.add_argument("--row", type=int, metavar="ROW", action="append", default=[],
                        help="with --matrices: a row of x, from 0 on, to keep; may be repeated")
    parser.add_argument("--wavenumber", action="store_true", help="with --matrices: solve (K - k^2 M + ik B) x = "
                        "ik f, with k = w / --speed")


def check_matrices(arguments, ranks):
    """Raise InputError for a mesh beside matrices, for neither, or for options without effect."""
    if arguments.matrices is None:
        if arguments.MESH is None:
            raise InputError("neither a MESH nor --matrices K M B came: give a mesh, such as cabin.msh or cabin:0.1, "
                             "or your own matrices")
        idle = [name for name in OWN if getattr(arguments, name)]
        if idle:
            raise InputError(f"--{idle[0]} has no effect without --matrices: leave it out")
        return
    if arguments.MESH is not None:
        raise InputError(f"{arguments.MESH} and --matrices came: give a mesh or matrices")
    if ranks is not None and ranks.size > 1:
        raise InputError(f"--matrices works on one rank, and mpiexec started {ranks.size}: start one")
    idle = [name for name, default in MESHED.items() if getattr(arguments, name) != default]
    if idle:
        raise InputError(f"--{idle[0].replace('_', '-')} needs a mesh and has no effect with --matrices: leave it out")
    for name, example in (("band", "20:200:5"), ("load", "f.npy"), ("row", "17")):
        if not getattr(arguments, name):
            raise InputError(f"--{name} is missing: --matrices needs it, such as --{name} {example}")


def run_matrices(arguments) -> int:
    """Read the matrices, sweep, write and print; return the exit status."""
    from swell.cli.source import read_system
    from swell.core.devices import make_space
    from swell.pde import helmholtz
    from swell.solving.progress import Progress
    band, settings = helmholtz.band(arguments.band), named_solver(arguments)
    make_space(arguments.device)
    speed = None
    if arguments.wavenumber:
        try:
            speed = float(arguments.speed)
        except ValueError:
            raise InputError(f"--speed {arguments.speed}: with --wavenumber expected a number, m/s") from None
    with Progress(shown=not arguments.quiet) as progress:
        progress.phase = f"reading {arguments.matrices[0]}"
        K, M = (read_system(name)[0] for name in arguments.matrices[:2])
        B = K * 0 if arguments.matrices[2] == "none" else read_system(arguments.matrices[2])[0]
        loads, names = _loads(arguments.load, K.shape[0])
        start, done = time.perf_counter(), []

        def watch(frequency, result):
            done.append(frequency)
            remaining = (time.perf_counter() - start) / len(done) * (len(band) - len(done))
            progress.phase = f"{frequency:g} Hz done ({len(done)} of {len(band)}): about {remaining:.0f} s to go"
        response = helmholtz.sweep_matrices(
            K, M, B, loads, arguments.row, band, speed=speed, names=names, watch=watch,
            settings={**settings, "rtol": 1e-6 if arguments.rtol is None else arguments.rtol,
                      "maxiter": arguments.maxiter, "device": arguments.device, "dtype": arguments.dtype,
                      "reuse": not arguments.no_reuse})
    written = [name for name in (arguments.csv, arguments.plot) if name]
    if arguments.csv:
        response.write_csv(arguments.csv)
    if arguments.plot:
        response.plot(arguments.plot)
    if arguments.json:
        print(as_json({"matrices": arguments.matrices, **response.as_dict(), "written": written},
                      vars(arguments)))
    elif not arguments.quiet:
        print(for_shell(response, vars(arguments)))
        for path in written:
            print(f"  written: {path}")
    return 0 if response.converged else 1


def _loads(words, n):
    """Return (columns of f, shape (n, k), their names) from files and row numbers."""
    import numpy as np

    from swell.cli.source import file_and_name, read_vector
    columns, names = [], []
    for word in words:
        if word.isdecimal():
            if int(word) >= n:
                raise InputError(f"--load {word}: expected a row from 0 to {n - 1}, or a file")
            columns.append(np.eye(1, n, int(word)).T)
            names.append(f"row {word}")
            continue
        load = np.asarray(read_vector(word))
        if load.shape[0] != n or load.ndim > 2:
            raise InputError(f"--load {word}: it has shape {load.shape}: expected ({n},), as K has {n} rows")
        load = load.reshape(n, -1)
        columns.append(load)
        stem = file_and_name(word)[0]
        names += [stem] if load.shape[1] == 1 else [f"{stem} {j + 1}" for j in range(load.shape[1])]
    return np.hstack(columns), names
