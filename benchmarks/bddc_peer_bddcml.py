"""BDDCML on one case of `bddc_beside_petsc.py`, all subdomains on one rank; prints a JSON line. Run by that script.

    python bddc_peer_bddcml.py CASE.npz RTOL RUNS libbddcml.so

Corners and arithmetic averages over edges and faces, weights by diagonal stiffness. The library sees each subdomain as
one element: with two levels and without a search for components it needs no others.
"""
import ctypes
import json
import sys
import time

import numpy as np
from mpi4py import MPI

case, rtol, runs = np.load(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
library, comm = ctypes.CDLL(sys.argv[4]), MPI.COMM_SELF
n, count, size = int(case["n"]), int(case["count"]), int(case["size"])
STIFFNESS, SPD, CG = 1, 1, 0


def call(name, *values):
    """Call a function of the C interface, whose arguments are all addresses. A list stands for an array and its
    length."""
    flat = []
    for value in values:
        flat += [value[0], value[0].size] if isinstance(value, list) else [value]
    getattr(library, name)(*(ctypes.c_void_p(v.ctypes.data) if isinstance(v, np.ndarray) else
                             ctypes.byref(ctypes.c_int(v) if isinstance(v, int) else
                                          ctypes.c_double(v) if isinstance(v, float) else v) for v in flat))


def ints(values):
    return np.ascontiguousarray(values, np.int32)


def upload(k):
    """Hand subdomain k to the library: the upper triangle of its matrix, its nodes, and its right-hand side."""
    indptr, columns, data, dofs = (case[f"{part}{k}"] for part in ("indptr", "indices", "data", "dofs"))
    rows, nodes, zeros = np.repeat(np.arange(dofs.size), np.diff(indptr)), dofs[::size] // size, np.zeros(dofs.size)
    upper, m, none = columns >= rows, nodes.size, np.zeros(1)
    call("bddcml_upload_subdomain_data_c", count, n // size, n, 3, 3, k, 1, m, dofs.size,
         [ints(np.arange(m))], [ints([m])], [ints(np.full(m, size))], [ints(nodes)], [ints(dofs)], [ints([k])],
         np.asfortranarray(case["points"][nodes]), m, 3, [ints(zeros)], [zeros], [case["b"][dofs]], 1, [zeros],
         SPD, ints(rows[upper]), ints(columns[upper]), data[upper], int(upper.sum()), 1,
         none, 0, 0, none, 0, 0, [zeros], 0, 0, 1)


best = None
for run in range(runs + 1):                      # the first run loads libraries, and counts for nobody
    call("bddcml_init_c", 2, ints([count, 1]), 2, ctypes.c_int(count), comm.py2f(), 0, 0, 0)
    for k in range(count):
        upload(k)
    times = [(time.process_time(), time.perf_counter())]
    call("bddcml_setup_preconditioner_c", SPD, 0, 0, 1, 1, 0, 0, STIFFNESS)
    times.append((time.process_time(), time.perf_counter()))
    iterations, reason, condition = ctypes.c_int(), ctypes.c_int(), ctypes.c_double()
    call("bddcml_solve_c", comm.py2f(), CG, rtol, 500, 50, 0, 1, iterations, reason, condition)
    times.append((time.process_time(), time.perf_counter()))
    x = np.zeros(n)
    for k in range(count):
        part = np.zeros(case[f"dofs{k}"].size)
        call("bddcml_download_local_solution_c", k, [part])
        x[case[f"dofs{k}"]] = part
    call("bddcml_finalize_c")
    spent = np.diff(times, axis=0)
    if run and (best is None or spent[:, 0].sum() < best[:, 0].sum()):
        best = spent
np.save(sys.argv[1].replace(".npz", "_x.npy"), x)
print(json.dumps({"iterations": iterations.value, "setup": best[0, 0], "solve": best[1, 0],
                  "wall": best[:, 1].tolist(), "reason": reason.value}), flush=True)
