"""Expected passes: what one micro-batch takes in a layer, and in the head with its loss, by measured kernels.

Source: operations/expected_times.py and operations/attention_kernels.py (kernels); models/transformer.py (bytes)
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from threeloops.facts.kernel_times import DELTA_SCAN, MATMUL, SIZES, STATE_SCAN, kernel_table
from threeloops.models.architecture import Attention, Layer, MoeMlp
from threeloops.models.forward_step import VECTOR, Op
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.operations.attention import attended_pairs
from threeloops.operations.attention_kernels import kernel_rates
from threeloops.operations.expected_times import expected_product, expected_scan, kernel_work, stretched
from threeloops.operations.recorded_rates import copy_share, sustained_share
from threeloops.operations.roofline import time
from threeloops.training_loop.parallelism import product_rates
from threeloops.training_loop.parallelism.expert_biases import expert_bias_bytes
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.product_rates import Product
from threeloops.training_loop.parallelism.rank_layers import FOLLOW_TP, rank_ops, rank_state
from threeloops.training_loop.parallelism.software import LOSS_BYTES, UNFUSED, WIDE, Software

# Bytes of a backward pass over those of the forward pass, where they are not equal: a norm or a convolution reads its
# input and a gradient and writes one (3 for 2); a gate reads three and writes two (5 for 3), also one behind attention
# or a recurrent state; an activation reads two, writes one.
BACKWARD_BYTES = {
    "norm": 3 / 2,
    "convolution": 3 / 2,
    "gated": 5 / 3,
    "output_gate": 5 / 3,
    "activation": 3 / 2,
}
AGAIN = 5 / 4  # a fused backward pass multiplies queries and keys once more, beside its four products
# A scan keeps what it read and nothing of a chunk: backward it makes half of its products once more (scores and states
# of Mamba 2, what the delta rule writes and its states), beside the two for each.
SCAN_AGAIN = 5 / 4
SHORTEST = 64  # the shortest side of a product that was timed


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Seconds of one micro-batch in the mean layer, or in the head with its loss; FLOPs of its products."""

    products_s: tuple[float, float, float]  # forward, the input's gradient, the weights'
    attention_s: tuple[float, float]  # forward, backward
    vector_s: tuple[float, float]
    scan_s: tuple[float, float]
    best_products_s: float  # at the best rate that anybody reached
    best_attention_s: float
    best_scan_s: float
    slower: float  # of a product under load: what it takes beyond its time in the table, as a share
    again_s: float = 0.0  # of the forward pass, what the backward pass runs once more

    @property
    def load_s(self) -> tuple[float, float]:
        """What the clock adds to products, forward and backward."""
        forward, *backward = self.products_s
        return self.slower * forward, self.slower * sum(backward)

    @property
    def forward_s(self) -> float:
        return self.products_s[0] + self.load_s[0] + self.attention_s[0] + self.scan_s[0] + self.vector_s[0]

    @property
    def backward_s(self) -> float:
        rest = self.attention_s[1] + self.scan_s[1] + self.vector_s[1]
        return sum(self.products_s[1:]) + self.load_s[1] + rest


def copied_bytes_per_s(cluster: Cluster) -> float:
    """What a copy reaches of the memory's rate."""
    return cluster.memory_bytes_per_s * copy_share()


def layer_pass(layout: Layout, job: Job, cluster: Cluster, part: str, format: str, software: Software) -> Pass:
    """The mean layer of the model on one rank."""
    rows = layout.micro_batch * job.sequence / layout.cp
    products, attention, vector, scan = [0.0] * 3, [0.0] * 2, [0.0] * 2, [0.0] * 2
    best_products_s = best_attention_s = best_scan_s = again_s = 0.0
    slower = 1 / sustained_share(part, format) - 1
    for layer, count in job.model.groups:
        share = count / job.model.num_layers
        for one in product_rates.layer_products(layer, hidden=job.model.hidden, rows=rows, tp=layout.tp, ep=layout.ep):
            if one.role == "expert latent" and job.sequence_parallel:  # each rank projects its own tokens
                one = replace(one, rows=one.rows / layout.tp)
            took = _in_its_format_s(one, job, part, format, software)
            _add(products, took, share)
            again_s += share * (1 + slower) * took[0] * software.repeats_product(one.role)
            best_products_s += share * 3 * one.flops / cluster.gemm_flops_per_s
        if isinstance(layer.attention, DeltaState | StateSpace):
            forward_s, bound_s = _scan_s(layer.attention, layout, job, part)
            _add(scan, (forward_s, SCAN_AGAIN * 2 * forward_s), share)
            best_scan_s += share * 3 * bound_s
        elif layer.attention is not None:
            flops = _attention_flops(layer, layout, job)
            core = _attention_s(layer, flops, layout, job, cluster, part, software)
            _add(attention, core, share)
            again_s += share * core[0] * ("core_attn" in software.recomputes)
            best_attention_s += share * 3 * flops / cluster.attention_flops_per_s
        forward, backward, again = (
            moved / copied_bytes_per_s(cluster) for moved in _vector_bytes(layer, layout, job, software)
        )
        _add(vector, (forward, backward), share)
        again_s += share * again
    return Pass(
        products_s=(products[0], products[1], products[2]),
        attention_s=(attention[0], attention[1]),
        vector_s=(vector[0], vector[1]),
        scan_s=(scan[0], scan[1]),
        best_products_s=best_products_s,
        best_attention_s=best_attention_s,
        best_scan_s=best_scan_s,
        slower=slower,
        again_s=again_s,
    )


