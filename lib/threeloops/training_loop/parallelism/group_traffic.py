"""Group traffic: seconds that the groups of a layout spend sending, on links of two speeds.

A group that stays inside a domain of fast links runs at their rate. One that leaves it crosses with all the network
cards of its members in a domain: a ring of 64 ranks, eight to a node, puts an eighth of its bytes on each card.

Source: traffic (bytes); Narayanan et al., 2021, arXiv:2104.04473, section 3 (which group sends over what);
        Lamy-Poirier, 2022, arXiv:2211.05953
(gradients that leave once per run of micro-batches through a chunk)
"""

from dataclasses import dataclass
from math import comb

from threeloops import checks
from threeloops.models.architecture import Attention, LatentAttention, Layer, Model, MoeMlp
from threeloops.training_loop.memory.fit import held_buckets
from threeloops.training_loop.memory.rank_states import expert_data_parallel, rank_buckets
from threeloops.training_loop.memory.recipes import Recipe
from threeloops.training_loop.network.traffic import (
    data_parallel_traffic,
    expert_parallel_traffic,
    tensor_parallel_traffic,
)
from threeloops.training_loop.parallelism import layouts, pipelines
from threeloops.training_loop.parallelism.context_parallel import ring_traffic
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout

_COMBINE_BYTES = 2  # results travel in 16 bits where tokens went out in 8: DeepSeek-V3, section 3.3.3
_FULL = "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTraffic:
    """Seconds on the links: of one micro-batch, and for gradients and weights of one step."""

    tensor_s: float
    context_s: float
    expert_s: float
    hop_s: float  # one tensor across one boundary between stages
    gradients_s: float
    weights_s: float


def group_traffic(layout: Layout, *, job: Job, cluster: Cluster, num_layers: int) -> GroupTraffic:
    """What every group sends, for a rank with this many layers.

    Formula:  bytes of traffic.* over the rate of the group; tensor groups also alpha * (tp - 1) per half of each
              exchange
    Assumes:  full recompute repeats the forward exchanges; experts' tokens cross between domains while others move
              inside, so that the slower of the two counts; tokens of narrower experts travel at their width; with
              nodes_per_token, a token crosses once per domain and is passed on inside, with dispatches_once, once to
              each domain that holds one of its experts; under an interleaved schedule ZeRO-2 adds up a chunk's
              gradients over the pp micro-batches that pass it in a row; the tensor ranks of a stage split what they
              hand on; weights travel as they are stored, under FSDP2's mixed precision as they are gathered
    Counted:  simulate.training_loop.traffic.zero_step
    """
    return GroupTraffic(
        tensor_s=_tensor_s(layout, job, cluster, num_layers),
        context_s=_context_bytes(layout, job, num_layers)
        / group_bytes_per_s(cluster, size=layout.cp, stride=layout.tp),
        expert_s=_expert_s(layout, job, cluster, num_layers),
        hop_s=_hop_s(layout, job, cluster),
        **_data_s(layout, job, cluster),
    )


def group_bytes_per_s(cluster: Cluster, *, size: int, stride: int) -> float:
    """What one member of a group sends per second in a ring over all members, one way.

    Formula:  efficiency * fast inside a domain; else efficiency * min(fast, slow * members in a domain)
    Assumes:  the ring enters and leaves a domain once per network card, on rings of their own (NCCL's channels)
    Counted:  drills.parallel_layout.choices.CROSSING
    """
    inside = layouts.members_in_domain(size=size, stride=stride, domain_gpus=cluster.domain_gpus)
    fast = cluster.link_efficiency * cluster.fast_bytes_per_s_one_way
    if size <= inside:
        return fast
    return min(fast, cluster.link_efficiency * cluster.slow_bytes_per_s_one_way * inside)


