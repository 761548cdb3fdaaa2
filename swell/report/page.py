"""The skeleton of every HTML report: one file with its style and pictures inside, nothing fetched from elsewhere."""
from __future__ import annotations

import base64
from html import escape
from pathlib import Path

_STYLE = """
:root { color-scheme: light; --ink: #1f2933; --soft: #5f6c7b; --line: #d5dbe1; --good: #1f7a4d; --bad: #b3261e; }
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: #f4f6f8; margin: 0; }
main { max-width: 68rem; margin: 2rem auto; padding: 2rem 2.5rem; background: white; border: 1px solid var(--line);
       border-radius: 6px; }
h1 { font-size: 1.5rem; margin: 0 0 .3rem; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; padding-bottom: .25rem; border-bottom: 1px solid var(--line); }
p { margin: .4rem 0; }
.soft { color: var(--soft); font-size: .87rem; }
.badge { display: inline-block; padding: .1rem .6rem; border-radius: 1rem; color: white; font-weight: 600; }
.good { background: var(--good); } .bad { background: var(--bad); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .25rem 1.2rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
th { font-weight: 600; } td:first-child { white-space: nowrap; } .number { text-align: right; }
pre { background: #f4f6f8; padding: .8rem 1rem; border-radius: 4px; overflow-x: auto; font-size: .87rem;
      white-space: pre-wrap; }
figure { margin: .8rem 0; } img { max-width: 100%; height: auto; } figcaption { color: var(--soft); font-size: .87rem; }
li { margin: .2rem 0; }
"""


def page(title: str, body: list[str]) -> str:
    """Return a whole HTML document; ``body``: the HTML of its parts, in order."""
    return (f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
            f"<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n" + "\n".join(body) + "\n</main>\n</body>\n</html>\n")


def heading(text: str) -> str:
    """Return the HTML of a section's heading."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, soft=False) -> str:
    """Return the HTML of a paragraph; ``soft`` is for less important text."""
    return f'<p class="soft">{escape(text)}</p>' if soft else f"<p>{escape(text)}</p>"


def bullets(items) -> str:
    """Return the HTML of a list of sentences."""
    return "<ul>" + "".join(f"<li>{escape(item)}</li>" for item in items) + "</ul>"


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
    head = "<tr>" + "".join(f"<th{_flush(cell) if k else ''}>{escape(str(name))}</th>"
                            for k, (name, cell) in enumerate(zip(header, filled))) + "</tr>" if header else ""
    lines = []
    for row in rows:
        cells = [f"<td{_flush(cell) if header and k else ''}>{escape(str(cell))}</td>" for k, cell in enumerate(row)]
        if not header:
            cells[0] = f"<th>{escape(str(row[0]))}</th>"
        lines.append("<tr>" + "".join(cells) + "</tr>")
    return f'<div class="wide"><table>{head}{"".join(lines)}</table></div>'


def _flush(cell):
    return ' class="number"' if str(cell).lstrip("≈-")[:1].isdigit() else ""


def image(png: bytes, caption: str) -> str:
    """Return the HTML of a picture, embedded in the page; ``png``: the file's bytes."""
    data = base64.b64encode(png).decode("ascii")
    return (f'<figure><img alt="{escape(caption, quote=True)}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>")


def write(path, text: str):
    """Write the text of a document to the file ``path``, which appears complete or not at all.

    Raises
    ------
    InputError
        If the folder does not exist or cannot be written.
    """
    from swell.io.files import write_atomically
    write_atomically(Path(path), lambda stream: stream.write(text.encode("utf-8", "replace")))
