"""Layout rules: which layouts are legal, and for one that is not, which rule it breaks and how.

Most rules are arithmetic: a degree divides what it cuts. A few are the choice of a framework or a team, and stand in
`Rules`. Each takes a layout and raises ValueError; `refusal` asks them all. Whether a legal layout fits in memory says
`planner`.
"""

from dataclasses import dataclass

from threeloops import checks
from threeloops.models.architecture import Attention, DenseMlp, LatentAttention, Layer, Model
from threeloops.models.parameter_buckets import check_vocab_split, padded_vocab
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.training_loop.memory.rank_states import expert_data_parallel
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout, micro_batches
from threeloops.training_loop.parallelism.pipelines import check_schedule


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What a framework or a team allows; there is no neutral choice."""

    tensor_leaves_domain: bool  # False: a tensor group stays inside the fast links
    # False: pp * chunks must divide what is dealt out: the layers, and the tables where they count as layers
    uneven_stages: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a layout is no layout: the rule that it breaks, and the sentence that says how."""

    rule: str
    sentence: str


def refusal(layout: Layout, *, job: Job, cluster: Cluster, rules: Rules) -> Refusal | None:
    """The first rule that a layout breaks, or None for a legal one; whether it fits in memory is another question.

    >>> from threeloops.models.catalogue import model
    >>> job = Job(
    ...     model=model("llama-3-405b"),
    ...     sequence=8192,
    ...     global_batch=2048,
    ...     recipe="megatron",
    ...     kernels="fused",
    ...     causal="half",
    ...     sequence_parallel=True,
    ...     dropout=False,
    ...     tables_as_layers=True,
    ...     expert_tp=1,
    ...     dispatch_bytes=2,
    ... )
    >>> cluster = Cluster(
    ...     num_gpus=512,
    ...     domain_gpus=8,
    ...     peak_flops_per_s=989.4e12,
    ...     gemm_flops_per_s=794.5e12,
    ...     attention_flops_per_s=794.5e12,
    ...     memory_bytes_per_s=3.35e12,
    ...     usable_bytes=80e9,
    ...     fast_bytes_per_s_one_way=450e9,
    ...     slow_bytes_per_s_one_way=50e9,
    ...     link_efficiency=0.8,
    ...     alpha_s=5e-6,
    ... )
    >>> layout = Layout(
    ...     dp=2, tp=16, pp=16, cp=1, ep=1, micro_batch=1, zero_stage=1, recompute="none", schedule="1f1b", chunks=1
    ... )
    >>> refusal(layout, job=job, cluster=cluster, rules=Rules(tensor_leaves_domain=False, uneven_stages=True)).sentence
    'tp=16 must not exceed domain_gpus=8: a tensor group would leave the fast links'
    """
    for rule in (tensor_refusal, pipeline_refusal, context_refusal, expert_refusal, batch_refusal):
        try:
            rule(layout, job, cluster, rules)
        except ValueError as error:
            return Refusal(rule=rule.__name__.removesuffix("_refusal"), sentence=str(error))
    if layout.num_gpus != cluster.num_gpus:
        factors = f"dp*tp*pp*cp = {layout.dp}*{layout.tp}*{layout.pp}*{layout.cp} = {layout.num_gpus}"
        return Refusal(rule="ranks", sentence=f"{factors} must be the cluster's {cluster.num_gpus} GPUs")
    return None


def tensor_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """Heads, widths and vocabulary by tp, and the domain. A KV head may stand on several ranks, as Megatron Core and
    vLLM let it.
    """
    tp = layout.tp
    if tp > cluster.domain_gpus and not rules.tensor_leaves_domain:
        raise ValueError(
            f"tp={tp} must not exceed domain_gpus={cluster.domain_gpus}: a tensor group would leave the fast links"
        )
    for layer, _ in job.model.groups:
        if layer.attention is not None:
            _mixer_heads(tp, layer)
        mlp = layer.mlp
        dense = mlp if isinstance(mlp, DenseMlp) else mlp.shared if mlp else None
        if dense is not None:
            checks.divides(part="tp", part_value=tp, whole="intermediate", whole_value=dense.intermediate)
    check_vocab_split(vocab=padded_vocab(vocab=job.model.vocab, multiple=job.vocab_multiple or 1), tp=tp)


