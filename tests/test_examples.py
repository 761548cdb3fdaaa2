"""Every example runs; each asserts its own numbers."""
from __future__ import annotations

import json
import pathlib
import runpy
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_example(path, capsys):
    if "car_cabin" in path.stem or "skfem" in path.read_text():
        pytest.importorskip("skfem", reason="needs scikit-fem: pip install 'swell[pde]'")
    if "car_cabin" in path.stem:
        pytest.importorskip("gmsh", reason="needs gmsh: pip install 'swell[pde]'", exc_type=(ImportError, OSError))
    if "arrays" in path.stem:
        for module in ("h5py", "sparse", "array_api_strict"):
            pytest.importorskip(module, reason=f"needs {module}: pip install 'swell[test]'")
    for module in ("fipy", "pyamg"):
        if module in path.stem:
            pytest.importorskip(module, reason=f"needs {module}: pip install 'swell[guests]'")
    if "petsc" in path.stem:
        pytest.importorskip("petsc4py.PETSc", reason="needs petsc4py, built for this NumPy: pip install petsc petsc4py",
                            exc_type=(ImportError, ValueError))
    if "jax" in path.stem:
        pytest.importorskip("jax", reason="needs JAX: pip install 'swell[jax]'")
    if "torch" in path.stem:
        pytest.importorskip("torch", reason="needs torch: pip install 'swell[torch]'")
    if "ranks" in path.stem:
        pytest.importorskip("mpi4py.MPI", reason="needs mpi4py and an MPI: pip install 'swell[mpi]' mpich",
                            exc_type=(ImportError, RuntimeError))
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out or path.read_text().count("print(") == 0


NOTEBOOK = ROOT / "examples" / "first_steps.ipynb"


def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    """Its code, cell by cell; lines for IPython alone would install what is there. It is stored without outputs."""
    monkeypatch.chdir(tmp_path)
    cells = [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 5 and not any(cell["outputs"] for cell in cells)
    names = {"__name__": "__main__"}
    for cell in cells:
        lines = [line.replace("%pip", "pass  # %pip") for line in cell["source"]]
        exec(compile("".join(lines), str(NOTEBOOK), "exec"), names)
    assert names["mended"].converged and (tmp_path / "report.html").exists()


def test_the_notebook_runs_in_jupyter(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient: pip install 'swell[notebook]'")
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat: pip install 'swell[notebook]'")
    pytest.importorskip("ipykernel", reason="needs ipykernel: pip install 'swell[notebook]'")
    made = nbclient.NotebookClient(nbformat.read(NOTEBOOK, 4), timeout=120,
                                   resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 4


def test_the_example_of_petsc_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "petsc4py", None)           # as where it is not installed
    with pytest.raises(SystemExit, match="needs petsc4py .*: pip install petsc petsc4py"):
        runpy.run_path(str(ROOT / "examples" / "14_inside_petsc.py"), run_name="__main__")


def test_algorithms_page_is_what_the_registry_says():
    done = subprocess.run([sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
