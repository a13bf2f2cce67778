"""The catalogued models, by key: language models and convolutional networks, each with the source of its shape.

>>> model("llama-3-8b").num_layers
32

A key names one released checkpoint family exactly, and other spellings of its name mean it, too. A near miss is
refused with the nearest keys; a name that would fit others of its family as well is asked back, never chosen.
"""

import datetime
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from threeloops import checks, spelling
from threeloops.facts.fact import OVERLAY_VARIABLE, Fact, catalogue_files, read_fact
from threeloops.models.architecture import Model
from threeloops.models.convnet_config import convnet_from_config
from threeloops.models.convnets import ConvNet
from threeloops.models.hf_config import from_hf_config

# What a publisher may have printed about a model. The names are the conventions of parameters.ModelParameters, so
# that a printed figure says which one it is.
PUBLISHED = (
    "total",
    "active",
    "embedding",
    "non_embedding",
    "active_non_embedding",
    "active_with_head",
    "parameters",
    "macs",
)
_FIELDS = ("name", "vendor", "year", "source", "note", "also", "same_as", "left_out", "config", "published")
_ALL = "`threeloops sources` lists all."

Rows = Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]]  # model key -> its row, its file's sources


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """One row of the catalogue: a model's config, where it was read, and what its publisher printed."""

    key: str
    name: str
    vendor: str
    year: int
    config: Mapping[str, Any]  # fields named as in the Hugging Face config.json
    title: str
    url: str
    checked: datetime.date
    note: str = ""
    left_out: tuple[str, ...] = ()  # what its checkpoint holds besides and its config here does not say
    same_as: str = ""  # the model whose config this one has, apart from what its own row says
    published: Mapping[str, Fact] = field(default_factory=dict)


def _read_entry(key: str, row: Mapping[str, Any], sources: Mapping[str, Any]) -> ModelEntry:
    unknown = sorted(set(row) - set(_FIELDS))
    if unknown:
        raise ValueError(f"{key}: unknown field {unknown[0]!r}; known: {', '.join(_FIELDS)}")
    missing = [name for name in ("name", "vendor", "year", "source", "config") if name not in row]
    if missing:
        raise ValueError(f"{key}: {missing[0]!r} is missing; a model needs name, vendor, year, source and config")
    try:
        checks.one_of(sources, source=row["source"])
        checks.count(year=row["year"])
        for field_name in ("also", "left_out"):
            if not isinstance(row.get(field_name, []), list):
                raise ValueError(f"{field_name}={row[field_name]!r} must be a list, like [{str(row[field_name])!r}]")
        for name in row.get("published", {}):
            checks.one_of(PUBLISHED, published=name)
        source = sources[row["source"]]
        return ModelEntry(
            key=key,
            name=row["name"],
            vendor=row["vendor"],
            year=row["year"],
            config=row["config"],
            title=source["title"],
            url=source["url"],
            checked=source["checked"],
            note=row.get("note", ""),
            left_out=tuple(map(str, row.get("left_out", ()))),
            same_as=row.get("same_as", ""),
            published={name: read_fact(fact, sources, where=name) for name, fact in row.get("published", {}).items()},
        )
    except KeyError as error:
        raise ValueError(f"{key}: its source lacks {error}; a source needs title, url and checked") from error
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error


def _rows(table: str, overlay: str | Path | None) -> Rows:
    """The catalogue's rows, the overlay's last."""
    found: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
    for _, content in catalogue_files(overlay):
        for key, row in content.get(table, {}).items():
            found[key] = (row, content.get("sources", {}))
    return found


def _entry(table: str, typed: str, overlay: str | Path | None) -> ModelEntry:
    rows = _rows(table, overlay)
    key = _meant(rows, typed)
    row, sources = rows[key]
    whole = "same_as" in row or isinstance(row.get("config"), Mapping)
    return _read_entry(key, dict(row) | {"config": _config(rows, key)} if whole else row, sources)


def _names(rows: Rows) -> dict[str, tuple[str, ...]]:
    """What each model is called besides its key; its maker last."""
    return {
        key: (str(row.get("name", "")), *_other_names(row), str(row.get("vendor", "")))
        for key, (row, _) in rows.items()
        if isinstance(row, Mapping)
    }


