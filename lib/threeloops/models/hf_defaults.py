"""Class defaults: what the classes of transformers take for a field that a config.json leaves out, and the second
names that they read.

A file holds what differs from its class, or everything, or something between: a field that is not there has the value
that the class has, and no other.

>>> class_defaults("minimax_m2")["head_dim"], class_defaults("llama")["head_dim"]
(128, None)

Source: configuration_*.py of Hugging Face transformers 5.23.0, https://github.com/huggingface/transformers, as
        tests/models/class_defaults.py builds them
"""

import functools
import json
from collections.abc import Mapping
from importlib import resources
from typing import Any


@functools.cache
def _table() -> Mapping[str, Any]:
    table: Mapping[str, Any] = json.loads(
        (resources.files("threeloops.facts") / "class_defaults.json").read_text(encoding="utf-8")
    )
    return table


def class_defaults(model_type: str) -> Mapping[str, Any]:
    """The default of every field that the type's class has and that may change a count; None where the class derives
    it from other fields, or does without.

    Source: as the module
    """
    defaults: Mapping[str, Any] = _table()["defaults"].get(model_type, {})
    return defaults


def second_names(model_type: str) -> Mapping[str, str]:
    """Names that the class reads as those of other fields: second name -> field.

    >>> second_names("gpt2")["hidden_size"]
    'n_embd'

    Source: as the module
    """
    names: Mapping[str, str] = _table()["second_names"].get(model_type, {})
    return names
