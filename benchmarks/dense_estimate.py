"""What an estimate is worth to ICM: iterations from the factors of a nearby matrix, over those from the matrix itself.

    python benchmarks/dense_estimate.py

The matrix of a semi-implicit step of mean curvature flow on 16 by 16 points; the nearby one differs by up to δ, at random,
in every entry. The thesis' plain form, x = 8, sections of 64. Counts, not times: the same on every machine.
"""
import numpy as np

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
