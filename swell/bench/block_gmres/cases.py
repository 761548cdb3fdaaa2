"""The matrices and preconditioners of ``swell bench block-gmres``, and timing of their parts, for device and ranks."""
from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from swell import gallery
from swell.bench import engine
from swell.core import timing
from swell.core.errors import InputError
from swell.core.operator import LinearOperator
from swell.core.stopping import Stopping
from swell.core.workspace import Workspace
from swell.formats.blocks import checked_block_size
from swell.krylov import method
from swell.krylov.gmres import GMRES

RESTART = 30
RESTARTS = 2                            # repetitions when a restart's preconditioning steps are timed
SEED = 11
SWEEPS = tuple(range(1, 9))
BATCHES = (1, 2, 4, 8, 16, 30)
NONE, EXACT, HOST = "none", "block ILU(0), exact", "block ILU(0), exact CPU"
BSRSV2, SPSV = "cuSPARSE bsrsv2", "cuSPARSE SpSV"
ON_BLOCKS = "point ILU(0) on the blocks, exact"


def named_matrices(text, scale, rows=None):
    """Yield (name, SciPy CSR matrix, block size or None) for words NAME, NAME:UNKNOWNS, NAME/BLOCK and
    NAME:UNKNOWNS/BLOCK separated by commas. BLOCK lays blocks over a matrix of points, as the paper does; rows of the
    identity fill the last block. ``rows``: wanted of every matrix; default: as the words and ``scale`` say.

    Raises
    ------
    InputError
        If the gallery has no such name, UNKNOWNS or BLOCK is no positive integer, or UNKNOWNS comes with ``rows``.
    """
    chosen = []
    for word in filter(None, map(str.strip, text.split(","))):
        named, slash, block = word.partition("/")
        name, colon, unknowns = named.partition(":")
        numbers = [number for mark, number in ((slash, block), (colon, unknowns)) if mark]
        if not all(number.isdecimal() and int(number) for number in numbers):
            raise InputError(f"--matrices {word}: expected NAME, NAME:UNKNOWNS, NAME/BLOCK or NAME:UNKNOWNS/BLOCK, "
                             "with positive whole numbers, such as atmosmodd~/4")
        if colon and rows is not None:
            raise InputError(f"--matrices {word} with --unknowns: expected NAME or NAME/BLOCK, since each number of "
                             "ranks has a size of its own")
        engine.matrices(name, scale)             # raises for an unknown name
        wanted = int(unknowns) if colon else rows
        size = 1 if wanted is None else wanted / gallery.standard_size(name)
        chosen.append((word, int(block) if slash else None, engine.matrices(name, scale * size)))
    return ((word, padded(A, block or 1), block) for word, block, generated in chosen for _, A in generated)


def tolerance(name) -> float:
    """Return the paper's tolerance, relative to the first residual, for a matrix by its word on the command line."""
    return 1e-3 if name.startswith("thermal2~") else 1e-5


def padded(A, block):
    """Return SciPy's CSR matrix A with as many rows of the identity appended as its last block lacks."""
    lacking = -A.shape[0] % checked_block_size(block, 0)
    return sp.csr_matrix(sp.block_diag([A, sp.eye_array(lacking)])) if lacking else A


def preconditioners(block: int) -> dict[str, str]:
    """Return the preconditioners to compare on the device, for blocks of this size: {label in the tables: setting as
    text}."""
    named = {NONE: "none", EXACT: factors(block, "exact")}
    if block > 1:
        named |= {"point ILU(0), exact": "ilu0", ON_BLOCKS: "ilu0"}
    named["block ILU(0), ISAI"] = factors(block, "'isai(guard=off)'")
    return named | inexact(block, SWEEPS)


def factors(block, solve) -> str:
    """Return the setting of ILU(0) with blocks of this size, solved by ``solve``, as text."""
    blocks = f"block={block}, " if block > 1 else ""             # for blocks of 1, point ILU(0) is many times faster
    return f"ilu({blocks}solve={solve})"


