"""What an estimate is worth to ICM: iterations from the factors of a nearby matrix, over those from the matrix itself.

    python benchmarks/dense_estimate.py

The matrix of a semi-implicit step of mean curvature flow on 16 by 16 points; the nearby one differs by up to δ, at random,
in every entry. The thesis' plain form, x = 8, sections of 64. Counts, not times: the same on every machine.

Then the same inside BDDC: implicit steps of diffusion on 12³ cells, in 2³ subdomains, whose coefficients change by up to δ
from step to step. ICM's iterations in an `update`, relative to a new setup, and CG's iterations.
"""
import numpy as np
import scipy.sparse as sp

import swell
from swell import dense

POINTS, SMALLEST = 16, 1e-2
DIFFERENCES = (1e-1, 1e-2, 1e-4, 1e-6, 1e-8, 1e-10, 1e-12, 1e-14)


def curvature_flow(ratio):
    """I + τ L of u_t = |∇u| div(∇u / |∇u|) at the first step, τ = ratio h²."""
    x, y = np.meshgrid(*[np.linspace(-0.5, 0.5, POINTS)] * 2)
    gradient = np.sqrt(SMALLEST**2 + sum(g**2 for g in np.gradient(np.sqrt(x**2 + 2 * y**2), 1 / (POINTS - 1)))).ravel()
    matrix, index = np.eye(POINTS**2), np.arange(POINTS**2).reshape(POINTS, POINTS)
    for a, b in ((index[:, :-1], index[:, 1:]), (index[:-1], index[1:])):
        a, b = a.ravel(), b.ravel()
        for i, j in ((a, b), (b, a)):
            weight = ratio * gradient[i] * 2 / (gradient[a] + gradient[b])
            np.add.at(matrix, (i, i), weight)
            np.add.at(matrix, (i, j), -weight)
    return matrix


random = np.random.default_rng(0).uniform(-1, 1, (POINTS**2, POINTS**2))
print("step/h²  tolerance  from A  " + "".join(f"δ={d:<8g}" for d in DIFFERENCES))
for tolerance in (0.0, 1e-6):
    for ratio in (0.1, 1, 100):
        icm, A = dense.ICM(x=8, section=64, form="plain", tolerance=tolerance), curvature_flow(ratio)
        from_A = icm.factor(A).metrics.iterations.sum()
        near = (icm.factor(A, estimate=icm.factor(A * (1 + d * random))).metrics.iterations.sum() for d in DIFFERENCES)
        print(f"{ratio:7g} {tolerance:10g} {from_A:7d}  " + "".join(f"{count / from_A:<10.2f}" for count in near),
              flush=True)


def diffusion(k, step):
    """I + τ K on a cube of cells, K by finite volumes with harmonic means of the coefficients k, zero flux; τ = step h²."""
    index, rows, columns, values = np.arange(k.size).reshape(k.shape), [], [], []
    for axis in range(3):
        first, second = (index.take(range(a, b), axis).ravel() for a, b in ((0, k.shape[axis] - 1), (1, k.shape[axis])))
        t = step * 2 / (1 / k.ravel()[first] + 1 / k.ravel()[second])
        for i, j in ((first, second), (second, first)):
            rows += [i, i]
            columns += [i, j]
            values += [t, -t]
    A = sp.coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), (k.size,) * 2)
    return (A + sp.eye_array(k.size)).tocsr()


generator = np.random.default_rng(1)
start = np.exp(generator.standard_normal((12, 12, 12)))
block = np.arange(12) // 6
owner = ((block[:, None, None] * 2 + block[:, None]) * 2 + block).ravel()
order = np.argsort(owner, kind="stable")                     # subdomains are consecutive rows
print("BDDC: tolerance  from A  " + "".join(f"δ={d:<8g}" for d in DIFFERENCES[:6]) + "  iterations of CG, first and last")
for tolerance in (0.0, 1e-6, 1e-3):
    shares, counts = [], []
    for d in DIFFERENCES[:6]:
        k, precond = start.copy(), swell.BDDC(domains=8, partition="rows", dense_solver="trsm",
                                              dense_lu=f"icm(x=8, tolerance={tolerance})")
        A = diffusion(k, 10.0)[order][:, order]
        solver = swell.prepare(A, method="cg", precond=precond)
        cold = solver.M.operator.iterations
        for _ in range(3):
            k *= 1 + d * generator.uniform(-1, 1, k.shape)
            solver.update(diffusion(k, 10.0)[order][:, order])
            shares.append(solver.M.operator.iterations / cold)
            counts.append(solver.solve(np.ones(k.size) + generator.standard_normal(k.size)).iterations)
    means = np.array(shares).reshape(-1, 3).mean(axis=1)
    print(f"{tolerance:15g} {cold:7d}  " + "".join(f"{m:<10.2f}" for m in means) + f"  {counts[0]}, {counts[-1]}", flush=True)
