"""GMRES(30) on a GPU: an iteration with the basis in double and in single precision, inner products and updates by
batches, beside the bytes that they move.

    python benchmarks/gmres_on_gpu.py

On atmosmodd~, without a preconditioner. An iteration is the difference of two solves, as in ``swell bench krylov``;
inner products and updates are a thirtieth of those of a cycle, replayed from a CUDA graph, as in ``swell bench
block-gmres``. Predicted is bytes over the speed of a copy, measured first.
"""
from __future__ import annotations

import numpy as np

from swell import api, gallery
from swell.bench import engine
from swell.bench.block_gmres.cases import RESTART
from swell.bench.block_gmres.device import System
from swell.core.devices import make_space
from swell.krylov.gmres import GMRES

STEPS = RESTART
WORD = {"full": 8, "single": 4}


def predicted(n, batch, basis, speed):
    """µs of the (inner products, updates) of a step, the mean over a cycle."""
    word, dots, updates = WORD[basis], 0, 0
    for j in range(STEPS):
        launches = max(-(-j // batch), 1)
        dots += j * word + 16 * launches                     # V once, u and w in every launch
        updates += (j + 1) * word + 16 * launches + 16 * (launches - 1) + 8        # … both written, but u alone at last
    return 1e6 * n * dots / STEPS / speed, 1e6 * n * updates / STEPS / speed


def main():
    space = make_space("cuda")
    A = gallery.get("atmosmodd~")
    with space.active():
        speed = engine.Meter(space).copy_speed
        b = space.from_host(np.ones(A.shape[0]))
    print(f"{space.describe()}, copy {speed / 1e12:.2f} TB/s, {A.shape[0]} rows", flush=True)
    for settings in (GMRES(STEPS), GMRES(STEPS, basis="single"), GMRES(STEPS, batch=4), GMRES(STEPS, batch=1)):
        def prepare(stopping, settings=settings):
            return api.prepare(A, method=settings, device="cuda", stopping=stopping, b_like=b)
        seconds, _ = engine.seconds_an_iteration(prepare, b, 300, 5)
        print(f"an iteration of {settings}: {1e6 * seconds:.1f} µs", flush=True)
    for record in System(space, "atmosmodd~", A, 1).orthogonalisation():
        floor = predicted(A.shape[0], record["batch"], record["basis"], speed)
        print(f"basis {record['basis']}, {record['batch']} a launch: inner products {1e6 * record['inner_products']:.1f} µs "
              f"(predicted {floor[0]:.1f}), updates {1e6 * record['updates']:.1f} ({floor[1]:.1f})", flush=True)
    for text in ("none", "ilu0", "ilu(block=1, solve='sweeps(count=3)')"):
        for basis in ("full", "single"):
            solver = api.prepare(A, method=GMRES(STEPS, basis=basis), precond=None if text == "none" else text,
                                 device="cuda", b_like=b, rtol=1e-8)
            result = [solver.solve(b) for _ in range(3)][-1]
            print(f"to 1e-8, {text}, basis {basis}: {result.reason.name}, {result.iterations} iterations, "
                  f"{1e3 * result.timings['solve']:.1f} ms, true residual {result.residual:.1e}", flush=True)


if __name__ == "__main__":
    main()
