"""Exchange bytes: what a token's vector weighs on the way to its experts and back, and over which links it goes.

Two ways are in use. One copy for each node that a token needs, handed on inside the node ("normal", for prefill), or
one copy for each expert, straight to its GPU ("low-latency", for decode).

>>> there, back = vector_bytes(7168, bits=8, elements_per_scale=128, scale_bytes=4), vector_bytes(7168, bits=16)
>>> there, back
(7392.0, 14336.0)
>>> ranks = {"ranks": 64, "ranks_per_node": 8}
>>> one = node_copies(num_experts=256, top_k=8, node_limit=4, **ranks)
>>> round(one.network, 2), choice_copies(top_k=8, **ranks).network
(3.18, 7.0)

Source: DeepSeek-AI, DeepEP, docs/legacy.md, 2025 (both ways); DeepSeek-V3, 2024, arXiv:2412.19437, section 3.2.2 (four
        nodes a token at most)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.training_loop.parallelism.expert_load import visited_groups
from threeloops.units import BITS_PER_BYTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """How often a token's vector travels on average, in one direction."""

    network: float  # between nodes
    inside: float  # between two GPUs of a node


def vector_bytes(
    hidden: int, *, bits: int, elements_per_scale: int = 0, scale_bytes: int = 0, header_bytes: int = 0
) -> float:
    """Bytes of one vector as it is sent.

    Formula:  hidden * bits / 8 + hidden / elements_per_scale * scale_bytes + header_bytes
    Units:    elements_per_scale 0: none; header_bytes: what says whose vector it is, where each is a message of its own
    Raises:   ValueError where a scale would cover a part of its elements only
    Source:   DeepSeek-AI, DeepEP, tests/legacy/test_low_latency.py, 2025 (FP8 with four bytes for 128, 16 bytes before)
    Counted:  simulate.product_loop.experts.token_copies.written_bytes

    >>> vector_bytes(7168, bits=8, elements_per_scale=128, scale_bytes=4, header_bytes=16)
    7408.0
    """
    checks.count(hidden=hidden, bits=bits)
    checks.count(at_least=0, elements_per_scale=elements_per_scale, scale_bytes=scale_bytes, header_bytes=header_bytes)
    if bool(elements_per_scale) != bool(scale_bytes):
        raise ValueError(
            f"elements_per_scale={elements_per_scale} and scale_bytes={scale_bytes} go together: give both or neither"
        )
    scales = 0
    if elements_per_scale:
        checks.divides(part="elements_per_scale", part_value=elements_per_scale, whole="hidden", whole_value=hidden)
        scales = hidden // elements_per_scale
    return hidden * bits / BITS_PER_BYTE + scales * scale_bytes + header_bytes


def choice_copies(*, top_k: int, ranks: int, ranks_per_node: int) -> Copies:
    """One copy for each chosen expert, straight to its GPU.

    Formula:  network: top_k * (1 - 1 / nodes); inside: top_k * (1 / nodes - 1 / ranks)
    Assumes:  every rank is as likely as any other to hold a chosen expert; what stays on a GPU is not sent; what stays
              in a node goes over its NVLink
    Source:   DeepSeek-AI, DeepEP, docs/legacy.md, 2025 (low-latency kernels)
    Counted:  simulate.product_loop.experts.token_copies.walk
    """
    nodes = _nodes(ranks, ranks_per_node)
    checks.count(top_k=top_k)
    return Copies(network=top_k * (1 - 1 / nodes), inside=top_k * (1 / nodes - 1 / ranks))


def node_copies(
    *, num_experts: int, top_k: int, ranks: int, ranks_per_node: int, node_limit: int | None = None
) -> Copies:
    """One copy for each other node with a chosen expert, to the GPU there that has the same place in its node; from
    there one for each further GPU that holds a chosen expert.

    Formula:  network: visited nodes * (1 - 1 / nodes); inside: visited ranks * (1 - 1 / ranks of a node)
    Units:    node_limit: at most so many nodes a token, None: no limit
    Assumes:  the nodes of a token are as likely as any others, and so are its experts among those that these nodes
              hold
    Raises:   ValueError where the ranks divide nodes or experts unevenly, or for a limit above the nodes
    Source:   DeepSeek-V3, 2024, arXiv:2412.19437, section 3.2.2; visited_groups counts nodes and ranks
    Counted:  simulate.product_loop.experts.token_copies.walk
    """
    nodes = _nodes(ranks, ranks_per_node)
    checks.divides(part="ranks", part_value=ranks, whole="num_experts", whole_value=num_experts)
    open_nodes = nodes if node_limit is None else node_limit
    checks.count(node_limit=open_nodes)
    if open_nodes > nodes:
        raise ValueError(f"node_limit={open_nodes} is more than the nodes, of which there are {nodes}")
    asked = {"num_experts": num_experts * open_nodes // nodes, "top_k": top_k}
    return Copies(
        network=visited_groups(**asked, groups=open_nodes) * (1 - 1 / nodes),
        inside=visited_groups(**asked, groups=open_nodes * ranks_per_node) * (1 - 1 / ranks_per_node),
    )


def exchange_floor_s(
    copies: Copies, *, tokens: int, sent_bytes: float, card_bytes_per_s: float, link_bytes_per_s: float
) -> float:
    """Seconds that the slower of the two links needs for one direction: a bound, no prediction.

    Formula:  tokens * sent_bytes * max(network copies / card rate, inside copies / link rate)
    Units:    tokens of one rank; rates one way, of one rank's network card and of its links inside the node
    Assumes:  balanced load, so a rank receives what it sends; no latency, no step of the kernel; both links at once
    Source:   by definition: bytes over the rate of the link that they cross
    Counted:  simulate.product_loop.experts.token_copies.walk

    >>> low = choice_copies(top_k=8, ranks=128, ranks_per_node=8)
    >>> rates = {"card_bytes_per_s": 50e9, "link_bytes_per_s": 160e9}
    >>> round(exchange_floor_s(low, tokens=128, sent_bytes=7408, **rates) * 1e6)  # microseconds; 192 were measured
    142
    """
    checks.count(tokens=tokens)
    checks.positive(sent_bytes=sent_bytes, card_bytes_per_s=card_bytes_per_s, link_bytes_per_s=link_bytes_per_s)
    return tokens * sent_bytes * max(copies.network / card_bytes_per_s, copies.inside / link_bytes_per_s)


def _nodes(ranks: int, ranks_per_node: int) -> int:
    checks.count(ranks=ranks, ranks_per_node=ranks_per_node)
    checks.divides(part="ranks_per_node", part_value=ranks_per_node, whole="ranks", whole_value=ranks)
    return ranks // ranks_per_node
