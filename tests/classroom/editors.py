"""Notebooks as other programs leave them when somebody opens, fills in and saves one there: which ids and metadata they
drop, and what they add. None of these programs ran here. No cell is written by hand: a notebook of the book goes in.

Colab:      nbformat 4.0, no cell ids but an id in each cell's metadata, `colab` and `executionInfo` beside it
            ("Colab notebooks in the wild", every .ipynb that its menu *File › Download* writes).
Kaggle:     nbformat 4.4, no cell ids, `_uuid`, `_cell_guid`, `trusted` and `execution` in each cell's metadata.
VS Code:    keeps ids and metadata; the language of a cell is a field `vscode` of its metadata where it differs
            ("vscode-ipynb", https://github.com/microsoft/vscode/tree/main/extensions/ipynb).
JetBrains:  keeps metadata, adds `collapsed`, `ExecuteTime` and, until 2023, `pycharm`; writes new ids.
marimo:     every cell anew with marimo's own metadata: ids that are its own, and nothing of what was there
            ("marimo, _convert/ipynb/from_ir.py", https://github.com/marimo-team/marimo).
"""

import copy
import hashlib
from collections.abc import Callable
from typing import Any

Notebook = dict[str, Any]


def _id(text: str, number: int) -> str:
    """An id that is nobody's."""
    return hashlib.sha256(f"{number}{text}".encode()).hexdigest()[:12]


def _each(notebook: Notebook, change: Callable[[dict[str, Any], int], None], minor: int) -> Notebook:
    made = copy.deepcopy(notebook) | {"nbformat_minor": minor}
    for number, cell in enumerate(made["cells"]):
        change(cell, number)
    return made


def colab(notebook: Notebook) -> Notebook:
    def change(cell: dict[str, Any], number: int) -> None:
        cell["metadata"]["id"] = _id(cell.pop("id"), number)
        if cell["cell_type"] == "code":
            cell["metadata"] |= {"colab": {"base_uri": "https://localhost:8080/"}, "executionInfo": {"status": "ok"}}

    made = _each(notebook, change, minor=0)
    return made | {
        "metadata": {"colab": {"provenance": []}, "kernelspec": {"name": "python3", "display_name": "Python 3"}}
    }


def kaggle(notebook: Notebook) -> Notebook:
    def change(cell: dict[str, Any], number: int) -> None:
        guid = _id(cell.pop("id"), number)
        cell["metadata"] |= {
            "_uuid": guid,
            "_cell_guid": guid,
            "trusted": True,
            "execution": {"iopub.status.busy": "2027"},
        }

    return _each(notebook, change, minor=4)


def vscode(notebook: Notebook) -> Notebook:
    def change(cell: dict[str, Any], number: int) -> None:
        if cell["cell_type"] == "code":
            cell["metadata"]["vscode"] = {"languageId": "python"}
            cell["execution_count"] = number

    return _each(notebook, change, minor=5)


def jetbrains(notebook: Notebook) -> Notebook:
    def change(cell: dict[str, Any], number: int) -> None:
        cell["id"] = _id(cell["id"], number)
        cell["metadata"] |= {"collapsed": False, "pycharm": {"name": "#%%\n"}}
        if cell["cell_type"] == "code":
            cell["metadata"]["ExecuteTime"] = {"end_time": "2027", "start_time": "2027"}
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)

    return _each(notebook, change, minor=5)


def marimo(notebook: Notebook) -> Notebook:
    def change(cell: dict[str, Any], number: int) -> None:
        cell["id"] = _id(cell["id"], number)
        cell["metadata"] = {"marimo": {"config": {"hide_code": True}}} if cell["cell_type"] == "markdown" else {}
        cell["source"] = "".join(cell["source"]).strip()

    return _each(notebook, change, minor=5)


def pasted(notebook: Notebook) -> Notebook:
    """Cell by cell into a new notebook: nothing but the texts is left."""

    def change(cell: dict[str, Any], number: int) -> None:
        cell["metadata"] = {}
        cell["id"] = _id(cell["id"], number)

    return _each(notebook, change, minor=5)


EDITORS = {one.__name__: one for one in (colab, kaggle, vscode, jetbrains, marimo, pasted)}