def refuse_unplanned(model: Model) -> None:
    """For layouts: every layer is attention, a scan of Mamba 2 or of gated delta rules, an MLP, or several of these.

    Raises:   ValueError for a model with a layer of another kind, which it names, or with an indexer
    """
    for layer, _ in model.groups:
        layer.refuse_unusual()
        if isinstance(layer.attention, LatentAttention):
            layer.attention.refuse_indexer()


def _mixer_heads(tp: int, layer: Layer) -> None:
    """Heads by tp; of a recurrent state also what several of them share, which is not repeated."""
    if isinstance(layer.attention, StateSpace):
        checks.divides(part="tp", part_value=tp, whole="groups", whole_value=layer.attention.groups)
        return  # which divide the heads
    if isinstance(layer.attention, DeltaState):
        checks.divides(part="tp", part_value=tp, whole="key_heads", whole_value=layer.attention.key_heads)
        return
    checks.divides(part="tp", part_value=tp, whole="num_heads", whole_value=layer.attending.num_heads)
    if isinstance(layer.attention, Attention):
        _kv_heads(tp, layer.attention.num_kv_heads)


def _kv_heads(tp: int, num_kv_heads: int) -> None:
    if num_kv_heads % tp and tp % num_kv_heads:
        fits = ", ".join(str(n) for n in range(1, num_kv_heads + 1) if num_kv_heads % n == 0)
        raise ValueError(
            f"tp={tp} must divide num_kv_heads={num_kv_heads} or be a multiple of it; try tp in {{{fits}}}"
        )


def pipeline_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """Whether the layers can be dealt out over stages and chunks."""
    pieces, dealt = layout.pp * layout.chunks, job.dealt
    what = "num_layers+2" if job.tables_as_layers else "num_layers"
    if pieces > dealt or layout.pp > job.model.num_layers:
        raise ValueError(f"pp*chunks={pieces} must not exceed {what}={dealt}: a piece of the model needs a layer")
    if not rules.uneven_stages:
        checks.divides(part="pp*chunks", part_value=pieces, whole=what, whole_value=dealt)
    if layout.pp == 1 and layout.schedule not in ("1f1b", "gpipe"):
        raise ValueError(
            f"schedule={layout.schedule!r} needs pp of 2 or more; without a pipeline there is nothing to schedule"
        )


def context_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """The sequence by cp, twice over, so that every rank gets an early and a late piece of a causal triangle; what is
    left by tp.
    """
    if layout.cp > 1:
        if any(isinstance(layer.attention, DeltaState | StateSpace) for layer, _ in job.model.groups):
            raise ValueError(
                f"cp={layout.cp}: how the ranks of a context group pass on a recurrent state is not counted; try cp=1"
            )
        checks.divides(part="cp", part_value=layout.cp, whole="sequence", whole_value=job.sequence, times=2)
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
        raise ValueError(
            f"expert_tp={job.expert_tp} below tp={layout.tp} needs sequence_parallel=True, or all tensor ranks would"
            " dispatch the same tokens"
        )
    expert_data_parallel(dp=layout.dp * layout.cp, tp=layout.tp, ep=layout.ep, expert_tp=job.expert_tp)


def batch_refusal(layout: Layout, job: Job, cluster: Cluster, rules: Rules) -> None:
    """The global batch by replicas and micro-batch, and what a schedule asks of their number."""
    count = micro_batches(layout, job=job)
    check_schedule(schedule=layout.schedule, pp=layout.pp, micro_batches=count, chunks=layout.chunks)
