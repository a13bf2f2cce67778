"""Drills on choosing: what a fixed batch leaves of a pipeline, who shall have the fast links, what a far group pays,
and by how much a layout loses.
"""

import random

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.simulate.training_loop.pipeline_orders import orders
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.training_loop.network import traffic
from threeloops.training_loop.parallelism import pipelines
from threeloops.training_loop.parallelism.group_traffic import group_bytes_per_s
from threeloops.training_loop.parallelism.layouts import Cluster
from threeloops.units import GB, counted, fmt_bytes, fmt_seconds

TAUGHT = Taught("training", "Experts, contexts and hybrids")

SOURCE_STEP = "Narayanan et al., 2021, arXiv:2104.04473, sections 2.2 and 3"

# --- a fixed batch -------------------------------------------------------------------------------


def _draw_fixed(rng: random.Random) -> Draw:
    pp, few, factor, size = rng.choice((6, 8, 10, 12)), rng.choice((8, 12, 16)), rng.choice((3, 4)), rng.choice((1, 2))
    # with as many as stages, two mistakes look alike
    runs = rng.choice([runs for runs in range(5, 24) if runs != pp])
    return drawn(tp=8, pp=pp, gpus=8 * pp * few * factor, few=8 * pp * few, size=size, batch=few * factor * size * runs)


def _small_fixed(rng: random.Random) -> Draw:
    pp, few, factor, size = rng.choice((3, 5)), rng.choice((2, 3)), 3, rng.choice((1, 2))
    return drawn(
        tp=2,
        pp=pp,
        gpus=2 * pp * few * factor,
        few=2 * pp * few,
        size=size,
        batch=few * factor * size * rng.choice((5, 7)),
    )


def _runs(p: Draw, gpus: int) -> int:
    """Micro-batches of one pipeline."""
    return int(p.batch * p.tp * p.pp // (gpus * p.size))


def _idle(pp: int, runs: float) -> float:
    return (pp - 1) / (runs + pp - 1)


def _count_fixed(p: Draw) -> float:
    """Deal the batch out to the replicas sequence by sequence, and let one of them run its pipeline."""
    replicas = p.gpus // (p.tp * p.pp)
    own = sum(sequence % replicas == 0 for sequence in range(p.batch)) // p.size
    work = Work(forward_s=1, input_gradient_s=1, weight_gradient_s=1)
    return float(run(schedule="1f1b", pp=p.pp, micro_batches=own, work=work, send_s=0).idle_share)


FIXED = Drill(
    key="layout-fixed-batch",
    taught=TAUGHT,
    title="More replicas, shorter queues",
    unit="",
    target_s=120,
    draw=_draw_fixed,
    small=_small_fixed,
    prompt=lambda p: (
        f"A run moves from {p.few:,} to {p.gpus:,} GPUs and keeps its global batch of {p.batch:,} sequences, its tensor"
        f" parallelism of {p.tp}, its 1F1B pipeline of {p.pp} even stages, and its micro-batch of"
        f" {counted(p.size, 'sequence')}; only the replicas multiply. What share of the step is a GPU idle in the"
        " pipeline after the move, as a number between 0 and 1?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.bubble(
            schedule="1f1b",
            pp=p.pp,
            micro_batches=_runs(p, p.gpus),
            forward_s=1,
            input_gradient_s=1,
            weight_gradient_s=1,
        ).share_of_step,
        formula=(
            "(stages − 1) / (micro-batches per replica + stages − 1), with batch × tensor × stages / (GPUs ×"
            " micro-batch) of them"
        ),
        substitution=f"({p.pp} − 1) / ({p.batch} × {p.tp} × {p.pp} / ({p.gpus} × {p.size}) + {p.pp} − 1)",
        source=SOURCE_STEP,
    ),
    count=_count_fixed,
    slips=(
        Slip("before-the-move", lambda p: _idle(p.pp, _runs(p, p.few)))
        | "That was the share before. What does a replica have left to do now?",
        Slip("over-work", lambda p: (p.pp - 1) / _runs(p, p.gpus))
        | "You compared idle time with working time. The question is about the step, which is both.",
        Slip("whole-batch", lambda p: _idle(p.pp, p.batch / p.size))
        | "You sent the whole batch through one pipeline. Each replica has one, and its own part of the batch.",
        Slip("stages-are-replicas", lambda p: _idle(p.pp, p.batch * p.tp / (p.gpus * p.size)))
        | "You counted pipeline stages as replicas. They share the same micro-batches.",
    ),
    prerequisites=("pipeline-global-batch",),
)

# --- who gets the fast links ---------------------------------------------------------------------


_MODELS = ("llama-3-8b", "opt-13b", "llama-3-70b", "gpt3-175b", "llama-3-405b")


