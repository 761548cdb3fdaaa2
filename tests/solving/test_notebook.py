"""A real notebook: the example's cells run in a Jupyter kernel, and show what they should."""
from __future__ import annotations

import pytest
from tests.conftest import ROOT
from tests.support.pages import Page

nbclient = pytest.importorskip("nbclient", reason="needs Jupyter: pip install 'swell[notebook]'")
pytest.importorskip("ipykernel", reason="needs Jupyter: pip install 'swell[notebook]'")


def notebook():
    """The example as a notebook."""
    import nbformat
    text = (ROOT / "examples" / "41_notebook.py").read_text()
    cells = [f"# %%{cell.rstrip()}" for cell in text.split("\n# %%")[1:]]
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


@pytest.fixture(scope="module")
def cells():
    """The executed cells."""
    made = notebook()
    nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(ROOT)}}).execute()
    return made.cells


def shown(cell):
    """The HTML that a cell shows."""
    return [output.data["text/html"] for output in cell.outputs
            if output.output_type in ("display_data", "execute_result") and "text/html" in output.data]


def test_results_and_solvers_show_themselves(cells):
    found = [html for cell in cells for html in shown(cell) if html.startswith('<div class="swell">')]
    assert len(found) == 6
    texts = [Page(html).text for html in found]
    for words, text in zip(("converged", "2 of 2 converged", "prepared", "algebraic multigrid", "Earlier attempts",
                            "not converged: MAXITER"), texts, strict=True):
        assert words in text


def test_the_line_stays_in_the_cell(cells):
    lines = [html for html in shown(cells[1]) if "<progress" in html]
    assert len(lines) == 1 and "iteration" in lines[0] and 'value="1.000"' in lines[0]
    assert sum("<progress" in html for cell in cells for html in shown(cell)) == 2


def test_nothing_goes_to_stderr_and_the_log_speaks(cells):
    streams = [output for cell in cells for output in cell.outputs if output.output_type == "stream"]
    assert not [stream.text for stream in streams if stream.name == "stderr" and "compiling kernels" not in stream.text]
    text = "".join(stream.text for stream in streams)
    assert "setting up cg" in text and "tried: Result(NOT converged (MAXITER)" in text
