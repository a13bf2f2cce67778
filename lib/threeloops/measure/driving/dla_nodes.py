"""DLA nodes: an ONNX graph as the nodes that are placed on an engine, with the settings that limits are about.

>>> import torch
>>> from threeloops.measure.product_loop.exported import exported
>>> piece = torch.nn.Sequential(torch.nn.Conv2d(2, 4, 3, stride=2, padding=1), torch.nn.Hardswish())
>>> [(node.op, dict(node.settings).get("stride"), node.after) for node in of(exported(piece, torch.rand(2, 2, 8, 8)))]
[('Conv', (2, 2), ()), ('HardSwish', None, (0,))]
"""

from typing import Any

import onnx

from threeloops.driving.dla_placement import GraphNode
from threeloops.facts import dla_layers

SETTINGS = {
    "kernel_shape": "kernel",
    "strides": "stride",
    "dilations": "dilation",
    "pads": "padding",
    "group": "groups",
}
READS = {"CastLike": 1, "Shape": 0}  # of the others they take the type, of all the fixed shape


def of(graph: bytes) -> list[GraphNode]:
    """The nodes that compute something from the graph's inputs, in the file's order. Quantisers are passed over: they
    set types. What follows from constants alone is worked out when an engine is built.
    """
    model = onnx.load_from_string(graph)
    constant = {one.name for one in model.graph.initializer}
    made_by: dict[str, tuple[int, ...]] = {one.name: () for one in model.graph.input if one.name not in constant}
    nodes: list[GraphNode] = []
    for node in model.graph.node:
        read = [name for name in node.input[: READS.get(node.op_type)] if name in made_by]
        if not read:
            continue  # from constants alone
        after = tuple(sorted({place for name in read for place in made_by[name]}))
        if node.op_type in dla_layers.QUANTISERS:
            here = after
        else:
            here = (len(nodes),)
            nodes.append(GraphNode(name=node.name, op=node.op_type, after=after, settings=_settings(node)))
        made_by |= dict.fromkeys(node.output, here)
    return nodes


def _settings(node: Any) -> dict[str, tuple[int, ...]]:
    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute if one.name in SETTINGS}
    return {SETTINGS[name]: tuple(value) if isinstance(value, list) else (int(value),) for name, value in found.items()}
