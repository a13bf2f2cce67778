"""Stamped files: what was read off a real machine, in one file for each, under a stamp that says which.

>>> list(stamped("counted", "kernels"))
['h100-sxm5']
"""

import json
from collections.abc import Mapping
from importlib import resources
from typing import Any

from threeloops.facts.recorded import FORMAT, Stamp, parsed_stamp


def stamped(folder: str, rows: str) -> dict[str, tuple[Stamp, dict[str, Any]]]:
    """The stamped files in a folder of facts, by their part: stamp, and what stands under `rows`."""
    entries = [
        entry for entry in (resources.files("threeloops.facts") / folder).iterdir() if entry.name[-5:] == ".json"
    ]
    contents = [json.loads(entry.read_text(encoding="utf-8")) for entry in sorted(entries, key=lambda one: one.name)]
    found = [(parsed_stamp(content["stamp"]), content[rows]) for content in contents]
    return {stamp.part: (stamp, content) for stamp, content in found}


def stamped_text(stamp: Stamp, rows: str, content: Mapping[str, Any]) -> str:
    """Such a file, a line for each row."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in content.items())
    fields = json.dumps(stamp.fields, ensure_ascii=False)
    return f'{{\n "format": {FORMAT},\n "stamp": {fields},\n "{rows}": {{\n{lines}\n }}\n}}\n'
