"""Engine plan: the parts of a serving engine, and of the book's own server, as boxes.

>>> engine().body["width"] <= 640, "scheduler" in engine().alt
(True, True)
"""

from threeloops.figures.boxes import Arrow, Box, boxes
from threeloops.figures.figure import Figure

WIDE, HIGH = 128, 58  # pixels of a box
GAP = 38  # between two boxes, for an arrow


def engine() -> Figure:
    """The seven parts, in the order in which a request meets them."""
    names = (("API front\nHTTP, limits", "control"), ("tokenizer\ntext to numbers", "control"))
    behind = (("detokenizer\nnumbers to text", "control"), ("sampler\npicks one token", "compute"))
    x = [place * (WIDE + GAP) for place in range(4)]
    middle, low = HIGH + GAP + 10, 2 * (HIGH + GAP) + 10
    plan = [_box(x[place], 0, *named) for place, named in enumerate(names)]
    plan += [
        _box(x[2], 0, "scheduler\nplans each step", "control"),
        _box(x[3], 0, "KV manager\nblocks, tables", "memory"),
        _box(x[2], middle, "executor\nthe model, one step", "compute"),
        _box(x[3], middle, "KV cache\nkeys and values", "memory"),
        _box(x[2], low, *behind[1]),
        _box(x[0], low, *behind[0]),
    ]
    centre = [place + WIDE / 2 for place in x]
    arrows = [
        Arrow(x=x[0] + WIDE, y=HIGH / 2, to_x=x[1] - 6, to_y=HIGH / 2),
        Arrow(x=x[1] + WIDE, y=HIGH / 2, to_x=x[2] - 6, to_y=HIGH / 2),
        Arrow(x=x[2] + WIDE, y=HIGH / 2, to_x=x[3] - 6, to_y=HIGH / 2),
        Arrow(x=centre[2], y=HIGH, to_x=centre[2], to_y=middle - 6),
        Arrow(x=centre[3], y=HIGH, to_x=centre[3], to_y=middle - 6),
        Arrow(x=x[3], y=middle + HIGH / 2, to_x=x[2] + WIDE + 6, to_y=middle + HIGH / 2),
        Arrow(x=centre[2], y=middle + HIGH, to_x=centre[2], to_y=low - 6),
        Arrow(x=x[2], y=low + HIGH / 2, to_x=x[0] + WIDE + 6, to_y=low + HIGH / 2),
        Arrow(x=centre[0], y=low, to_x=centre[0], to_y=HIGH + 6),
    ]
    return boxes(
        plan,
        arrows=arrows,
        title="One token passes through the right side; a request stays until its last token",
        caption=(
            "Green: control on the CPU. Blue: work on the accelerator. Orange: memory. A step goes from the scheduler"
            " down to the sampler, and begins again. A sketch."
        ),
        alt=(
            "Every step goes through scheduler, executor and sampler. A request enters at the API front and the"
            " tokenizer; the scheduler asks the KV manager for blocks; the executor runs the model and reads the KV"
            " cache; the sampler picks a token; the detokenizer turns it into text, which the API front sends."
        ),
    )


def our_server() -> Figure:
    """The two threads of the book's server and what passes between them."""
    wide, half = 172, 66
    second, third = wide + 54, 2 * (wide + 54)
    low = 128
    plan = [
        _box(0, 30, "client\nopenai, httpx", "frame", wide),
        _box(second - 12, 0, "thread 1: asyncio", "frame", wide + 24, low + half + 20, at_top=True),
        _box(third - 12, 0, "thread 2: engine", "frame", wide + 24, low + half + 20, at_top=True),
        _box(second, 30, "api_front, forms\nread, check, refuse", "control", wide, half),
        _box(second, low, "one queue a request\nserver-sent events", "control", wide, half),
        _box(third, 30, "scheduler, blocks\nplan a step", "control", wide, half),
        _box(third, low, "engine\nrun, sample, deliver", "compute", wide, half),
    ]
    arrows = [
        Arrow(x=wide, y=50, to_x=second - 6, to_y=50),
        Arrow(x=second + wide, y=63, to_x=third - 6, to_y=63),
        Arrow(x=third + wide / 2, y=30 + half, to_x=third + wide / 2, to_y=low - 6),
        Arrow(x=third, y=low + half / 2, to_x=second + wide + 6, to_y=low + half / 2),
        Arrow(x=second, y=low + half / 2, to_x=wide / 2, to_y=30 + HIGH + 6),
    ]
    return boxes(
        plan,
        arrows=arrows,
        title="Two threads share one Python: one talks HTTP, one runs steps",
        caption="The book's server, file by file, in measure/product_loop/server. A sketch.",
        alt=(
            "HTTP and model steps run in two threads of one process. The client's request goes to api_front, which"
            " checks it and submits it to the scheduler; the engine runs a step and puts each token into that request's"
            " queue; from there it goes to the client as a server-sent event."
        ),
    )


def _box(
    x: float, y: float, text: str, kind: str, width: float = WIDE, height: float = HIGH, *, at_top: bool = False
) -> Box:
    return Box(x=x, y=y, width=width, height=height, text=text, kind=kind, at_top=at_top)