def _draw_links(rng: random.Random) -> Draw:
    key, runs = rng.choice(_MODELS), rng.choice((12, 20, 28, 36))
    model = catalogued.model(key)
    real = {"name": catalogued.model_name(key), "hidden": model.hidden}
    return drawn(
        tp=rng.choice((4, 8)),
        layers=rng.choice([share for share in range(4, 17) if model.num_layers % share == 0]),
        tokens=rng.choice((2048, 4096, 8192)),
        runs=runs,
        **real,
    )


def _tensor_bytes(p: Draw) -> float:
    sent = traffic.tensor_parallel_traffic(
        tokens=p.tokens,
        hidden=p.hidden,
        num_layers=p.layers,
        tp=p.tp,
        bytes_per_element=2,
        sequence_parallel=False,
        regather_input=False,
    )
    return sent.total_bytes


def _count_links(p: Draw) -> float:
    """Walk a middle stage through its 1F1B order: what its rank sends to its tensor group in each pass, and what it
    hands on to other stages.
    """
    slots, *_ = orders(schedule="1f1b", pp=3, micro_batches=p.runs)[1:]
    tensor, handed = 0.0, 0.0
    for _pass in slots:
        for _layer in range(p.layers):
            for _block in ("attention", "feed-forward"):
                # an all-reduce, piece by piece
                tensor += sum(p.tokens * p.hidden / p.tp * 2 for _step in range(2 * (p.tp - 1)))
        handed += p.tokens * p.hidden * 2
    return float(tensor - handed)


LINKS = Drill(
    key="layout-who-gets-nvlink",
    taught=TAUGHT,
    title="Who gets the fast links",
    unit="B",
    target_s=150,
    draw=_draw_links,
    small=lambda rng: drawn(
        name="drawn", tp=rng.choice((4, 6)), layers=rng.choice((2, 3)), tokens=12, hidden=8, runs=rng.choice((4, 5))
    ),
    prompt=lambda p: (
        f"A middle stage of a pipeline holds {p.layers} layers of {p.name}, cut over a tensor group of {p.tp}, without"
        f" sequence parallelism. Per step it runs {p.runs} micro-batches of {p.tokens:,} tokens, {p.hidden:,} wide, in"
        " bf16. Ring all-reduces add up the tensor group's results, two per layer forward and two backward. Between"
        " stages, every tensor rank sends the whole tensor to its counterpart: activations forward, gradients"
        " backward. How many more bytes does a rank send to its tensor group than to other stages, per step?"
    ),
    derive=lambda p: Derivation(
        value=p.runs
        * (
            _tensor_bytes(p)
            - 2 * pipelines.boundary_bytes(micro_batch=1, sequence=p.tokens, hidden=p.hidden, bytes_per_element=2)
        ),
        formula="micro-batches × tokens × width × 2 bytes × (4 × layers × 2(t − 1)/t − 2)",
        substitution=f"{p.runs} × {p.tokens} × {p.hidden} × 2 × (4 × {p.layers} × 2 × ({p.tp} − 1) / {p.tp} − 2)",
        source=(
            "Shoeybi et al., 2019, arXiv:1909.08053, section 3; Narayanan et al., 2021, arXiv:2104.04473, section 3.2"
        ),
    ),
    count=_count_links,
    slips=(
        Slip("forward-only", lambda p: p.runs * p.tokens * p.hidden * 2 * (2 * p.layers * 2 * (p.tp - 1) / p.tp - 1))
        | "You counted half of the exchanges: the forward pass alone, or one block of each layer.",
        Slip("whole-tensor-each-step", lambda p: p.runs * p.tokens * p.hidden * 2 * (4 * p.layers * 2 * (p.tp - 1) - 2))
        | "You sent the whole tensor in every step of the ring. A step moves one piece of it.",
        Slip("one-micro-batch", lambda p: p.tokens * p.hidden * 2 * (4 * p.layers * 2 * (p.tp - 1) / p.tp - 2))
        | "That is one micro-batch.",
        Slip("fp32", lambda p: p.runs * p.tokens * p.hidden * 4 * (4 * p.layers * 2 * (p.tp - 1) / p.tp - 2))
        | "You sent numbers of 4 bytes.",
    ),
)

# --- a group that leaves its node ----------------------------------------------------------------


def _draw_crossing(rng: random.Random) -> Draw:
    nodes, (per_node, tp) = rng.choice((5, 6, 7, 9, 11, 12)), rng.choice(((8, 4), (16, 4), (16, 8)))
    return drawn(
        nodes=nodes,
        per_node=per_node,
        tp=tp,
        size=rng.choice(range(11, 39)) * GB,
        card=rng.choice((12.5, 25.0)) * GB,
        inside=rng.choice((300, 450)) * GB,
    )


