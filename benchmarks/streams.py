"""Inner products of GMRES with the paper's host reductions, in one stream and in two, beside swell's device reduction.

    python benchmarks/streams.py [--rows 62424,1259712]

Section 3.2 and figures 3 and 8 of Ma, Hu, Yuan and Liu 2021: a launch computes the inner products of w with a batch of
basis vectors, the partial sums of the thread blocks go to the host, and the host adds them. In two streams, batches
alternate: one batch computes while the host adds up the one before. swell computes all inner products of a step in one
launch, with the basis read once, and twice as many, with u and w; the last thread block adds up. "and read" also waits
for the sums on the host, as the paper needs them.

Times are wall times of a cycle of 30 steps, with 1 to 30 vectors, over 30: the least of ten cycles. The host's part is
NumPy's sum of 264 numbers a product. "launches" is the same batches in one stream without copies and sums: what two
streams could reach at best. Correctness: all sums are compared with V w on the host.
"""
from __future__ import annotations

import argparse
import json
import time

import numpy as np

from swell.bench import engine
from swell.bench.block_gmres.cases import BATCHES, RESTART
from swell.core.devices import make_space
from swell.core.stopping import Stopping
from swell.core.workspace import Workspace
from swell.formats.csr import CSRMatrix
from swell.krylov import method
from swell.krylov.gmres import GMRES

CYCLES = 10
BLOCKS, THREADS = 264, 256
KERNEL = r"""
extern "C" __global__ void products(const double* V, long long stride, const double* w, long long n,
                                    double* partial)
{
    double sums[COUNT] = {};
    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < n;
         i += (long long)gridDim.x * blockDim.x) {
        double wi = w[i];
        for (int k = 0; k < COUNT; ++k)
            sums[k] += V[k * stride + i] * wi;
    }
    __shared__ double held[256];
    for (int k = 0; k < COUNT; ++k) {
        held[threadIdx.x] = sums[k];
        __syncthreads();
        for (int half = blockDim.x / 2; half; half /= 2) {
            if (threadIdx.x < half)
                held[threadIdx.x] += held[threadIdx.x + half];
            __syncthreads();
        }
        if (threadIdx.x == 0)
            partial[k * gridDim.x + blockIdx.x] = held[0];
        __syncthreads();
    }
}
"""


class ByHost:
    """Inner products of w with the rows of V, added up on the host; ``count`` streams take batches in turn."""

    def __init__(self, space, V, w, batch, count):
        cupy = space.xp
        self.cuda, self.V, self.w, self.batch = cupy.cuda, V, w, batch
        self.stride, self.n = V.strides[0] // 8, w.size
        self.kernels = {k: cupy.RawKernel(f"#define COUNT {k}\n{KERNEL}", "products") for k in range(1, batch + 1)}
        self.streams = [space.stream, cupy.cuda.Stream(non_blocking=True)][:count]
        size = batch * BLOCKS
        self.partial = [cupy.zeros(size) for _ in self.streams]
        held = [cupy.cuda.alloc_pinned_memory(8 * size) for _ in self.streams]
        self.host = [np.frombuffer(memory, np.float64, size) for memory in held]
        self.sums = np.zeros(V.shape[0])
        space.synchronize()

    def launch(self, begin, end, turn):
        """Compute the products with vectors ``begin`` to ``end``, and copy partial sums to the host."""
        count, stream = end - begin, self.streams[turn]
        with stream:
            self.kernels[count]((BLOCKS,), (THREADS,), (self.V[begin:end], np.int64(self.stride), self.w,
                                                        np.int64(self.n), self.partial[turn]))
        return count, stream

    def copy(self, count, turn):
        """Start the copy of a batch's partial sums to the host."""
        self.partial[turn][:count * BLOCKS].get(stream=self.streams[turn], out=self.host[turn][:count * BLOCKS],
                                                blocking=False)

    def add(self, begin, count, turn):
        """Wait for a batch, and add up its partial sums."""
        self.streams[turn].synchronize()
        self.sums[begin:begin + count] = self.host[turn][:count * BLOCKS].reshape(count, BLOCKS).sum(axis=1)

    def step(self, vectors):
        """Compute the products with the first ``vectors`` vectors."""
        pending = []
        for k, begin in enumerate(range(0, vectors, self.batch)):
            turn = k % len(self.streams)
            if len(pending) == len(self.streams):
                self.add(*pending.pop(0))
            count, _ = self.launch(begin, min(begin + self.batch, vectors), turn)
            self.copy(count, turn)
            pending.append((begin, count, turn))
        for batch in pending:
            self.add(*batch)

    def launches(self, vectors):
        """Launch the same kernels in one stream, without copies; wait at the end."""
        for begin in range(0, vectors, self.batch):
            self.launch(begin, min(begin + self.batch, vectors), 0)
        self.streams[0].synchronize()


