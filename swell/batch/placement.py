"""Placement of a batch's systems on a GPU: bytes of shared memory, threads of its block, lanes of a row.

Vectors and the preconditioner lie in shared memory. The values do, too, if two blocks then still share a
multiprocessor. Larger systems leave their values where they are, and each product reads them through the caches. LU
keeps a row in the registers of each thread if a row has at most 512 bytes, else the matrix in shared memory.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from swell.batch.settings import Choice
from swell.batch.slots import Kind
from swell.core.errors import InputError
from swell.core.space import accumulator

STATIC = 2048           # bytes of shared memory that the kernels take besides
THREADS = 512           # most threads of a block
ROW = 512               # bytes of a row that fit into the registers of a thread
SIDES = 4               # right-hand sides that LU in registers eliminates together, if there are several
LU_THREADS = 256        # threads of a block of LU in shared memory
MAX_PIVOTS = 256        # unknowns that LU's keys of pivots can number
VECTORS = {"cg": 4, "bicgstab": 5}          # BiCGSTAB takes 2 more with a preconditioner


@dataclass(frozen=True)
class Placement:
    """A launch: ``kernel`` of the file of the method, and the arguments that describe it.

    Attributes
    ----------
    kernel : str
    lanes, threads, shared : int
        Threads that share a row of a product; threads of a block; bytes of shared memory.
    held : int
        1 if the values are in shared memory.
    unknowns, sides : int
        Of LU in registers: entries of a row, a multiple of 8, and right-hand sides eliminated together.
    """

    kernel: str
    lanes: int = 1
    threads: int = 32
    shared: int = 0
    held: int = 0
    unknowns: int = 0
    sides: int = 1


def place(choice: Choice, n: int, nnz: int, columns: int, dtype, space) -> Placement:
    """Return the placement of systems of n unknowns and nnz entries.

    Raises
    ------
    InputError
        If a system does not fit on the chip; the message says what fits, and what to do.
    """
    if space.name == "cpu":
        return Placement(choice.name)
    limit = space.shared_memory - STATIC
    placement = _fitting(choice, n, nnz, columns, dtype, limit)
    if placement is None:
        raise InputError(_too_large(choice, n, nnz, columns, dtype, limit))
    return placement


def fits(choice: Choice, n: int, nnz: int, columns: int, dtype, space) -> bool:
    """True if systems of n unknowns and nnz entries fit on the chip; always on a CPU."""
    return space.name == "cpu" or _fitting(choice, n, nnz, columns, dtype, space.shared_memory - STATIC) is not None


def _fitting(choice, n, nnz, columns, dtype, limit):
    """Return the placement, or None if more than ``limit`` bytes of shared memory would be needed."""
    lanes = _lanes(nnz / n, 16)
    item = np.dtype(dtype).itemsize
    if choice.name == "lu":
        return _lu(n, columns, item, lanes, limit)
    on_chip, outside = (_shared(choice, n, nnz, dtype, held) for held in (True, False))
    held = on_chip <= limit // 2 or on_chip <= limit < 2 * outside
    shared = on_chip if held else outside
    if shared > limit:
        return None
    lanes = lanes if held else _lanes(nnz / n, 1)                # lanes read values in memory side by side
    return Placement(choice.name, lanes, min(-(-n * lanes // 32) * 32, THREADS), shared, int(held))


def _lanes(row, least):
    """The threads that share a row of ``row`` entries, a power of two up to 32, so that each has ``least`` entries."""
    lanes = 1
    while 2 * lanes * least <= row and lanes < 32:
        lanes *= 2
    return lanes


def _lu(n, columns, item, lanes, limit):
    """The placement of dense LU for values of ``item`` bytes, or None. ``lu.cu`` has the same sizes."""
    unknowns = -(-n // 8) * 8
    if unknowns * item <= ROW:
        sides, pack = 1 if columns == 1 else SIDES, max(16 // item, 1)
        width = -(-(-(-(unknowns + sides) // pack) * pack) // 2) * 2
        shared = (n * max(unknowns + 1, width) + 3 * sides * n) * item
        threads = -(-n // 32) * 32
        placement = Placement("lu_rows", lanes, threads, shared, 0, unknowns, sides)
        if shared <= limit:
            return placement
    shared = (n * (n | 1) + 3 * n) * item + 4 * n
    return Placement("lu", lanes, LU_THREADS, shared) if shared <= limit and n <= MAX_PIVOTS else None


def _shared(choice, n, nnz, dtype, held):
    """Bytes of shared memory of a Krylov method; the kernels take them in this order."""
    item, s = np.dtype(dtype).itemsize, choice.block
    plain = choice.kind == Kind.PLAIN
    stored = {Kind.PLAIN: 0, Kind.JACOBI: n, Kind.BLOCK_JACOBI: -(-n // s) * s * s, Kind.ILU: nnz}[choice.kind]
    scalars = 0
    if choice.name == "gmres":
        m = choice.method.restart
        scalars = (m * (m + 1) + 2 * (m + 1) + m) * accumulator(dtype).itemsize + 16 * ((m + 1) // 2)
        vectors = m + 3 + (not plain)
    else:
        vectors = VECTORS[choice.name] + (0 if plain or choice.name == "cg" else 2)
    return scalars + (stored + vectors * n + (nnz if held else 0)) * item


def _too_large(choice, n, nnz, columns, dtype, limit):
    """Return the message for systems that do not fit. It names the largest n that fits, and remedies."""
    most, least = n, 0
    while most - least > 1:
        middle = (most + least) // 2
        if _fitting(choice, middle, -(-nnz * middle // n), columns, dtype, limit) is None:
            most = middle
        else:
            least = middle
    return (f"{choice.describe()} of systems with n = {n} unknowns and {nnz} entries in {np.dtype(dtype).name} does "
            f"not fit into the {limit // 1024} KiB of shared memory of a block: at {nnz / n:.3g} entries a row, n = "
            f"{least} fits. Take a method with less memory (cg or bicgstab with precond='jacobi', a smaller gmres "
            "restart), dtype='float32', device='cpu', or solve the systems one by one with swell.solve")
