"""Pictures drawn anew: the words of the notebook, smaller than its pixels, and letters that can be read on a phone."""

import gzip
import re
from xml.etree import ElementTree

import pytest

from tests.seeds import todays
from tests.site.conftest import ROOT
from threeloops.site.drawn import anew
from threeloops.site.drawn.letters import SVG, held
from threeloops.site.parts import Cell, Part, parts

MOST_SLIM = 30e3
LETTER, PHONE = 13, 358  # pixels: of a letter as it is drawn, and of the place for a picture at 390


def pictures(part: Part) -> int:
    return sum("image/png" in one.get("data", {}) for cell in part.cells for one in cell.get("outputs", ()))


@pytest.mark.timeout(600)
def test_pictures_are_drawn_as_the_notebook_has_them_and_fit_a_phone() -> None:
    for part in todays([one for one in parts(ROOT) if pictures(one) > 3]):
        made = anew.of_part(part.cells)
        assert made, part.page
        for one in made.values():
            for drawing in filter(None, (one.wide, one.slim)):
                assert len(gzip.compress(drawing.encode())) < MOST_SLIM
                ElementTree.fromstring(drawing)
            if one.slim:
                assert anew.size(one.slim)[0] < anew.size(one.wide)[0] + 1
                assert LETTER * PHONE / anew.size(one.slim)[0] > 10


def picture(source: str) -> Cell:
    pixels = {"data": {"image/png": "aGVyZQ=="}, "metadata": {"image/png": {"alt": "Two bars."}}}
    return {"cell_type": "code", "source": source, "metadata": {}, "outputs": [pixels]}


MAKES = """
from threeloops.figures.figure import Figure
Figure(title="Two", caption="bars", alt="Two bars.", body={"mark": "bar", "data": {"values": []}, "width": 600})
"""


def test_what_says_something_else_now_or_fails_stays_as_it_is() -> None:
    assert len(anew.of_part([picture(MAKES)])) == 1
    assert not anew.of_part([picture(MAKES.replace('alt="Two', 'alt="Three'))])
    assert not anew.of_part([picture(f"1 / 0{MAKES}")])
    assert not anew.of_part([picture(f"import torch\nx = torch.ones(2){MAKES}".replace("600", "x"))])
    assert not anew.of_part([{**picture("2 + 2")}])


def test_words_are_held_to_the_width_they_were_drawn_with() -> None:
    wide, tall = ("WWWWW", "iiiii")
    drawing = f'<svg xmlns="{SVG}"><text font-size="13px"><tspan>{wide}</tspan><tspan>{tall}</tspan></text></svg>'
    found = [float(one) for one in re.findall(r'textLength="([\d.]+)"', held(drawing))]
    # a W is 0.944 em and an i 0.222 in Helvetica (Adobe's font metrics), whose widths the renderer's font has
    assert found == [pytest.approx(5 * 13 * em, abs=0.1) for em in (0.944, 0.222)]
