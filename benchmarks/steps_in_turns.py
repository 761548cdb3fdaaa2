"""Steps of Krylov methods by several copies of swell, a process for each, in turns: new / old times of single kernels.

    python benchmarks/steps_in_turns.py OLD NEW [--device cuda] [--only cg.] [--rows 3000,100000,3000000]

OLD and NEW hold a package ``swell`` with its native library. The steps that NEW has as one text are called with arguments made from
their declarations: random vectors, other ones at each turn and at other places of memory, no weights, and scalars of 1. On a CPU:
processor seconds of one thread, the least of all turns. On a GPU: events around a graph of launches, the median. An editable install
of swell takes precedence over OLD and NEW: use a Python without one.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import numpy as np

TYPES = "float64", "float32", "complex128", "complex64"
KRYLOV = "cg", "bicgstab", "cocg", "cocr", "minres", "qmr", "tfqmr", "single_reduction_cg", "shadow"
FILES = [("swell.krylov", stem) for stem in KRYLOV] + [("swell.least_squares", stem) for stem in ("golub_kahan", "lsqr", "lsmr")]


def declared(folder):
    """[file, kernel, [(name, form, type) of each parameter]] of the steps of the package in ``folder``."""
    code = ("import json, sys; from swell.core import cuda_sources as s\n"
            "print(json.dumps([[package, stem, k.name, [(p.name, p.form, p.type) for p in k.parameters]]"
            " for package, stem in json.loads(sys.argv[1])"
            " for k in s.signatures(s.kernel_file(package, stem)).values() if k.launch['pack']]))")
    return json.loads(subprocess.run([sys.executable, "-c", code, json.dumps(FILES)], check=True, capture_output=True, text=True,
                                     env={**os.environ, "PYTHONPATH": folder}).stdout)


def work(device):
    """Time the calls that stdin names, a line each: print their seconds."""
    from swell.core.devices import make_space
    from swell.core.library import _native
    from swell.core.slots import Flag, Limit
    _native.set_threads(1)
    space, rng = make_space(device), np.random.default_rng()

    def vector(n, dtype):
        x = rng.standard_normal(n) + (1j * rng.standard_normal(n) if dtype[0] == "c" else 0)
        place = 64 * int(rng.integers(128)) // np.dtype(dtype).itemsize                    # no two at distances of pages
        held = space.empty(n + place, np.dtype(dtype))[place:]
        held[:] = space.xp.asarray(x.astype(dtype)) if device == "cuda" else x
        return held

    def arguments(parameters, n, dtype):
        sums = "complex128" if dtype[0] == "c" else "float64"
        made = {"float": lambda: space.empty(0, np.float32), "double": lambda: space.empty(0, np.float64), "T": lambda: vector(n, dtype)}
        for name, form, kind in parameters:
            yield (1e-16 if kind == "double" else True) if not form else made[kind]() if kind in made else vector(40, sums) * 0 + 1

    def record():
        flags, limits = np.zeros(len(Flag), np.int64), np.zeros(len(Limit))
        flags[Flag.MAXITER], limits[Limit.GROWTH2], limits[Limit.BEST2] = 10**9, 1e300, 1e300
        return flags, limits

    def on_cpu(package, stem, name, parameters, n, dtype):
        from swell.core.library import native_kernels
        flags, limits = record()
        kernel, given = getattr(native_kernels(package, stem), name), [*arguments(parameters, n, dtype)]
        state, count = (flags, limits, np.zeros(1 << 20)), max(3, 2_000_000 // n)
        kernel(state, *given)
        began = time.process_time()
        for _ in range(count):
            kernel(state, *given)
        return (time.process_time() - began) / count

    def on_gpu(package, stem, name, parameters, n, dtype):
        cupy, (flags, limits) = space.xp, record()
        history, mirror, host = cupy.zeros(1 << 20), cupy.zeros(1), space.host_context
        host["flags"], host["limits"], host["history"], host["mirror"] = flags, limits, history.data.ptr, mirror.data.ptr
        space.send_context()
        kernel, given = getattr(space.kernels(package, stem, np.dtype(dtype)), name), [*arguments(parameters, n, dtype)]
        kernel(*given)
        count, spent = 60 if n < 10**6 else 6, []
        space.stream.begin_capture()
        for _ in range(count):
            kernel(*given)
        graph = space.stream.end_capture()
        for _ in range(15):
            begin, end = cupy.cuda.Event(), cupy.cuda.Event()
            begin.record(space.stream), graph.launch(space.stream), end.record(space.stream), end.synchronize()
            spent.append(cupy.cuda.get_elapsed_time(begin, end) / count / 1e3)
        if int(space.context[:8 * len(Flag)].get().view(np.int64)[Flag.STOP]):
            raise RuntimeError(f"{stem}.{name} stopped its loop: a stopped kernel does nothing, and its time means nothing")
        return float(np.median(spent))

    with space.active():
        for line in sys.stdin:
            print(json.dumps((on_gpu if device == "cuda" else on_cpu)(*json.loads(line))), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old"), parser.add_argument("new"), parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default=""), parser.add_argument("--rows", default="3000,100000,3000000"), parser.add_argument("--turns", type=int, default=10)
    given = parser.parse_args()
    workers = [subprocess.Popen([sys.executable, __file__, "--work", given.device], env={**os.environ, "PYTHONPATH": folder},
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for folder in (given.old, given.new)]

    def ask(worker, *call):
        worker.stdin.write(json.dumps(call) + "\n"), worker.stdin.flush()
        return json.loads(worker.stdout.readline())

    for package, stem, name, parameters in declared(given.new):
        for dtype in TYPES if given.only in f"{stem}.{name}" else ():
            cells = []
            for n in map(int, given.rows.split(",")):
                turns = [[ask(worker, package, stem, name, parameters, n, dtype) for worker in workers] for _ in range(given.turns)]
                old, new = map(min, zip(*turns))
                cells.append(f"{new / old:6.3f} of {old * 1e6:9.1f} µs")
            print(f"{stem}.{name:12s} {dtype:10s}", *cells, flush=True)


if __name__ == "__main__":
    work(sys.argv[2]) if sys.argv[1:2] == ["--work"] else main()
