"""Worker map: every GPU of a cluster in its node, with its replica, its pipeline stage and its tensor shard.

>>> figure = worker_map([("tp", 2), ("dp", 2), ("pp", 2)], gpus_per_node=2, title="Shards share a node", caption="Four nodes of two GPUs.")
>>> print(figure.alt)
4 nodes of 2 GPUs. Node 0: stage 0, replica 0, shards 0 to 1. Node 1: stage 0, replica 1, shards 0 to 1. Node 2: stage 1, replica 0, shards 0 to 1. Node 3: \
stage 1, replica 1, shards 0 to 1.
"""  # noqa: E501

from typing import Any

from threeloops import checks
from threeloops.figures import look
from threeloops.figures.channels import layer, nominal, quantitative
from threeloops.figures.figure import Figure
from threeloops.figures.foundations.pipeline_stages import FILLS
from threeloops.training_loop.parallelism.placement import Order, coordinates, num_gpus

NODES_PER_ROW, GPUS_PER_ROW = 4, 2
WIDTH, HEIGHT, GAP, HEAD = 68, 40, 10, 20  # pixels of a GPU; between nodes; of a node's name
KINDS = {"tp": "T", "dp": "D", "pp": "P"}


def worker_map(order: Order, *, gpus_per_node: int, title: str, caption: str) -> Figure:
    """One frame per node, one box per GPU, shaded by pipeline stage; the letters in it say replica (D), stage (P) and
    shard (T).

    Raises:   ValueError for other kinds than tp, dp and pp, for more stages than there are shades, and for nodes that
              are not filled
    """
    if {kind for kind, _ in order} != set(KINDS):
        raise ValueError(f"order={list(order)!r} must name tp, dp and pp, each once")
    total, stages = num_gpus(order=order), dict(order)["pp"]
    checks.divides(part="gpus_per_node", part_value=gpus_per_node, whole="GPUs", whole_value=total)
    if stages > len(FILLS):
        raise ValueError(f"pp={stages} must not exceed {len(FILLS)}, the number of shades")
    gpus = [_gpu(gpu, order, gpus_per_node) for gpu in range(total)]
    frames = [_frame(node, gpus_per_node) for node in range(total // gpus_per_node)]
    width, height = max(frame["x2"] for frame in frames), max(frame["y2"] for frame in frames)
    x, y = _place("x", width), _place("y", height)
    spread = {
        "x": x,
        "x2": {"field": "x2"},
        "y": {**y, "scale": {**y["scale"], "reverse": True}},
        "y2": {"field": "y2"},
    }
    names = [f"stage {stage}" for stage in range(stages)]
    shades = nominal(
        "stage", sort=names, scale={"domain": names, "range": list(FILLS[:stages])}, legend={"title": None}
    )
    middle = {"x": {**x, "field": "middle"}, "y": {**spread["y"], "field": "line"}}
    return Figure(
        title=title,
        caption=caption,
        alt=f"{len(frames)} nodes of {gpus_per_node} GPUs. "
        + " ".join(_said(node, order, gpus_per_node) for node in range(len(frames))),
        body={
            "width": width,
            "height": height,
            "layer": [
                {
                    "data": {"values": frames},
                    "mark": {"type": "rect", "fill": look.PAPER, "stroke": look.GREY, "aria": False},
                    "encoding": spread,
                },
                layer({"type": "rect", "stroke": look.GREY, "strokeWidth": 0.7}, gpus, **spread, fill=shades),
                layer({"type": "text", "aria": False}, [*frames, *_lines(gpus)], **middle, text="text"),
            ],
        },
    )


def _place(name: str, size: float) -> dict[str, Any]:
    return quantitative(name, axis=None, scale={"domain": [0, size], "nice": False})


def _corner(node: int, gpus_per_node: int) -> tuple[int, int]:
    rows = -(-gpus_per_node // GPUS_PER_ROW)
    return node % NODES_PER_ROW * (GPUS_PER_ROW * WIDTH + GAP + 4), node // NODES_PER_ROW * (
        rows * HEIGHT + HEAD + GAP + 4
    )


def _frame(node: int, gpus_per_node: int) -> dict[str, Any]:
    left, top = _corner(node, gpus_per_node)
    right, bottom = left + GPUS_PER_ROW * WIDTH + 4, top + -(-gpus_per_node // GPUS_PER_ROW) * HEIGHT + HEAD + 4
    return {
        "x": left,
        "x2": right,
        "y": top,
        "y2": bottom,
        "middle": (left + right) / 2,
        "line": top + HEAD / 2 + 1,
        "text": f"node {node}",
    }


def _gpu(gpu: int, order: Order, gpus_per_node: int) -> dict[str, Any]:
    left, top = _corner(gpu // gpus_per_node, gpus_per_node)
    inside, places = gpu % gpus_per_node, coordinates(gpu, order=order)
    x, y = left + 2 + inside % GPUS_PER_ROW * WIDTH, top + HEAD + 2 + inside // GPUS_PER_ROW * HEIGHT
    letters = " ".join(f"{KINDS[kind]}{places[kind]}" for kind in ("dp", "pp", "tp"))
    return {
        "x": x,
        "x2": x + WIDTH,
        "y": y,
        "y2": y + HEIGHT,
        "stage": f"stage {places['pp']}",
        "letters": letters,
        "gpu": f"GPU {gpu}",
    }


def _lines(gpus: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two lines of text in each box."""
    middles = [(box["x"] + WIDTH / 2, box["y"] + HEIGHT / 2, box) for box in gpus]
    return [
        {"middle": x, "line": y + shift, "text": box[name]}
        for x, y, box in middles
        for shift, name in ((-8, "gpu"), (9, "letters"))
    ]


def _said(node: int, order: Order, gpus_per_node: int) -> str:
    inside = [coordinates(gpu, order=order) for gpu in range(node * gpus_per_node, (node + 1) * gpus_per_node)]
    parts = [
        _span(word, sorted({places[kind] for places in inside}))
        for word, kind in (("stage", "pp"), ("replica", "dp"), ("shard", "tp"))
    ]
    return f"Node {node}: {', '.join(parts)}."


def _span(word: str, numbers: list[int]) -> str:
    return f"{word} {numbers[0]}" if len(numbers) == 1 else f"{word}s {numbers[0]} to {numbers[-1]}"
