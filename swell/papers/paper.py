"""What a paper is to swell: its tables and figures in order, its conclusions, and the parts that measure them."""
from __future__ import annotations

import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from swell.papers.evidence import Part
from swell.papers.verdict import CONTRADICTED, NOT_TESTED, REPRODUCED, Line, overall

HEADER = ("compared", "paper", "swell", "rule", "verdict", "from")
CONCLUSIONS = "Conclusions"


@dataclass(frozen=True)
class Item:
    """A table or a figure: its title, the paper's statement about it, and ``compare(evidence)``, which yields Lines.

    ``figure``: the number of the Paper's drawn figures that stand here in the report; "": none."""

    title: str
    statement: str
    compare: Callable
    figure: str = ""


@dataclass(frozen=True)
class Conclusion:
    """A conclusion of the paper, and ``judge(evidence)``, which returns one Line."""

    text: str
    judge: Callable


@dataclass(frozen=True)
class Paper:
    """A paper: ``caution`` says what makes its numbers and swell's differ by nature.

    ``draw(evidence)`` yields pairs (caption, figure) of stored records; captions name the numbers of figures. What a
    run measures has figures in the benchmarks' own reports."""

    name: str
    title: str
    caution: str
    parts: tuple[Part, ...]
    items: tuple[Item, ...]
    conclusions: tuple[Conclusion, ...]
    draw: Callable = lambda evidence: ()


@dataclass(frozen=True)
class Outcome:
    """A paper beside its evidence: ``items``, pairs (Item, list of Lines); ``conclusions``, pairs (Conclusion,
    Line)."""

    paper: Paper
    evidence: dict
    items: list
    conclusions: list[tuple[Conclusion, Line]]


def judge(paper, evidence) -> Outcome:
    """Return the Outcome of a Paper with ``evidence``, {name of a part: Measured}."""
    return Outcome(paper, evidence, [(item, list(item.compare(evidence))) for item in paper.items],
                   [(conclusion, conclusion.judge(evidence)) for conclusion in paper.conclusions])


def show(outcome):
    """Print an Outcome: the verdict on every table and figure, then on every conclusion with its number."""
    from swell.bench import engine
    engine.show(outcome.paper.title, ("table or figure", "verdict", "lines", "contradicted"), [
        (item.title, overall(lines), len(lines), sum(line.verdict == CONTRADICTED for line in lines))
        for item, lines in outcome.items])
    engine.show(CONCLUSIONS, ("verdict", "swell", "rule", "the paper's conclusion"), [
        (line.verdict, line.ours, textwrap.shorten(line.rule, 60, placeholder=" …"), conclusion.text)
        for conclusion, line in outcome.conclusions])


def html(outcome, facts) -> str:
    """Return the report as one HTML page; ``facts``: the fields of ``engine.circumstances``."""
    from swell.display import page
    from swell.display.figure import png
    title = f"swell reproduce {outcome.paper.name}"
    body = [f"<h1>{page.escape(title)}</h1>", page.paragraph(outcome.paper.title),
            page.paragraph(f"{facts['device']}, {facts['date']}", soft=True), page.paragraph(outcome.paper.caution),
            page.heading("Where the numbers come from"),
            page.table([(name, m.source, len(m.records)) for name, m in outcome.evidence.items()],
                       ("part", "source", "records")),
            page.heading(CONCLUSIONS), _conclusions(outcome)]
    drawn = list(outcome.paper.draw(outcome.evidence))
    for item, lines in outcome.items:
        rows = [(*line.row()[:-1], _parts(line.source, outcome.evidence)) for line in lines]
        body += [page.heading(item.title), page.paragraph(f"{overall(lines)}. The paper: {item.statement}"),
                 page.table(rows, HEADER)]
        body += [page.image(png(figure), caption) for caption, figure in drawn
                 if item.figure and re.search(rf"\b{re.escape(item.figure)}\b", caption)]
    body += [page.details(m.source, m.html) for m in outcome.evidence.values() if m.html]
    return page.page(title, body)


def _parts(source, evidence):
    """Return a Line's source with the names of parts in place of their sources, which may begin with one another."""
    for name, measured in sorted(evidence.items(), key=lambda item: -len(item[1].source)):
        source = source.replace(measured.source, name) if measured.source else source
    return source


def _conclusions(outcome):
    """Return a table: a coloured verdict, the conclusion, and swell's number with its rule."""
    from swell.display import page
    rows = []
    for conclusion, line in outcome.conclusions:
        verdict = (line.verdict if line.verdict == NOT_TESTED else page.badge(line.verdict, line.verdict == REPRODUCED))
        number = f"{line.ours} ({line.rule})" if line.ours else line.rule
        rows.append("<tr><td>" + "</td><td>".join((verdict, *map(page.escape, (
            conclusion.text, line.what, line.paper, number, _parts(line.source, outcome.evidence))))) + "</td></tr>")
    names = "verdict", "the paper's conclusion", "compared", "paper", "swell (rule)", "from"
    head = "".join(f"<th>{name}</th>" for name in names)
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def markdown(outcome) -> str:
    """Return a paper's part of docs/REPRODUCE.md: conclusions with verdicts, and every item with its rules."""
    lines = [f"## {outcome.paper.name}", "", outcome.paper.title, "", outcome.paper.caution, "",
             "| the paper's conclusion | verdict by the stored records | number | rule |", "|---|---|---|---|"]
    lines += [_row(conclusion.text, line.verdict, line.ours, line.rule) for conclusion, line in outcome.conclusions]
    lines += ["", "| table or figure | the paper's statement | compared | verdict by the stored records |",
              "|---|---|---|---|"]
    lines += [_row(item.title, item.statement, len(found), overall(found)) for item, found in outcome.items]
    return "\n".join(lines)


def _row(*cells):
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
