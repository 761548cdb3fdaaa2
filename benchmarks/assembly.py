"""Assembly of the Laplacian on a box beside a product: python benchmarks/assembly.py [cpu|cuda] [cells along an axis, ...]"""
import sys
import time

import swell
from swell.bench.engine import Meter
from swell.core.devices import make_space
from swell.pde import fvm

device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
for m in [int(size) for size in sys.argv[2:]] or [60]:
    space, mesh = make_space(device), fvm.box((m, m, m))
    with space.active(mesh.n_cells):
        meter = Meter(space)
        metrics = fvm.Metrics(mesh, space)
        pattern, walls = metrics.pattern, {patch.name: fvm.Dirichlet(0.0) for patch in mesh.patches}
        laplacian = fvm.Laplacian(metrics, fvm.Boundary.of(metrics, walls))
        k, flux = 1 + metrics.centres[0], laplacian.flux()
        csr = pattern.matrix(flux)
        sell = swell.SELL().build(csr)
        solver = swell.prepare(csr, method="cg", scaling="jacobi", format="sell")
        x, y = space.empty(metrics.n, "float64"), space.empty(metrics.n, "float64")
        space.random(1, x)
        calls = {"product, SELL": lambda: sell.apply(x, y), "product, CSR": lambda: csr.apply(x, y),
                 "assembly into SELL": lambda: pattern.matrix(flux, out=sell),
                 "assembly into CSR": lambda: pattern.matrix(flux, out=csr),
                 "CSR into SELL by the kept map": lambda: sell.update(csr),
                 "CSR into SELL afresh": lambda: swell.SELL().build(csr),
                 "new k to fluxes": lambda: (laplacian.diffuse(k), laplacian.flux()),
                 "gradient by least squares": lambda: laplacian.gradient(x),
                 "Solver.update": lambda: solver.update(csr)}
        seconds = {name: meter.seconds(call, 10) for name, call in calls.items()}
        start = time.perf_counter()
        fvm.Pattern(space, metrics.n, metrics.owner, metrics.neighbour)
        space.synchronize()
        seconds["pattern, once a mesh"] = time.perf_counter() - start
        sides, faces = metrics.owner.size + metrics.n_internal, metrics.owner.size
        least = 8 * (metrics.n + sides + faces + metrics.n_internal + csr.nnz)          # each coefficient read once
        print(f"{mesh.n_cells} cells on {space.describe()}, copy {meter.copy_speed / 1e9:.0f} GB/s; assembly moves "
              f"{least / metrics.n:.0f} bytes a cell, a product {sell.product_bytes / metrics.n:.0f}")
        for name, value in seconds.items():
            print(f"  {name:30} {1e6 * value:10.1f} µs {value / seconds['product, SELL']:7.2f} products")
        for name in ("assembly into SELL", "assembly into CSR"):
            print(f"  {name}: {least / seconds[name] / meter.copy_speed:.0%} of copy speed")
