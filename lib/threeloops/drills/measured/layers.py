"""Drills on a layer's parts that somebody timed: its experts, and the sums over the GPUs that share it."""

import functools
import random
from itertools import combinations, product
from statistics import fmean

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, tera
from threeloops.drills.measured.exchanges import linked_exchanges, row_of
from threeloops.drills.measured.rows import REPLAYED, TimedCall, chosen, took
from threeloops.dtypes import bytes_per_element
from threeloops.facts import kernel_times
from threeloops.facts.kernel_times import EXPERTS as LAYER_OF_EXPERTS
from threeloops.models.parameters import model_parameters
from threeloops.operations.expert_layers import expert_layer, experts_touched
from threeloops.product_loop import decode_floor
from threeloops.units import fmt_si

# --- few tokens, many experts ----------------------------------------------------------------------

TOUCHED = (0.15, 0.85)  # of all experts: fewer or more, and a rule of thumb will do


@functools.cache
def _layers() -> tuple[TimedCall, ...]:
    def asked(call: TimedCall) -> bool:
        sizes = call.sizes
        touched = experts_touched(
            num_experts=sizes["num_experts"], top_k=sizes["top_k"], tokens=sizes["tokens"], routing="uniform"
        )
        share = touched / sizes["num_experts"]
        return sizes["ep"] == 1 and sizes["top_k"] > 1 and sizes["tokens"] > 1 and TOUCHED[0] < share < TOUCHED[1]

    return chosen(LAYER_OF_EXPERTS, "bf16", "fp8", where=asked)


def _draw_experts(rng: random.Random) -> Draw:
    call = rng.choice(_layers())
    return drawn(
        **call.sizes,
        format=call.format,
        device=call.device,
        engine=call.engine,
        seconds=call.seconds,
        memory=call.rate,
        row=call.source,
    )


def _experts_share(p: Draw, *, touched: float = 0.0, matrices: int = 3, format: str = "") -> float:
    """As much of the bandwidth as reading these experts, and the tokens in and out, makes."""
    found = touched or experts_touched(num_experts=p.num_experts, top_k=p.top_k, tokens=p.tokens, routing="uniform")
    weights = found * matrices * p.hidden * p.intermediate * bytes_per_element(format or p.format)
    return float((weights + 2 * 2 * p.tokens * p.hidden) / p.memory / p.seconds)


def _derive_experts(p: Draw) -> Derivation:
    work = expert_layer(
        tokens=p.tokens,
        num_experts=p.num_experts,
        top_k=p.top_k,
        hidden=p.hidden,
        intermediate=p.intermediate,
        ep=1,
        bytes_per_element=bytes_per_element(p.format),
    )
    touched = f"{p.num_experts} × (1 − (1 − {p.top_k} / {p.num_experts}) ^ {p.tokens})"
    weights = f"{touched} × 3 × {p.hidden} × {p.intermediate} × {bytes_per_element(p.format):g}"
    return Derivation(
        value=work.moved_bytes / p.memory / p.seconds,
        formula=(
            "(experts touched × 3 matrices + tokens in and out) / bandwidth / time; touched: all × (1 − (1 − chosen /"
            " all)^tokens)"
        ),
        substitution=f"({weights} + 2 × 2 × {p.tokens} × {p.hidden}) / {float(p.memory)!r} / {p.seconds!r}",
        source=f"Fedus, Zoph, Shazeer, 2021, arXiv:2101.03961, section 2.1; {p.row}",
    )


def _count_experts(p: Draw) -> float:
    """Every way in which the tokens can choose, and which experts somebody chose in it."""
    ways = list(combinations(range(p.num_experts), p.top_k))
    touched = fmean(len(set().union(*choice)) for choice in product(ways, repeat=p.tokens))
    moved = 0.0
    for _ in ("gate", "up", "down"):
        for _, _ in product(range(p.hidden), range(p.intermediate)):
            moved += touched * bytes_per_element(p.format)
    for _, _, _ in product(("in", "out"), range(p.tokens), range(p.hidden)):
        moved += 2
    return float(moved / p.memory / p.seconds)


EXPERTS = Drill(
    key="measured-experts-roof",
    taught=Taught("training", "Experts, contexts and hybrids"),
    title="The roof of a few tokens' experts",
    unit="",
    target_s=150,
    draw=_draw_experts,
    small=lambda rng: drawn(
        tokens=rng.choice((2, 3)),
        num_experts=rng.choice((5, 6)),
        top_k=2,
        hidden=rng.randrange(3, 7),
        intermediate=rng.randrange(3, 7),
        ep=1,
        format=rng.choice(("bf16", "fp8")),
        seconds=rng.randrange(11, 39) / 10,
        memory=rng.randrange(300, 500),
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"On an {p.device} with {fmt_si(p.memory, 'B/s')}, {p.engine} ran one layer of {p.num_experts} experts in"
        f" {p.format.upper()} for {p.tokens} tokens, {p.hidden:,} wide, each of which goes to {p.top_k} of them:"
        f" {took(p.seconds)} ({REPLAYED}). An expert has three matrices of {p.hidden:,} × {p.intermediate:,}. Say that"
        " tokens choose independently and evenly, that an expert chosen by any token is read once, and that tokens come"
        " and go with 2 bytes an element. Memory binds. What share of its roof did the layer reach?"
    ),
    derive=_derive_experts,
    count=_count_experts,
    wanted=lambda p: _experts_share(p) < 1,
    slips=(
        Slip("all-experts", lambda p: _experts_share(p, touched=p.num_experts))
        | "You read every expert. So few tokens leave some of them alone.",
        Slip("nobody-shares", lambda p: _experts_share(p, touched=p.tokens * p.top_k))
        | "You read an expert anew for each token that chose it. Two tokens can choose the same one.",
        Slip("one-token", lambda p: _experts_share(p, touched=p.top_k))
        | "You read the experts of one token. The others choose for themselves.",
        Slip("one-matrix", lambda p: _experts_share(p, matrices=1))
        | "You read one matrix of an expert. Gate, up and down are three.",
        Slip("other-width", lambda p: _experts_share(p, format="fp8" if p.format == "bf16" else "bf16"))
        | "You gave a weight the width of another format. How many bytes has one here?",
    ),
)

