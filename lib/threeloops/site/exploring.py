"""What an explorer on a page asks of Python: how it stands, and what there is to show once a control is turned. It runs
in the reader's browser; the page speaks as it does to a kernel (widgets/panel.js).

>>> import json
>>> before, after = begun("system_map"), turned("system_map", '{"serial": 1, "turns": [["gpus", 0]]}')
>>> json.loads(json.loads(after)["shown"])["answers"]
1
"""

import copy
import importlib
import json
from dataclasses import asdict
from typing import Any

from threeloops import checks
from threeloops.widgets.explorer import Explorer

# The explorers that live on the pages, by their modules below widgets/: they need nothing but Python itself.
EXPLORERS = (
    "system_map",
    *("inner_loop.attention", "inner_loop.drawn_rate", "inner_loop.drawn_speedup", "inner_loop.number_line"),
    "inner_loop.roofline",
    *("inner_loop.timeline", "training_loop.all_reduce", "training_loop.memory", "training_loop.pipeline"),
    *("training_loop.scaling", "training_loop.sharded_step", "training_loop.sharding", "training_loop.stack"),
    *("training_loop.zero_ranks", "product_loop.batching", "product_loop.capacity_plan", "product_loop.compression"),
    "product_loop.drawn_wait",
    *("product_loop.engine", "product_loop.kv"),
    *("driving.deadline", "driving.placement", "driving.schedule", "driving.sensor_data"),
)
_open: dict[str, Explorer[Any]] = {}


def explorer(name: str) -> Explorer[Any]:
    """An explorer as it stands on a page: it begins with what its still picture shows."""
    checks.one_of(EXPLORERS, explorer=name)
    module = importlib.import_module(module_name(name))
    made: Explorer[Any] = module.explorer()
    return made if made.still == made.state else module.explorer(made.still)


def module_name(name: str) -> str:
    """The module that makes an explorer.

    >>> module_name("system_map")
    'threeloops.widgets.system_map'
    """
    return f"threeloops.widgets.{name}"


def begun(name: str) -> str:
    """An explorer, from the beginning."""
    _open[name] = explorer(name)
    return json.dumps(asdict(_open[name].message))


def turned(name: str, told: str) -> str:
    """The answer to controls that have been turned, as the page tells it in JSON."""
    if name not in _open:
        begun(name)
    return json.dumps(asdict(_open[name].turned(json.loads(told))))


def ahead(name: str, told: str) -> str:
    """What `turned` would answer; the explorer stays as it is.

    >>> import json
    >>> shown = json.loads(begun("system_map"))["shown"]
    >>> ahead("system_map", '{"serial": 1, "turns": [["gpus", 0]]}') == begun("system_map")
    False
    >>> json.loads(turned("system_map", '{"serial": 1, "turns": []}'))["shown"] == shown.replace(
    ...     '"answers": 0', '"answers": 1'
    ... )
    True
    """
    return json.dumps(asdict(copy.copy(_open[name]).turned(json.loads(told))))
