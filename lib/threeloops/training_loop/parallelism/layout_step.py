"""Layout step: the time of one training step under a layout, term by term.

Matrix products run at the rate that a GPU's best product reaches (or at what their shapes allow of it), everything
else at the speed of memory; both are divided by tp and cp. What tensor, context and expert groups send is waited for;
what replicas send runs beside the computing; the pipeline adds its bubble.

Source: Narayanan et al., 2021, arXiv:2104.04473, sections 2 and 3 (what a layout costs); the modules that count each
        part
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from threeloops.models.architecture import Attention, Layer
from threeloops.models.forward_step import VECTOR
from threeloops.models.model_flops import forward_flops
from threeloops.models.transformer import total
from threeloops.training_loop.memory.activation_kernels import KERNELS, Kernels
from threeloops.training_loop.memory.fit import stage_states
from threeloops.training_loop.memory.rank_states import ModelStates
from threeloops.training_loop.parallelism import layouts, pipelines, product_rates
from threeloops.training_loop.parallelism.group_traffic import GroupTraffic, group_traffic
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.rank_layers import FOLLOW_TP, rank_ops
from threeloops.training_loop.parallelism.step_time import StepTime

# The recomputed share of the forward pass, in the words of memory.fit.
_CORE, _LAYERS = "selective", "full"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutStep:
    """One step of the slowest rank, in seconds by cause. The parts add up to the step."""

    forward_backward_s: float  # kernels, without what is computed twice
    recompute_s: float
    tensor_s: float
    context_s: float
    expert_s: float  # what sticks out of it where the schedule overlaps it
    pipeline_s: float  # hops that nothing hides
    bubble_s: float
    data_s: float  # of the replicas' exchange, what sticks out from behind the computing
    optimiser_s: float
    hidden_data_s: float  # of the same exchange, what is hidden: not part of the step
    micro_batches: int

    @property
    def compute_s(self) -> float:
        return self.forward_backward_s + self.recompute_s

    @property
    def time(self) -> StepTime:
        """The same step in the terms that are used for every step."""
        return StepTime(
            compute_s=self.compute_s,
            overlappable_s=self.compute_s + self.data_s if self.data_s else min(self.compute_s, self.hidden_data_s),
            exposed_s=self.tensor_s + self.context_s + self.expert_s + self.pipeline_s,
            bubble_s=self.bubble_s,
            overhead_s=self.optimiser_s,
        )

    @property
    def parts(self) -> dict[str, float]:
        """Seconds by cause, in words."""
        return {
            "forward and backward passes": self.forward_backward_s,
            "recomputation": self.recompute_s,
            "tensor-parallel exchanges": self.tensor_s,
            "context-parallel exchanges": self.context_s,
            "expert exchanges": self.expert_s,
            "hops between stages": self.pipeline_s,
            "pipeline bubble": self.bubble_s,
            "exchange of gradients and weights": self.data_s,
            "optimiser": self.optimiser_s,
        }

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class PassTimes:
    """Seconds of one sequence's forward pass on one rank of a tensor and context group."""

    layer_s: float  # the mean layer
    core_s: float  # the part of it that is the core of attention
    head_s: float


