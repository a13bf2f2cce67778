"""Words of a drawing, held to the widths with which it was laid out: a page draws them in the reader's own font, which
may be wider, and they would run into each other.

Widths are those of the renderer's font, measured by the renderer itself.
"""

import json
from xml.etree import ElementTree

from threeloops.figures import look

SVG = "http://www.w3.org/2000/svg"
SHORTEST = 2  # letters: a figure alone runs into nothing


def held(drawing: str) -> str:
    """A drawing whose words are as wide in every font.

    >>> made = held('<svg xmlns="http://www.w3.org/2000/svg"><text font-size="13px">WWWWWWWWWW</text></svg>')
    >>> 'textLength="122.7" lengthAdjust="spacingAndGlyphs"' in made
    True
    """
    ElementTree.register_namespace("", SVG)
    root = ElementTree.fromstring(drawing)
    words = [
        (line, float(text.get("font-size", "0").removesuffix("px")), text.get("font-weight", "normal"))
        for text in root.iter(f"{{{SVG}}}text")
        for line in ([*text] or [text])
        if len((line.text or "").strip()) >= SHORTEST
    ]
    for (line, _, _), width in zip(words, _widths([(line.text, size, how) for line, size, how in words]), strict=True):
        line.set("textLength", f"{width:.1f}")
        line.set("lengthAdjust", "spacingAndGlyphs")
    return ElementTree.tostring(root, encoding="unicode")


def _widths(words: list[tuple[str | None, float, str]]) -> list[float]:
    """Pixels that each text takes: the renderer draws a line as long as it."""
    import vl_convert

    texts = {
        "text": {"field": "words"},
        "fontSize": {"field": "size"},
        "fontWeight": {"field": "how"},
        "font": {"value": look.FONT},
    }
    lines = {"x": {"field": "bounds.x1"}, "x2": {"field": "bounds.x2"}, "stroke": {"value": look.INK}}
    rows = [{"words": one, "size": size, "how": how} for one, size, how in words]
    spec = {
        "$schema": "https://vega.github.io/schema/vega/v5.json",
        "width": 1,
        "height": 1,
        "data": [{"name": "rows", "values": rows}],
        "marks": [
            {"type": "text", "name": "texts", "from": {"data": "rows"}, "encode": {"enter": texts}},
            {"type": "rule", "from": {"data": "texts"}, "encode": {"enter": lines}},
        ],
    }
    drawn = ElementTree.fromstring(vl_convert.vega_to_svg(json.dumps(spec)))
    return [float(line.get("x2", "0")) for line in drawn.iter(f"{{{SVG}}}line")]