def _tensor_s(layout: Layout, job: Job, cluster: Cluster, num_layers: int) -> float:
    if layout.tp == 1:
        return 0.0
    sent = tensor_parallel_traffic(
        tokens=layout.micro_batch * job.sequence // layout.cp,
        hidden=job.model.hidden,
        num_layers=num_layers,
        tp=layout.tp,
        bytes_per_element=job.bytes_per_element,
        sequence_parallel=job.sequence_parallel,
        regather_input=job.sequence_parallel,
    )
    again = 1 if layout.recompute == _FULL else 0
    halves = 4 * num_layers * (2 + again) + (2 * num_layers if job.sequence_parallel else 0)
    moved = sent.total_bytes + again * sent.forward_bytes
    seconds = moved / group_bytes_per_s(cluster, size=layout.tp, stride=1) + halves * (layout.tp - 1) * cluster.alpha_s
    return blocks_share(job.model) * seconds


def blocks_share(model: Model) -> float:
    """Sub-blocks of a model's layers, whose outputs a tensor group sums up, over the two of a usual layer.

    >>> from threeloops.models.catalogue import model as catalogued
    >>> blocks_share(catalogued("llama-3-8b")), blocks_share(catalogued("nemotron-h-56b"))
    (1.0, 0.5)
    """
    blocks = sum(count * ((layer.attention is not None) + (layer.mlp is not None)) for layer, count in model.groups)
    return blocks / (2 * model.num_layers)


def _context_bytes(layout: Layout, job: Job, num_layers: int) -> float:
    if layout.cp == 1:
        return 0.0
    return (
        num_layers
        * sum(_layer_context_bytes(layer, layout, job) * count for layer, count in job.model.groups)
        / job.model.num_layers
    )


def _layer_context_bytes(layer: Layer, layout: Layout, job: Job) -> float:
    if layer.attention is None:
        return 0.0
    sent = ring_traffic(
        tokens_per_rank=layout.micro_batch * job.sequence // layout.cp,
        kv_dim=_kv_dim(layer.attending, layout.tp),
        cp=layout.cp,
        bytes_per_element=job.bytes_per_element,
        bytes_per_gradient=job.bytes_per_element,
    )
    return sent.total_bytes + (sent.forward_bytes if layout.recompute == _FULL else 0)