def _count_crossing(p: Draw) -> float:
    """One ring per member of a node, each leaving the node through another member's card: add up what every card
    carries.
    """
    members = p.per_node // p.tp
    ranks, carried = p.nodes * members, [0.0] * (p.nodes * members)
    for turn in range(members):
        order = [node * members + (turn + 1 + place) % members for node in range(p.nodes) for place in range(members)]
        for _step in range(2 * (ranks - 1)):
            for one, two in zip(order, order[1:] + order[:1], strict=True):
                if one // members != two // members:
                    carried[one] += p.size / members / ranks
    return float(max(carried) / p.card)


def _cluster(p: Draw) -> Cluster:
    """The draw's nodes; what computes is of no interest here."""
    return Cluster(
        num_gpus=p.per_node * p.nodes,
        domain_gpus=p.per_node,
        fast_bytes_per_s_one_way=p.inside,
        slow_bytes_per_s_one_way=p.card,
        link_efficiency=1.0,
        alpha_s=0.0,
        peak_flops_per_s=1.0,
        gemm_flops_per_s=1.0,
        attention_flops_per_s=1.0,
        memory_bytes_per_s=1.0,
        usable_bytes=1.0,
    )


def _crossing_s(p: Draw, cards: float, share: float) -> float:
    return float(2 * share * p.size / (p.card * cards))


