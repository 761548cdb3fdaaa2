"""Tuned: the format and the launch shape chosen by timing products with the matrix itself.

"Accelerated solution of Helmholtz equation with Iterative Krylov Methods on GPU", sections 4 and 6, organises threads
by "auto-tuning" without saying how; the formats to try and the rule are ours:

- the formats: the default, and around it CSR with fewer and more threads a row, SELL of other slice heights, sorting
  windows and tasks (threads of a block on a GPU), staircase SELL;
- each is built, a few of its products are timed, and the least time counts. A format replaces the default if it is 3 %
  faster, and again when both are timed once more. No further format is begun once ``seconds`` are over;
- the fastest format is kept on disk (``store.py``) under the class of the matrix: rows, entries a row, their spread,
  longest row and bandwidth, all in coarse steps, the type, the device, and swell's version. Nothing is measured for a
  matrix of a known class.

Cost: at most 88 timed products, and a conversion for each format; on a CPU the conversions take longer. A solve
never tunes unasked, and never reads the file unasked: the same call gives the same bits whatever ran before. The
defaults are chosen so that tuning gains little; `swell bench spmv --tune` shows the gain, and the cost in products.
"""
from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

import swell
from swell.advisor.choose import default_format
from swell.advisor.machine import name_of_device
from swell.advisor.store import Store
from swell.core import timing
from swell.core.errors import InputError
from swell.core.registry import name_of, resolve
from swell.core.settings import positive, real, switch
from swell.formats.sell import own_height

if TYPE_CHECKING:
    from swell.formats.matrix import Matrix

MIN_ROWS = 256          # matrices with fewer rows gain nothing
FASTER = 0.97           # share of the default's seconds below which another format replaces it
CONVERSIONS = 8         # bytes that conversions may need, over the matrix's bytes
SPREADS = 0.02, 0.2, 0.5, 1.0                    # spreads of row lengths between the classes of matrices


@dataclass(frozen=True)
class Tuned:
    """Chosen by timing products with the matrix itself, and remembered on disk for matrices of its class.

    Attributes
    ----------
    products : int
        Products timed for each format, at most nine formats; then as many for the best and the default.
    seconds : float
        No further format is begun after these seconds. If some were not tried, the fastest one is not kept.
    cache : bool
        Whether the fastest format is read from and written to ``tuning.json``, in the folder that the environment
        variable SWELL_CACHE names, by default ``swell`` in the user's cache folder.
    """

    products: int = 8
    seconds: float = 2.0
    cache: bool = True

    def __post_init__(self):
        positive(self, "products", most=1000)
        if not real(self.seconds) or not 0 < self.seconds < math.inf:
            raise InputError(f"Tuned(seconds={self.seconds!r}): expected a positive number of seconds")
        switch(self, "cache")

    def build(self, csr):
        """Return ``csr`` in the fastest format; ``origin`` and ``notes`` of the result tell how it was chosen."""
        return tune(csr, self, Store() if self.cache else None)


@dataclass(frozen=True)
class Trial:
    """A format with the seconds of a product, and the matrix in it."""

    format: str
    seconds: float
    matrix: Matrix


def tune(csr, settings: Tuned, store: Store | None = None, measure=timing.seconds, clock=time.perf_counter):
    """Convert a CSRMatrix to the fastest format: the one kept for its class of patterns, else the winner of trials.

    Parameters
    ----------
    csr : CSRMatrix
        In an active space.
    store : Store, optional
        The file of tuned formats, read and written.
    measure : callable
        ``measure(space, call, count)``: seconds a call takes.
    clock : callable
        Seconds, for the budget.

    Returns
    -------
    Matrix
    """
    default = text_of(default_format(csr))
    if csr.shape[0] < MIN_ROWS or not csr.nnz:
        return _described(resolve("format", default).build(csr), csr,
                          f"not tuned: fewer than {MIN_ROWS} rows, or no entries")
    free, _ = csr.space.memory()
    if free < CONVERSIONS * csr.nbytes:
        return _described(resolve("format", default).build(csr), csr,
                     f"not tuned: {free / 2**30:.2f} GiB are free, and trying formats may need "
                     f"{CONVERSIONS * csr.nbytes / 2**30:.2f}")
    names, key = formats_to_try(csr, default), pattern_class(csr, default)
    known = store.get(key) if store else None
    if known is not None:
        if known.get("format") in names:
            return _described(resolve("format", known["format"]).build(csr), csr,
                         f"tuned: {known['format']}, as kept for this class of matrices", store)
        store.complaints.append(f"cache of tuned formats: {store.path} names {known.get('format')!r} for this "
                                  "class of matrices, which is none of the formats to try: measured anew")
    start = clock()
    best, first, tried, timed = _try(csr, names, settings, measure, clock)
    spent, whole = clock() - start, tried == len(names)
    if store and whole:
        store.put(key, {"format": best.format, "seconds": best.seconds, "default": default,
                          "default_seconds": first.seconds}, keep=f"{swell.__version__} | ")
    origin = (f"tuned: {best.format}, {1e6 * best.seconds:.4g} µs a product ({1e6 * first.seconds:.4g} with the "
              f"default, {default}), best of {tried} formats, {timed} products timed, {spent:.2g} s in all")
    if not whole:
        origin += f"; {len(names) - tried} were not tried within Tuned(seconds={settings.seconds:g}), so it is not kept"
    return _described(best.matrix, csr, origin, store)


