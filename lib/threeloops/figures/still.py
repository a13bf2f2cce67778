"""Still: the picture of a specification, for whoever has no JupyterLab: a code host, a page, a printer.

The renderer is Vega itself, run by vl-convert without a browser, with fonts of its own: the same specification gives
the same picture on every machine.
"""

import functools
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

# JupyterLab 4 ships Vega-Lite 5.6; this is the nearest that vl-convert has.
VEGA_LITE = "5.8"
SCALE = 1.5  # picture pixels per page pixel: sharp enough on paper, and two thirds of the bytes of 2
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png(spec: Mapping[str, Any]) -> bytes:
    """The picture, in as few bytes as PNG allows."""
    import vl_convert  # 100 MB that a page which draws for itself does without

    return repacked(vl_convert.vegalite_to_png(json.dumps(spec), vl_version=VEGA_LITE, scale=SCALE))


def svg(spec: Mapping[str, Any]) -> str:
    """The drawing as text: what the tests read."""
    import vl_convert

    return vl_convert.vegalite_to_svg(json.dumps(spec), vl_version=VEGA_LITE)


@functools.cache
def library() -> str:
    """The same renderer as a JavaScript module, for a page: its default export is vegaEmbed."""
    import vl_convert

    return str(vl_convert.javascript_bundle("export default vegaEmbed;", vl_version=VEGA_LITE))


def size(picture: bytes) -> tuple[int, int]:
    """Width and height of a PNG on the page, in page pixels."""
    width, height = struct.unpack(">II", picture[16:24])
    return round(width / SCALE), round(height / SCALE)


def repacked(picture: bytes) -> bytes:
    """The same PNG, its pixels compressed as far as zlib can; the renderer favours speed, and makes a file several
    times larger.

    Source: W3C, Portable Network Graphics, 3rd edition, 2025, section 5 (datastream structure)
    """
    chunks = list(_chunks(picture))
    pixels = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    head = [chunk for chunk in chunks if chunk[0] == b"IHDR"]
    return SIGNATURE + b"".join(
        _chunk(kind, body) for kind, body in [*head, (b"IDAT", zlib.compress(pixels, 9)), (b"IEND", b"")]
    )


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = len(SIGNATURE)
    while place < len(picture):
        (length,) = struct.unpack(">I", picture[place : place + 4])
        yield picture[place + 4 : place + 8], picture[place + 8 : place + 8 + length]
        place += length + 12  # length, kind and checksum take four bytes each


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
