"""compute-sanitizer over one small case of every kernel: memory, races, barriers.

    SWELL_LAUNCHES=FOLDER python -m pytest -m gpu -p tests.launches -n 8 tests    # notes what each test launches
    python benchmarks/sanitize.py FOLDER OUT [--tools memcheck,racecheck,synccheck] [--groups 8]

Of the tests that passed the fewest and shortest are chosen that launch every kernel between them. They run under each
tool in some processes side by side, their logs go to OUT, and what was found is printed. Kernels that no test launched
are named.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

from swell.core.cuda_sources import kernel_files, signatures

ROOT = pathlib.Path(__file__).parents[1]
FOUND = ("ERROR SUMMARY", "RACECHECK SUMMARY")


def all_kernels():
    """Every kernel of the package, as the notes name them."""
    return {f"{path.parent.parent.name}/{path.stem}:{name}" for path in kernel_files(ROOT / "swell")
            for name in signatures(path)}


def chosen(notes):
    """Tests that launch every kernel: each time the one with most new kernels a second."""
    left, picked = set.union(*(set(note["kernels"]) for note in notes)), []
    while left:
        best = max(notes, key=lambda note: len(left & set(note["kernels"])) / (note["seconds"] + 0.05))
        picked.append(best)
        left -= set(best["kernels"])
    return picked


def start(tool, tests, out, gpu):
    """One process of one tool; its log is named after both."""
    log = open(out, "w", encoding="utf-8")
    environment = os.environ | {"SWELL_NO_POOL": "1", "CUDA_VISIBLE_DEVICES": gpu}
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "9", sys.executable, "-m", "pytest", "-q", "-p",
               "no:cacheprovider", "-p", "tests.launches", "-m", "gpu", "--tb=short", *tests]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=subprocess.STDOUT)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notes", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--tools", default="memcheck,racecheck,synccheck")
    parser.add_argument("--groups", type=int, default=8, help="processes a tool")
    parser.add_argument("--only", default="", help="pattern of the kernels to launch, such as 'krylov/|batch/(cg|gmres):'")
    parser.add_argument("--limit", type=int, default=400, help="seconds after which a process is ended, and said")
    parser.add_argument("--gpus", default="0", help="numbers, by commas; processes take turns")
    given = parser.parse_args()
    notes = [json.loads(line) for file in given.notes.glob("*.jsonl") for line in file.read_text().splitlines()]
    notes = [note for note in notes if "test_gpus" not in note["test"] and "bddc_gpus" not in note["test"]]
    for note in notes:
        note["kernels"] = [kernel for kernel in note["kernels"] if re.match(given.only, kernel)]
    picked = chosen(notes)
    tests, covered = [note["test"] for note in picked], {k for note in picked for k in note["kernels"]}
    every, gpus = {kernel for kernel in all_kernels() if re.match(given.only, kernel)}, given.gpus.split(",")
    print(f"{len(tests)} tests launch {len(covered & every)} of {len(every)} kernels")
    print("not launched:", ", ".join(sorted(every - covered)) or "none")
    given.out.mkdir(parents=True, exist_ok=True)
    under_way = []
    for tool in given.tools.split(","):
        for k in range(given.groups):
            log = given.out / f"{tool}.{k}.txt"
            under_way.append((log, start(tool, tests[k::given.groups], log, gpus[k % len(gpus)])))
    for log, process in under_way:
        try:
            code = process.wait(given.limit)
        except subprocess.TimeoutExpired:
            process.kill()
            code = "ended at the limit"
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        said = [line for line in lines if any(word in line for word in FOUND) or " passed" in line or " failed" in line]
        print(f"{log.stem}: {code}; {'; '.join(said[-2:])}")


if __name__ == "__main__":
    main()
