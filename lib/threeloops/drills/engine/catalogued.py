"""Catalogued models and parts for drills that name a real one: read when a question is drawn, and once.

>>> model("llama-3-8b").num_layers, part("nvlink-4")["bytes_per_s_one_way"]
(32, 450000000000.0)
"""

import functools

from threeloops.facts import hardware
from threeloops.facts.hardware import Part
from threeloops.models import catalogue
from threeloops.models.architecture import Model

model_name = functools.cache(lambda key: catalogue.model_entry(key).name)


@functools.cache
def model(key: str) -> Model:
    """A model by its key; a thousand draws read the catalogue once."""
    return catalogue.model(key)


@functools.cache
def part(key: str) -> Part:
    """A part by its key."""
    return hardware.part(key)
