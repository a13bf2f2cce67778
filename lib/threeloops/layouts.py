"""Layouts: how the ranks of a cluster share one model, which layouts are legal, and who sits in which group.

Ranks are numbered with the tensor group innermost, then context, then data, and the pipeline outermost: the group that talks most sits closest together.
Experts are dealt out inside a stage, over its tensor, context and data ranks in the order of their numbers.

>>> layout = Layout(dp=8, tp=8, pp=8, cp=1, ep=1, micro_batch=1, zero_stage=1, recompute="none", schedule="1f1b", chunks=1)
>>> layout.gpus, placement.coordinates(77, order=order(layout))
(512, {'tp': 5, 'cp': 0, 'dp': 1, 'pp': 1})

Source: Narayanan et al., 2021, arXiv:2104.04473, section 3 (degrees and their order); Megatron Core, parallel_state.py (order tp-cp-ep-dp-pp)
"""

from dataclasses import dataclass

from threeloops import checks, placement
from threeloops.activation_kernels import Kernels
from threeloops.memory import expert_data_parallel
from threeloops.models import Attention, DenseMlp, Model, MoeMlp
from threeloops.parameter_buckets import check_vocab_split, padded_vocab
from threeloops.pipelines import check_schedule
from threeloops.training_recipes import Recipe
from threeloops.training_setup import Training


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
        checks.count(dp=self.dp, tp=self.tp, pp=self.pp, cp=self.cp, ep=self.ep, micro_batch=self.micro_batch, chunks=self.chunks)

    @property
    def gpus(self) -> int:
        return self.dp * self.tp * self.pp * self.cp

    def __str__(self) -> str:
        degrees = [f"{name}{size}" for name in ("tp", "cp", "ep", "pp", "dp") if (size := getattr(self, name)) > 1] or ["one GPU"]
        schedule = f"{self.schedule} x{self.chunks}" if self.chunks > 1 else self.schedule
        return f"{' '.join(degrees)}, micro-batch {self.micro_batch}, ZeRO-{self.zero_stage}, recompute {self.recompute}, {schedule}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the ranks run on: equal GPUs in equal domains of fast links, domains joined by slower ones."""

    gpus: int
    domain_gpus: int  # joined by the fast links
    peak_flops_per_s: float  # dense, of the format that trains: what MFU divides by
    gemm_flops_per_s: float  # that large matrix products reach, in that format
    attention_flops_per_s: float  # that products inside attention reach, in the format of attention
    memory_bytes_per_s: float
    usable_bytes: float  # of device memory, for what training_fit counts; leave a reserve for what it does not
    fast_bytes_per_s_one_way: float  # of one GPU, inside its domain
    slow_bytes_per_s_one_way: float  # of one GPU, out of its domain
    link_efficiency: float  # share of a link's rate that collectives reach
    alpha_s: float  # latency of one step of a collective

    def __post_init__(self) -> None:
        checks.count(gpus=self.gpus, domain_gpus=self.domain_gpus)
        checks.positive(peak_flops_per_s=self.peak_flops_per_s, gemm_flops_per_s=self.gemm_flops_per_s, attention_flops_per_s=self.attention_flops_per_s)
        checks.positive(memory_bytes_per_s=self.memory_bytes_per_s, usable_bytes=self.usable_bytes, link_efficiency=self.link_efficiency)
        checks.positive(fast_bytes_per_s_one_way=self.fast_bytes_per_s_one_way, slow_bytes_per_s_one_way=self.slow_bytes_per_s_one_way)
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
    vocab_multiple: int | None = None  # as in training_setup.Training
    element_bytes: int = 2

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
        """Of one step."""
        return self.sequence * self.global_batch