class OnDevice:
    """swell's inner products of a step: one launch for all vectors, added up by the device."""

    def __init__(self, space, V, w):
        n, xp = w.size, space.xp
        A = CSRMatrix(space, xp.arange(n + 1, dtype="int32"), xp.arange(n, dtype="int32"), xp.ones(n), (n, n))
        loop = space.loop(Stopping(rtol=1e-30, maxiter=10_000, window=0), n)
        self.space, self.loop = space, loop
        self.it = GMRES(RESTART).bind(method.System(A, None, w, space.empty(n, w.dtype), None, Workspace(space), loop))
        for row, vector in zip(self.it.V, V):
            space.copy(vector, row)
        for vector in (self.it.u, self.it.w):
            space.copy(w, vector)
        loop.begin(0.0, 1e100, 0)

    def step(self, vectors):
        """Compute the products with the first ``vectors`` vectors."""
        self.it.orthogonal_parts(vectors)

    def read(self, vectors):
        """Compute them, and wait for them on the host."""
        self.it.orthogonal_parts(vectors)
        self.sums = self.space.to_host(self.it.sums)


def least(space, step) -> float:
    """Return µs a step: the least of ``CYCLES`` cycles of steps with 1 to 30 vectors, after a warm-up."""
    times = []
    for _ in range(CYCLES + 1):
        space.synchronize()
        start = time.perf_counter()
        for vectors in range(1, RESTART + 1):
            step(vectors)
        space.synchronize()
        times.append(time.perf_counter() - start)
    return 1e6 * min(times[1:]) / RESTART


def measured(space, n) -> dict:
    """Return {name: µs a step} for vectors of n entries."""
    V = space.empty((RESTART, space.padded(n)), np.float64)[:, :n]
    for k, row in enumerate(V):
        space.random(k, row)
    w = space.empty(n, np.float64)
    space.random(99, w)
    ours = OnDevice(space, V, w)
    expected = space.to_host(V) @ space.to_host(w)
    found = {"swell, one launch": least(space, ours.step), "swell, one launch and read": least(space, ours.read)}
    ours.loop.end()
    for batch in BATCHES:
        for streams in (1, 2):
            by_host = ByHost(space, V, w, batch, streams)
            by_host.step(RESTART)
            if not np.allclose(by_host.sums, expected, rtol=1e-9, atol=1e-9 * n**0.5):
                raise SystemExit(f"batch {batch}, {streams} streams: {by_host.sums}, expected {expected}")
            found[f"batch {batch}, {'one stream' if streams == 1 else 'two streams'}"] = least(space, by_host.step)
        found[f"batch {batch}, launches"] = least(space, by_host.launches)
    return found


def main():
    """Measure and print, a line of JSON for each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="62424,300000,1259712", help="lengths of the vectors, separated by commas")
    arguments = parser.parse_args()
    space = make_space("cuda")
    with space.active():
        for n in map(int, arguments.rows.split(",")):
            found = measured(space, n)
            print(json.dumps({"benchmark": "streams", "n": n, "microseconds": found,
                              **engine.circumstances(space)}), flush=True)
            for batch in BATCHES:
                one, two, bare = (found[f"batch {batch}, {how}"] for how in ("one stream", "two streams", "launches"))
                print(f"{n} rows, batch {batch:2d}: one stream {one:7.1f} µs, two {two:7.1f}, launches {bare:7.1f}")
            print(f"{n} rows, swell: {found['swell, one launch']:.1f} µs, and read "
                  f"{found['swell, one launch and read']:.1f}", flush=True)


if __name__ == "__main__":
    main()