# --- all-reduces in a token ------------------------------------------------------------------------

FREE = 0.9  # of the memory, for weights
MODELS = ("llama-3-8b", "qwen3-32b", "llama-3-70b", "llama-3-405b")


def _draw_token(rng: random.Random) -> Draw:
    one, model = rng.choice(linked_exchanges()), catalogued.model(key := rng.choice(MODELS))
    times_s, batch = dict(one.points), rng.choice((1, 2, 4, 8, 16, 32))
    size = batch * model.hidden * 2
    part, total, width = catalogued.part(one.part), model_parameters(model).total, rng.choice((1, 2))
    return drawn(
        model=catalogued.model_name(key),
        parameters=float(f"{total:.3g}"),
        layers=model.num_layers,
        batch=batch,
        hidden=model.hidden,
        tp=one.ranks,
        width=width,
        fits=total * width < FREE * one.ranks * part.capacity_bytes(),
        memory=part["memory_bytes_per_s"],
        seconds=times_s.get(size, 0.0),
        device=kernel_times.kernel_times(one.part).device,
        engine=f"{one.engine} {one.version}",
        row=row_of(one),
    )


def _step_s(p: Draw, *, per_layer: int = 2, tp: int = 0) -> float:
    return decode_floor.tensor_parallel_step_s(
        weights_bytes=p.parameters * p.width,
        cache_bytes=0,
        tp=tp or p.tp,
        memory_bytes_per_s=p.memory,
        all_reduces=per_layer * p.layers,
        all_reduce_s=p.seconds,
    )


def _exchanged(p: Draw, per_layer: int = 2) -> float:
    return float(per_layer * p.layers * p.seconds / _step_s(p, per_layer=per_layer))


def _derive_token(p: Draw) -> Derivation:
    exchanges = f"2 × {p.layers} × {p.seconds!r}"
    reading = f"{p.parameters!r} × {p.width} / ({p.tp} × {tera(p.memory)})"
    return Derivation(
        value=_exchanged(p),
        formula="2 × layers × all-reduce / (weights / (GPUs × bandwidth) + 2 × layers × all-reduce)",
        substitution=f"{exchanges} / ({reading} + {exchanges})",
        source=f"Pope et al., 2022, arXiv:2211.05102, section 3; {p.row}",
    )


def _count_token(p: Draw) -> float:
    """Layer by layer: this GPU's share of the weights, then a sum after attention and one after the feed-forward."""
    reading = exchanging = 0.0
    for _ in range(p.layers):
        reading += p.parameters * p.width / p.layers / p.tp / p.memory
        for _ in ("attention", "feed-forward"):
            exchanging += p.seconds
    return exchanging / (reading + exchanging)


TOKEN = Drill(
    key="measured-exchanges-of-a-token",
    taught=Taught("training", "Tensor and sequence parallelism"),
    title="All-reduces in a decode step",
    unit="",
    target_s=120,
    draw=_draw_token,
    small=lambda rng: drawn(
        parameters=rng.randrange(200, 400),
        layers=rng.randrange(3, 9),
        tp=rng.choice((3, 5, 6)),
        width=rng.choice((1, 2)),
        memory=rng.randrange(5, 15),
        seconds=rng.randrange(11, 39) / 10,
        row="drawn in 2026",
    ),
    prompt=lambda p: (
        f"{p.model}, {billions(p.parameters)} parameters in {8 * p.width} bits and {p.layers} layers, decodes one"
        f" token for {'one request' if p.batch == 1 else f'each of {p.batch} requests'} with tensor parallelism over"
        f" {p.tp} GPUs ({p.device}, {fmt_si(p.memory, 'B/s')} each). An all-reduce adds up the outputs of each"
        f" attention and of each feed-forward: {p.batch} × {p.hidden:,} elements of 2 bytes. {p.engine} took"
        f" {took(p.seconds)} for that size. Say that the weights are read at full bandwidth, that caches are short and"
        " that nothing overlaps. What share of a step do the all-reduces take?"
    ),
    derive=_derive_token,
    count=_count_token,
    wanted=lambda p: p.fits and p.seconds > 0,
    slips=(
        Slip("one-per-layer", lambda p: _exchanged(p, per_layer=1))
        | "You added up once per layer. Attention and feed-forward each need a sum.",
        Slip("backward-too", lambda p: _exchanged(p, per_layer=4))
        | "You counted those of a backward pass as well. Decoding has none.",
        Slip(
            "whole-weights",
            lambda p: 2 * p.layers * p.seconds / (p.parameters * p.width / p.memory + 2 * p.layers * p.seconds),
        )
        | "You let one GPU read all weights. Each holds a share of every matrix.",
        Slip("over-reading", lambda p: _exchanged(p) / (1 - _exchanged(p)))
        | "That is the all-reduces over the reading. The step holds both.",
        Slip("reading", lambda p: 1 - _exchanged(p)) | "That is the share of the reading.",
    ),
)

DRILLS = (EXPERTS, TOKEN)
