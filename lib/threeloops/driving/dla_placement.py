"""DLA placement: which nodes of a network a deep-learning accelerator runs, which fall back to the GPU, and into how
many loadables that cuts the network.

>>> chain = [
...     GraphNode(name=op, op=op, after=(i - 1,) if i else ()) for i, op in enumerate(("Conv", "HardSwish", "Conv"))
... ]
>>> [fallback(node) for node in chain]
['', 'HardSwish is no layer of the DLA', '']
>>> loadables(chain), loadables(chain[:1])
(2, 1)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from threeloops import checks
from threeloops.facts import dla_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphNode:
    """One operator of a graph, in an order in which they can run."""

    name: str
    op: str  # as ONNX calls it
    after: tuple[int, ...] = ()  # places of the nodes whose results it reads, all before its own
    settings: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # kernel, stride, dilation, padding, groups

    def __post_init__(self) -> None:
        if any(place < 0 for place in self.after):
            raise ValueError(f"after={self.after} of {self.name} must be places of nodes, counted from 0")


def fallback(node: GraphNode) -> str:
    """Why the DLA does not run a node, in a sentence; empty if it does.

    Assumes:  fixed shapes, FP16 or INT8; of the table's limits those of facts.dla_layers.LIMITS are looked at
    Source:   NVIDIA TensorRT documentation 11.4, "DLA Supported Layers and Restrictions", read in November 2026
    """
    layer = dla_layers.LAYER_OF.get(node.op)
    if layer is None:
        return f"{node.op} is no layer of the DLA"
    for setting, (least, most) in dla_layers.LIMITS.get(layer, {}).items():
        beyond = [value for value in node.settings.get(setting, ()) if not least <= value <= most]
        if beyond:
            return f"{setting} {beyond[0]} of {node.op} is outside {least} to {most}"
    return ""


def rewrite(node: GraphNode) -> str:
    """What to put in a node's place so that the DLA runs it; empty for a node that it runs, and where nothing is known.

    Source:   facts.dla_layers.REWRITES
    Measured: tests.driving.test_dla_placement.test_a_rewrite_says_what_the_dla_has

    >>> rewrite(GraphNode(name="root", op="Sqrt"))
    'Pow with 0.5'
    """
    return dla_layers.REWRITES.get(node.op, "") if fallback(node) else ""


def loadables(nodes: Sequence[GraphNode]) -> int:
    """The fewest pieces of a network that go to the DLA, when what it lacks runs on the GPU.

    Formula:  turns = the longest path counted in changes of engine; the fewest turns of the DLA, whoever begins
    Assumes:  nodes that wait for none of each other may share a piece; the builder may make more
    Source:   by definition: a piece may not wait for itself by way of the GPU
    Counted:  simulate.driving.dla_turns.fewest
    """
    return min(_turns(nodes, dla_begins=begins) for begins in (True, False))


def with_fallback_s(
    *, alone_s: float, pieces: int, gpu_s: float, hand_over_s: float, tensor_bytes: float, memory_bytes_per_s: float
) -> float:
    """Seconds of a network on the DLA when some of its layers run on the GPU.

    Formula:  alone + pieces * (gpu + 2 * (hand-over + 2 * tensor / bandwidth))
    Units:    alone: without fall-back; pieces: runs of layers on the GPU; gpu: one of them; hand-over: one change of
              engine, without its bytes
    Assumes:  one frame at a time; a piece lies between two of the DLA; each change writes a tensor in one layout and
              reads it in another; the DLA's own layers take as long as before, and neither engine has other work
    Source:   by definition
    Counted:  simulate.driving.dla_turns.chain_s

    >>> round(
    ...     with_fallback_s(
    ...         alone_s=4e-3, pieces=8, gpu_s=30e-6, hand_over_s=200e-6, tensor_bytes=5e6, memory_bytes_per_s=200e9
    ...     ),
    ...     6,
    ... )
    0.00824
    """
    checks.count(pieces=pieces)
    checks.positive(alone_s=alone_s, gpu_s=gpu_s, memory_bytes_per_s=memory_bytes_per_s)
    checks.non_negative(hand_over_s=hand_over_s, tensor_bytes=tensor_bytes)
    return alone_s + pieces * (gpu_s + 2 * (hand_over_s + 2 * tensor_bytes / memory_bytes_per_s))


def _turns(nodes: Sequence[GraphNode], *, dla_begins: bool) -> int:
    """Engines take turns and each does all that is ready: how many turns the DLA has then."""
    turns: list[int] = []
    for node in nodes:
        mine = 0 if (not fallback(node)) == dla_begins else 1  # parity of this engine's turns
        ready = max((turns[place] for place in node.after), default=mine)
        turns.append(ready if ready % 2 == mine else ready + 1)
    return len({turn for turn, node in zip(turns, nodes, strict=True) if not fallback(node)})
