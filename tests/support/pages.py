"""Reading HTML: ``Page`` holds it to be whole, without scripts, and to fetch nothing."""
from __future__ import annotations

from html.parser import HTMLParser

VOID = {"br", "hr", "img"}


class Page(HTMLParser):
    """A parser that holds every tag to be closed, and collects the text and the tags."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], set(), []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"
        assert not self.tags & {"script", "link", "iframe", "object", "html", "body"}, self.tags

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attributes:
            assert not name.startswith("on"), f"{tag} has {name}={value}"
            assert name not in ("src", "href", "xlink:href") or value.startswith("#"), f"{tag} fetches {value}"

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())
