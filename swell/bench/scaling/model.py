"""A model of the time of an iteration on P ranks: bytes moved, divided by measured speeds, plus latencies.

    t(P) = o + B/(e β) + p (d α + H/β_l) + r (α_r ⌈log₂ P⌉ + 8 k (P − 1)/β_r)

    o      overhead: seconds of an iteration without any data (calls, launches)
    B, β   bytes of a rank's memory that an iteration moves; bytes a second of a copy, by all ranks at the same time
    e      share of β that the kernels of an iteration reach
    p      products an iteration
    d, H   neighbours, and bytes of halo, a product, of the rank with most
    α, β_l latency of a message in seconds, and bytes a second of long messages: from a ping-pong
    r, k   reductions an iteration, and the doubles of each
    α_r    seconds of each of the ⌈log₂ P⌉ steps of a reduction
    β_r    bytes a second of a reduction: every rank gets the numbers of all others, 8 k (P − 1) bytes, so that sums
           have equal bits on all ranks; from reductions of 1 to 64 doubles

α, β_l, α_r and β_r come from the run's own messages and reductions, β from its copies. o and e, for each method, come
from its iterations on the fewest ranks, with a tiny system among them. All fits are least squares of relative
deviations with nonnegative parameters. The model is not fitted to iterations on more ranks: these test it.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PREDICTED = (8, 16, 32, 64, 128, 256, 512, 1024)
DOUBLE, ENTRY, ROW = 8, 12, 4          # bytes of a number, of an entry in CSR, of a row's pointer


@dataclass(frozen=True)
class Case:
    """The work of a method's iteration.

    Attributes
    ----------
    words : float
        Doubles a row that an iteration moves besides the products.
    products, reductions : float
        Number of products and of reductions an iteration.
    doubles : int
        Doubles of a reduction.
    """

    words: float
    products: float
    reductions: float
    doubles: int


CASES = {"cg": Case(8, 1, 2, 3), "single_reduction_cg": Case(10, 1, 1, 5),
         "gmres(restart=30)": Case(2 * 14.5 + 7, 31 / 30, 32 / 30, 63)}


@dataclass(frozen=True)
class Share:
    """Largest numbers over the ranks: rows, entries, ghosts (entries of x from other ranks), neighbours."""

    rows: int
    entries: int
    ghosts: int
    neighbours: int

    def bytes(self, case: Case) -> float:
        """Return the bytes of memory that an iteration of ``case`` moves: the matrix in CSR, x and y of the products,
        the method's vectors, packing and reading the halo."""
        product = ENTRY * self.entries + (ROW + 2 * DOUBLE) * self.rows + (2 * DOUBLE + ROW) * self.ghosts
        return case.products * product + DOUBLE * case.words * self.rows


@dataclass(frozen=True)
class Links:
    """Speed of messages and reductions between ranks.

    Attributes
    ----------
    latency, bandwidth : float
        For messages: α in seconds, β_l in bytes a second.
    step, gather : float
        For reductions: α_r in seconds, β_r in bytes a second.
    """

    latency: float
    bandwidth: float
    step: float
    gather: float

    def product(self, case: Case, share: Share) -> float:
        """Return the seconds of the exchanges of ghost values in an iteration of ``case``, for the rank's ``share``."""
        return case.products * (share.neighbours * self.latency + DOUBLE * share.ghosts / self.bandwidth)

    def reductions(self, case: Case, ranks: int) -> float:
        """Return the seconds of the reductions of an iteration of ``case`` on this number of ranks."""
        return case.reductions * (self.step * steps(ranks) + DOUBLE * case.doubles * (ranks - 1) / self.gather)


@dataclass(frozen=True)
class Local:
    """Speed of one rank with one method.

    Attributes
    ----------
    overhead : float
        o, seconds an iteration.
    speed : float
        e β, bytes a second.
    """

    overhead: float
    speed: float

    def seconds(self, case: Case, share: Share) -> float:
        """Return the seconds of an iteration of ``case``, without messages and reductions."""
        return self.overhead + share.bytes(case) / self.speed


def steps(ranks: int) -> int:
    """⌈log₂ ranks⌉."""
    return (ranks - 1).bit_length()


