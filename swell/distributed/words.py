"""What each rank says of its part, as texts that are true of all ranks.

A preconditioner is made of a rank's own rows, so its fill, shift or levels are that rank's. Texts that differ in
numbers alone become one with ranges, "6498 to 6521 entries"; others are told apart by their ranks.
"""
from __future__ import annotations

import re
from itertools import groupby

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def merged(texts) -> str:
    """One text that is true of all ranks, from the text of each rank in order."""
    groups = _alike(enumerate(texts))
    if len(groups) == 1:
        return _ranged(texts)
    return "; ".join(f"{_named(ranks)}: {_ranged(some)}" for ranks, some in groups)


def merged_notes(notes) -> list[str]:
    """The notes of all ranks, from a list for each rank. A note that not all ranks have begins with its ranks."""
    every = [(rank, note) for rank, some in enumerate(notes) for note in some]
    return [_ranged(some) if ranks == [*range(len(notes))] and len(some) == len(ranks) and len({*some}) == 1
            else f"{_named(ranks)}: {_ranged(some)}" for ranks, some in _alike(every)]


def _alike(texts):
    """[(ranks, their texts)] of those that differ in numbers alone, in the order of the first of each."""
    groups = {}
    for rank, text in texts:
        groups.setdefault(NUMBER.sub("#", text), []).append((rank, text))
    return [(list(dict.fromkeys(rank for rank, _ in group)), [text for _, text in group]) for group in groups.values()]


def _ranged(texts) -> str:
    """Texts that differ in numbers alone as one, with the least and the largest number of each place."""
    places = iter(zip(*(NUMBER.findall(text) for text in texts), strict=True))
    return NUMBER.sub(lambda number: _range(next(places)), texts[0])


def _range(numbers) -> str:
    least, most = min(numbers, key=float), max(numbers, key=float)
    return least if float(least) == float(most) else f"{least} to {most}"


def _named(ranks) -> str:
    """"on rank 3", "on ranks 0, 2 to 5"."""
    runs = [[rank for _, rank in run] for _, run in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"on rank{'s' if len(ranks) > 1 else ''} {', '.join(words)}"