def layout_step(layout: Layout, *, job: Job, cluster: Cluster) -> LayoutStep:
    """The step of a legal layout.

    Formula:  m micro-batches * (3 forward passes + what is recomputed) on the slowest stage; + exposed exchanges; +
              bubble; + what sticks out of the data-parallel exchange; + optimiser
    Assumes:  a backward pass costs two forward passes, half of it for the weights; the slowest stage has the most
              layers, or is the last, with the head; products of any size reach the cluster's rates, unless these
              go by shape; every expert gets its share of tokens. Only DualPipe hides expert exchanges, only 1F1B leaves
              hops uncovered. Gradients travel behind the backward pass of the last micro-batch, ZeRO-1's weights behind
              the first forward pass, stages 2 and 3 behind all passes; bucket latencies are neglected. The optimiser
              reads and writes each of its bytes once
    Raises:   ValueError for a batch that the layout does not divide; a layout that refusal() refuses in another way
              may give any number
    Counted:  simulate.training_loop.pipeline_schedules.run
    """
    m = layouts.micro_batches(layout, job=job)
    rates = shape_rates(layout, job=job) if cluster.rates_by_shape else (1.0, 1.0)
    once = pass_times(job=job, cluster=cluster, tp=layout.tp, cp=layout.cp, rates=rates)
    forward_s, again_s = _stage_passes(layout, job, once)
    sent = group_traffic(layout, job=job, cluster=cluster, num_layers=layouts.stage_layers(layout, job=job))
    exposed_s = sent.tensor_s + sent.context_s + (0 if layout.schedule == "dualpipe" else sent.expert_s)
    overlapped_s = (
        max(3 * forward_s + again_s, sent.expert_s) + sent.tensor_s + sent.context_s
        if layout.schedule == "dualpipe"
        else None
    )
    idle = pipelines.bubble(
        schedule=layout.schedule,
        pp=layout.pp,
        micro_batches=m,
        forward_s=forward_s + exposed_s / 3,
        input_gradient_s=forward_s + again_s + exposed_s * 2 / 3,
        weight_gradient_s=forward_s,
        chunks=layout.chunks,
        overlapped_s=overlapped_s,
    )
    backward_s = 2 * forward_s + again_s
    data_s, hidden_s = exchanged_s(layout, sent, micro_batches=m, forward_s=forward_s, backward_s=backward_s)
    return LayoutStep(
        forward_backward_s=m * 3 * forward_s,
        recompute_s=m * again_s,
        tensor_s=m * sent.tensor_s,
        context_s=m * sent.context_s,
        expert_s=m
        * (max(0.0, sent.expert_s - 3 * forward_s - again_s) if layout.schedule == "dualpipe" else sent.expert_s),
        pipeline_s=m * uncovered_hops_s(layout, sent.hop_s),
        bubble_s=idle.idle_s,
        data_s=data_s,
        hidden_data_s=hidden_s,
        optimiser_s=optimiser_s(layout, job, cluster),
        micro_batches=m,
    )


@lru_cache(maxsize=4096)
def pass_times(*, job: Job, cluster: Cluster, tp: int, cp: int, rates: tuple[float, float]) -> PassTimes:
    """Forward time of one sequence, by layer and head, on one of tp * cp ranks.

    Formula:  matrix FLOPs / (tp * cp) / achieved rate + bytes of everything else / memory rate; a recurrent
              layer's scan by its FLOPs or its bytes, whichever take longer
    Units:    rates are the shares of the cluster's rates that products of layers and of attention's core reach
    Assumes:  tp and cp divide all products; norms, sums and residuals are divided by tp only with sequence
              parallelism; a product is as fast in all passes
    Measured: measure.inner_loop.flops.counted_flops
    """
    kernels = job.kernels if isinstance(job.kernels, Kernels) else KERNELS[job.kernels]
    fused = kernels.attention == "flash"
    flops = forward_flops(job.model, batch=1, sequence=job.sequence, causal=job.causal, logits="all")
    num_layers, ranks = job.model.num_layers, tp * cp
    layers_rate, core_rate = rates
    core_s = flops.attention / num_layers / ranks / cluster.attention_flops_per_s / core_rate
    vector_bytes, softmax_bytes, scan_s = 0.0, 0.0, 0.0
    for layer, count in job.model.groups:
        vector, softmax = _vector_bytes(layer, job, tp, cp, fused)
        vector_bytes += vector * count / num_layers
        softmax_bytes += softmax * count / num_layers
        scan_s += _scan_s(layer, job, cluster, tp, cp) * count / num_layers
    core_s += softmax_bytes / cluster.memory_bytes_per_s
    return PassTimes(
        layer_s=flops.projections / num_layers / ranks / cluster.gemm_flops_per_s / layers_rate
        + vector_bytes / cluster.memory_bytes_per_s
        + scan_s
        + core_s,
        core_s=core_s,
        # heads stay in the wider format where layers go narrower
        head_s=flops.head / ranks / cluster.attention_flops_per_s,
    )


def shape_rates(layout: Layout, *, job: Job) -> tuple[float, float]:
    """Shares of the best product's rate that the products of the layers reach by their shapes, and those of
    attention's core.

    Assumes:  fused attention is no product, and keeps its rate
    """
    return _rates(job, layout.micro_batch / layout.cp, layout.tp, layout.ep)


# layouts that differ in nothing else have the same shapes
@lru_cache(maxsize=4096)
def _rates(job: Job, sequences: float, tp: int, ep: int) -> tuple[float, float]:
    rows = sequences * job.sequence
    products = [
        one
        for layer, count in job.model.groups
        for one in product_rates.layer_products(layer, hidden=job.model.hidden, rows=rows, tp=tp, ep=ep) * count
    ]
    kernels = job.kernels if isinstance(job.kernels, Kernels) else KERNELS[job.kernels]
    attention, core = job.model.groups[0][0].attention, 1.0
    if kernels.attention != "flash" and isinstance(attention, Attention):
        core = product_rates.scores_rate(attention, sequences=sequences, sequence=job.sequence, tp=tp)
    return product_rates.training_rate(products), core


