"""BDDC beside its originals, PETSc's PCBDDC and BDDCML: iterations and CPU seconds on the same subdomain matrices.

    SWELL_DATA=FOLDER python benchmarks/bddc_beside_petsc.py [CASE ...] [--repeat 3] [--out RECORDS]
        [--peer-python /usr/bin/python3] [--mpiexec "mpiexec --oversubscribe"] [--bddcml libbddcml.so] [--before FOLDER]
    python benchmarks/bddc_beside_petsc.py --table RECORDS [--brief]

The peers. Debian: apt-get install python3-petsc4py python3-mpi4py libopenblas0-pthread. Without OpenBLAS PETSc takes
the reference BLAS; without petsc-dev PYTHONPATH must name petsc4py's folder below /usr/lib/petscdir. BDDCML (J.
Šístek's repository sistek/bddcml) needs gfortran and Debian's libopenmpi-dev, libmumps-dev and libmetis-dev. Compile
its src/ with -fPIC and -fallow-argument-mismatch, give lobpcg_driver and ParMetis' two functions empty bodies (they
serve adaptive constraints and the division of meshes only), and link the objects as a shared library with -ldmumps
-lmumps_common -lscalapack-openmpi -lmetis -llapack. A peer that is not there is skipped, with a line that says so.

CG to 1e-8 of ‖b‖, from zero; the residual that is printed is b − A x, computed here. swell and BDDCML are one process
of one thread. PCBDDC wants a rank for each subdomain, so more ranks than cores: CPU seconds are summed over ranks, and
a library that is preloaded lets ranks sleep while they wait (Open MPI's sched_yield), so that waiting costs none. What
messages cost remains. Each process sets up and solves 1 + repeat times, and the least CPU time of the last ones counts;
libraries, compilation and the assembly of the matrices are left out. Of variants that differ by their solvers of
interiors and local problems the fastest is shown. --before runs another copy of swell, too: FOLDER holds the package
with its native library, and the Python no editable install.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse as sp

HERE = pathlib.Path(__file__).parent
RTOL = 1e-8
CASES = ("bracket", "bracket, fine", "beams", "plate with hole", "Poisson, jumps 1e6")
SWELL = {"swell": {"weights": "stiffness"}, "swell, deluxe": {"weights": "deluxe"}}
BEFORE = ("direct", "blocks")            # variants of another copy; here both are the same factors on a CPU
COMMON = "-pc_bddc_use_faces -pc_bddc_corner_selection"
PETSC = {"PCBDDC": f"{COMMON} -pc_is_use_stiffness_scaling",
         "PCBDDC, deluxe": f"{COMMON} -pc_bddc_use_deluxe_scaling -sub_schurs_mat_solver_type mumps"}
PACKAGES = ("petsc", "cholmod", "mumps")
SLEEP = """#include <time.h>
int sched_yield(void) { struct timespec t = {0, 20000}; return nanosleep(&t, 0); }
"""
OURS = """
import json, sys, time
import numpy as np, scipy.sparse as sp, swell
case, rtol, runs, settings = np.load(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
parts = [(sp.csr_matrix((case[f"data{k}"], case[f"indices{k}"], case[f"indptr{k}"])), case[f"dofs{k}"])
         for k in range(int(case["count"]))]
S = swell.Subdomains(parts)
A, b, best = S.assemble(), case["b"], None
if case["modes"].size:
    settings["near_nullspace"] = case["modes"]
for run in range(runs + 1):
    solver = None
    times = [(time.process_time(), time.perf_counter())]
    solver = swell.prepare(A, method="cg", precond=swell.BDDC(subdomains=S, **settings), rtol=rtol, device="cpu")
    times.append((time.process_time(), time.perf_counter()))
    result = solver.solve(b)
    times.append((time.process_time(), time.perf_counter()))
    spent = np.diff(times, axis=0)
    if run and (best is None or spent[:, 0].sum() < best[:, 0].sum()):
        best = spent
np.save(sys.argv[1].replace(".npz", "_x.npy"), result.x)
print(json.dumps({"iterations": result.iterations, "setup": best[0, 0], "solve": best[1, 0],
                  "wall": best[:, 1].tolist(), "version": swell.__version__}))
"""


def elastic(points, cells, clamped, parts):
    """(subdomains, near null vectors, positions of nodes) of a body."""
    import swell
    found, nodes = swell.gallery.elastic_subdomains(points, cells, clamped, parts)
    return found, swell.rigid_body_modes(nodes), nodes


def case_of(name):
    """(subdomains, near null vectors, positions of nodes) of a name of CASES."""
    from bddc_elasticity import mesh

    from swell.pde.poisson_cube import PoissonCube
    meshes = pathlib.Path(os.environ.get("SWELL_DATA", HERE.parent.parent / "shared" / "data")) / "meshes"
    if name.startswith("bracket"):
        sys.path.append(str(HERE.parent))
        from tests.support.bracket import bracket
        points, cells = bracket(0.025 if "fine" in name else 0.05)
        return elastic(points, cells, points[:, 2] > 0.79, 12)
    if name == "beams":
        return elastic(*mesh(meshes / "beams.msh"), 8)
    if name == "plate with hole":
        return elastic(*mesh(meshes / "plateWithHole3D-1.exo"), 12)
    edge, sides = 16, 2
    jumps = 10.0 ** np.random.default_rng(0).uniform(-3, 3, (sides,) * 3)
    system = PoissonCube(edge, sides, coefficient=jumps).assemble()
    line = np.arange(1, edge * sides) / (edge * sides)
    points = np.stack(np.meshgrid(line, line, line, indexing="ij"), axis=-1).reshape(-1, 3)
    return list(zip(system.subdomains.matrices, system.subdomains.dofs, strict=True)), np.zeros((0, 1)), points


def written(path, subdomains, modes, points):
    """Write a case to an .npz file; returns (A, b)."""
    n, arrays = 1 + max(dofs.max() for _, dofs in subdomains), {}
    A = sp.csr_array((n, n))
    for k, (matrix, dofs) in enumerate(subdomains):
        matrix = sp.csr_array(matrix)
        matrix.sort_indices()
        arrays |= {f"indptr{k}": matrix.indptr.astype(np.int32), f"indices{k}": matrix.indices.astype(np.int32),
                   f"data{k}": matrix.data, f"dofs{k}": np.asarray(dofs, np.int32)}
        rows, columns = matrix.nonzero()
        A += sp.csr_array((matrix[rows, columns], (dofs[rows], dofs[columns])), shape=(n, n))
    b = np.random.default_rng(0).standard_normal(n)
    np.savez(path, n=n, count=len(subdomains), size=n // len(points), b=b, modes=modes, points=points, **arrays)
    return A, b


def run(command, path, A, b, **variables):
    """The record that a process prints in its last line, with the true residual; None, and a line, if it failed."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **variables})
    words = " ".join(command[-8:])
    try:
        record = json.loads(done.stdout.strip().splitlines()[-1])
    except (IndexError, ValueError):
        print("   failed:", words, (done.stderr.strip().splitlines() or ["no message"])[-1], flush=True)
        return None
    x = np.load(path.replace(".npz", "_x.npy"))
    record["residual"] = float(np.linalg.norm(b - A @ x) / np.linalg.norm(b))
    if not record["residual"] <= 1.01 * RTOL:
        print(f"   not converged: {record['residual']:.1e} after {record['iterations']}:", words, flush=True)
        return None
    return record


def commands(arguments, path, count, folder):
    """Yield (name of a solver, its variant, command, environment)."""
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    head = path, str(RTOL), str(arguments.repeat)
    for name, settings in SWELL.items():
        yield name, "", [sys.executable, "-c", OURS, *head, json.dumps(settings)], one
        for interior in BEFORE if arguments.before else ():
            paths = os.pathsep.join([arguments.before, *filter(None, [os.environ.get("PYTHONPATH")])])
            yield f"before: {name}", f"interior={interior!r}", [sys.executable, "-c", OURS, *head, json.dumps(
                {**settings, "interior": interior})], {**one, "PYTHONPATH": paths, "PYTHONSAFEPATH": "1"}
    peers = {"PCBDDC": "petsc4py, mpi4py", "BDDCML": "mpi4py"}
    for peer, modules in peers.items():
        if peer == "BDDCML" and not arguments.bddcml:
            print("   skipped: BDDCML (no --bddcml)", flush=True)
        elif not shutil.which(arguments.peer_python) or subprocess.run(
                [arguments.peer_python, "-c", f"import {modules}"], capture_output=True).returncode:
            print(f"   skipped: {peer} (no {modules} for {arguments.peer_python})", flush=True)
        elif peer == "BDDCML":
            script = str(HERE / "bddc_peer_bddcml.py")
            yield peer, "MUMPS", [arguments.peer_python, script, *head, arguments.bddcml], one
        elif not shutil.which(arguments.mpiexec.split()[0]):
            print(f"   skipped: {peer} (no {arguments.mpiexec.split()[0]})", flush=True)
        else:
            sleep = pathlib.Path(folder, "sleep.so")
            subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", sleep], input=SLEEP, text=True,
                           check=True)
            ranks = [*arguments.mpiexec.split(), "-n", str(count), "-x", f"LD_PRELOAD={sleep}", "--mca",
                     "mpi_yield_when_idle", "1", arguments.peer_python, str(HERE / "bddc_peer_petsc.py"), *head]
            for name, options in PETSC.items():
                for package in PACKAGES:
                    solver = " ".join(f"-pc_bddc_{part}_pc_type cholesky -pc_bddc_{part}_pc_factor_mat_solver_type "
                                      f"{package}" for part in ("dirichlet", "neumann"))
                    yield name, package, [*ranks, *options.split(), *solver.split()], one


