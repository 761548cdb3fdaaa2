"""Parser of OpenFOAM's dictionaries and fields: nested entries, lists, uniform and nonuniform fields, macros.

A long list of numbers (``nonuniform List<vector> N ( ... )``, or ``N{value}``) is parsed at once, in text or binary; a
placeholder takes its place among the tokens: a NUL character, which no text has, and the list's number. ``$name`` is
looked up in the dictionary and in the dictionaries around it. Nesting, and the words that macros add, are bounded.
``#includeEtc`` of setConstraintTypes is skipped, since the mesh knows these patches; other directives are refused by
name.
"""
from __future__ import annotations

import re

import numpy as np

from swell.core.errors import InputError
from swell.pde.fvm.foam_file import PARENTHESES, FoamFile

FIELD = re.compile(rb"nonuniform\s+List<(scalar|vector)>\s*(\d+)\s*([({])")
EMPTY = re.compile(rb"nonuniform\s+(?:List<(?:scalar|vector)>\s*)?0\s*(?:\(\s*\))?")
TOKEN = re.compile(r'"[^"]*"|\$\{[^{}]*\}|[{}();\[\]]|[^\s{}();\[\]"]+')
WIDTH = {b"scalar": 1, b"vector": 3}
DEEPEST = 100               # dictionaries, or parentheses, within one another
MOST_EXPANDED = 1_000_000   # words that all macros of a file stand for


class FoamDictionary(FoamFile):
    """One file as nested dictionaries.

    Attributes
    ----------
    entries : dict
        Key → nested dict, or list of words. A word is text, a number list in parentheses or brackets is a list, and a
        long list of numbers is an array.
    """

    def __init__(self, folder, name):
        super().__init__(folder, name)
        self._lists, self._expanded = [], 0
        words = self._tokens()
        self.entries, at = self._dictionary_of(words, 0, [])
        if at < len(words) - 1:
            raise self._damaged(f"{words[at]!r} came where an entry should begin")

    def _tokens(self):
        """Return the file's words; long lists become @0, @1, ..."""
        parts, at = [], self.at
        while match := FIELD.search(self.content, at):
            kind, count = match[1], self.count(match[2])
            parts.append(self.content[at:match.start()])
            if self.binary and match[3] == b"(":
                values = self._raw("scalar", "numbers", count * WIDTH[kind], match.end())
                at = self.at
            else:                                # N{value} stands for N equal values, in text
                end = self.content.find(b";", match.end())
                stop = self.content.rfind(b")" if match[3] == b"(" else b"}", match.end(), end)
                if end < 0 or stop < 0:
                    raise self._damaged("its list of numbers has no end")
                values = self._numbers(self.content[match.end():stop].translate(PARENTHESES), np.float64)
                values = values if match[3] == b"(" else self.repeated(values, count)
                at = stop + 1
            if values.size != count * WIDTH[kind]:
                raise self._damaged(f"it announces {count} {kind.decode()}s and has {values.size} numbers for them")
            parts.append(b" nonuniform \0%d " % len(self._lists))
            self._lists.append(values.reshape(-1, 3) if kind == b"vector" else values)
        parts.append(self.content[at:])
        if any(b"\0" in text for text in parts[::2]):
            raise self._damaged("binary data came where text was expected")
        text = EMPTY.sub(b" nonuniform ", b"".join(parts))
        text = self.without_comments(text).decode("utf-8", "replace")
        return [*TOKEN.findall(text), ""]

    def _damaged(self, why):
        return InputError(f"{self.path}: {why}: it is truncated or damaged: copy or write it again")

    def _dictionary_of(self, words, at, around):
        """Parse entries from word number ``at`` to a closing brace or the end; return (dict, index of what follows).
        ``around``: the dictionaries around this one, innermost last."""
        entries = {}
        scopes = [*around, entries]
        if len(scopes) > DEEPEST:
            raise self._damaged(f"more than {DEEPEST} dictionaries lie within one another")
        while words[at] not in ("}", ""):
            key = words[at].strip('"')
            if key.startswith("#"):
                if key != "#includeEtc" or "setConstraintTypes" not in words[at + 1]:
                    raise InputError(f"{self.path}: the directive {key} {words[at + 1]} is not read: write what it "
                                     "stands for into the file")
                at += 2
            elif key.startswith("$") and words[at + 1] == ";":
                inner = self._macro(key, scopes)
                if not isinstance(inner, dict):
                    raise InputError(f"{self.path}: {key} stands for no dictionary")
                entries.update(inner)
                at += 2
            elif key in "(){};[]":
                raise self._damaged(f"{key!r} came where an entry should begin")
            elif words[at + 1] == "{":
                entries[key], at = self._dictionary_of(words, at + 2, scopes)
                if words[at] != "}":
                    raise self._damaged(f"the dictionary {key} has no end")
                at += 1
            else:
                entries[key], at = self._value(words, at + 1, key, scopes)
        return entries, at

    def _value(self, words, at, key, scopes):
        """Parse the words of the entry ``key`` up to its semicolon; return (list, index of what follows)."""
        items, stack = [], []
        while words[at] != ";" or stack:
            word = words[at]
            if word in ("", "{", "}"):
                raise self._damaged(f"the entry {key} has no end")
            if word in "([":
                stack.append(items)
                items = []
                if len(stack) > DEEPEST:
                    raise self._damaged(f"the entry {key} has more than {DEEPEST} parentheses within one another")
            elif word in ")]":
                if not stack:
                    raise self._damaged(f"the entry {key} closes a parenthesis that is not open")
                stack[-1].append(items)
                items = stack.pop()
            elif word.startswith("$"):
                inner = self._macro(word, scopes)
                items += inner if isinstance(inner, list) else [inner]
            else:
                items.append(self._lists[int(word[1:])] if word.startswith("\0") else word.strip('"'))
            at += 1
        return items, at + 1

    def _macro(self, word, scopes):
        """Return what ``$name`` stands for."""
        path = word.strip("${}").lstrip(":").split(".")
        path = [name for name in path if name]
        for scope in reversed(scopes) if path else ():
            entry = scope
            for name in path:
                entry = entry.get(name) if isinstance(entry, dict) else None
            if entry is not None:
                self._count(entry, word)
                return entry
        raise InputError(f"{self.path}: {word} stands for nothing that the file says before: write its value")

    def _count(self, entry, macro):
        """Count the words of ``entry``, which ``macro`` stands for. Raise InputError if all macros together have too
        many, or if they nest too deeply: each macro may stand for two of the macro before."""
        pending = [(entry, 0)]
        while pending:
            inner, depth = pending.pop()
            self._expanded += 1
            if self._expanded > MOST_EXPANDED or depth > DEEPEST:
                raise InputError(f"{self.path}: {macro} brings the words that macros stand for to more than "
                                 f"{MOST_EXPANDED}, or nests more than {DEEPEST} of them: write the values")
            pending += [(each, depth + 1) for each in
                        (inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ())]


