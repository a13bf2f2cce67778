"""The sources of the catalogue: every one used, addressed, pinned where it can change, and called what it is."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.each import each

from threeloops.cli import main
from threeloops.facts.fact import catalogue_files

FILES = dict(catalogue_files())
SOURCES = [(name, key) for name, content in FILES.items() for key in content.get("sources", {})]

# Addresses of a branch, and why the text there does not move.
STANDS_STILL = {
    "mlperf-h200": "results of a closed round of MLPerf",
    "mlperf-gb200": "results of a closed round of MLPerf",
    "lambda-gpu-specs": "a view of who wrote each line, without a form that names a commit",
    "torchvision-resnet50-master": "the figure belongs to weights that were released",
}


def rows(content: Any) -> Iterator[dict[str, Any]]:
    """Everything in a catalogue file that names a source."""
    if isinstance(content, dict):
        if isinstance(content.get("source"), str):
            yield content
        for name, inner in content.items():
            if name != "sources":
                yield from rows(inner)


@each(("name", "key"), SOURCES)
def test_a_source_is_used_addressed_and_called_what_it_is(name: str, key: str) -> None:
    source = FILES[name]["sources"][key]
    assert set(source) - {"opened"} == {"title", "url", "checked"}
    kinds = {row.get("kind", "row") for row in rows(FILES[name]) if row["source"] == key}
    assert kinds, f"{name}: nothing cites {key}"
    assert re.match(r"https?://[^ /]+\.[^ ]+$", source["url"]), source["url"]
    moves = re.search(r"/(main|master|blob/HEAD)/", source["url"]) is not None
    assert moves == (key in STANDS_STILL), source["url"]
    second_hand = re.search(r"quote|transcribe[sd]? ", source["title"] + " " + source.get("opened", ""))
    assert not (second_hand and kinds & {"datasheet", "paper"}), f"{name}: {key} is second hand, and {kinds}"
    assert source.get("opened") != source["url"]


def test_a_copy_is_printed_beside_its_original(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sources", "epyc-9654"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "flops_per_cycle_per_core_fp32 =" in line]
    assert "https://stackoverflow.com/questions/76195232  read in https://example-a.com/" in line