def _kv_dim(attention: Attention | LatentAttention, tp: int) -> int:
    """Width of the keys that attention needs of every other rank; latent vectors, keys and values in one, travel
    unexpanded.
    """
    if isinstance(attention, LatentAttention):
        return (attention.kv_rank + attention.rope_head_dim) // 2
    return max(1, attention.num_kv_heads // tp) * attention.head_dim


def _expert_s(layout: Layout, job: Job, cluster: Cluster, num_layers: int) -> float:
    """Seconds of all-to-alls per micro-batch, forward and backward."""
    experts = job.experts
    if experts is None or layout.ep == 1:
        return 0.0
    moe_share = sum(count for layer, count in job.model.groups if isinstance(layer.mlp, MoeMlp)) / job.model.num_layers
    moe_layers = max(1, round(num_layers * moe_share))
    inside = layouts.members_in_domain(size=layout.ep, stride=job.expert_tp, domain_gpus=cluster.domain_gpus)
    domains = -(-layout.ep // inside)
    tokens = layout.micro_batch * job.sequence // (layout.cp * layout.tp) * job.expert_tp
    mean_bytes = (job.dispatch_bytes + _COMBINE_BYTES) / 2

    def sent(copies: int, ranks: int) -> float:
        one = expert_parallel_traffic(
            tokens_per_rank=tokens,
            hidden=experts.latent or job.model.hidden,
            top_k=copies,
            num_moe_layers=moe_layers,
            ep=ranks,
            bytes_per_element=mean_bytes,
        )
        return one.total_bytes + (one.forward_bytes if layout.recompute == _FULL else 0)

    copies: float = min(experts.top_k, job.nodes_per_token or experts.top_k)
    if job.dispatches_once:
        copies = min(copies, domains_met(num_experts=experts.num_experts, top_k=experts.top_k, domains=domains))
    # A token whose experts may sit in a few domains only crosses once for each of them; without such a limit, once
    # for each expert, unless its dispatcher sends it to a domain once.
    crossing = copies * sent(1, domains)
    within = sent(experts.top_k, inside)
    return (
        max(crossing / cluster.slow_bytes_per_s_one_way, within / cluster.fast_bytes_per_s_one_way)
        / cluster.link_efficiency
    )


def domains_met(*, num_experts: int, top_k: int, domains: int) -> float:
    """Different domains in which a token has experts, in the mean.

    Formula:  domains * (1 - C(num_experts - num_experts / domains, top_k) / C(num_experts, top_k))
    Assumes:  every choice of top_k experts is equally likely; domains hold equal numbers of them
    Raises:   ValueError where domains do not divide the experts
    Source:   by definition
    Counted:  tests.training_loop.test_layouts.test_domains_of_a_token_are_counted_over_every_choice

    >>> round(domains_met(num_experts=512, top_k=22, domains=8), 2)  # not 22 copies on the network, fewer than eight
    7.6
    """
    checks.divides(part="domains", part_value=domains, whole="num_experts", whole_value=num_experts)
    return domains * (1 - comb(num_experts - num_experts // domains, top_k) / comb(num_experts, top_k))


def _hop_s(layout: Layout, job: Job, cluster: Cluster) -> float:
    if layout.pp == 1:
        return 0.0
    tokens = job.sequence // layout.cp
    tensor = pipelines.boundary_bytes(
        micro_batch=layout.micro_batch,
        sequence=tokens,
        hidden=job.model.hidden,
        bytes_per_element=job.bytes_per_element,
    )
    stride = layout.tp * layout.cp * layout.dp  # from a stage to the next, which is outermost
    rate = cluster.fast_bytes_per_s_one_way if 2 * stride <= cluster.domain_gpus else cluster.slow_bytes_per_s_one_way
    return tensor / layout.tp / (cluster.link_efficiency * rate) + cluster.alpha_s


def _data_s(layout: Layout, job: Job, cluster: Cluster) -> dict[str, float]:
    """Gradients and weights of the first stage, dense parameters and experts each in their own group."""
    held = held_buckets(layouts.training(layout, job=job, zero_stage=0), stage=0)
    mine = rank_buckets(held, tp=layout.tp, pp=1, ep=layout.ep, expert_tp=job.expert_tp)
    experts = mine.expert_matrices + mine.expert_others
    pairs = 2 if layout.schedule == "dualpipe" else 1  # the same stage on two ranks of a pipeline
    stage_ranks = layout.dp * layout.cp
    sent = [_exchange_s(layout, job, cluster, mine.total - experts, pairs * stage_ranks, layout.tp)]
    if experts:
        replicas = expert_data_parallel(dp=stage_ranks, tp=layout.tp, ep=layout.ep, expert_tp=job.expert_tp)
        sent.append(_exchange_s(layout, job, cluster, experts, pairs * replicas, layout.ep * job.expert_tp))
    return {"gradients_s": sum(gradients for gradients, _ in sent), "weights_s": sum(weights for _, weights in sent)}


def _exchange_s(
    layout: Layout, job: Job, cluster: Cluster, num_parameters: float, size: int, stride: int
) -> tuple[float, float]:
    if size == 1:
        return 0.0, 0.0
    recipe: Recipe = layouts.training(layout, job=job, zero_stage=0).used_recipe
    gathered = recipe.gathered_weight_bytes
    sent = data_parallel_traffic(
        zero_stage=layout.zero_stage,
        num_parameters=num_parameters,
        dp=size,
        bytes_per_gradient=recipe.others.gradient_bytes,
        bytes_per_parameter=recipe.others.weight_bytes if gathered is None else gathered,
        micro_batches=_rounds(layout, job),
    )
    rate = group_bytes_per_s(cluster, size=size, stride=stride)
    return sent.gradient_bytes / rate, sent.parameter_bytes / rate


def _rounds(layout: Layout, job: Job) -> int:
    """How often gradients leave in a step where ZeRO keeps no more than a shard: after each micro-batch, or,
    interleaved, after a chunk's run of pp of them.
    """
    count = layouts.micro_batches(layout, job=job)
    return max(1, count // layout.pp) if layout.schedule == "interleaved" and layout.zero_stage == 2 else count
