"""`threeloops sources`: every value of the catalogue with where it comes from."""

from pathlib import Path

from threeloops import checks
from threeloops.facts import hardware
from threeloops.facts.fact import Fact
from threeloops.models import catalogue


def audit(*, key: str | None, overlay: str | Path | None) -> str:
    """One line per value: part, fact, value with unit, the figure as printed, kind, date, address."""
    parts = (
        [key]
        if key in hardware.part_keys(overlay=overlay)
        else list(hardware.part_keys(overlay=overlay))
        if key is None
        else []
    )
    models = (
        [key]
        if key in catalogue.model_keys(overlay=overlay)
        else list(catalogue.model_keys(overlay=overlay))
        if key is None
        else []
    )
    if not parts and not models:
        checks.one_of(keys(overlay=overlay).split(), see="`threeloops sources --keys` lists all.", key=key)
    rows = []
    for name in parts:
        for what, (fact, unit) in hardware.part(name, overlay=overlay).all_facts().items():
            rows.append(f"{name}  {what} = {fact.value:.9g} {unit}  {_source(fact)}")
    for name in models:
        entry = catalogue.model_entry(name, overlay=overlay)
        rows.append(
            f"{name}  config  {entry.checked}  {entry.title}  {entry.url}" + (f"  ({entry.note})" if entry.note else "")
        )
        rows += [f"{name}  {what} = {fact.value:.9g}  {_source(fact)}" for what, fact in entry.published.items()]
    return "\n".join(rows)


def keys(*, overlay: str | Path | None) -> str:
    """The names of all parts and models, one a line."""
    return "\n".join(
        [
            *hardware.part_keys(overlay=overlay),
            *catalogue.model_keys(overlay=overlay),
            *catalogue.convnet_keys(overlay=overlay),
        ]
    )


def _source(fact: Fact) -> str:
    note = f"  ({fact.note})" if fact.note else ""
    opened = f"  read in {fact.opened}" if fact.opened else ""
    return f"printed “{fact.printed}”  {fact.kind}  {fact.checked}  {fact.title}  {fact.url}{opened}{note}"