def _scan_s(layer: Layer, job: Job, cluster: Cluster, tp: int, cp: int) -> float:
    """Seconds of a recurrent layer's scan for one sequence on one rank, at best; 0 where a layer has none."""
    scans = [op.work for op in rank_ops(layer, job, tp, fused=True) if op.name == "state_scan"]
    return sum(
        max(one.flops / cluster.attention_flops_per_s, one.moved_bytes / cluster.memory_bytes_per_s) / cp
        for one in scans
    )


def _vector_bytes(layer: Layer, job: Job, tp: int, cp: int, fused: bool) -> tuple[float, float]:
    """Bytes that one rank moves for one sequence outside of matrix products: of everything but softmax, and of
    softmax.
    """
    ops = rank_ops(layer, job, tp, fused=fused)
    split = [op for op in ops if op.unit == VECTOR and op.name in FOLLOW_TP]
    stream = [op for op in ops if op.unit == VECTOR and op.name not in FOLLOW_TP and op.name != "attention_softmax"]
    softmax = [op for op in ops if op.name == "attention_softmax"]
    split_bytes, stream_bytes, softmax_bytes = (
        total(some).moved_bytes if some else 0.0 for some in (split, stream, softmax)
    )
    return (split_bytes + stream_bytes / (tp if job.sequence_parallel else 1)) / cp, softmax_bytes / cp


def _stage_passes(layout: Layout, job: Job, once: PassTimes) -> tuple[float, float]:
    """Forward time of one micro-batch on the slowest stage, and what its backward pass computes again."""
    most, last = layouts.stage_layers(layout, job=job), layouts.last_layers(layout, job=job)
    forward_s = max(most * once.layer_s, last * once.layer_s + once.head_s)
    again_s = {_CORE: most * once.core_s, _LAYERS: most * once.layer_s}.get(layout.recompute, 0.0)
    return layout.micro_batch * forward_s, layout.micro_batch * again_s


def uncovered_hops_s(layout: Layout, hop_s: float) -> float:
    """Per micro-batch, what 1F1B waits for hops in the middle of a long step."""
    if layout.schedule != "1f1b" or not hop_s:
        return 0.0
    return pipelines.one_f_one_b_pace_s(pass_s=1.0, pp=layout.pp, send_s=hop_s) - 1.0


def exchanged_s(
    layout: Layout, sent: GroupTraffic, *, micro_batches: int, forward_s: float, backward_s: float
) -> tuple[float, float]:
    """Seconds of the replicas' exchange that are waited for, and those that hide behind the computing."""
    gradients, weights = hiding_s(layout, micro_batches=micro_batches, forward_s=forward_s, backward_s=backward_s)
    out = max(0.0, sent.gradients_s - gradients) + max(0.0, sent.weights_s - weights)
    return out, sent.gradients_s + sent.weights_s - out


def hiding_s(layout: Layout, *, micro_batches: int, forward_s: float, backward_s: float) -> tuple[float, float]:
    """Seconds of computing that gradients can hide behind, and weights.

    Formula:  gradients: one backward pass, from ZeRO stage 2 all of them; weights: one forward pass, at stage 3 all
              passes
    Counted:  tests.training_loop.test_layouts.test_exchanges_hide_behind_the_passes_in_which_they_run
    """
    return (
        backward_s if layout.zero_stage < 2 else micro_batches * backward_s,
        forward_s if layout.zero_stage < 3 else micro_batches * (forward_s + backward_s),
    )


def optimiser_s(layout: Layout, job: Job, cluster: Cluster) -> float:
    """To read weights, gradients and state, and to write weights and state: each byte of a rank's share once."""
    shared_out = 3 if layout.zero_stage else 0
    recipe = layouts.training(layout, job=job, zero_stage=layout.zero_stage).used_recipe
    if shared_out not in recipe.zero_stages:
        job = replace(job, recipe=recipe.at_other_stages)
    states: ModelStates = stage_states(layouts.training(layout, job=job, zero_stage=shared_out), stage=0)
    return (2 * states.weights_bytes + states.gradients_bytes + 2 * states.optimiser_bytes) / cluster.memory_bytes_per_s
