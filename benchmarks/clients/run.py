"""Programs that use SciPy's solvers, with swell in their place and beside their default solver, in turns.

    python benchmarks/clients/run.py [--turns 7] [--write docs/GUESTS.md] [NAME ...]

Each file `client_NAME.py` beside this one has a generator ``cases()`` of (words, rows, default, ours): two functions
without arguments that run the program and return its x. A client that is not installed is left out. The ratio is the
median over turns of ours / default, both timed in one turn; the first turn is not counted.
"""
from __future__ import annotations

import argparse
import importlib.util
import logging
import pathlib
import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version

import numpy as np

HERE = pathlib.Path(__file__).parent
FIRST, LAST = "<!-- clients -->", "<!-- /clients -->"
HEADER = "| program | case | rows | default, ms | swell, ms | ratio | difference of x |\n|---|---|---|---|---|---|---|"


def timed(call):
    """Return (seconds, x) of a call."""
    start = time.perf_counter()
    x = call()
    return time.perf_counter() - start, np.asarray(x)


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
        theirs, mine, apart = [], [], 0.0
        for turn in range(turns + 1):
            (a, x), (b, y) = (timed(default), timed(ours)) if turn % 2 else (timed(ours), timed(default))[::-1]
            apart = max(apart, float(abs(x - y).max() / (abs(x).max() or 1)))
            if turn:
                theirs, mine = [*theirs, a], [*mine, b]
        ratio = np.median(np.divide(mine, theirs))
        yield (f"| {program} | {words} | {size} | {1e3 * np.median(theirs):.3g} | {1e3 * np.median(mine):.3g} | "
               f"{ratio:.2f} | {apart:.0e} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="clients; by default all that are installed")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--write", metavar="PAGE", help="put the table between the marks of this page")
    arguments = parser.parse_args()
    sys.argv = sys.argv[:1]                      # FiPy reads it
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    names = arguments.names or sorted(path.stem.removeprefix("client_") for path in HERE.glob("client_*.py"))
    lines = HEADER.splitlines()
    for name in names:
        for row in rows(name, arguments.turns):
            print(row, flush=True)
            lines.append(row)
    if arguments.write:
        page = pathlib.Path(arguments.write)
        before, rest = page.read_text(encoding="utf-8").split(FIRST)
        after = rest.split(LAST)[1]
        page.write_text(before + "\n".join([FIRST, *lines, LAST]) + after, encoding="utf-8")


if __name__ == "__main__":
    main()
