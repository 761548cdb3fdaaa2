"""Pictures as SVG for pages: well-formed, without names or styles that leak."""
from __future__ import annotations

import re
import xml.dom.minidom

import numpy as np
import pytest
from matplotlib import style

from swell.display.convergence import Line, figure
from swell.display.figure import INK, svg


def drawn(history=np.logspace(0, -9, 200), label="cg <&>", **named):
    return svg(figure([Line(label, history, len(history) - 1, history[-1], True, 1e-8)], **named))


def test_an_element_of_a_page():
    found = drawn()
    root = xml.dom.minidom.parseString(found).documentElement
    assert root.tagName == "svg" and not root.getElementsByTagName("style") and "http" not in re.sub(
        r'xmlns(:xlink)?="[^"]*"', "", found)
    assert INK not in found and "currentColor" in found and "#ffffff" not in found


def test_names_belong_to_one_drawing():
    """Of two equal pictures the first may be folded away, and its clips and glyphs with it."""
    found, other = drawn(), drawn()
    names = re.findall(r' id="([^"]+)"', found)
    assert len(set(names)) == len(names) > 10
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', found))
    assert used and used <= set(names) and not used & set(re.findall(r' id="([^"]+)"', other))


def test_thinned_histories_are_small():
    assert len(drawn(np.logspace(0, -9, 20_000), points=400)) < 100_000


@pytest.mark.parametrize("name", ["dark_background", "classic"])
def test_with_the_users_own_style(name):
    with style.context(name):
        root = xml.dom.minidom.parseString(drawn()).documentElement
    assert "fill: #000000" not in root.toxml()
