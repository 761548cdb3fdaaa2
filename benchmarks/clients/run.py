"""Programs that use SciPy's solvers, with swell in their place and beside their default solver, in turns.

    python benchmarks/clients/run.py [--turns 7] [--write docs/GUESTS.md] [NAME ...]

Each file `client_NAME.py` beside this one has a generator ``cases()`` of (words, rows, default, ours): two functions
without arguments that run the program and return its x. A client that is not installed is left out. The ratio is the
median over turns of ours / default, both timed in one turn; the first turn is not counted. Its second number is of the
process' CPU time, which other work on the machine disturbs less.
"""
from __future__ import annotations

import argparse
import importlib.util
import logging
import pathlib
import subprocess
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version

import numpy as np

HERE = pathlib.Path(__file__).parent
FIRST, LAST = "<!-- clients -->", "<!-- /clients -->"
SHORT = 0.2             # seconds of a default below which three times as many turns are taken
HEADER = ("| program | case | rows | default, ms | swell, ms | ratio | ratio of CPU time | difference of x |\n"
          "|---|---|---|---|---|---|---|---|")


def timed(call):
    """Return (seconds, seconds of CPU time, x) of a call."""
    start, cpu = time.perf_counter(), time.process_time()
    x = call()
    return time.perf_counter() - start, time.process_time() - cpu, np.asarray(x)


def rows(name, turns):
    """Yield the table's rows of a client."""
    spec = importlib.util.spec_from_file_location(name, HERE / f"client_{name}.py")
    client = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(client)
    try:
        program = f"{client.PACKAGE} {version(client.PACKAGE)}"
    except PackageNotFoundError:
        print(f"{name}: {client.PACKAGE} is not installed", file=sys.stderr)
        return
    for words, size, default, ours in client.cases():
        seconds, apart = [], 0.0                 # of each turn: default, its CPU time, ours, its CPU time
        turn, most = 0, turns
        while turn <= most:
            (*a, x), (*b, y) = (timed(default), timed(ours)) if turn % 2 else (timed(ours), timed(default))[::-1]
            apart = max(apart, float(abs(x - y).max() / (abs(x).max() or 1)))
            if turn:
                seconds.append([*a, *b])
            elif a[0] < SHORT:
                most = 3 * turns
            turn += 1
        theirs, cpu, mine, own_cpu = np.transpose(seconds)
        yield (f"| {program} | {words} | {size} | {1e3 * np.median(theirs):.3g} | {1e3 * np.median(mine):.3g} | "
               f"{np.median(mine / theirs):.2f} | {np.median(own_cpu / cpu):.2f} | {apart:.0e} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="clients; by default all that are installed")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--write", metavar="PAGE", help="put the table of several between the marks of this page")
    arguments = parser.parse_args()
    sys.argv = sys.argv[:1]                      # FiPy reads it
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    names = arguments.names or sorted(path.stem.removeprefix("client_") for path in HERE.glob("client_*.py"))
    if len(names) == 1:
        for row in rows(names[0], arguments.turns):
            print(row, flush=True)
        return
    lines = HEADER.splitlines()
    for name in names:                           # in a process of its own: some libraries do not bear one another
        command = [sys.executable, __file__, name, "--turns", str(arguments.turns)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for row in process.stdout:
                if row.startswith("| "):
                    print(row, end="", flush=True)
                    lines.append(row.rstrip())
        if process.returncode:
            print(f"{name}: ended with status {process.returncode}", file=sys.stderr)
    if arguments.write:
        page = pathlib.Path(arguments.write)
        before, rest = page.read_text(encoding="utf-8").split(FIRST)
        after = rest.split(LAST)[1]
        page.write_text(before + "\n".join([FIRST, *lines, LAST]) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
