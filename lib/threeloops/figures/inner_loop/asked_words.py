"""Asked words: memory in lines of 32 words, the words that the lanes of a warp ask for, and what serving them takes:
sectors of device memory, turns of the banks of shared memory.

>>> kinds = {"title": "One unused word per row", "caption": "A warp reads column 5."}
>>> print(banks({"32 words a row": 32, "33 words a row": 33}, column=5, **kinds).alt)
Lanes 0 to 31 read column 5 of a tile of 32 rows. 32 words a row: 1 bank serves all lanes, 32 turns. 33 words a row: 32 banks serve one lane each, 1 turn.
>>> print(sectors({"down a column": range(0, 1024, 32)}, **kinds).alt)
down a column: 32 words in 32 sectors, 12.5 % of the fetched bytes used.
"""  # noqa: E501

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted, fmt_percent

LANES, BANKS, SECTOR = 32, 32, 8  # lanes; words in a line, one per bank; words in a sector
CELL = 8  # pixels of a word
KINDS = {"asked for": look.BLUE, "fetched with it": look.ORANGE}


def banks(pitches: Mapping[str, int], *, column: int, title: str, caption: str) -> Figure:
    """Shared memory: lane i reads word i × pitch + column; its bank is that word's number modulo 32. One grid per
    layout.
    """
    if not pitches:
        raise ValueError("pitches is empty; give at least one layout, like {'32 words a row': 32}")
    checks.count(at_least=0, column=column)
    checks.count(**{f"pitches[{name!r}]": pitch for name, pitch in pitches.items()})
    asked = {name: [lane * pitch + column for lane in range(LANES)] for name, pitch in pitches.items()}
    words = [f"Lanes 0 to {LANES - 1} read column {column} of a tile of {LANES} rows."]
    words += [f"{name}: {_turns(places)}." for name, places in asked.items()]
    panels = [
        _panel(name, [_cell(place, "asked for", f"lane {lane}, bank {place % BANKS}") for lane, place in of_lanes])
        for name, of_lanes in ((name, list(enumerate(places))) for name, places in asked.items())
    ]
    return _figure(panels, step=1, axis="bank", title=title, caption=caption, alt=" ".join(words))


def sectors(requests: Mapping[str, Sequence[int]], *, title: str, caption: str) -> Figure:
    """Device memory: the numbers of the words that the lanes of one request ask for, and the sectors of 32 bytes that
    are fetched for them. One grid per request.
    """
    if not requests or not all(requests.values()):
        raise ValueError("requests is empty; give at least one, like {'along a row': range(32)}")
    panels, words = [], []
    for name, asked in requests.items():
        fetched = sorted({place // SECTOR for place in asked})
        share = len(set(asked)) / (len(fetched) * SECTOR)
        words.append(
            f"{name}: {counted(len(set(asked)), 'word')} in {counted(len(fetched), 'sector')},"
            f" {fmt_percent(share)} of the fetched bytes used."
        )
        beside = [_cell(n * SECTOR, "fetched with it", f"sector {n}", width=SECTOR) for n in fetched]
        panels.append(_panel(name, beside + [_cell(place, "asked for", f"word {place}") for place in asked]))
    axis = "word of a line of 128 bytes"
    return _figure(panels, step=SECTOR, axis=axis, title=title, caption=caption, alt=" ".join(words))


def _turns(places: Sequence[int]) -> str:
    served = Counter(place % BANKS for place in places)
    turns = max(served.values())
    each = "one lane" if turns == 1 else f"up to {turns} lanes"
    who = "1 bank serves all lanes" if len(served) == 1 else f"{len(served)} banks serve {each} each"
    return f"{who}, {counted(turns, 'turn')}"


def _cell(place: int, kind: str, words: str, *, width: int = 1) -> dict[str, Any]:
    line, word = divmod(place, BANKS)
    return {"x": word, "x2": word + width, "y": line, "y2": line + 1, "kind": kind, "words": words}


def _panel(name: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "title": {"text": name, "anchor": "start", "fontSize": look.TEXT, "fontWeight": "normal", "color": look.INK},
        "data": {"values": cells},
    }


def _figure(panels: list[dict[str, Any]], *, step: int, axis: str, title: str, caption: str, alt: str) -> Figure:
    lines = max(int(cell["y2"]) for panel in panels for cell in panel["data"]["values"])
    seen = {cell["kind"] for panel in panels for cell in panel["data"]["values"]}
    kinds = [kind for kind in KINDS if kind in seen]
    across = {"values": list(range(0, BANKS + 1, step)), "labelExpr": "datum.value % 8 == 0 ? datum.value : ''"}
    down = {"values": list(range(lines + 1)), "labels": False, "ticks": False, "title": "address, downwards"}
    colour = nominal(
        "kind", scale={"domain": kinds, "range": [KINDS[kind] for kind in kinds]}, legend={} if len(kinds) > 1 else None
    )
    for panel in panels:
        panel |= {"width": BANKS * CELL, "height": lines * CELL}
        panel["mark"] = {"type": "rect", "stroke": look.PAPER, "strokeWidth": 0.5}
        panel["encoding"] = {
            "x": _position("x", BANKS, {**across, "title": axis, "grid": True}),
            "y": _position("y", lines, {**down, "grid": True}, reverse=True),
            "x2": {"field": "x2"},
            "y2": {"field": "y2"},
            "color": colour,
            "tooltip": {"field": "words"},
            "description": {"field": "words"},
        }
    return Figure(title=title, caption=caption, alt=alt, body={"hconcat": panels, "spacing": 24})


def _position(field: str, end: int, axis: dict[str, Any], *, reverse: bool = False) -> dict[str, Any]:
    scale = {"domain": [0, end], "nice": False, "reverse": reverse}
    return quantitative(field, scale=scale, axis=axis)
