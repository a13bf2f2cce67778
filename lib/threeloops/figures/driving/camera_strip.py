"""Camera strip: the pictures of one moment, as the cameras deliver them.

>>> figure = camera_strip({"front": [[(90, 90, 90), (80, 120, 60)]]}, title="One camera", caption="Generated.")
>>> print(figure.alt)
1 camera picture of 2 x 1 pixels: front.
"""

import base64
import struct
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from threeloops.figures import look
from threeloops.figures.channels import layer, quantitative
from threeloops.figures.figure import Figure
from threeloops.units import counted

Picture = Sequence[Sequence[Sequence[int]]]  # rows of pixels of red, green and blue
ACROSS, WIDTH, GAP, NAME = 3, 186, 8, 20  # pictures in a row; pixels of the page


def camera_strip(pictures: Mapping[str, Picture], *, title: str, caption: str) -> Figure:
    """Three pictures in a row, each with its camera's name above it.

    Raises:   ValueError without pictures, or where they differ in size
    """
    sizes = {(len(picture), len(picture[0])) for picture in pictures.values()}
    if len(sizes) != 1:
        raise ValueError(f"{len(pictures)} pictures of {len(sizes)} sizes; give at least one, all of one size")
    rows, columns = sizes.pop()
    high = round(WIDTH * rows / columns)
    lines = -(-len(pictures) // ACROSS)
    places: list[dict[str, Any]] = [
        {
            "x": (number % ACROSS) * (WIDTH + GAP) + WIDTH / 2,
            "y": (number // ACROSS) * (high + NAME) + NAME + high / 2,
            "name_y": (number // ACROSS) * (high + NAME) + NAME / 2,
            "name": name,
            "url": "data:image/png;base64," + base64.b64encode(png(picture)).decode(),
        }
        for number, (name, picture) in enumerate(pictures.items())
    ]
    width, height = ACROSS * (WIDTH + GAP) - GAP, lines * (high + NAME)
    x = _axis("x", width)
    return Figure(
        title=title,
        caption=caption,
        alt=f"{counted(len(pictures), 'camera picture')} of {columns} x {rows} pixels: {', '.join(pictures)}.",
        body={
            "width": width,
            "height": height,
            "data": {"values": places},
            "layer": [
                layer(
                    {"type": "image", "width": WIDTH, "height": high, "aria": False},
                    x=x,
                    y=_axis("y", height, reverse=True),
                    url="url",
                ),
                layer(
                    {"type": "text", "color": look.INK, "fontSize": look.TEXT},
                    x=x,
                    y=_axis("name_y", height, reverse=True),
                    text="name",
                ),
            ],
        },
    )


def _axis(field: str, size: int, *, reverse: bool = False) -> dict[str, Any]:
    scale = {"domain": [0, size], "nice": False, "reverse": reverse}
    return quantitative(field, axis=None, scale=scale)


def png(picture: Picture) -> bytes:
    """Pixels as a PNG, without a library for pictures.

    Source: W3C, Portable Network Graphics, 3rd edition, 2025, section 5 (datastream structure)
    """
    rows = [b"\0" + bytes(int(value) for pixel in row for value in pixel) for row in picture]
    head = struct.pack(">IIBBBBB", len(picture[0]), len(picture), 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
