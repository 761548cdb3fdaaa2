"""``swell reproduce``: measures or reads the parts of a paper, judges, prints a table, and writes a report."""
from __future__ import annotations

import importlib
from pathlib import Path

from swell.bench import engine
from swell.core.devices import make_space
from swell.core.errors import InputError
from swell.papers import paper
from swell.papers.evidence import STORED, Measured, gather, read
from swell.report.files import write


def the_paper(name) -> paper.Paper:
    """Return the Paper with this name, as ``swell reproduce`` takes it."""
    return importlib.import_module(f"swell.papers.{name.replace('-', '_')}").THE_PAPER


def from_records(name) -> paper.Outcome:
    """Return the Outcome of a paper by stored records alone, as docs/REPRODUCE.md shows it."""
    chosen = the_paper(name)
    return paper.judge(chosen, {part.name: read(part, STORED) if part.stored or part.sample else
                                Measured([], "not measured") for part in chosen.parts})


def run(arguments) -> int:
    """Reproduce one paper; return the exit status. ``arguments``: the parsed command line."""
    space, folder = make_space(arguments.device), arguments.records or STORED
    if arguments.records and not Path(folder).is_dir():
        raise InputError(f"--records {folder}: there is no such folder; expected one with files that swell bench --out "
                         "has written")
    chosen = the_paper(arguments.paper)
    outcome = paper.judge(chosen, gather(chosen.parts, arguments.device, arguments.small, folder))
    paper.show(outcome)
    if arguments.out:
        write(arguments.out, paper.html(outcome, engine.circumstances(space)))
    return 0
