"""Block methods beside independent recurrences, for k right-hand sides of one matrix.

    python benchmarks/block_methods.py --device cpu --systems bcsstk14 bcsstk16 --columns 2 4 8 16
    python benchmarks/block_methods.py --device cuda --systems foam_hump_p landscape_1m atmosmodd~

For each system: the block method, the same method on all columns together, and column by column; on a GPU also resident_cg
column by column. B is random. Prints iterations (the mean of all columns), products with A by all columns, ms of a solve (the
second, from B where it lies to X there), its CPU time in ms, and the largest true residual.
"""
import argparse
import pathlib
import sys
import time

import numpy as np
import scipy.io
import scipy.sparse as sp
from whole_solves import append

import swell
from swell import gallery

DATA = pathlib.Path("../shared/data")
SPD, ANY = ("block_cg", "cg"), ("block_gmres", "gmres(lengthen=False)")
# name: (block and single method, preconditioners); "scaling": a Jacobi scaling and none
SYSTEMS = {"foam_hump_p": (SPD, ("scaling", "jacobi", "ic0")), "landscape_1m": (SPD, ("scaling", "jacobi")), "bcsstk14": (SPD, ("jacobi", "ic0")),
           "bcsstk16": (SPD, ("jacobi", "ic0")), "bcsstk18": (SPD, ("jacobi", "ic0")), "poisson": (SPD, ("jacobi", "ic0")),
           "jpwh_991": (ANY, ("jacobi", "ilu0")), "sherman4": (ANY, ("jacobi", "ilu0")), "pde2961": (ANY, ("jacobi", "ilu0")),
           "young1c": (ANY, ("ilu0",)), "Grond4e4": (ANY, ("ilu0",)), "foam_hump_U": (ANY, ("ilu0",)),
           "muelu_condif2": (ANY, ("jacobi", "ilu0")), "atmosmodd~": (ANY, (None, "ilu0(solve='sweeps')"))}


def matrix(name, data):
    """Return the system's matrix, in SciPy's CSR format; ``data``: folder of the files."""
    if name == "landscape_1m":
        sys.path.insert(0, str(data))
        import landscape
        return sp.csr_matrix(landscape.load("1m"))
    if name == "poisson":
        return sp.csr_matrix(gallery.poisson2d(100))
    if name.endswith("~"):
        return sp.csr_matrix(gallery.get(name))
    return sp.csr_matrix(scipy.io.mmread(data / "matrices" / f"{name}.mtx.gz"))


def right_hand_sides(A, k):
    """k random columns, the same in every run, complex if A is."""
    rng = np.random.default_rng(1)
    B = rng.standard_normal((A.shape[0], k))
    return B + 1j * rng.standard_normal(B.shape) if A.dtype.kind == "c" else B


def there(device, array):
    """An array of NumPy, or as CuPy's for "cuda"."""
    if device != "cuda":
        return array
    import cupy
    return cupy.asarray(array)


def measured(A, B, device, **settings):
    """Solve twice; return a record of the second solve. Keys of ``settings``: those of swell.prepare, and together."""
    together = settings.pop("together", None)
    solver = swell.prepare(A, device=device, b_like=B[:, 0], **settings)
    solver.solve(B, together=together)
    start, cpu = time.perf_counter(), time.process_time()
    results = solver.solve(B, together=together)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    return {"iterations": float(np.mean([r.iterations for r in results])), "products": int(sum(r.products for r in results)),
            "ms": round(1e3 * seconds, 1), "cpu_ms": round(1e3 * cpu, 1), "residual": float(max(r.residual for r in results)),
            "converged": sum(r.converged for r in results), "reasons": sorted({r.reason.name for r in results})}


def ways(device, block, single):
    """The ways to solve, by name: settings."""
    found = {block: {"method": block}, f"{single} together": {"method": single, "together": True},
             f"{single} one by one": {"method": single, "together": False}}
    if device == "cuda" and single == "cg":
        found["resident_cg one by one"] = {"method": "resident_cg"}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--systems", nargs="*", default=["foam_hump_p", "landscape_1m", "atmosmodd~"])
    parser.add_argument("--columns", nargs="*", type=int, default=[8])
    parser.add_argument("--rtol", type=float, default=1e-8)
    parser.add_argument("--maxiter", type=int, default=20000)
    parser.add_argument("--no-loop", action="store_true", help="leave out what solves one by one")
    parser.add_argument("--data", type=pathlib.Path, default=DATA)
    parser.add_argument("--json")
    options = parser.parse_args()
    for name in options.systems:
        A = matrix(name, options.data)
        (block, single), preconds = SYSTEMS[name]
        print(f"{name}: n = {A.shape[0]}, {A.nnz} entries; {options.device}, rtol {options.rtol:g}", flush=True)
        for precond in preconds:
            for k in options.columns:
                B = there(options.device, right_hand_sides(A, k))
                for way, settings in ways(options.device, block, single).items():
                    if options.no_loop and "one by one" in way:
                        continue
                    if way.startswith("resident") and precond != "scaling":
                        continue
                    given = {"scaling": "jacobi"} if precond == "scaling" else {"precond": precond}
                    try:
                        found = measured(A, B, options.device, rtol=options.rtol, maxiter=options.maxiter, **given, **settings)
                    except swell.SwellError as error:
                        print(f"  {precond}  k = {k:2}  {way:30} {type(error).__name__}: {error}", flush=True)
                        continue
                    print(f"  {precond}  k = {k:2}  {way:30} {found['iterations']:8.1f} its {found['products']:8} products "
                          f"{found['ms']:10.1f} ms {found['cpu_ms']:10.1f} ms CPU  {found['residual']:.1e}  {found['converged']} of {k} "
                          f"{' '.join(found['reasons'])}", flush=True)
                    append(options.json, {"system": name, "precond": precond, "columns": k, "way": way, "device": options.device,
                                          **found})


if __name__ == "__main__":
    main()
