"""Run scikit-fem's or FiPy's own examples with swell as their solver, and with their default solver.

    python benchmarks/clients/own_examples.py scikit-fem CLONE [--only NAME ...]
    python benchmarks/clients/own_examples.py fipy SOURCES [--only NAME ...]

CLONE and SOURCES are the programs' sources of the installed version, since their wheels have no examples. Each example
runs in a process of its own, with each solver. Its own tests judge it: right; wrong, if one of them fails; failed, for
an error; absent, if it needs a package that is not installed; long, after --limit seconds. An example that makes no
call of a solver that can be replaced counts as "no solve".
"""
from __future__ import annotations

import argparse
import collections
import doctest
import importlib
import importlib.util
import logging
import multiprocessing
import os
import pathlib
import sys
import unittest
import warnings

os.environ |= {"FIPY_SOLVERS": "scipy", "MPLBACKEND": "Agg"}
SOLVERS = "default", "swell"
TOLERANCE = 1e-10, 1e-15   # of scikit-fem and FiPy, whose examples iterate until sweeps change nothing
calls = []              # an entry for each solve by swell


class ScikitFem:
    """The test cases of tests/test_examples.py; swell in the place of every solver of linear systems in skfem.utils."""

    package = "skfem"

    def names(self):
        cases = unittest.defaultTestLoader.loadTestsFromName("tests.test_examples")
        return [type(test).__name__ for suite in cases for test in suite]

    def test(self, name):
        return unittest.defaultTestLoader.loadTestsFromName(f"tests.test_examples.{name}")

    def replace(self):
        import skfem

        from swell.guests.skfem import solver

        def ours(*args, **named):
            solve = solver(rtol=TOLERANCE[0])
            return lambda A, b, **more: calls.append(name_of(A)) or solve(A, b)
        for module in (skfem, skfem.utils):
            for name in ("solver_direct_scipy", "solver_iter_krylov", "solver_iter_pcg", "solver_iter_cg"):
                if hasattr(module, name):
                    setattr(module, name, ours)


class FiPy:
    """The doctests that examples/test.py lists; swell in the place of every solver of FiPy's SciPy suite."""

    package = "fipy"

    def names(self):
        return list(self._leaves("examples.test"))

    def _leaves(self, name):
        try:
            suite = importlib.import_module(name)._suite()
        except ImportError:
            return
        for case in suite:
            if type(case).__name__ == "_LateImportDocTestCase":
                yield case.moduleName
            elif hasattr(case, "moduleName"):
                yield from self._leaves(case.moduleName)

    def test(self, name):
        from fipy.tests.doctestPlus import _SelectiveDocTestParser
        finder = doctest.DocTestFinder(parser=_SelectiveDocTestParser())
        return doctest.DocTestSuite(importlib.import_module(name), test_finder=finder)

    def replace(self):
        import fipy.solvers.scipy as suite

        from swell.guests.fipy import SwellSolver

        class Ours(SwellSolver):
            def __init__(self, tolerance="default", criterion="default", precon=None, **named):
                super().__init__(tolerance=TOLERANCE[1], method="direct")

            def _solve_(self, L, x, b):
                calls.append(name_of(L))
                return super()._solve_(L, x, b)
        theirs = [value for name, value in vars(suite).items() if name.startswith("Linear") and isinstance(value, type)]
        for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "fipy"]:
            for name, value in list(vars(module).items()):
                if any(value is one for one in theirs):
                    setattr(module, name, Ours)


PROGRAMS = {"scikit-fem": ScikitFem, "fipy": FiPy}


def name_of(A):
    return "x".join(map(str, A.shape))


def outcome(program, name, solver, answer):
    """Run one example in this process, and send (its outcome, number of swell's solves, the error's last line)."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1), os.dup2(devnull, 2)
    warnings.simplefilter("ignore")
    if solver == "swell":
        program.replace()
    result, text = unittest.TestResult(), ""
    try:
        program.test(name).run(result)
        problems = result.errors + result.failures
        text = problems[0][1] if problems else ""
        word = "right" if not problems else "failed" if result.errors or "Exception raised:" in text else "wrong"
        if result.skipped and not problems:
            word = "absent"
    except Exception as error:                   # of the example's import
        word, text = "failed", f"{type(error).__name__}: {error}"
    if "ModuleNotFoundError" in text or "ImportError" in text or "gmsh" in text.lower() and word == "failed":
        word = "absent"
    answer.send((word, len(calls), next((line for line in reversed(text.splitlines()) if line.strip("- ")), "")))


def run(program, name, solver, limit):
    """Return what `outcome` sends from a process of its own; "long" after ``limit`` seconds."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=outcome, args=(program, name, solver, there))
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(limit) else ("long", 0, "")
    except EOFError:
        return "failed", 0, "the process ended"
    finally:
        process.kill()
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("sources", type=pathlib.Path)
    parser.add_argument("--only", nargs="+", help="names of examples")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one example and solver")
    arguments = parser.parse_args()
    program = PROGRAMS[arguments.program]()
    if importlib.util.find_spec(program.package) is None:
        print(f"{arguments.program} is not installed: skipped")
        return
    sys.argv = sys.argv[:1]                      # FiPy reads it
    sys.path.insert(0, str(arguments.sources.resolve()))
    os.chdir(arguments.sources)
    importlib.import_module(program.package)
    import swell.api  # noqa: F401     before the forks
    logging.disable(logging.WARNING)
    counts, names = collections.Counter(), arguments.only or program.names()
    for name in names:
        results = {solver: run(program, name, solver, arguments.limit) for solver in SOLVERS}
        words = {solver: word for solver, (word, *_) in results.items()}
        solves = results["swell"][1]
        if words["swell"] == "right" and not solves:
            words["swell"] = "no solve"
        counts.update((solver, word) for solver, word in words.items())
        print(f"{name}: default {words['default']}, swell {words['swell']}, {solves} solves"
              + (f"    {results['swell'][2]}" if words["swell"] in ("wrong", "failed", "absent") else ""),
              flush=True)
    for solver in SOLVERS:
        print(f"{solver}: " + ", ".join(f"{count} {word}" for (of, word), count in sorted(counts.items()) if of == solver)
              + f", of {len(names)}")


if __name__ == "__main__":
    main()