def fastest(path):
    """{case: {solver: record}} of a file of records: the variant of each solver with the least seconds."""
    last, best = {}, {}
    for line in pathlib.Path(path).read_text().splitlines():
        record = json.loads(line)
        last[record["case"], record["solver"], record["variant"]] = record
    for (case, solver, _), record in last.items():
        record["together"] = record["setup"] + record["solve"]
        solvers = best.setdefault(case, {})
        if solver not in solvers or record["together"] < solvers[solver]["together"]:
            solvers[solver] = record
    return best


def table(path):
    """Print the Markdown table of a file of records: a row for each case and solver."""
    print("| case | solver | iterations | setup | solve | together | over swell's best |\n" + "|---" * 7 + "|")
    for case, solvers in fastest(path).items():
        own = min(record["together"] for solver, record in solvers.items() if solver.startswith("swell"))
        first = next(iter(solvers.values()))
        head = f"{case}: {first['unknowns']} unknowns, {first['subdomains']} subdomains"
        for solver, r in solvers.items():
            print(f"| {head} | {', '.join(filter(None, (solver, r['variant'])))} | {r['iterations']} | {r['setup']:.3f} | {r['solve']:.3f} | "
                  f"{r['together']:.3f} | {r['together'] / own:.2f} |")
            head = ""