def _try(csr, names, settings, measure, clock):
    """Time products in the formats ``names``, default first; return (best Trial, default's Trial, formats, products).

    The last two are counts. ``measure(space, call, count)`` returns a call's seconds. Formats are tried until
    ``settings.seconds`` have passed on ``clock``, the default always."""
    space, start = csr.space, clock()
    x, y = space.empty(csr.shape[1], csr.dtype), space.empty(csr.shape[0], csr.dtype)
    space.random(1, x)

    def trial(name, matrix):
        return Trial(name, measure(space, partial(matrix.apply, x, y), settings.products), matrix)

    best = first = trial(names[0], resolve("format", names[0]).build(csr))
    tried = 1
    while tried < len(names) and clock() - start < settings.seconds:
        new = trial(names[tried], resolve("format", names[tried]).build(csr))
        tried += 1
        if new.seconds < min(best.seconds, FASTER * first.seconds):
            best = new
    if best is first:
        return first, first, tried, tried * settings.products
    first, best = (min(t, trial(t.format, t.matrix), key=lambda t: t.seconds) for t in (first, best))
    if best.seconds >= FASTER * first.seconds:   # other work had slowed the default
        best = first
    return best, first, tried, (tried + 2) * settings.products


def _described(matrix, csr, origin, store=None):
    """Return ``matrix`` with ``origin``, a text on how its format was found, and the complaints of ``store`` as notes.

    If ``matrix`` is ``csr``, which the user owns, return a shallow copy."""
    matrix = copy.copy(matrix) if matrix is csr else matrix
    matrix.origin = origin
    matrix.notes = tuple(store.complaints) if store else ()
    return matrix


def text_of(setting) -> str:
    """Return a format's settings as text that ``resolve`` reads, such as "sell(height=8)"."""
    changed = ", ".join(f"{f.name}={getattr(setting, f.name)!r}" for f in fields(setting)
                        if getattr(setting, f.name) != f.default)
    name = name_of("format", type(setting))
    return f"{name}({changed})" if changed else name


def formats_to_try(csr, default: str) -> list[str]:
    """Return the texts of the formats to try: the default first, then the most promising."""
    mean, spread, longest = _lengths(csr)
    ragged = default == "csr"                    # SELL would be mostly padding
    sorts = spread > SPREADS[0]
    if csr.space.name == "cpu":
        names = ["staircase_sell", "csr"]
        if not ragged:
            heights = [h for h in (8, 32, 16) if h != own_height(csr.dtype, "cpu")]
            names += [f"sell(height={heights[0]})", "sell", f"sell(height={heights[1]})",
                      *(["sell(window=1)"] if sorts else [])]
    else:
        lanes = next(l for l in (1, 2, 4, 8, 16, 32) if l == 32 or 2 * l > mean)
        csr_forms = [f"csr(lanes={l})" for l in (max(1, lanes // 2), min(32, 2 * lanes)) if l != lanes]
        if ragged:
            names = ["csr", *csr_forms, "staircase_sell"]
        else:
            names = ["sell", "sell(task=128)", "sell(task=512)", "staircase_sell", "sell(height=64)",
                     *(["sell(window=1)", "sell(window=1024)"] if sorts else []), "csr", csr_forms[-1]]
    return list(dict.fromkeys([default, *names]))


def _lengths(csr):
    """Return (mean, standard deviation over mean, largest) of the row lengths of ``csr``."""
    facts = csr.facts(search=False)
    return csr.nnz / csr.shape[0], facts.row_spread, facts.longest_row


def pattern_class(csr, default: str) -> str:
    """Return the key, a text, under which the format for ``csr`` is kept: device, type and size of its pattern.

    Sizes are rounded coarsely, so that similar matrices share their format. ``default``: text of the default format."""
    n, bandwidth = csr.shape[0], csr.facts(search=False).bandwidth
    mean, spread, longest = _lengths(csr)
    steps = sum(spread > s for s in SPREADS)
    return " | ".join((swell.__version__, name_of_device(csr.space), csr.dtype.name, f"rows 2^{round(math.log2(n))}",
                       f"{2 ** (round(2 * math.log2(max(mean, 0.1))) / 2):.3g} a row", f"spread {steps}",
                       f"longest {2 ** round(math.log2(max(longest / mean, 1)))} times",
                       f"bandwidth 2^{4 * math.ceil(math.log2(bandwidth + 1) / 4)}", f"default {default}"))
