"""The code of docs/JAX.md runs."""
from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "JAX.md"


def test_python_of_the_page_runs():
    pytest.importorskip("lineax", reason="needs lineax: pip install 'swell[jax]'")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)
    assert np.allclose(names["S"] @ np.asarray(names["x"]), 1, atol=1e-6) and names["steps"] > 1
