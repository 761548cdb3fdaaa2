"""PCBDDC on one case of `bddc_beside_petsc.py`, one rank for each subdomain; prints a JSON line. Run by that script.

    mpiexec -n SUBDOMAINS python bddc_peer_petsc.py CASE.npz RTOL RUNS [PETSc options]
"""
import json
import sys
import time

import numpy as np
import petsc4py

petsc4py.init(["peer", *sys.argv[4:]])
from petsc4py import PETSc     # noqa: E402

comm = PETSc.COMM_WORLD
case, rtol, runs = np.load(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
n, size, k = int(case["n"]), int(case["size"]), comm.rank
indptr, indices, data, dofs = (case[f"{part}{k}"] for part in ("indptr", "indices", "data", "dofs"))
share = [size * (n // size * rank // comm.size) for rank in range(comm.size + 1)]
mine = slice(share[k], share[k + 1])
own = mine.stop - mine.start

numbering = PETSc.LGMap().create(dofs[::size] // size, size, comm=comm)
A = PETSc.Mat().create(comm)
A.setSizes(((own, n), (own, n)), size)
A.setType("is")
A.setLGMap(numbering, numbering)
local = PETSc.Mat().createAIJ((dofs.size,) * 2, bsize=size, csr=(indptr, indices, data), comm=PETSc.COMM_SELF)
local.setOption(PETSc.Mat.Option.SPD, True)
A.setISLocalMat(local)
A.assemble()
A.setOption(PETSc.Mat.Option.SPD, True)
if case["modes"].size:
    vectors = []
    for mode in np.linalg.qr(case["modes"])[0].T:
        vectors.append(A.createVecRight())
        vectors[-1].setArray(mode[mine])
    A.setNearNullSpace(PETSc.NullSpace().create(vectors=vectors, comm=comm))
b, x = A.createVecRight(), A.createVecRight()
b.setArray(case["b"][mine])

best = None
for _ in range(runs + 1):                        # the first run loads libraries, and counts for nobody
    ksp = PETSc.KSP().create(comm)
    ksp.setOperators(A)
    ksp.setType("cg")
    ksp.getPC().setType("bddc")
    if size > 1:
        ksp.getPC().setCoordinates(np.repeat(case["points"], size, axis=0)[mine].copy())
    ksp.setNormType(PETSc.KSP.NormType.UNPRECONDITIONED)
    ksp.setTolerances(rtol=1e-50, atol=rtol * b.norm(), max_it=500)
    ksp.setFromOptions()
    comm.barrier()
    times = [(time.process_time(), time.perf_counter())]
    ksp.setUp()
    ksp.setUpOnBlocks()
    comm.barrier()
    times.append((time.process_time(), time.perf_counter()))
    x.set(0)
    ksp.solve(b, x)
    comm.barrier()
    times.append((time.process_time(), time.perf_counter()))
    spent = np.array(comm.tompi4py().allgather(np.diff(times, axis=0)))     # (rank, setup or solve, CPU or wall)
    spent = spent[:, :, 0].sum(axis=0), spent[:, :, 1].max(axis=0)
    if _ and (best is None or spent[0].sum() < best[0].sum()):
        best = spent
whole = comm.tompi4py().gather(x.getArray())
if k == 0:
    np.save(sys.argv[1].replace(".npz", "_x.npy"), np.concatenate(whole))
    print(json.dumps({"iterations": ksp.getIterationNumber(), "setup": best[0][0], "solve": best[0][1],
                      "wall": best[1].tolist(), "reason": int(ksp.getConvergedReason()),
                      "version": ".".join(map(str, PETSc.Sys.getVersion()))}), flush=True)
