"""Channels: what a mark's place, colour and words are taken from, in Vega-Lite's own terms.

>>> quantitative("seconds", title="time of a step (s)")
{'field': 'seconds', 'type': 'quantitative', 'title': 'time of a step (s)'}
>>> layer({"type": "text"}, [{"seconds": 0.3, "name": "copy"}], x=quantitative("seconds"), text="name")["encoding"]
{'x': {'field': 'seconds', 'type': 'quantitative'}, 'text': {'field': 'name'}}

Source: Vega-Lite 5, https://vega.github.io/vega-lite/docs/encoding.html
"""

from collections.abc import Mapping, Sequence
from typing import Any

# A mark's words are its row's: under the pointer, and for a screen reader.
WORDS = {"tooltip": {"field": "words"}, "description": {"field": "words"}}


def quantitative(field: str | None = None, **how: Any) -> dict[str, Any]:
    """A number of the rows along an axis or a scale; without a field, an axis that several numbers share."""
    return _channel(field, "quantitative", how)


def nominal(field: str | None = None, **how: Any) -> dict[str, Any]:
    """Names of the rows, in no order but the one given."""
    return _channel(field, "nominal", how)


def ordinal(field: str | None = None, **how: Any) -> dict[str, Any]:
    """Numbers or names of the rows that have an order and no distance."""
    return _channel(field, "ordinal", how)


def _channel(field: str | None, kind: str, how: Mapping[str, Any]) -> dict[str, Any]:
    return {**({} if field is None else {"field": field}), "type": kind, **how}


def layer(
    mark: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] | None = None, /, **encoding: Any
) -> dict[str, Any]:
    """A mark for each row, each channel by its name; a text is the field that the channel takes as it is. Without rows,
    the layer has those of the view around it.
    """
    data = {} if rows is None else {"data": {"values": rows}}
    return {**data, "mark": mark, "encoding": {name: _read(channel) for name, channel in encoding.items()}}


def _read(channel: Any) -> Any:
    return {"field": channel} if isinstance(channel, str) else channel