def _ranks(p: Draw) -> int:
    return int(p.nodes * p.per_node // p.tp)


CROSSING = Drill(
    key="layout-group-across-nodes",
    taught=TAUGHT,
    title="A far group and its cards",
    unit="s",
    target_s=150,
    draw=_draw_crossing,
    small=lambda rng: drawn(
        nodes=rng.choice((3, 5)), per_node=8, tp=4, size=rng.choice((11.0, 13.0)) * GB, card=12.5 * GB, inside=450 * GB
    ),
    prompt=lambda p: (
        f"{p.nodes} nodes have {p.per_node} GPUs each, joined by {fmt_bytes(p.inside, base=10)}/s links (one way);"
        f" every GPU has a network card of {fmt_bytes(p.card, base=10)}/s. Tensor groups of {p.tp} sit side by side in"
        f" a node, so that each data-parallel group has {p.per_node // p.tp} members in every node. A group all-reduces"
        f" {fmt_bytes(p.size, base=10)} of gradients per rank over flat rings, each through all of its members, that"
        " share those members' cards evenly and use no others. Latency is negligible, the rings overlap"
        " perfectly, and nothing is slower than the cards. How long"
        " does it take?"
    ),
    derive=lambda p: Derivation(
        value=2 * (_ranks(p) - 1) / _ranks(p) * p.size / group_bytes_per_s(_cluster(p), size=_ranks(p), stride=p.tp),
        formula="2(n − 1)/n × bytes / (members per node × a card's rate)",
        substitution=f"2 × ({_ranks(p)} − 1) / {_ranks(p)} × {p.size:.12g} / ({p.per_node // p.tp} × {p.card:.12g})",
        source=(
            "Patarasuk, Yuan, 2009, doi:10.1016/j.jpdc.2008.09.002 (a ring); NVIDIA, nccl-tests PERFORMANCE.md, 2024"
            " (bus bandwidth)"
        ),
    ),
    count=_count_crossing,
    slips=(
        Slip("one-card", lambda p: _crossing_s(p, 1, (_ranks(p) - 1) / _ranks(p)))
        | "You sent everything out of one card per node. The group has more members there.",
        Slip("all-cards", lambda p: _crossing_s(p, p.per_node, (_ranks(p) - 1) / _ranks(p)))
        | "You gave the group all cards of a node. Other groups sit there, too, and send at the same time.",
        Slip("inside-rate", lambda p: 2 * (_ranks(p) - 1) / _ranks(p) * p.size / p.inside)
        | "You used the rate inside a node. The rings have to leave it.",
        Slip("half-an-all-reduce", lambda p: _crossing_s(p, p.per_node // p.tp, (_ranks(p) - 1) / _ranks(p)) / 2)
        | "That is one half: a reduce-scatter. The sums have to be gathered again.",
    ),
    prerequisites=("shared-network-cards",),
)

# --- the runner-up -------------------------------------------------------------------------------


def _draw_runner(rng: random.Random) -> Draw:
    """Fewer stages and dear exchanges against many stages and cheap ones; the second is slower by far enough to see
    every mistake.
    """
    work = rng.choice((4, 5, 6, 7, 8))
    few, many = rng.choice((2, 3)), rng.choice((8, 10, 12))
    return drawn(
        work_s=float(work),
        few=few,
        many=many,
        few_runs=rng.choice((30, 36)),
        many_runs=rng.choice((16, 18, 20)),
        dear_s=round(work * 0.2, 1),
        cheap_s=round(work * 0.1, 1),
    )


def _small_runner(rng: random.Random) -> Draw:
    work = rng.choice((4.0, 6.0))
    return drawn(
        work_s=work,
        few=2,
        many=rng.choice((6, 8)),
        few_runs=rng.choice((10, 12)),
        many_runs=rng.choice((8, 9)),
        dear_s=work * 0.2,
        cheap_s=work * 0.1,
    )


def _count_runner(p: Draw) -> float:
    """Both pipelines on a clock, each pass with its share of kernels and exchanges."""

    def clocked(pp: int, runs: int, exchange_s: float) -> float:
        third = (p.work_s + exchange_s) / runs / 3
        return float(
            run(
                schedule="1f1b",
                pp=pp,
                micro_batches=runs,
                work=Work(forward_s=third, input_gradient_s=third, weight_gradient_s=third),
                send_s=0,
            ).step_s
        )

    return clocked(p.many, p.many_runs, p.cheap_s) - clocked(p.few, p.few_runs, p.dear_s)


def _lost(p: Draw, many: float, few: float) -> float:
    return float((p.work_s + p.cheap_s) * many - (p.work_s + p.dear_s) * few)


RUNNER_UP = Drill(
    key="layout-runner-up",
    taught=TAUGHT,
    title="Why the runner-up lost",
    unit="s",
    target_s=150,
    draw=_draw_runner,
    small=_small_runner,
    prompt=lambda p: (
        "Two layouts of one model on the same GPUs, both with even 1F1B pipelines; in both, a GPU's kernels take"
        f" {fmt_seconds(p.work_s)} per step. The first has {p.few} stages, {p.few_runs} micro-batches per replica, and"
        f" waits {fmt_seconds(p.dear_s)} per step for tensor-parallel exchanges; the second has {p.many} stages,"
        f" {p.many_runs} micro-batches, and waits {fmt_seconds(p.cheap_s)}. Exchanges happen within the passes, in"
        " equal parts; nothing else takes time. How much longer is the second layout's step?"
    ),
    derive=lambda p: Derivation(
        value=pipelines.step_s(compute_s=p.work_s + p.cheap_s, pp=p.many, micro_batches=p.many_runs)
        - pipelines.step_s(compute_s=p.work_s + p.dear_s, pp=p.few, micro_batches=p.few_runs),
        formula="(kernels + exchanges) × (1 + (stages − 1)/micro-batches), for the second less for the first",
        substitution=(
            f"({p.work_s:.12g} + {p.cheap_s:.12g}) × (1 + ({p.many} − 1) / {p.many_runs}) − "
            f"({p.work_s:.12g} + {p.dear_s:.12g}) × (1 + ({p.few} − 1) / {p.few_runs})"
        ),
        source=SOURCE_STEP,
    ),
    count=_count_runner,
    slips=(
        Slip(
            "bubble-of-kernels",
            lambda p: (
                p.work_s * (p.many - 1) / p.many_runs + p.cheap_s - p.work_s * (p.few - 1) / p.few_runs - p.dear_s
            ),
        )
        | "Your bubbles are made of kernels alone. A pass that waits for its exchange keeps the next stage"
        " waiting, too.",
        Slip(
            "share-of-step",
            lambda p: _lost(
                p, 1 + (p.many - 1) / (p.many_runs + p.many - 1), 1 + (p.few - 1) / (p.few_runs + p.few - 1)
            ),
        )
        | "You added the bubble's share of the step to the work. It has to be a share of the work.",
        Slip("no-exchanges", lambda p: p.work_s * ((p.many - 1) / p.many_runs - (p.few - 1) / p.few_runs))
        | "You compared the bubbles alone. The layouts wait for different exchanges as well.",
        Slip(
            "exchanges-swapped",
            lambda p: (
                (p.work_s + p.dear_s) * (1 + (p.many - 1) / p.many_runs)
                - (p.work_s + p.cheap_s) * (1 + (p.few - 1) / p.few_runs)
            ),
        )
        | "You gave each layout the other's exchanges.",
        Slip("whole-step", lambda p: (p.work_s + p.cheap_s) * (1 + (p.many - 1) / p.many_runs))
        | "That is the second layout's whole step.",
    ),
    prerequisites=("pipeline-step-time",),
    function=AsFunction(
        takes=("work_s", "few", "few_runs", "dear_s", "many", "many_runs", "cheap_s"),
        limit={"few": 1},
        limit_case="a first layout without a pipeline",
    ),
)

DRILLS = (FIXED, LINKS, CROSSING, RUNNER_UP)
