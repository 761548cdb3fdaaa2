"""HTML: whole pages and cells of notebooks, with style and pictures inside; nothing is fetched, and no script runs.

Notebooks have light and dark backgrounds. So the pieces take the colour of the text around them, and grey where it
shows on both.
"""
from __future__ import annotations

import base64
from html import escape

SENTENCE = 32           # characters of a cell from which it may take several lines
_PIECES = """
.swell .soft { opacity: .75; font-size: .87rem; }
.swell p { margin: .4rem 0; }
.swell .badge { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; color: white; font-weight: 600; }
.swell .good { background: #1f7a4d; } .swell .bad { background: #b3261e; }
.swell .wide { overflow-x: auto; }
.swell table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: .3rem 0; }
.swell .wide th, .swell .wide td { text-align: left; padding: .25rem 1.2rem .25rem 0; border: 0; vertical-align: top;
                                   border-bottom: 1px solid rgba(128, 128, 128, .35); background: none; }
.swell th { font-weight: 600; } .swell td:first-child { white-space: nowrap; }
@media (max-width: 40rem) { .swell .wide th, .swell .wide td { padding-right: .7rem; } .swell { font-size: .95rem; } }
.swell .wide .number { text-align: right; } .swell .wide .words { min-width: 16rem; }
.swell .wide td:not(.words) { white-space: nowrap; }
.swell pre { background: rgba(128, 128, 128, .1); padding: .8rem 1rem; border-radius: 4px; overflow-x: auto;
             font: .87rem/1.5 ui-monospace, monospace; white-space: pre-wrap; word-break: normal;
             overflow-wrap: break-word; color: inherit; }
.swell figure { margin: .8rem 0; } .swell figcaption { opacity: .75; font-size: .87rem; }
.swell img, .swell svg { max-width: 100%; height: auto; }
.swell summary { cursor: pointer; } .swell details { margin: .3rem 0; } .swell details > * { margin-left: 1.1rem; }
.swell details > summary { margin-left: 0; }
.swell li { margin: .2rem 0; }
"""
_STYLE = """
:root { color-scheme: light dark; --ink: #1f2933; --paper: white; --around: #f4f6f8; --line: #d5dbe1; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #dfe5ea; --paper: #191e23; --around: #101316; --line: #39424b; }
  img { border-radius: 4px; opacity: .92; }
}
@media print { :root { --ink: black; --paper: white; --around: white; } }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--around); margin: 0; }
main { max-width: 68rem; margin: 2rem auto; padding: 2rem 2.5rem; background: var(--paper);
       border: 1px solid var(--line); border-radius: 6px; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
figure > svg { width: 100%; max-width: 50rem; }
@media (max-width: 40rem) { main { margin: 0; padding: 1rem; border: 0; border-radius: 0; } }
"""


def page(title: str, body: list[str]) -> str:
    """Return a whole HTML document; ``body``: the HTML of its parts, in order."""
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
            f'<style>{_STYLE}{_PIECES}</style>\n</head>\n<body>\n<main class="swell">\n' + "\n".join(body)
            + "\n</main>\n</body>\n</html>\n")


def fragment(body: list[str]) -> str:
    """Return HTML for a cell of a notebook, on a light or a dark background; ``body``: the HTML of its parts."""
    return f'<div class="swell">\n<style>{_PIECES}</style>\n' + "\n".join(body) + "\n</div>"


def details(title: str, *body: str) -> str:
    """Return the HTML of parts below a title that a click opens."""
    return f"<details><summary>{escape(title)}</summary>{''.join(body)}</details>"


def heading(text: str) -> str:
    """Return the HTML of a section's heading."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, soft=False) -> str:
    """Return the HTML of a paragraph, nothing for an empty text; ``soft`` is for less important text."""
    style = ' class="soft"' if soft else ""
    return f"<p{style}>{escape(text)}</p>" if text else ""


def bullets(items) -> str:
    """Return the HTML of a list of sentences; nothing for an empty list."""
    return "" if not items else "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


def preformatted(lines) -> str:
    """Return the HTML of lines of text whose indentation counts."""
    return f"<pre>{escape(chr(10).join(lines))}</pre>"


def badge(text: str, good: bool) -> str:
    """Return the HTML of a coloured word: green if ``good``, else the colour of a failure."""
    return f'<span class="badge {"good" if good else "bad"}">{escape(text)}</span>'


def table(rows, header=()) -> str:
    """Return the HTML of a table; ``rows``: sequences of values, ``header``: column names, may be empty.

    With a header, number columns after the first are flush right; without, the first column is a heading."""
    rows = list(rows)
    filled = [next((row[k] for row in rows if str(row[k])), "") for k in range(len(header))]     # of each column
    head = "<tr>" + "".join(f"<th{_kind(cell) if k else ''}>{escape(str(name))}</th>"
                            for k, (name, cell) in enumerate(zip(header, filled))) + "</tr>" if header else ""
    lines = []
    for row in rows:
        cells = [f"<td{_kind(cell) if header and k else _words(cell)}>{escape(str(cell))}</td>"
                 for k, cell in enumerate(row)]
        if not header:
            cells[0] = f"<th>{escape(str(row[0]))}</th>"
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return f'<div class="wide"><table>{head}{"".join(lines)}</table></div>'


def _kind(cell):
    """Return the class of a cell: a number is flush right, and a sentence may take several lines."""
    return ' class="number"' if str(cell).lstrip("≈-")[:1].isdigit() else _words(cell)


def _words(cell):
    return ' class="words"' if len(str(cell)) > SENTENCE else ""


def drawing(svg: str, caption: str, shown=False) -> str:
    """Return the HTML of a picture that `figure.svg` has drawn; ``caption`` describes it to readers who cannot see it,
    and is ``shown`` below it."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if shown else ""
    return f'<figure role="img" aria-label="{escape(caption, quote=True)}">{svg}{below}</figure>'


def image(png: bytes, caption: str) -> str:
    """Return the HTML of a picture, embedded in the page; ``png``: the file's bytes."""
    data = base64.b64encode(png).decode("ascii")
    return (f'<figure><img alt="{escape(caption, quote=True)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>")
