"""Shares of the copy speed as text. A busy machine copies slowly, and then they say nothing."""
from __future__ import annotations

from swell.bench.engine import tell

MOST_OF_COPY = 10       # times the copy speed: largest share that a cache may explain


def of_copy(share) -> str:
    """Return a share of the copy speed as text: "nonsense" above `MOST_OF_COPY`, more than a cache explains."""
    return f"{share:.0%}" if share <= MOST_OF_COPY else "nonsense"


def warn_of_nonsense(shares):
    """Say on stderr why some of the ``shares`` of the copy speed are nonsense, if some are."""
    if any(share > MOST_OF_COPY for share in shares):
        tell(f"of copy: more than {MOST_OF_COPY:.0%} is nonsense, since no cache is as fast: the copy was measured "
             "while the machine was busy; measure again")
