"""The model and the device of a log: by the flags, or by its own words where the catalogue has them."""

import argparse
import re

from threeloops.commands.named import model_named, part_named
from threeloops.commands.released import read_release
from threeloops.facts.driver_names import DRIVER_NAMES
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Model


def model_of(given: argparse.Namespace, stated: str) -> Model | None:
    """The model of --model, else that of the log's own name for it: of a path, its last folder."""
    if given.model:
        return model_named(given.model, given.catalog)
    own = re.split(r"[/\\]", stated.rstrip("/\\"))[-1].split("--")[-1]
    if not own:
        return None
    try:
        return model_named(own, given.catalog)
    except (ValueError, OSError):
        return None


def part_of(given: argparse.Namespace, stated: str) -> Part | None:
    """The device of --hardware, else that of the log's own name for it."""
    if given.hardware:
        return part_named("hardware", given.hardware, given.catalog)
    return part_named("hardware", DRIVER_NAMES[stated], given.catalog) if stated in DRIVER_NAMES else None


def stored_weights(name: str) -> str:
    """How a released checkpoint's weights are stored, by its name; empty where that says nothing."""
    return read_release(name.rstrip("/")).stored
