"""Network plans: a small net unit by unit, and one forward and backward pass with the number at every station.

>>> figure = dense_network([2, 2, 1], title="Nine numbers", caption="A sketch.")
>>> figure.alt
'9 parameters. 2 inputs; layer 1: 2 units of 2 weights and a bias; layer 2: 1 unit of 2 weights and a bias.'
"""

from collections.abc import Sequence
from itertools import pairwise

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure
from threeloops.foundations import chain_rule, dense_networks
from threeloops.units import counted

WIDTH, HEIGHT, ACROSS, DOWN = 128, 44, 88, 22  # pixels: of a unit, between two columns, between two rows
STATION, TALL, STEP, TIP = 104, 60, 28, 6  # pixels: of a station, between two, and of an arrow's tip


def dense_network(widths: Sequence[int], *, title: str, caption: str) -> Figure:
    """A column a layer, inputs first; each unit says how many numbers it learns.

    Raises:   ValueError for fewer than two widths
    """
    total, tallest = dense_networks.parameters(widths), max(widths)
    columns = [
        [
            Box(
                x=place * (WIDTH + ACROSS),
                y=((tallest - width) / 2 + row) * (HEIGHT + DOWN),
                width=WIDTH,
                height=HEIGHT,
                kind="compute" if place else "frame",
                text=f"{counted(widths[place - 1], 'weight')}, 1 bias" if place else f"x{row + 1}",
            )
            for row in range(width)
        ]
        for place, width in enumerate(widths)
    ]
    arrows = [
        Arrow(x=start.x + WIDTH, y=start.y + HEIGHT / 2, to_x=end.x - TIP, to_y=end.y + HEIGHT / 2)
        for before, after in pairwise(columns)
        for start in before
        for end in after
    ]
    layers = [
        f"layer {place}: {counted(width, 'unit')} of {counted(widths[place - 1], 'weight')} and a bias"
        for place, width in enumerate(widths)
        if place
    ]
    alt = f"{total} parameters. {counted(widths[0], 'input')}; {'; '.join(layers)}."
    plan = [box for column in columns for box in column]
    return boxes(plan, arrows=arrows, title=title, caption=caption, alt=alt)


def there_and_back(net: chain_rule.TwoLayers, *, x: float, target: float, title: str, caption: str) -> Figure:
    """The stations of second * relu(first * x) and its squared error; below each, the loss's derivative by it, and
    below those the derivatives by the two weights.

    >>> net = chain_rule.TwoLayers(first=0.5, second=2.0)
    >>> there_and_back(net, x=3, target=4, title="Back", caption="A sketch.").alt.split(". ")[1]
    'Backward, the loss by the answer -2, by the hidden value -4, by the sum -4, by w2 -3, by w1 -12.'
    """
    total, said = net.first * x, chain_rule.answer(net, x)
    blame, error = chain_rule.gradients(net, x=x, target=target), 2 * (said - target)
    ahead = {
        "x": x,
        "sum\nw1 · x": total,
        "hidden value\nrelu(sum)": max(total, 0),
        "answer\nw2 · hidden": said,
        "loss": chain_rule.loss(net, x=x, target=target),
    }
    back = {"the sum": error * net.second * (total > 0), "the hidden value": error * net.second, "the answer": error}
    of_weights = {"w1": (1, blame.first), "w2": (3, blame.second)}
    plan = [_station(place, 0, "compute", f"{name}\n{value:g}") for place, (name, value) in enumerate(ahead.items())]
    plan += [
        _station(place, 1, "memory", f"loss by\n{name}\n{value:g}")
        for place, (name, value) in enumerate(back.items(), start=1)
    ]
    plan += [_station(place, 2, "control", f"loss by {name}\n{value:g}") for name, (place, value) in of_weights.items()]
    said_back = [f"by {name} {value:g}" for name, value in reversed(back.items())]
    said_back += [f"by {name} {value:g}" for name, (_, value) in reversed(of_weights.items())]
    said_ahead = ", ".join(f"{name.split(chr(10))[0]} {value:g}" for name, value in ahead.items())
    return boxes(
        plan,
        arrows=[
            *(_along(plan[place], plan[place + 1]) for place in range(4)),
            _down(plan[4], plan[7]),
            _along(plan[7], plan[6]),
            _along(plan[6], plan[5]),
            _down(plan[5], plan[8]),
            _down(plan[7], plan[9]),
        ],
        title=title,
        caption=caption,
        alt=f"Forward, {said_ahead}. Backward, the loss {', '.join(said_back)}.",
    )


def _station(column: int, row: int, kind: str, text: str) -> Box:
    return Box(x=column * (STATION + STEP), y=row * (TALL + DOWN), width=STATION, height=TALL, kind=kind, text=text)


def _along(start: Box, end: Box) -> Arrow:
    """From one station to its neighbour in the same row, to the right or to the left."""
    y = start.y + TALL / 2
    if end.x > start.x:
        return Arrow(x=start.x + STATION, y=y, to_x=end.x - TIP, to_y=y)
    return Arrow(x=start.x, y=y, to_x=end.x + STATION + TIP, to_y=y)


def _down(start: Box, end: Box) -> Arrow:
    """From the foot of a station to the head of the one below, or to the side of one that is below and to the left."""
    x, foot = start.x + STATION / 2, start.y + TALL
    if end.x == start.x:
        return Arrow(x=x, y=foot, to_x=x, to_y=end.y - TIP)
    return Arrow(x=x, y=foot, to_x=end.x + STATION + TIP, to_y=end.y + TALL / 2)