def _add(sums: list[float], some: Sequence[float], share: float) -> None:
    for place, value in enumerate(some):
        sums[place] += share * value


def head_pass(layout: Layout, job: Job, cluster: Cluster, part: str, software: Software) -> Pass:
    """The last product, in 16 bits, and the loss over its logits."""
    rows = layout.micro_batch * job.sequence / layout.cp
    one = Product(rows=rows, columns=job.model.vocab / layout.tp, inner=job.model.hidden)
    forward, inputs, weights = _product_s(one, part, WIDE)
    loss_s = LOSS_BYTES[software.loss] * one.rows * one.columns / copied_bytes_per_s(cluster)
    return Pass(
        products_s=(forward, inputs, weights),
        attention_s=(0.0, 0.0),
        vector_s=(0.0, loss_s),
        scan_s=(0.0, 0.0),
        best_products_s=3 * one.flops / cluster.attention_flops_per_s,
        best_attention_s=0.0,
        best_scan_s=0.0,
        slower=1 / sustained_share(part, WIDE) - 1,
    )


def _in_its_format_s(one: Product, job: Job, part: str, format: str, software: Software) -> tuple[float, float, float]:
    """A product in the mean layer: wide layers in 16 bits, all others in the format of its role."""
    wide = software.wide_layers / job.model.num_layers
    narrow_s = _product_s(one, part, software.format_of(one.role, otherwise=format))
    if not wide:
        return narrow_s
    wide_s = _product_s(one, part, WIDE)
    forward, inputs, weights = (
        (1 - wide) * narrow + wide * whole for narrow, whole in zip(narrow_s, wide_s, strict=True)
    )
    return forward, inputs, weights


@lru_cache(maxsize=65536)  # layouts of one model share most of their shapes
def _product_s(one: Product, part: str, format: str) -> tuple[float, float, float]:
    """Forward, the input's gradient, the weights': the same three lengths in other roles."""
    rows, columns, inner = (max(SHORTEST, round(size)) for size in (one.rows, one.columns, one.inner))
    if one.groups == 1:
        shapes = ((rows, columns, inner), (rows, inner, columns), (columns, inner, rows))
        forward, inputs, weights = (expected_product(part, m=m, n=n, k=k, format=format).seconds for m, n, k in shapes)
        return forward, inputs, weights
    each = max(1, round(one.rows / one.groups))
    return (
        _grouped_s(one.groups, (each, columns, inner), rows, part, format),
        _grouped_s(one.groups, (each, inner, columns), rows, part, format),
        _grouped_s(one.groups, (columns, inner, each), columns * one.groups, part, format),
    )


def _grouped_s(groups: float, shape: tuple[float, float, float], rows: float, part: str, format: str) -> float:
    """Products of one shape in one kernel: the bounds of all, at the share of their roof that one with all their rows
    reaches.
    """
    table = kernel_table(part, MATMUL, format)
    m, n, k = shape
    work = kernel_work(MATMUL, {"m": m, "n": n, "k": k}, format)
    bound = time(work, peak_flops_per_s=table.peak_flops_per_s, memory_bytes_per_s=table.rate_bytes_per_s)
    place = {"m": rows, "n": max(SHORTEST, n), "k": max(SHORTEST, k)}
    return stretched(table, bound_s=groups * bound.lower_bound_s, place=place).seconds