def _meant(rows: Rows, typed: str) -> str:
    """The model that a name means. A name that leaves out what other models differ in is asked back, even where only
    one of them is here.
    """
    names = _names(rows)
    if typed in names:
        return typed
    fit = spelling.candidates(names, typed, by_key_first=False) or [spelling.key_of(names, see=_ALL, model=typed)]
    own = {key: (key, *names[key][:-1]) for key in fit}
    whole = [key for key in fit if any(spelling.says_all_of(typed, name) for name in own[key])]
    exact = [key for key in whole if any(not spelling.left_out(typed, name) for name in own[key])]
    for sole in (exact, whole):
        if len(sole) == 1:
            return sole[0]
    besides = "" if len(fit) > 1 else "another of that name, which is not known here"
    raise ValueError(spelling.which_of(whole or fit, what="model", typed=typed, besides=besides))


def _other_names(row: Mapping[str, Any]) -> list[str]:
    listed = row.get("also", [])
    return [str(name) for name in listed] if isinstance(listed, list) else []


def _own_config(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row's fields; TOML has no null, which is written as "null"."""
    return {name: None if value == "null" else value for name, value in dict(row.get("config", {})).items()}


def _config(rows: Rows, key: str, seen: tuple[str, ...] = ()) -> dict[str, Any]:
    """A model's config: its own fields, over those of the model that it is the same as."""
    row = rows[key][0]
    if "same_as" not in row:
        return _own_config(row)
    try:
        checks.one_of(rows, same_as=row["same_as"], see=_ALL)
        if row["same_as"] in (*seen, key):
            raise ValueError(f"same_as={row['same_as']!r} leads back to itself; name a model with a config of its own")
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from error
    return _config(rows, row["same_as"], (*seen, key)) | _own_config(row)


def model_keys(*, overlay: str | Path | None = None) -> tuple[str, ...]:
    """The key of every language model in the catalogue."""
    return tuple(_rows("models", overlay))


def fitting_keys(typed: str, *, overlay: str | Path | None = None) -> list[str]:
    """The language models that a name may mean, in any spelling; none for one that is not known.

    >>> fitting_keys("Llama-3.1-8B-Instruct"), fitting_keys("Llama-3.1-8B-FP8")
    (['llama-3.1-8b'], [])
    """
    return spelling.candidates(_names(_rows("models", overlay)), typed, by_key_first=False)


def model_entry(key: str, *, overlay: str | Path | None = None) -> ModelEntry:
    """One language model's row: its config with the source, and its published counts.

    >>> model_entry("deepseek-v3").published["total"].printed
    '671B'
    """
    return _entry("models", key, overlay)


def model(key: str, *, overlay: str | Path | None = None) -> Model:
    """One language model by its key or another spelling of its name; an unknown one is refused with the nearest, one
    that fits several, here or elsewhere, with those that are here.

    `overlay` is the path of a reader's own catalogue file, which wins over the shipped ones; see facts.

    >>> model("mistral-7b").groups[0][0].attention.window
    4096
    >>> model("meta-llama/Llama-3-70B-Instruct").name
    'llama-3-70b'
    """
    if not (overlay or os.environ.get(OVERLAY_VARIABLE)):
        return _shipped_model(key)
    return _found_model(key, overlay)


def _found_model(key: str, overlay: str | Path | None) -> Model:
    entry = model_entry(key, overlay=overlay)
    found = from_hf_config(entry.config, name=entry.key)
    return replace(found, not_counted=(*entry.left_out, *found.not_counted))


@functools.cache
def _shipped_model(key: str) -> Model:
    """One of those that come with the library, read once: an expected time asks for its model thousands of times."""
    return _found_model(key, None)


def convnet_keys(*, overlay: str | Path | None = None) -> tuple[str, ...]:
    """The key of every convolutional network in the catalogue.

    >>> convnet_keys()
    ('resnet-50', 'resnet-34', 'efficientnet-b4')
    """
    return tuple(_rows("convnets", overlay))


def convnet_entry(key: str, *, overlay: str | Path | None = None) -> ModelEntry:
    """One convolutional network's row."""
    return _entry("convnets", key, overlay)


def convnet(key: str, *, height: int, width: int, overlay: str | Path | None = None) -> ConvNet:
    """One convolutional network by its key, laid out for images of this size in pixels.

    >>> net = convnet("resnet-50", height=224, width=224)
    >>> net.parameters, net.flops
    (25557032, 8178368512)
    """
    entry = convnet_entry(key, overlay=overlay)
    return convnet_from_config(entry.config, height=height, width=width, name=entry.key)