def text_of(words) -> str:
    """Return a list of words, with lists in it, as text."""
    return " ".join(f"({text_of(word)})" if isinstance(word, list) else str(word) for word in words)


def number(words, what) -> float:
    """Return the number of an entry, such as ``nu [0 2 -1 0 0 0 0] 1e-5``; ``what``: the entry in messages."""
    for word in reversed(words):
        if isinstance(word, str):
            try:
                return float(word)
            except ValueError:
                break
    raise InputError(f"{what} is {text_of(words) or 'empty'!r}: expected a number")


def values(words, count, width, what, of) -> np.ndarray:
    """Return a field's values, shape (count,) or (count, 3), of an entry ``uniform V`` or ``nonuniform List<...> ...``.

    ``what``: the entry, and ``of``: what it has a value for, such as "cells", in messages."""
    shape = (count,) if width == 1 else (count, width)
    if isinstance(words, dict):
        raise InputError(f"{what} is a dictionary: expected uniform ... or nonuniform List<...> ...")
    if len(words) == 2 and words[0] == "uniform":
        numbers = words[1] if isinstance(words[1], list) else [words[1]]
        try:
            one = np.array(numbers, float)
        except (TypeError, ValueError):
            one = np.zeros(0)
        if one.shape != (width,):
            raise InputError(f"{what} is uniform {text_of([words[1]])}: expected "
                             f"{'a number' if width == 1 else 'a vector, such as (1 0 0)'}")
        return np.broadcast_to(one[0] if width == 1 else one, shape).copy()
    if words and words[0] == "nonuniform":
        array = words[1] if len(words) == 2 and isinstance(words[1], np.ndarray) else np.zeros((0, 3)[:1 + (width > 1)])
        if array.shape != shape:
            raise InputError(f"{what} has {len(array)} {'vectors' if array.ndim == 2 else 'numbers'}, and the mesh has "
                             f"{count} {of}: the field belongs to another mesh")
        return array
    raise InputError(f"{what} is {text_of(words)[:60]!r}: expected uniform ... or nonuniform List<...> ...")
