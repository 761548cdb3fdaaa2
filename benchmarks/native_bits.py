"""Compare the bits of the native kernels' results between processors and compilers:
`python benchmarks/native_bits.py [--marches x86-64-v2,x86-64-v3,x86-64-v4] [--compilers g++,clang++]`.

It builds the library for each, runs the cases of native_kernels.py with one thread and with three, and prints a digest
of all results for each; it exits with 1 if two differ. CMake and ninja must be in PATH.
"""
from __future__ import annotations

import argparse
import collections
import hashlib
import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]


def build(folder, compiler, march):
    """Build the library into ``folder``; return its path."""
    subprocess.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DSKBUILD=1", f"-DSWELL_MARCH={march}",
                    f"-DCMAKE_CXX_COMPILER={compiler}", f"-DPython_EXECUTABLE={sys.executable}"],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder], check=True, stdout=subprocess.DEVNULL)
    return next(pathlib.Path(folder).glob("_native*"))


def results(path, threads):
    """Load the library at ``path`` in this process, run every case, and print a digest of each kernel's results."""
    loader = importlib.machinery.ExtensionFileLoader("swell._native", path)
    native = importlib.util.module_from_spec(importlib.util.spec_from_loader("swell._native", loader))
    loader.exec_module(native)
    import swell
    sys.modules["swell._native"] = swell._native = native
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from native_kernels import FAMILIES, flattened
    native.set_threads(threads)
    for dtype in ("float64", "float32", "complex128", "complex64"):
        for name, family in FAMILIES.items():
            if name == "amg" and dtype != "float64":
                continue
            for rows in (1000, 30_000):
                for case in family(rows, dtype):
                    case.new(*case.arguments[1])
                    digest = hashlib.sha256(b"".join(a.tobytes() for a in flattened(case.arguments[1])))
                    print(dtype, rows, case.name.replace(" ", "_"), digest.hexdigest())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marches", default="x86-64-v2,x86-64-v3,x86-64-v4")
    parser.add_argument("--compilers", default="g++,clang++")
    given, found = parser.parse_args(), collections.defaultdict(dict)
    for compiler in filter(shutil.which, given.compilers.split(",")):
        for march in given.marches.split(","):
            with tempfile.TemporaryDirectory() as folder:
                path = build(folder, compiler, march)
                for threads in (1, 3):
                    said = subprocess.run([sys.executable, __file__, str(path), str(threads)], check=True, text=True,
                                          stdout=subprocess.PIPE).stdout
                    print(f"{compiler} {march}, threads {threads}: {hashlib.sha256(said.encode()).hexdigest()[:16]}",
                          flush=True)
                    for line in said.splitlines():
                        case, digest = line.rsplit(" ", 1)
                        found[case].setdefault(digest, f"{compiler} {march}, threads {threads}")
    different = {case: digests for case, digests in found.items() if len(digests) > 1}
    for case, digests in different.items():
        print(f"{case}: differs between {' and '.join(digests.values())}")
    sys.exit(bool(different))


if __name__ == "__main__":
    if len(sys.argv) == 3 and not sys.argv[1].startswith("-"):
        results(sys.argv[1], int(sys.argv[2]))
    else:
        main()
