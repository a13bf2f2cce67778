"""`threeloops sources`: every value of the catalogue with where it comes from."""

import textwrap
from pathlib import Path

from threeloops import spelling
from threeloops.facts import hardware
from threeloops.facts.fact import Fact
from threeloops.models import catalogue
from threeloops.models.catalogue import ModelEntry
from threeloops.models.hf_config import READ


def audit(*, key: str | None, overlay: str | Path | None) -> str:
    """One line per value: part, fact, value with unit, the figure as printed, kind, date, address."""
    names = keys(overlay=overlay).split()
    if key is not None:
        names = [_key(key, overlay)]
    parts = set(hardware.part_keys(overlay=overlay))
    rows = []
    for name in names:
        if name in parts:
            for what, (fact, unit) in hardware.part(name, overlay=overlay).all_facts().items():
                rows.append(f"{name}  {what} = {fact.value:.9g} {unit}  {_source(fact)}")
            continue
        entry = _entry(name, overlay)
        shared = f"the config of {entry.same_as}, but for the fields of its own" if entry.same_as else ""
        said = "; ".join(filter(None, (shared, entry.note)))
        rows.append(f"{name}  config  {entry.checked}  {entry.title}  {entry.url}" + (f"  ({said})" if said else ""))
        rows += [f"{name}  {what} = {fact.value:.9g}  {_source(fact)}" for what, fact in entry.published.items()]
    return "\n".join(rows)


def _entry(name: str, overlay: str | Path | None) -> ModelEntry:
    if name in catalogue.model_keys(overlay=overlay):
        return catalogue.model_entry(name, overlay=overlay)
    return catalogue.convnet_entry(name, overlay=overlay)


def _key(typed: str, overlay: str | Path | None) -> str:
    """The part or model that is meant."""
    parts = set(hardware.part_keys(overlay=overlay))
    named = {
        name: (hardware.part(name, overlay=overlay).name if name in parts else _entry(name, overlay).name,)
        for name in keys(overlay=overlay).split()
    }
    return spelling.key_of(named, see="`threeloops sources --keys` lists all.", key=typed)


def keys(*, overlay: str | Path | None) -> str:
    """The names of all parts and models, one a line."""
    return "\n".join(
        [
            *hardware.part_keys(overlay=overlay),
            *catalogue.model_keys(overlay=overlay),
            *catalogue.convnet_keys(overlay=overlay),
        ]
    )


def types() -> str:
    """The model types of a config.json that are read, by name; a part is not named beside its whole."""
    names = sorted(name for name in READ if name.removesuffix("_text").removesuffix("_thinker") not in {*READ} - {name})
    return textwrap.fill("  ".join(names), width=100, break_on_hyphens=False, break_long_words=False)


def _source(fact: Fact) -> str:
    note = f"  ({fact.note})" if fact.note else ""
    opened = f"  read in {fact.opened}" if fact.opened else ""
    return f"printed “{fact.printed}”  {fact.kind}  {fact.checked}  {fact.title}  {fact.url}{opened}{note}"
