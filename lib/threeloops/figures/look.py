"""Look: colours, shapes and sizes of every figure.

Colours are those of Okabe and Ito, which readers of every colour vision tell apart; none is used without a shape or a
dash beside it. All of them are stated, because a page may be dark: nothing is left to the page's theme.

Source: Okabe, Ito, "Color Universal Design", 2008, https://jfly.uni-koeln.de/color/
"""

from typing import Any

INK, GREY, RULE, PAPER = "#1a1a1a", "#595959", "#d9d9d9", "#ffffff"
# the last two a little darker than Okabe's, for contrast on white
BLUE, ORANGE, GREEN, PINK = "#0072b2", "#d55e00", "#00805c", "#b5487f"

# What binds a kernel: its colour and, for those who cannot see it, its shape.
BOUND_COLOURS = {"compute": BLUE, "memory": ORANGE, "overhead": GREEN}
BOUND_SHAPES = {"compute": "square", "memory": "circle", "overhead": "triangle-up"}

# Series of a line chart, told apart by colour, dash and marker.
SERIES_COLOURS = (BLUE, ORANGE, GREEN, PINK, INK)
SERIES_DASHES = ([1, 0], [8, 4], [2, 3], [8, 3, 2, 3], [14, 4])
SERIES_SHAPES = ("square", "circle", "triangle-up", "diamond", "cross")

# Pixels. A figure is at most 640 wide: on paper 160 mm, where 13 pixels are 9 points.
PLOT_WIDTH, PLOT_HEIGHT = 550, 330
TEXT = 13
# the first is the one inside the PNG renderer, the others have its widths
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def config() -> dict[str, Any]:
    """The part of a specification that says how, not what."""
    plain = {
        "labelFontSize": TEXT,
        "titleFontSize": TEXT,
        "labelColor": INK,
        "titleColor": INK,
        "titleFontWeight": "normal",
    }
    return {
        "font": FONT,
        "background": PAPER,
        "view": {"stroke": None},
        "axis": {**plain, "gridColor": RULE, "domainColor": GREY, "tickColor": GREY, "labelFlush": False},
        "legend": {**plain, "orient": "top", "title": None, "symbolSize": 90, "offset": 4},
        "title": {
            "anchor": "start",
            "frame": "group",
            "fontSize": 15,
            "color": INK,
            "subtitleFontSize": TEXT,
            "subtitleColor": GREY,
            "offset": 10,
        },
        "text": {"fontSize": TEXT, "color": INK},
    }
