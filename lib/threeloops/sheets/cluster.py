"""Closed forms for a cluster: eight limits, each in two lines, with what they say of H100s.

Words stand here; every figure in a last column was computed when the table was made, and a test refuses a figure that
is typed.
"""

import functools
from typing import Any

from threeloops.facts.hardware import part
from threeloops.models import catalogue, parameters
from threeloops.operations import roofline
from threeloops.sheets.layout import Table
from threeloops.training_loop.parallelism import cluster_limits as limits

GPUS, BYTES = 8, 2  # of a node; of a number in 16 bits
FEW, MANY = 2, 500_000  # nodes: (N − 1)/N is a half, and one
MODEL, STAGES, MICRO_BATCHES = "llama-3-70b", 8, 32
EXPERTS, TOP_K, RANKS, FEW_TOKENS = 256, 8, 64, 512  # of a layer as DeepSeek-V3 has it, over ranks
HEAD = ("what", "computing against sending", "closed form", "H100s, InfiniBand NDR", "beware")
# F: FLOP/s of a GPU. W: its rate one way, NVLink inside a node and a card each between. b: bytes of a number.
ROWS = (
    (
        "Tokens per GPU that hide the gradients, inside a node",
        "backward 4 P t / F; ring 2 (g − 1)/g × b P / W",
        "t = F/W × b/2 × (g − 1)/g",
        "{inside}",
        "P cancels: a larger model needs as many",
    ),
    (
        "The same over N nodes of g GPUs",
        "after the sums in the node each GPU sends 2 (N − 1)/N × b P / g",
        "t = F/W × b/2 × (N − 1)/(N g)",
        "{few_nodes} nodes: {few}; many: {many}",
        "with two nodes the cards need half as many tokens as with many: there NVLink decides",
    ),
    (
        "The same with experts kept by every rank",
        "k/E of the FLOPs for all of the gradients",
        "t × E/k",
        "{top_k} of {experts}, many nodes: {mixture}",
        "dealing the experts out to ranks removes E/k and adds an all-to-all",
    ),
    (
        "How far a layer may be cut (tensor parallelism)",
        "6 P t / F; four all-reduces, 8 (n − 1) × t h b / W",
        "n = 1 + 3 P / (4 h b) × W/F",
        "Llama 3 70B: {tensor_inside} on NVLink, {tensor_between} on a card",
        "t cancels: more tokens do not help; nothing hides a plain all-reduce",
    ),
    (
        "Best split between FSDP and tensor parallelism, on the same links",
        "shards 3 P / n; slices 8 t h (n − 1)",
        "n = √(3 P / (8 t h))",
        "Llama 3 70B, {few_tokens} tokens a GPU: {split}",
        "slicing inside a node saves nothing between nodes: a node's cards carry P either way",
    ),
    (
        "When a pipeline beats FSDP",
        "sharded pass t*/t times its computing; pipeline 1 + (p − 1)/m",
        "below t* × m/(m + p − 1) tokens per GPU and gather",
        "{stages} stages, {micro_batches} micro-batches, many nodes: {pipeline}",
        "together they fight: sharding gathers again for each micro-batch",
    ),
    (
        "How wide an expert must be (expert parallelism)",
        "a copy: 6 h f FLOPs, and 2 (n − 1)/n × h b there and back",
        "f = b/3 × (n − 1)/n × F/W",
        "{ranks} ranks, 16 bits: {width_inside} on NVLink, {width_between} on cards",
        "t, h and k cancel; one copy per node, FP8 and a second micro-batch help",
    ),
    (
        "How many ranks fill an expert",
        "rows of an expert n t k / E; it needs the ridge point",
        "n = F / (bytes/s of the memory) × E / (t k)",
        "{few_tokens} tokens a GPU, {top_k} of {experts}: {filling}",
        "on average: the emptiest expert has fewer",
    ),
)
SOURCE = (
    "after Austin et al., How to Scale Your Model, 2025, jax-ml.github.io/scaling-book/gpus; worked out by"
    " training_loop.parallelism.cluster_limits"
)


@functools.cache
def values() -> dict[str, str]:
    """Name -> figure as it is printed."""
    h100, nvlink, card = part("h100-sxm5"), part("nvlink-4"), part("infiniband-ndr")
    peak, model = h100.peak_flops_per_s("bf16"), catalogue.model(MODEL)
    rates = {"inside": nvlink["bytes_per_s_one_way"], "between": card["bytes_per_s_one_way"]}
    block = parameters.layer_parameters(model.groups[0][0], hidden=model.hidden)
    one: dict[str, Any] = {"layer_parameters": block.total, "hidden": model.hidden}

    def tokens(nodes: int, num_experts: int = 1, top_k: int = 1) -> float:
        return limits.data_parallel_tokens(
            flops_per_s=peak,
            intra_bytes_per_s_one_way=rates["inside"],
            inter_bytes_per_s_one_way_per_rank=rates["between"],
            nodes=nodes,
            ranks_per_node=GPUS,
            bytes_per_gradient=BYTES,
            num_experts=num_experts,
            top_k=top_k,
        )

    split = limits.best_tensor_ranks(
        **one, tokens_per_gpu=FEW_TOKENS, sharded_bytes_per_s=rates["inside"], tensor_bytes_per_s=rates["inside"]
    )
    pipeline = limits.pipeline_break_even_tokens(sharded_tokens=tokens(MANY), pp=STAGES, micro_batches=MICRO_BATCHES)
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=h100["memory_bytes_per_s"])
    filling = limits.fewest_expert_ranks(rows=ridge, tokens_per_gpu=FEW_TOKENS, num_experts=EXPERTS, top_k=TOP_K)
    found = {
        "inside": f"{tokens(1):,.0f} tokens",
        "few_nodes": f"{FEW}",
        "few": f"{tokens(FEW):,.0f} tokens",
        "many": f"{tokens(MANY):,.0f} tokens",
        "experts": f"{EXPERTS}",
        "top_k": f"{TOP_K}",
        "mixture": f"{tokens(MANY, EXPERTS, TOP_K):,.0f} tokens",
        "few_tokens": f"{FEW_TOKENS}",
        "split": f"{split:.1f} GPUs",
        "stages": f"{STAGES}",
        "micro_batches": f"{MICRO_BATCHES}",
        "pipeline": f"{pipeline:,.0f} tokens",
        "ranks": f"{RANKS}",
        "filling": f"{filling} GPUs",
    }
    for place, rate in rates.items():
        link: dict[str, Any] = {"flops_per_s": peak, "bytes_per_s_one_way": rate}
        width = limits.hiding_expert_width(**link, ep=RANKS, bytes_per_element=BYTES, matrices=3)
        found[f"width_{place}"] = f"{width:,.0f} columns"
        found[f"tensor_{place}"] = f"{limits.most_tensor_ranks(**one, **link, bytes_per_element=BYTES)} GPUs"
    return found


def table() -> Table:
    """The limits, with their figures put in."""
    known = values()
    return Table(
        title="Closed forms for a cluster",
        head=HEAD,
        rows=tuple(tuple(cell.format(**known) for cell in row) for row in ROWS),
        note=(
            "P: weights (with tensor parallelism, of one layer); h: hidden width; t: tokens per GPU, t*: those of the"
            " first two rows; F: FLOP/s of a GPU; W: its bytes/s one way; b: bytes of a number; g: GPUs of a node;"
            " n: ranks; k of E: experts of a token; f: columns of an expert; p: stages; m: micro-batches. All overlap"
            " perfectly, at the full peak: a real run needs more."
        ),
    )
