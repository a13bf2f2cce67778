"""Layouts: how the ranks of a cluster share one model, and who sits in which group.

Which layouts are legal says `layout_rules`. Ranks are numbered with the tensor group innermost, then context, then
data, and the pipeline outermost: the group that talks most sits closest together. Experts are dealt out inside a
stage, over its tensor, context and data ranks in the order of their numbers.

>>> layout = Layout(
...     dp=8, tp=8, pp=8, cp=1, ep=1, micro_batch=1, zero_stage=1, recompute="none", schedule="1f1b", chunks=1
... )
>>> layout.num_gpus, placement.coordinates(77, order=order(layout))
(512, {'tp': 5, 'cp': 0, 'dp': 1, 'pp': 1})

Source: Narayanan et al., 2021, arXiv:2104.04473, section 3 (degrees and their order); Megatron Core,
        parallel_state.py (order tp-cp-ep-dp-pp)
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Model, MoeMlp
from threeloops.models.parameter_buckets import layers_on_stage
from threeloops.training_loop.memory.activation_kernels import Kernels
from threeloops.training_loop.memory.recipes import Recipe
from threeloops.training_loop.memory.setup import Training
from threeloops.training_loop.parallelism import placement


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One way of sharing a model out."""

    dp: int
    tp: int
    pp: int
    cp: int
    ep: int  # ranks over which the experts of a layer are dealt out, cut from the tp * cp * dp ranks of a stage
    micro_batch: int  # sequences
    zero_stage: int
    recompute: str  # "none", "selective" (the core of attention), "full"
    schedule: str
    chunks: int  # pieces of the model per rank; 1 unless interleaved

    def __post_init__(self) -> None:
        checks.count(
            dp=self.dp, tp=self.tp, pp=self.pp, cp=self.cp, ep=self.ep, micro_batch=self.micro_batch, chunks=self.chunks
        )

    @property
    def num_gpus(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    @property
    def split(self) -> str:
        """The degrees above one, in words."""
        degrees = [f"{name}{size}" for name in ("tp", "cp", "ep", "pp", "dp") if (size := getattr(self, name)) > 1]
        return " ".join(degrees) or "one GPU"

    def __str__(self) -> str:
        schedule = f"{self.schedule} x{self.chunks}" if self.chunks > 1 else self.schedule
        return (
            f"{self.split}, micro-batch {self.micro_batch}, ZeRO-{self.zero_stage}, recompute {self.recompute},"
            f" {schedule}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the ranks run on: equal GPUs in equal domains of fast links, domains joined by slower ones."""

    num_gpus: int
    domain_gpus: int  # joined by the fast links
    peak_flops_per_s: float  # dense, of the format that trains: what MFU divides by
    gemm_flops_per_s: float  # that large matrix products reach, in that format
    attention_flops_per_s: float  # that products inside attention reach, in the format of attention
    memory_bytes_per_s: float
    usable_bytes: float  # of device memory, for what memory.fit counts; leave a reserve for what it does not
    fast_bytes_per_s_one_way: float  # of one GPU, inside its domain
    slow_bytes_per_s_one_way: float  # of one GPU, out of its domain
    link_efficiency: float  # share of a link's rate that collectives reach
    alpha_s: float  # latency of one step of a collective
    rates_by_shape: bool = False  # products reach these rates as far as their shapes allow (product_rates)

    def __post_init__(self) -> None:
        checks.count(num_gpus=self.num_gpus, domain_gpus=self.domain_gpus)
        checks.positive(
            peak_flops_per_s=self.peak_flops_per_s,
            gemm_flops_per_s=self.gemm_flops_per_s,
            attention_flops_per_s=self.attention_flops_per_s,
        )
        checks.positive(
            memory_bytes_per_s=self.memory_bytes_per_s,
            usable_bytes=self.usable_bytes,
            link_efficiency=self.link_efficiency,
        )
        checks.positive(
            fast_bytes_per_s_one_way=self.fast_bytes_per_s_one_way,
            slow_bytes_per_s_one_way=self.slow_bytes_per_s_one_way,
        )
        checks.fraction(link_efficiency=self.link_efficiency)
        checks.non_negative(alpha_s=self.alpha_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is trained, whatever the layout."""

    model: Model
    sequence: int
    global_batch: int  # sequences per optimiser step
    recipe: str | Recipe
    kernels: str | Kernels
    causal: str  # what attention's kernels compute: "full", "half" or "exact"
    sequence_parallel: bool
    dropout: bool
    tables_as_layers: bool  # embedding and head count as a layer each when stages are dealt out
    expert_tp: int  # 1 keeps each expert whole
    dispatch_bytes: float  # per element of a token on its way to an expert: 2 in bf16, 1 in FP8; the way back takes 2
    nodes_per_token: int | None = None  # a router's limit on how many domains one token may be sent to
    # a dispatcher that sends a token to each domain once (DeepEP, HybridEP), not once for each of its experts there
    dispatches_once: bool = False
    vocab_multiple: int | None = None  # as in memory.setup.Training
    bytes_per_element: int = 2

    def __post_init__(self) -> None:
        checks.count(sequence=self.sequence, global_batch=self.global_batch, expert_tp=self.expert_tp)
        checks.positive(dispatch_bytes=self.dispatch_bytes)

    @property
    def experts(self) -> MoeMlp | None:
        """The mixture of experts that the model's layers hold, if any."""
        return next((layer.mlp for layer, _ in self.model.groups if isinstance(layer.mlp, MoeMlp)), None)

    @property
    def dealt(self) -> int:
        """Pieces of one layer's weight that stages share out."""
        return self.model.num_layers + 2 * self.tables_as_layers

    @property
    def tokens(self) -> int:
        """Tokens of one step."""
        return self.sequence * self.global_batch


def training(layout: Layout, *, job: Job, zero_stage: int) -> Training:
    """The set-up whose bytes memory.fit counts.

    Assumes:  context-parallel ranks share the optimiser's shards with the replicas; one layer at a time is gathered,
              the next one ahead. The cross-entropy is Megatron-LM's, in place
    """
    return Training(
        model=job.model,
        recipe=job.recipe,
        zero_stage=zero_stage,
        dp=layout.dp * layout.cp,
        tp=layout.tp,
        pp=layout.pp,
        sequence_parallel=job.sequence_parallel,
        schedule=layout.schedule,
        micro_batches=micro_batches(layout, job=job),
        bytes_per_element=job.bytes_per_element,
        kernels=job.kernels,
        dropout=job.dropout,
        recompute=layout.recompute,
        chunks=layout.chunks,
        ep=layout.ep,
        expert_tp=job.expert_tp,
        gathered_layers=2,
        vocab_multiple=job.vocab_multiple,
        tables_as_layers=job.tables_as_layers,
        cross_entropy="in-place",
    )


def micro_batches(layout: Layout, *, job: Job) -> int:
    """Micro-batches that one pipeline runs per step.

    Formula:  global_batch / (dp * micro_batch)
    Raises:   ValueError where that leaves a remainder
    Counted:  tests.training_loop.test_layouts.test_sequences_are_dealt_to_replicas_until_the_batch_is_gone
    """
    checks.divides(
        part="dp*micro_batch",
        part_value=layout.dp * layout.micro_batch,
        whole="global_batch",
        whole_value=job.global_batch,
    )
    return job.global_batch // (layout.dp * layout.micro_batch)


def order(layout: Layout) -> placement.Order:
    """The kinds of parallelism with their degrees, as placement wants them: the order of Megatron Core, tensor
    innermost and pipeline outermost.
    """
    return (("tp", layout.tp), ("cp", layout.cp), ("dp", layout.dp), ("pp", layout.pp))


def rank_group(axis: str, *, rank: int, layout: Layout) -> tuple[int, ...]:
    """The ranks that differ from this one along one axis only: the group it talks to there.

    >>> layout = Layout(
    ...     dp=2, tp=4, pp=2, cp=1, ep=1, micro_batch=1, zero_stage=0, recompute="none", schedule="1f1b", chunks=1
    ... )
    >>> (
    ...     rank_group("tp", rank=5, layout=layout),
    ...     rank_group("dp", rank=5, layout=layout),
    ...     rank_group("pp", rank=5, layout=layout),
    ... )
    ((4, 5, 6, 7), (1, 5), (5, 13))
    """
    return tuple(placement.group(rank, kind=axis, order=order(layout)))


def members_in_domain(*, size: int, stride: int, domain_gpus: int) -> int:
    """How many ranks of a group share one domain of fast links.

    >>> [members_in_domain(size=64, stride=stride, domain_gpus=8) for stride in (1, 2, 8)]
    [8, 4, 1]
    """
    checks.count(size=size, stride=stride, domain_gpus=domain_gpus)
    return min(size, max(1, domain_gpus // stride))


def stage_layers(layout: Layout, *, job: Job) -> int:
    """Layers of the rank that has most of them: whole chunks, dealt out evenly.

    Formula:  chunks * ceil(dealt / (pp * chunks)), one less where only the ends of the pipeline are left; dealt:
              layers, and tables that count as such
    Counted:  tests.training_loop.test_layouts.test_layers_are_dealt_chunk_by_chunk
    """
    most = -(-job.dealt // (layout.pp * layout.chunks)) * layout.chunks
    return most - (3 - layout.pp) if job.tables_as_layers and layout.pp < 3 else most


def last_layers(layout: Layout, *, job: Job) -> int:
    """Layers of the last stage, which has the head besides."""
    last, tables = layout.pp - 1, job.tables_as_layers
    return layers_on_stage(num_layers=job.model.num_layers, stage=last, pp=layout.pp, tables_as_layers=tables)
