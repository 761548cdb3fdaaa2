"""ICM by whole sections, as in the thesis: every iteration computes every sum of a section anew, from the first term.

Section 2.2.2 (listings 2.7 to 2.10) and Appendix C: the diagonal section is iterated up to a bad element, then the
sections below it up to that element's column, in streams. The element gets a pivot. This repeats until no bad element
is left. Then the sections to the right are iterated, in streams. Every iteration ends with a host read of the flags.

This form is for comparison; ``ICM(form="fronts")`` is the fast one. On random dense matrices the iterations follow the
thesis' laws, for sections of s rows and a diagonal one with p pivots: 2 s + p for a diagonal section (one less in the
first), s + p for a section below, s + 1 for one to the right.

A CPU has no streams: sections follow one another, the rows of each in parallel.
"""
from contextlib import nullcontext

import numpy as np

from swell.core.errors import FactorisationError

DIAGONAL, LOWER, RIGHT = 0, 1, 2        # kinds of sections in the kernels


class Sections:
    """One decomposition by whole sections.

    Parameters
    ----------
    settings : ICM
    work : Work
    section : int
        Rows of a section.

    Attributes
    ----------
    flags : int32 device array, shape (sections + 1,)
        ``flags[0]``: the bad element of the diagonal section. ``flags[1 + s]``: 1 if section s has changed.
    """

    def __init__(self, settings, work, section):
        self.settings, self.work, self.section = settings, work, section
        self.kernels, self.swaps = work.kernels("sections"), work.kernels("pivoting")
        self.count = -(-work.n // section)
        self.a, self.next = work.lu.copy(), work.space.empty(work.lu.size, work.dtype)
        if work.estimate is not None:
            work.lu[...] = work.estimate
        self.flags = work.space.empty(self.count + 1, np.int32)
        self.tiles = work.space.empty((section // settings.x) ** 2 + 1, np.int32)
        self.iterations = np.zeros((self.count, self.count), np.int64)
        cuda = work.space.name == "cuda"
        self.streams = [work.space.xp.cuda.Stream(non_blocking=True) if cuda else None for _ in range(self.count)]

    def run(self):
        """Decompose ``work.matrix`` in place. Returns a list with one array, the iterations of every section."""
        for d in range(self.count):
            self._diagonal_and_below(d)
            self._together(RIGHT, d, self._end(d))
        return [self.iterations]

    def _end(self, section):
        """Return the row after the last one of a section."""
        return min((section + 1) * self.section, self.work.n)

    def _diagonal_and_below(self, d):
        """Complete diagonal section number d and the sections below it, in place, with pivots."""
        begin, end, last = d * self.section, self._end(d), self.work.n - 1
        search = begin
        while True:
            bad = self._diagonal(d, search)
            cutoff = min(bad + 1, end)
            self._together(LOWER, d, cutoff)
            if bad < last and self.settings.pivoting != "none":
                self._pivot(bad)
            if bad >= end - 1:
                return
            search = bad + 1

    def _diagonal(self, d, search):
        """Iterate diagonal section number d, in place. Returns its first bad element from ``search`` on, or n."""
        begin, end = d * self.section, self._end(d)
        bad = self._bad(search, end)
        for _ in range(2 * (end - begin) + 2):
            before = bad
            self.flags[1 + d] = 0
            self._compute(DIAGONAL, d, d, bad, end)
            self.iterations[d, d] += 1
            self._find(search, end)
            host = self.work.space.to_host(self.flags)  # sync
            bad = int(host[0])
            if not host[1 + d] and bad == before:
                return bad
        raise self._unsettled(d, d)

    def _bad(self, search, end):
        """Return the first bad element, a diagonal one outside ``settings.bounds``, from ``search`` to ``end``; n if
        none."""
        self._find(search, end)
        return int(self.work.space.to_host(self.flags[:1])[0])  # sync

    def _find(self, search, end):
        """Write to ``flags[0]`` the first bad element (see ``_bad``) from ``search`` to ``end``; n if there is none."""
        work, (lower, upper) = self.work, self.settings.bounds
        self.kernels.find_bad(work.lu, work.row, work.column, search, end, lower, upper, work.n, self.flags)

    def _together(self, kind, d, cutoff):
        """Iterate the sections beside diagonal section d, each in a stream, until all have settled. ``kind``: LOWER,
        the sections below, up to column ``cutoff``; or RIGHT, the sections to the right."""
        active = list(range(d + 1, self.count))
        work = self.work
        for _ in range(2 * self.section + 2):
            if not active:
                return
            self.flags[...] = 0
            work.space.synchronize()
            for s in active:
                with self.streams[s] or nullcontext():
                    self._compute(kind, d, s, work.n, cutoff)
            for s in active:
                if self.streams[s]:
                    self.streams[s].synchronize()
                self.iterations[(s, d) if kind == LOWER else (d, s)] += 1
            changed = work.space.to_host(self.flags)  # sync
            active = [s for s in active if changed[1 + s]]
        raise self._unsettled(*((active[0], d) if kind == LOWER else (d, active[0])))

    def _compute(self, kind, d, s, bad, cutoff):
        """Do one iteration of a section, in place in ``work.lu``. ``kind``, ``d``, ``cutoff``: as in ``_together``, or
        DIAGONAL; ``s``: the section. Elements after the bad one stay. Sets flags[1 + s] if an element has changed."""
        work, x = self.work, self.settings.x
        top, left = (s if kind == LOWER else d) * self.section, (s if kind == RIGHT else d) * self.section
        bottom = min(top + self.section, work.n)
        right = min(left + self.section, work.n) if kind == RIGHT else cutoff
        tiles = self.tiles[:-(-(bottom - top) // x) * -(-(right - left) // x) + 1]
        box = work.row, work.column, top, bottom, left, right, bad
        self.kernels.compute(kind, self.a, work.lu, self.next, *box, x, x * x, float(self.settings.tolerance), 1 + s,
                             self.flags, tiles)
        self.kernels.assign(work.lu, self.next, *box, x, x * x, tiles)

    def _pivot(self, j):
        """Swap row j with the row of the largest element in its column, in ``work.lu`` and in the copy ``a`` of A."""
        work = self.work
        self.swaps.pick_pivot(work.lu, work.row, work.column, j, np.inf, work.n, work.pivots)
        for matrix in (work.lu, self.a):
            self.swaps.swap_rows(matrix, work.row, work.column, j, work.n, work.pivots)

    def _unsettled(self, i, j):
        """Return the error for section (i, j), which has not settled, since an entry stays non-finite."""
        return FactorisationError(f"ICM: section ({i}, {j}) of {self.section} rows has not settled after "
                                  f"{self.iterations[i, j]} iterations, when all of it must be final: its values "
                                  f"overflow {self.work.dtype}; scale the matrix, take pivoting='full' or a wider type")
