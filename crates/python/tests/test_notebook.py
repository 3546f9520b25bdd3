"""The notebook, executed cell by cell."""

from __future__ import annotations

from conftest import ROOT


def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    import nbclient
    import nbformat

    book = nbformat.read(ROOT / "examples" / "compare_policies.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=600, kernel_name="python3").execute(cwd=str(tmp_path))
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
