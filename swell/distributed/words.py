"""Merging of the ranks' descriptions and notes into texts that hold for all ranks.

Each rank builds a preconditioner from its own rows, so fill, shift or levels differ between ranks. Texts that differ
only in numbers become one text with ranges, "6498 to 6521 entries"; other texts are prefixed with their ranks.
"""
from __future__ import annotations

import re
from itertools import groupby

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def merged(texts) -> str:
    """Merge the texts of all ranks, given in the order of ranks, into one. Texts that differ only in numbers become one
    text with ranges of numbers; other texts are joined by ";", each after its ranks."""
    groups = _alike(enumerate(texts))
    if len(groups) == 1:
        return _ranged(texts)
    return "; ".join(f"{_named(ranks)}: {_ranged(some)}" for ranks, some in groups)


def merged_notes(notes) -> list[str]:
    """Merge the ranks' lists of notes into one new list. A note begins with its ranks, unless every rank has the same
    one once."""
    every = [(rank, note) for rank, some in enumerate(notes) for note in some]
    return [_ranged(some) if ranks == [*range(len(notes))] and len(some) == len(ranks) and len({*some}) == 1
            else f"{_named(ranks)}: {_ranged(some)}" for ranks, some in _alike(every)]


def _alike(texts):
    """Group (rank, text) pairs whose texts differ only in numbers. Return a list of (ranks, texts), in order of first
    occurrence."""
    groups = {}
    for rank, text in texts:
        groups.setdefault(NUMBER.sub("#", text), []).append((rank, text))
    return [(list(dict.fromkeys(rank for rank, _ in group)), [text for _, text in group]) for group in groups.values()]


def _ranged(texts) -> str:
    """Return one text for texts that differ only in numbers: each number becomes the range from the smallest to the
    largest, "3 to 7"."""
    places = iter(zip(*(NUMBER.findall(text) for text in texts), strict=True))
    return NUMBER.sub(lambda number: _range(next(places)), texts[0])


def _range(numbers) -> str:
    least, most = min(numbers, key=float), max(numbers, key=float)
    return least if float(least) == float(most) else f"{least} to {most}"


def _named(ranks) -> str:
    """Return a list of ranks in words: "on rank 3", "on ranks 0, 2 to 5"."""
    runs = [[rank for _, rank in run] for _, run in groupby(enumerate(ranks), lambda pair: pair[1] - pair[0])]
    words = [str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs]
    return f"on rank{'s' if len(ranks) > 1 else ''} {', '.join(words)}"
