"""A kernel is told five free ports; by the time it takes them, another process may have one."""

import socket

import nbformat
import pytest
from jupyter_client.connect import LocalPortCache

from tests.chapters.execute import run_through


def test_a_kernel_that_finds_a_port_taken_is_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    choose, told = LocalPortCache.find_available_port, []

    def port(cache: LocalPortCache, ip: str) -> int:
        told.append(choose(cache, ip) if told else taken.getsockname()[1])
        return told[-1]

    monkeypatch.setattr(LocalPortCache, "find_available_port", port)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("6 * 7")])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run_through(notebook)
    assert notebook.cells[0].outputs[0].data["text/plain"] == "42"
    assert len(told) == 10, "two kernels' ports"