def training(layout: Layout, *, job: Job, zero_stage: int) -> Training:
    """The set-up whose memory training_fit counts.

    Assumes:  context-parallel ranks share the optimiser's shards with the replicas; one layer at a time is gathered, the next one ahead
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
        element_bytes=job.element_bytes,
        kernels=job.kernels,
        dropout=job.dropout,
        recompute=layout.recompute,
        chunks=layout.chunks,
        ep=layout.ep,
        expert_tp=job.expert_tp,
        gathered_layers=2,
        vocab_multiple=job.vocab_multiple,
        tables_as_layers=job.tables_as_layers,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a framework or a team allows; there is no neutral choice."""

    tensor_leaves_domain: bool  # False: a tensor group stays inside the fast links
    uneven_stages: bool  # False: pp * chunks must divide what is dealt out: the layers, and the tables where they count as layers


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a layout is no layout: the rule that it breaks, and the sentence that says how."""

    rule: str
    sentence: str


def micro_batches(layout: Layout, *, job: Job) -> int:
    """Micro-batches that one pipeline runs per step.

    Formula:  global_batch / (dp * micro_batch)
    Raises:   ValueError where that leaves a remainder
    """
    checks.divides(part="dp*micro_batch", part_value=layout.dp * layout.micro_batch, whole="global_batch", whole_value=job.global_batch)
    return job.global_batch // (layout.dp * layout.micro_batch)


def refusal(layout: Layout, *, job: Job, cluster: Cluster, rules: Rules) -> Refusal | None:
    """The first rule that a layout breaks, or None for a legal one; whether it fits in memory is another question.

    >>> from threeloops.model_catalogue import model
    >>> job = Job(model=model("llama-3-405b"), sequence=8192, global_batch=2048, recipe="megatron", kernels="fused", causal="half",
    ...           sequence_parallel=True, dropout=False, tables_as_layers=True, expert_tp=1, dispatch_bytes=2)
    >>> cluster = Cluster(gpus=512, domain_gpus=8, peak_flops_per_s=989.4e12, gemm_flops_per_s=794.5e12, attention_flops_per_s=794.5e12,
    ...                   memory_bytes_per_s=3.35e12, usable_bytes=80e9, fast_bytes_per_s_one_way=450e9, slow_bytes_per_s_one_way=50e9,
    ...                   link_efficiency=0.8, alpha_s=5e-6)
    >>> layout = Layout(dp=2, tp=16, pp=16, cp=1, ep=1, micro_batch=1, zero_stage=1, recompute="none", schedule="1f1b", chunks=1)
    >>> refusal(layout, job=job, cluster=cluster, rules=Rules(tensor_leaves_domain=False, uneven_stages=True)).sentence
    'tp=16 must not exceed domain_gpus=8: a tensor group would leave the fast links'
    """
    for rule in (tensor_refusal, pipeline_refusal, context_refusal, expert_refusal, batch_refusal):
        try:
            rule(layout, job, cluster, rules)
        except ValueError as error:
            return Refusal(rule=rule.__name__.removesuffix("_refusal"), sentence=str(error))
    if layout.gpus != cluster.gpus:
        factors = f"dp*tp*pp*cp = {layout.dp}*{layout.tp}*{layout.pp}*{layout.cp} = {layout.gpus}"
        return Refusal(rule="ranks", sentence=f"{factors} must be the cluster's {cluster.gpus} GPUs")
    return None


def tensor_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """Heads, widths and vocabulary by tp, and the domain. A KV head may stand on several ranks, as Megatron Core and vLLM let it."""
    tp = layout.tp
    if tp > cluster.domain_gpus and not rules.tensor_leaves_domain:
        raise ValueError(f"tp={tp} must not exceed domain_gpus={cluster.domain_gpus}: a tensor group would leave the fast links")
    for layer, _ in job.model.groups:
        checks.divides(part="tp", part_value=tp, whole="num_heads", whole_value=layer.attention.num_heads)
        if isinstance(layer.attention, Attention):
            _kv_heads(tp, layer.attention.num_kv_heads)
        dense = layer.mlp if isinstance(layer.mlp, DenseMlp) else layer.mlp.shared
        if dense is not None:
            checks.divides(part="tp", part_value=tp, whole="intermediate", whole_value=dense.intermediate)
    check_vocab_split(vocab=padded_vocab(vocab=job.model.vocab, multiple=job.vocab_multiple or 1), tp=tp)


def _kv_heads(tp: int, num_kv_heads: int) -> None:
    if num_kv_heads % tp and tp % num_kv_heads:
        fits = ", ".join(str(n) for n in range(1, num_kv_heads + 1) if num_kv_heads % n == 0)
        raise ValueError(f"tp={tp} must divide num_kv_heads={num_kv_heads} or be a multiple of it; try tp in {{{fits}}}")


def pipeline_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """Layers by stages and chunks."""
    pieces, dealt = layout.pp * layout.chunks, job.dealt
    what = "num_layers+2" if job.tables_as_layers else "num_layers"
    if pieces > dealt or layout.pp > job.model.num_layers:
        raise ValueError(f"pp*chunks={pieces} must not exceed {what}={dealt}: a piece of the model needs a layer")
    if not rules.uneven_stages:
        checks.divides(part="pp*chunks", part_value=pieces, whole=what, whole_value=dealt)
    if layout.pp == 1 and layout.schedule not in ("1f1b", "gpipe"):
        raise ValueError(f"schedule={layout.schedule!r} needs pp of 2 or more; without a pipeline there is nothing to schedule")


def context_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """The sequence by cp, twice over, so that every rank gets an early and a late piece of a causal triangle; what is left by tp."""
    if layout.cp > 1:
        checks.divides(part="2*cp", part_value=2 * layout.cp, whole="sequence", whole_value=job.sequence)
    if job.sequence_parallel:
        checks.divides(part="tp", part_value=layout.tp, whole="sequence/cp", whole_value=job.sequence // layout.cp)


def expert_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """Experts by ep; ep by the ranks of a stage."""
    experts = job.experts
    if experts is None:
        if layout.ep > 1:
            raise ValueError(f"ep={layout.ep} needs experts to split; a model without experts has ep=1")
        return
    checks.divides(part="ep", part_value=layout.ep, whole="num_experts", whole_value=experts.num_experts)
    checks.divides(part="expert_tp", part_value=job.expert_tp, whole="tp", whole_value=layout.tp)
    if job.expert_tp < layout.tp and not job.sequence_parallel:
        raise ValueError(f"expert_tp={job.expert_tp} below tp={layout.tp} needs sequence_parallel=True, or all tensor ranks would dispatch the same tokens")
    expert_data_parallel(dp=layout.dp * layout.cp, tp=layout.tp, ep=layout.ep, expert_tp=job.expert_tp)


def batch_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """The global batch by replicas and micro-batch, and what a schedule asks of their number."""
    count = micro_batches(layout, job=job)
    check_schedule(schedule=layout.schedule, pp=layout.pp, micro_batches=count, chunks=layout.chunks)


def order(layout: Layout) -> placement.Order:
    """The kinds of parallelism with their degrees, as placement wants them: the order of Megatron Core, tensor innermost and pipeline outermost."""
    return (("tp", layout.tp), ("cp", layout.cp), ("dp", layout.dp), ("pp", layout.pp))


def group(axis: str, *, rank: int, layout: Layout) -> tuple[int, ...]:
    """The ranks that differ from this one along one axis only: the group it talks to there.

    >>> layout = Layout(dp=2, tp=4, pp=2, cp=1, ep=1, micro_batch=1, zero_stage=0, recompute="none", schedule="1f1b", chunks=1)
    >>> group("tp", rank=5, layout=layout), group("dp", rank=5, layout=layout), group("pp", rank=5, layout=layout)
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
