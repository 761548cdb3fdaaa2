"""Follow every link of a built site: python docs/check_links.py build/docs

A page may link to files and headings of the site only, and may load nothing from elsewhere: the site works offline.
"""
from __future__ import annotations

import pathlib
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The targets and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.anchors = [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors.update(found[key] for key in ("id", "name") if found.get(key))
        self.targets += [found[key] for key in ("href", "src") if found.get(key)]
        self.targets += [part.split()[0] for part in (found.get("srcset") or "").split(",") if part.strip()]


def broken(site: pathlib.Path) -> list[str]:
    """Return a line for each link of the site that leads nowhere or elsewhere."""
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}      # no templates
    wrong = []
    for path, page in pages.items():
        for target in page.targets:
            parts = urlsplit(target)
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                wrong.append(f"{path.relative_to(site)}: {target} is not a part of this site")
            elif not there.exists():
                wrong.append(f"{path.relative_to(site)}: {target} does not exist")
            elif there in pages and unquote(parts.fragment) not in pages[there].anchors:
                wrong.append(f"{path.relative_to(site)}: {target}: that page has no such heading")
    return wrong


if __name__ == "__main__":
    if len(sys.argv) != 2 or not (pathlib.Path(sys.argv[1]) / "index.html").exists():
        sys.exit("usage: python docs/check_links.py build/docs, a folder with the index.html that sphinx has written")
    found = broken(pathlib.Path(sys.argv[1]).resolve())
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(bool(found))