def _attention_flops(layer: Layer, layout: Layout, job: Job) -> float:
    """FLOPs of both products of attention in a forward pass, on one rank, for one micro-batch."""
    attention = layer.attending
    values, window = (
        (attention.head_dim, attention.window) if isinstance(attention, Attention) else (attention.value_head_dim, None)
    )
    pairs = attended_pairs(query_tokens=job.sequence, context_tokens=job.sequence, causal=job.causal, window=window)
    one = 2 * pairs * attention.num_heads * (attention.head_dim + values)
    return layout.micro_batch * one / (layout.tp * layout.cp)


def _attention_s(
    layer: Layer, flops: float, layout: Layout, job: Job, cluster: Cluster, part: str, software: Software
) -> tuple[float, float]:
    """Forward and backward; unfused attention is two batched products a pass, and passes over the whole square."""
    attention = layer.attending
    if software.attention == UNFUSED:
        if not isinstance(attention, Attention):
            raise ValueError(f"attention={UNFUSED!r} is counted for queries, keys and values, not for latent vectors")
        share = product_rates.scores_rate(attention, sequences=layout.micro_batch, sequence=job.sequence, tp=layout.tp)
        products_s = flops / cluster.attention_flops_per_s / share
        softmax_s = _softmax_bytes(layer, layout, job) / copied_bytes_per_s(cluster)
        return products_s + softmax_s, 2 * products_s + BACKWARD_BYTES["norm"] * softmax_s
    heads = max(1, attention.num_heads // layout.tp)
    kv_heads = attention.num_kv_heads // layout.tp if isinstance(attention, Attention) else heads
    rates = kernel_rates(
        software.attention,
        part,
        batch=layout.micro_batch,
        num_heads=heads,
        num_kv_heads=max(1, kv_heads),
        head_dim=attention.head_dim,
        tokens=job.sequence,
    )
    return flops / rates.forward_flops_per_s, AGAIN * 2 * flops / rates.backward_flops_per_s


def scan_family(state: DeltaState | StateSpace) -> str:
    """The family of kernels that scans for such a state."""
    return DELTA_SCAN if isinstance(state, DeltaState) else STATE_SCAN


def _scan_s(state: DeltaState | StateSpace, layout: Layout, job: Job, part: str) -> tuple[float, float]:
    """Forward seconds of a scan over one micro-batch on one rank, expected and at best."""
    family, mine = scan_family(state), rank_state(state, layout.tp)
    given = {"batch": layout.micro_batch, "tokens": job.sequence}
    sizes = {name: given[name] if name in given else getattr(mine, name) for name in SIZES[family]}
    one = expected_scan(part, family=family, **sizes)
    return one.seconds, one.bound_s


def _ops(layer: Layer, layout: Layout, job: Job, *, fused: bool) -> Iterator[Op]:
    """What one rank does outside of products, for one sequence."""
    return (op for op in rank_ops(layer, job, layout.tp, fused=fused) if op.unit == VECTOR)


def _vector_bytes(layer: Layer, layout: Layout, job: Job, software: Software) -> tuple[float, float, float]:
    """Bytes that all but products and softmax moves, forward, backward and forward again, for one micro-batch."""
    forward = backward = again = 0.0
    for op in _ops(layer, layout, job, fused=True):
        shared = layout.tp if job.sequence_parallel and op.name not in FOLLOW_TP else 1
        moved = layout.micro_batch * op.work.moved_bytes / (layout.cp * shared)
        forward += moved
        again += moved * software.repeats_operation(op.name)
        backward += moved * next((more for kind, more in BACKWARD_BYTES.items() if kind in op.name), 1.0)
    if software.bias_weight_bytes and isinstance(layer.mlp, MoeMlp) and layer.mlp.expert.bias:
        rows = layout.micro_batch * job.sequence * layer.mlp.top_k / (layout.cp * layout.tp)
        added = expert_bias_bytes(
            rows=rows,
            hidden=job.model.hidden,
            intermediate=layer.mlp.expert.intermediate,
            routing_bytes=software.bias_weight_bytes,
        )
        forward, backward = forward + added.forward, backward + added.backward
        again += added.activation * software.repeats_operation("expert_activation")
    return forward, backward, again


def _softmax_bytes(layer: Layer, layout: Layout, job: Job) -> float:
    moved = (op.work.moved_bytes for op in _ops(layer, layout, job, fused=False) if op.name == "attention_softmax")
    return layout.micro_batch * sum(moved) / layout.cp
