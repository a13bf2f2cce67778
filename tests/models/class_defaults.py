"""What the classes of transformers take for a field that a config.json leaves out, as a table.

python -m tests.models.class_defaults            which types' defaults are others than the table's
python -m tests.models.class_defaults --write    and write them
"""

import argparse
import dataclasses
import json
from importlib import metadata
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from threeloops.models import hf_defaults
from threeloops.models.hf_families import FAMILIES
from threeloops.models.hf_fields import CHANGES_NO_COUNT, OUTSIDE_THE_DECODER

TABLE = Path(hf_defaults.__file__).parents[1] / "facts" / "class_defaults.json"
# Read by one family, though it changes no count in the others.
READ_BY_SOME = {"tie_word_embeddings", "no_rope_layers", "no_rope_layer_interval"}
OF_ALL = {field.name for field in dataclasses.fields(PreTrainedConfig)}
NOT_HELD = (CHANGES_NO_COUNT | OUTSIDE_THE_DECODER | OF_ALL) - READ_BY_SOME


def declared(model_type: str) -> dict[str, Any]:
    """The class's own default of every field that may change a count."""
    return {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(CONFIG_MAPPING[model_type])
        if field.name not in NOT_HELD and not field.name.startswith("_")
    }


def second_names(model_type: str) -> dict[str, str]:
    """What the class reads under another name."""
    return {
        other: own for other, own in CONFIG_MAPPING[model_type].attribute_map.items() if not {other, own} & NOT_HELD
    }


def made() -> dict[str, Any]:
    """The whole table, from the transformers that is installed."""
    return {
        "transformers": metadata.version("transformers"),
        "defaults": {model_type: declared(model_type) for model_type in FAMILIES},
        "second_names": {model_type: names for model_type in FAMILIES if (names := second_names(model_type))},
    }


def text(table: dict[str, Any]) -> str:
    """A line for each type."""
    parts = [f' "transformers": {json.dumps(table["transformers"])}']
    for part in ("defaults", "second_names"):
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in table[part].items())
        parts.append(f' "{part}": {{\n{lines}\n }}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main() -> None:
    """Say what differs, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    new = json.loads(text(made()))
    old = json.loads(TABLE.read_text("utf-8")) if TABLE.exists() else {"defaults": {}}
    for model_type, row in new["defaults"].items():
        if row != old["defaults"].get(model_type):
            print(model_type)
    if parser.parse_args().write:
        TABLE.write_text(text(new), "utf-8")


if __name__ == "__main__":
    main()