def seconds(case: Case, local: Local, links: Links, share: Share, ranks: int, hidden=False) -> float:
    """Return t(P), the time of an iteration of ``case`` in seconds on P = ``ranks`` ranks.

    Parameters
    ----------
    hidden : bool
        True: the exchange overlaps the product completely, as far as the product lasts. False: it does not overlap.
    """
    local_time, exchange = local.seconds(case, share), links.product(case, share) if ranks > 1 else 0.0
    product = case.products * ENTRY * share.entries / local.speed
    late = max(0.0, exchange - product) if hidden else exchange
    return local_time + late + (links.reductions(case, ranks) if ranks > 1 else 0.0)


def fit(columns, measured) -> np.ndarray:
    """Least-squares fit with x ≥ 0: minimise the relative deviations of columns @ x from ``measured``; return x.

    Parameters
    ----------
    columns : array, shape (points, parameters)
    measured : array, shape (points,)
        Positive numbers.
    """
    from scipy.optimize import nnls
    columns, measured = np.asarray(columns, float), np.asarray(measured, float)
    largest = np.maximum(abs(columns).max(axis=0), np.finfo(float).tiny)
    return nnls(columns / largest / measured[:, None], np.ones(measured.size))[0] / largest


def fit_links(messages, reductions) -> Links:
    """Return Links fitted to measured messages, (bytes, seconds), and reductions, (ranks, doubles, seconds).

    Reductions are so short that their bandwidth may not show; it is at most the bandwidth of messages.
    """
    sizes, times = np.array(messages, float).T
    latency, per_byte = fit(np.column_stack([np.ones(sizes.size), sizes]), times)
    ranks, counts, times = np.array(reductions, float).T
    step = np.array([steps(int(p)) for p in ranks], float)
    gathered = DOUBLE * counts * (ranks - 1)
    of_step, per_gathered = fit(np.column_stack([step, gathered]), times)
    if per_gathered < per_byte:
        per_gathered, of_step = per_byte, fit(step[:, None], np.maximum(times - per_byte * gathered, 0.01 * times))[0]
    return Links(latency, _over(per_byte), of_step, _over(per_gathered))


def fit_local(case: Case, points, links: Links | None) -> Local:
    """Return a Local fitted to measured iterations of ``case``: ``points``, (ranks, Share, seconds) each. ``links`` may
    be None if all are of one rank."""
    local_times = [max(t - seconds(case, Local(0.0, np.inf), links, share, ranks), 0.01 * t) if ranks > 1 else t
                   for ranks, share, t in points]
    overhead, per_byte = fit([[1.0, share.bytes(case)] for _, share, _ in points], local_times)
    return Local(overhead, _over(per_byte))


def _over(slowness):
    """1/slowness, or infinity for 0."""
    return 1 / slowness if slowness > 0 else np.inf


def deviation(predicted, measured) -> float:
    """Return the root mean square of ln(predicted/measured), as a factor − 1: 0.2 means off by 20 %, up or down."""
    return float(np.expm1(np.sqrt(np.mean(np.log(np.asarray(predicted) / np.asarray(measured)) ** 2))))


def count_shares(indptr, indices, owner, ranks: int, block: int = 1) -> Share:
    """Return the Share of a CSR pattern whose row i belongs to rank owner[i]: numbers of rows, entries, ghosts and
    neighbours, each a maximum over the ranks. Ranks have whole blocks of ``block`` rows; a ghost is one of a block."""
    blocks = (indptr.size - 1) // block
    lengths = np.diff(indptr)
    of_row = np.repeat(owner, lengths)
    outside = np.flatnonzero(of_row != owner[indices])
    needed = np.unique(of_row[outside].astype(np.int64) * blocks + indices[outside] // block)
    needs, wanted = needed // blocks, needed % blocks
    pairs = np.unique(needs * ranks + owner[block * wanted])
    rows, entries = np.bincount(owner, minlength=ranks), np.bincount(owner, weights=lengths, minlength=ranks)
    ghosts, neighbours = block * np.bincount(needs, minlength=ranks), np.bincount(pairs // ranks, minlength=ranks)
    return Share(*(int(of_ranks.max()) for of_ranks in (rows, entries, ghosts, neighbours)))


def share_of_slab(side: int, ranks: int) -> Share:
    """Return the Share (rows, entries, ghosts, neighbours of a rank) of the weak scaling's Poisson system: slabs side
    by side, side³ rows a rank."""
    neighbours = min(ranks - 1, 2)
    rows, face = side**3, side**2
    return Share(rows, 7 * rows - 4 * face - (2 - neighbours) * face, neighbours * face, neighbours)
