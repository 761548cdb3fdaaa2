"""A model of the time of an iteration on P ranks: what is moved, over how fast it was measured to move.

    t(P) = o + B/(e β) + p (d α + H/β_l) + r (α_r ⌈log₂ P⌉ + 8 k (P − 1)/β_r)

    o      what an iteration costs without any data: calls, launches
    B, β   bytes of a rank's memory that an iteration moves; bytes a second of a copy, by all ranks at the same time
    e      the share of β that the kernels of an iteration reach
    p      products an iteration; d neighbours and H bytes of halo, of the rank with most, a product
    α, β_l seconds that a message takes however short, bytes a second of long ones: from a ping-pong
    r, k   reductions an iteration, and the doubles of each
    α_r    seconds of a step of a reduction, of which there are ⌈log₂ P⌉; every rank gets the numbers of all others
           (that makes sums the same bits everywhere), 8 k (P − 1) bytes at β_r: from reductions of 1 to 64 doubles

α, β_l, α_r and β_r come from the run's own messages and reductions, β from its copies; o and e, by method, from its
iterations on the fewest ranks, one of them of a system that is next to nothing. All fits are least squares of relative
deviations with parameters that are not negative. What was measured on more ranks is not fitted to: it tests the model.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

PREDICTED = (8, 16, 32, 64, 128, 256, 512, 1024)
DOUBLE, ENTRY, ROW = 8, 12, 4          # bytes of a number, of an entry in CSR, of a row's pointer


@dataclass(frozen=True)
class Case:
    """What an iteration of a method does, by the head of its file.

    Attributes
    ----------
    words : float
        Doubles a row that it moves beside the products.
    products, reductions, doubles : float
        An iteration; doubles of a reduction.
    """

    words: float
    products: float
    reductions: float
    doubles: int


CASES = {"cg": Case(8, 1, 2, 3), "single_reduction_cg": Case(10, 1, 1, 5),
         "gmres(restart=30)": Case(2 * 14.5 + 7, 31 / 30, 32 / 30, 63)}


@dataclass(frozen=True)
class Share:
    """What the rank with most has: rows, entries, entries of x that others have, neighbours that have them."""

    rows: int
    entries: int
    ghosts: int
    neighbours: int

    def bytes(self, case: Case) -> float:
        """Bytes of memory that an iteration moves: matrix in CSR, x and y of the products, vectors, the halo packed
        and read."""
        product = ENTRY * self.entries + (ROW + 2 * DOUBLE) * self.rows + (2 * DOUBLE + ROW) * self.ghosts
        return case.products * product + DOUBLE * case.words * self.rows


@dataclass(frozen=True)
class Links:
    """Between ranks.

    Attributes
    ----------
    latency, bandwidth : float
        Of a message: α in seconds, β_l in bytes a second.
    step, gather : float
        Of a reduction: α_r in seconds, β_r in bytes a second.
    """

    latency: float
    bandwidth: float
    step: float
    gather: float

    def product(self, case: Case, share: Share) -> float:
        """Seconds of an iteration's exchanges."""
        return case.products * (share.neighbours * self.latency + DOUBLE * share.ghosts / self.bandwidth)

    def reductions(self, case: Case, ranks: int) -> float:
        """Seconds of an iteration's reductions."""
        return case.reductions * (self.step * steps(ranks) + DOUBLE * case.doubles * (ranks - 1) / self.gather)


@dataclass(frozen=True)
class Local:
    """Of one rank with one method.

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
        """Seconds of an iteration without other ranks."""
        return self.overhead + share.bytes(case) / self.speed


def steps(ranks: int) -> int:
    """⌈log₂ P⌉."""
    return (ranks - 1).bit_length()


def seconds(case: Case, local: Local, links: Links, share: Share, ranks: int, hidden=False) -> float:
    """The time of an iteration.

    Parameters
    ----------
    hidden : bool
        All of the exchange happens during the product, if that takes as long: the most that overlap can do. False:
        nothing of it.
    """
    alone, exchange = local.seconds(case, share), links.product(case, share) if ranks > 1 else 0.0
    product = case.products * ENTRY * share.entries / local.speed
    late = max(0.0, exchange - product) if hidden else exchange
    return alone + late + (links.reductions(case, ranks) if ranks > 1 else 0.0)


def fit(columns, measured) -> np.ndarray:
    """Factors x ≥ 0 of the columns for which the relative deviations of their sum have the least sum of squares.

    Parameters
    ----------
    columns : array, shape (points, parameters)
    measured : array, shape (points,)
        Positive.
    """
    from scipy.optimize import nnls
    columns, measured = np.asarray(columns, float), np.asarray(measured, float)
    largest = np.maximum(abs(columns).max(axis=0), np.finfo(float).tiny)
    return nnls(columns / largest / measured[:, None], np.ones(measured.size))[0] / largest


def fit_links(messages, reductions) -> Links:
    """From measured messages, (bytes, seconds), and reductions, (ranks, doubles, seconds).

    So few doubles may show no bandwidth; that of reductions is at most that of messages.
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
    """From measured iterations, (ranks, share, seconds)."""
    alone = [max(t - seconds(case, Local(0.0, np.inf), links, share, ranks), 0.01 * t) if ranks > 1 else t
             for ranks, share, t in points]
    overhead, per_byte = fit([[1.0, share.bytes(case)] for _, share, _ in points], alone)
    return Local(overhead, _over(per_byte))


def _over(slowness):
    """1/slowness; what has cost nothing is infinitely fast."""
    return 1 / slowness if slowness > 0 else np.inf


def deviation(predicted, measured) -> float:
    """The root mean square of ln(predicted/measured), as a factor − 1: 0.2 is off by 20 % one way or the other."""
    return float(np.expm1(np.sqrt(np.mean(np.log(np.asarray(predicted) / np.asarray(measured)) ** 2))))


def count_shares(indptr, indices, owner, ranks: int) -> Share:
    """What the rank with most has, of a matrix' pattern whose rows have these owners; each the most by itself."""
    n = indptr.size - 1
    lengths = np.diff(indptr)
    of_row = np.repeat(owner, lengths)
    outside = np.flatnonzero(of_row != owner[indices])
    needed = np.unique(of_row[outside].astype(np.int64) * n + indices[outside])
    needs, wanted = needed // n, needed % n
    pairs = np.unique(needs * ranks + owner[wanted])
    rows, entries = np.bincount(owner, minlength=ranks), np.bincount(owner, weights=lengths, minlength=ranks)
    ghosts, neighbours = np.bincount(needs, minlength=ranks), np.bincount(pairs // ranks, minlength=ranks)
    return Share(*(int(of_ranks.max()) for of_ranks in (rows, entries, ghosts, neighbours)))


def share_of_slab(side: int, ranks: int) -> Share:
    """Of the weak scaling's Poisson: side³ rows a rank, slabs beside one another."""
    neighbours = min(ranks - 1, 2)
    rows, face = side**3, side**2
    return Share(rows, 7 * rows - 4 * face - (2 - neighbours) * face, neighbours * face, neighbours)
