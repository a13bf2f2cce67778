"""The pictures that notebooks hold, packed anew: the same pixels as WebP, in less than half the bytes of their PNGs.
Each is fetched when it is about to be seen, and its place is kept until then.

Source:   https://developers.google.com/speed/webp/docs/webp_lossless_bitstream_specification
"""

import re
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

PICTURE = re.compile(r'(_images/[^"/]+)\.png"')
SHOWN = re.compile(
    r'<img alt="(?P<alt>[^"]*)" src="(?P<src>[^"]*?_images/(?P<name>[^"/]+)\.png)"'
    r'(?: style="width: (?P<wide>[\d.]+)px;")? />'
)
PHOTOGRAPH = re.compile(r"\d+ camera pictures? ")  # what has the world's colours, and not the figures'


def pack(folder: Path) -> None:
    """Pack the pictures of built pages, and name them in the pages as they are called now."""
    sizes = {}
    for path in folder.glob("_images/*.png"):
        with Image.open(path) as picture:
            sizes[path.stem] = picture.size
            picture.save(path.with_suffix(".webp"), lossless=True)
        path.unlink()
    for path in folder.rglob("*.html"):
        path.write_text(renamed(placed(path.read_text(encoding="utf-8"), sizes)), encoding="utf-8")


def renamed(page: str) -> str:
    """A page that asks for the packed pictures.

    >>> renamed('<img src="../_images/a1.png" alt="one.png">')
    '<img src="../_images/a1.webp" alt="one.png">'
    """
    return PICTURE.sub(r'\1.webp"', page)


def placed(page: str, sizes: Mapping[str, tuple[int, int]]) -> str:
    """A page that keeps a place for each picture, of the size on the page that the notebook names, and fetches it late.

    >>> placed('<img alt="A bar." src="_images/a1.png" style="width: 600px;" />', {"a1": (900, 300)})
    '<img alt="A bar." src="_images/a1.png" width="600" height="200" style="--wide: 600px" loading="lazy" />'
    """

    def kept(match: re.Match[str]) -> str:
        across, down = sizes[match["name"]]
        wide = float(match["wide"] or across)
        kind = ' class="photograph"' if PHOTOGRAPH.match(match["alt"]) else ""
        return (
            f'<img{kind} alt="{match["alt"]}" src="{match["src"]}" width="{wide:g}" height="{wide * down / across:.0f}"'
            f' style="--wide: {wide:g}px" loading="lazy" />'
        )

    return SHOWN.sub(kept, page)