def brief(path):
    """Print a Markdown table with a row for each case, and iterations, setup and solve of each library's fastest."""
    libraries = "swell", "PCBDDC", "BDDCML"
    print("| iterations, setup + solve in CPU seconds |", " | ".join(libraries), "|\n" + "|---" * 4 + "|")
    for case, solvers in fastest(path).items():
        cells = []
        for library in libraries:
            r = min((r for solver, r in solvers.items() if solver.startswith(library)), key=lambda r: r["together"],
                    default=None)
            cells.append(f"{r['iterations']}, {r['setup']:.2f} + {r['solve']:.3f}" if r else "−")
        first = next(iter(solvers.values()))
        print(f"| {case}, {first['unknowns']} unknowns |", " | ".join(cells), "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("cases", nargs="*", default=CASES)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-python", default="/usr/bin/python3")
    parser.add_argument("--mpiexec", default="mpiexec --oversubscribe")
    parser.add_argument("--bddcml", help="the shared library of BDDCML; without it this peer is skipped")
    parser.add_argument("--before", help="a folder with another copy of swell, which is run, too")
    parser.add_argument("--out", help="append records to this file")
    parser.add_argument("--table", help="print the table of a file of records, and run nothing")
    parser.add_argument("--brief", action="store_true", help="with --table: a row for each case")
    arguments = parser.parse_args()
    if arguments.table:
        return (brief if arguments.brief else table)(arguments.table)
    for name in arguments.cases:
        with tempfile.TemporaryDirectory() as folder:
            path, subdomains = str(pathlib.Path(folder, "case.npz")), case_of(name)
            A, b = written(path, *subdomains)
            count = len(subdomains[0])
            print(f"{name}: {A.shape[0]} unknowns, {count} subdomains", flush=True)
            for solver, variant, command, variables in commands(arguments, path, count, folder):
                record = run(command, path, A, b, **variables)
                if record is None:
                    continue
                record = {"benchmark": "bddc_beside_petsc", "case": name, "unknowns": A.shape[0], "subdomains": count,
                          "machine": f"{platform.machine()}, {os.cpu_count()} cores", "solver": solver,
                          "variant": variant, **record}
                print(f"   {', '.join(filter(None, (solver, variant))):40} {record['iterations']:3} iterations, "
                      f"setup {record['setup']:.3f}, solve {record['solve']:.3f} CPU-seconds, "
                      f"residual {record['residual']:.1e}", flush=True)
                if arguments.out:
                    with open(arguments.out, "a") as file:
                        file.write(json.dumps(record) + "\n")


if __name__ == "__main__":
    main()