def inexact(block, counts) -> dict[str, str]:
    """Return {label: setting as text} of block ILU(0) solved by each number of sweeps in ``counts``."""
    return {sweeps(k): factors(block, f"'sweeps(count={k}, guard=off)'") for k in counts}


def sweeps(count) -> str:
    """Return the label of block ILU(0) solved by ``count`` sweeps."""
    return f"block ILU(0), {count} sweep" + ("s" if count > 1 else "")


class OnHost(LinearOperator):
    """A CPU preconditioner for a GPU's vectors: they are copied to the host and back, and graphs cannot capture it."""

    capturable = False

    def __init__(self, M, space):
        super().__init__(M.shape, M.dtype, space)
        self.M, self.variable = M, M.variable
        self._z = np.empty(M.shape[0], M.dtype)
        self._back = space.empty(M.shape[0], M.dtype)

    def apply(self, x, out, alpha=1, beta=0):
        self.M.apply(self.space.to_host(x), self._z)
        back = self.space.from_host(self._z, self._back)
        out[...] = alpha * back + beta * out if beta else alpha * back


def steps_of_a_restart(space, M) -> list[float]:
    """Apply M 31 times, as GMRES(30) does between two restarts; repeat this, and return the seconds of each
    repetition. ``space``: of this device, active."""
    n = M.shape[0]
    V = space.empty((RESTART + 1, space.padded(n)), M.dtype)[:, :n]
    for k, row in enumerate(V):
        space.random(k, row)
    z = space.empty(n, M.dtype)

    def steps():
        for row in V:
            M.apply(row, z)

    if space.name == "cuda" and M.capturable:
        return timing.times(space, steps, 1, RESTARTS)
    M.apply(V[0], z)
    return [watched(space, steps) for _ in range(RESTARTS)]


def watched(space, call) -> float:
    """Return the wall time of ``call()``, in seconds."""
    with engine.stopwatch(space) as elapsed:
        call()
    return elapsed[0]


def orthogonalisations(A, b):
    """Yield (settings, times) of figures 8 and 9: a GMRES for each batch, and one with its basis in single precision.
    ``A``: CSRMatrix; ``b``: vector; their space must be active."""
    for settings in (*(GMRES(RESTART, batch) for batch in BATCHES), GMRES(RESTART, basis="single")):
        yield settings, orthogonalised(A, b, settings)


def orthogonalised(A, b, settings) -> dict[str, float]:
    """Return {part: seconds a step}, for the inner products and the updates, as means over a cycle; ``settings``: a
    GMRES."""
    space, n = A.space, A.shape[0]
    # The vectors are random, so their norms must not end the loop: no tolerance, no judgement of progress.
    loop = space.loop(Stopping(rtol=1e-30, maxiter=10_000, window=0), n)
    x = space.empty(n, A.dtype)
    it = settings.bind(method.System(A, None, b, x, None, Workspace(space), loop))
    for k, vector in enumerate((*it.V, it.u, it.w)):
        space.random(k, vector)
        vector *= (3 / n) ** 0.5             # the norm is then about 1
    it.norm2[...] = 1
    loop.begin(0.0, 1e100, 0)

    def inner_products():
        for j in range(it.m):
            it.orthogonal_parts(j)

    def updates():
        it.step.first(it.u, it.norm2, it.g, it.columns)
        for j in range(it.m):
            it.finish_vector(j)

    times = {"inner_products": timing.seconds(space, inner_products, 1) / it.m,
             "updates": timing.seconds(space, updates, 1) / it.m}
    loop.end()
    return times


def given(arguments, rows=None):
    """Yield (name, SciPy CSR matrix, block size or None) for all matrices that the command line names. ``rows`` as in
    ``named_matrices``."""
    for name, A, block in named_matrices(arguments.matrices, arguments.scale, rows):
        yield name, A, block or arguments.block
    for name, A in engine.files(arguments.files):
        yield name, A, arguments.block
