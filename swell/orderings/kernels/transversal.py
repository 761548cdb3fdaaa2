"""A maximum transversal by shortest augmenting paths, on the host. Duff and Koster 2001."""
from __future__ import annotations

from heapq import heappop, heappush

import numpy as np

from swell.core.compiled import njit


@njit(cache=True)
def assign(indptr, rows, costs):
    """Return (the row of each column in the matching of least cost, int64, −1 for an unmatched column; u; v).

    The entries of column j are in the rows rows[indptr[j]:indptr[j + 1]], with their costs in ``costs``, at the same
    places; an infinite cost is no entry. Costs less u of the row and v of the column are 0 on the matching and not
    negative elsewhere, if no column is unmatched.

    First, a column gets its cheapest row if that row is free. For each other column Dijkstra's algorithm finds the
    shortest alternating path to a free row, by costs less u and v. If there is no path, the visited rows lead to no
    free row, now or later. They stay done, so that all failed searches together read an entry once."""
    n = indptr.size - 1
    row_of, column_of = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    u, v = np.zeros(n), np.full(n, np.inf)
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            v[j] = min(v[j], costs[k])
        for k in range(indptr[j], indptr[j + 1]):
            if costs[k] == v[j] < np.inf and column_of[rows[k]] < 0:
                row_of[j], column_of[rows[k]] = rows[k], j
                break
    distance, before, done = np.full(n, np.inf), np.empty(n, np.int64), np.zeros(n, np.bool_)
    met = np.empty(n, np.int64)                                     # rows whose distance must be reset after a search
    for start in range(n):
        if row_of[start] >= 0 or v[start] == np.inf:
            continue
        shortest, free, base, column, count = np.inf, -1, 0.0, start, 0
        heap = [(0.0, 0) for _ in range(0)]
        while column >= 0:
            for k in range(indptr[column], indptr[column + 1]):
                i = rows[k]
                reached = base + max(costs[k] - u[i] - v[column], 0.0)          # negative only by rounding
                if done[i] or reached >= min(distance[i], shortest):
                    continue
                if distance[i] == np.inf:
                    met[count] = i
                    count += 1
                distance[i], before[i] = reached, column
                if column_of[i] < 0:
                    shortest, free = reached, i
                else:
                    heappush(heap, (reached, i))
            column = -1
            while len(heap) and heap[0][0] < shortest:
                base, i = heappop(heap)
                if not done[i]:                                     # else an outdated, longer distance of this row
                    done[i], column = True, column_of[i]
                    break
        found = free >= 0
        for k in range(count):
            i = met[k]
            if done[i] and found:
                u[i] += distance[i] - shortest
                v[column_of[i]] += shortest - distance[i]
                done[i] = False
            distance[i] = np.inf
        if found:
            v[start] += shortest
        while free >= 0:                                            # rematch along the path
            column = before[free]
            column_of[free], row_of[column], free = column, free, row_of[column]
    return row_of, u, v
