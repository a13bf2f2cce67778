"""The pictures that notebooks hold, packed anew: as the drawing that they are, with another one for phones, where it
could be drawn again and is smaller; else the same pixels as WebP, in less than half the bytes of their PNGs. Each is
fetched when it is about to be seen, and its place is kept until then.

Source:   https://developers.google.com/speed/webp/docs/webp_lossless_bitstream_specification
"""

import gzip
import re
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from threeloops.site.drawn import anew
from threeloops.site.drawn.anew import Drawing

PICTURE = re.compile(r'(_images/[^"/]+)\.png"')
SHOWN = re.compile(
    r'<img alt="(?P<alt>[^"]*)" src="(?P<src>[^"]*?_images/(?P<name>[^"/]+)\.png)"'
    r'(?: style="width: (?P<wide>[\d.]+)px;")? />'
)
PHONE = "(max-width: 600px)"
PHOTOGRAPH = re.compile(r"\d+ camera pictures? ")  # what has the world's colours, and not the figures'


def pack(folder: Path, drawn: Mapping[str, Drawing]) -> None:
    """Pack the pictures of built pages, and name them in the pages as they are called now."""
    sizes, slim = {}, {}
    for path in folder.glob("_images/*.png"):
        drawing = drawn.get(path.stem)
        with Image.open(path) as picture:
            sizes[path.stem] = picture.size
            picture.save(path.with_suffix(".webp"), lossless=True)
        path.unlink()
        if not drawing or len(gzip.compress(drawing.wide.encode())) >= path.with_suffix(".webp").stat().st_size:
            continue
        path.with_suffix(".webp").unlink()
        path.with_suffix(".svg").write_text(drawing.wide, encoding="utf-8")
        slim[path.stem] = (0.0, 0.0)
        if drawing.slim:
            path.with_suffix(".slim.svg").write_text(drawing.slim, encoding="utf-8")
            slim[path.stem] = anew.size(drawing.slim)
    for path in folder.rglob("*.html"):
        page = placed(path.read_text(encoding="utf-8"), sizes, slim)
        path.write_text(renamed(page, slim), encoding="utf-8")


def renamed(page: str, drawn: Mapping[str, object]) -> str:
    """A page that asks for the packed pictures, of which some are drawn.

    >>> renamed('<img src="../_images/a1.png" alt="one.png"><img src="../_images/b2.png">', {"b2": None})
    '<img src="../_images/a1.webp" alt="one.png"><img src="../_images/b2.svg">'
    """
    return PICTURE.sub(lambda match: f'{match[1]}.{"svg" if match[1].split("/")[-1] in drawn else "webp"}"', page)


def placed(
    page: str, sizes: Mapping[str, tuple[int, int]], slim: Mapping[str, tuple[float, float]] | None = None
) -> str:
    """A page that keeps a place for each picture, of the size on the page that the notebook names, and fetches it late;
    on a phone the slim drawing, where there is one with a size.

    >>> placed('<img alt="A bar." src="_images/a1.png" style="width: 600px;" />', {"a1": (900, 300)})
    '<img alt="A bar." src="_images/a1.png" width="600" height="200" style="--wide: 600px" loading="lazy" />'
    >>> shown = '<img alt="A bar." src="_images/a1.png" style="width: 600px;" />'
    >>> placed(shown, {"a1": (900, 300)}, {"a1": (400.0, 310.0)})[:98]
    '<picture><source media="(max-width: 600px)" srcset="_images/a1.slim.svg" width="400" height="310">'
    """

    def kept(match: re.Match[str]) -> str:
        across, down = sizes[match["name"]]
        wide = float(match["wide"] or across)
        kind = ' class="photograph"' if PHOTOGRAPH.match(match["alt"]) else ""
        narrow, low = (slim or {}).get(match["name"], (0.0, 0.0))
        source = f'{match["src"].removesuffix(".png")}.slim.svg" width="{narrow:.0f}" height="{low:.0f}"'
        slimmed = f"; --slim: {narrow:.0f}px" if narrow else ""
        before = f'<picture><source media="{PHONE}" srcset="{source}>' if narrow else ""
        shown = (
            f'<img{kind} alt="{match["alt"]}" src="{match["src"]}" width="{wide:g}" height="{wide * down / across:.0f}"'
            f' style="--wide: {wide:g}px{slimmed}" loading="lazy" />'
        )
        return f"{before}{shown}</picture>" if narrow else shown

    return SHOWN.sub(kept, page)
