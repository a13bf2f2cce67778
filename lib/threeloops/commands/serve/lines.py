"""Lines: the working of one fleet: memory and steps of a copy, money and energy, what binds and what would help."""

import math
from dataclasses import replace

from threeloops import dtypes, units
from threeloops.commands.cache_lines import cache_lines
from threeloops.commands.serve.copies import Served
from threeloops.commands.serve.fleets import Fleet
from threeloops.commands.working import Line, plain
from threeloops.facts.hardware import Part
from threeloops.product_loop import serving
from threeloops.product_loop.expected.expected_token import ExpectedToken
from threeloops.product_loop.kv_cache import held_bytes
from threeloops.product_loop.kv_quantisation import CACHE_FORMATS
from threeloops.product_loop.sizing.adapter_times import adapter_bytes
from threeloops.product_loop.sizing.bound_steps import layout_adapters_s
from threeloops.product_loop.sizing.request_times import expected_of
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.stored_weights import experts_bytes_in, table_bytes_in, weights_in
from threeloops.simulate.product_loop.sizing.replica_runs import ReplicaRun


def copy_lines(served: Served, fleet: Fleet) -> list[Line]:
    """Memory and time of one copy."""
    layout, copy, inside = fleet.copy.layout, fleet.copy, fleet.inside
    longest = served.lengths.mean_end
    capacity, other = served.part.capacity_bytes(), served.other_bytes
    most, of_all = _request_bytes(served, layout, longest), _shared_said(layout)
    kept = f"{1 - served.watermark:g} × " if served.watermark else ""
    held = (layout.weights_bytes, *((layout.adapters_bytes,) if served.adapters else ()))
    return [
        _weights_line(served, layout),
        *_adapter_lines(served, layout),
        _bytes(
            "left for caches",
            f"memory × share - weights{' - adapters' if served.adapters else ''} - activations, graphs and buffers",
            f"{plain(capacity)} × {served.memory_utilisation:g} - {' - '.join(map(plain, held))} - {plain(other)}",
            layout.free_bytes,
        ),
        *cache_lines(served.model, tokens=longest, cache=CACHE_FORMATS[served.cache], tp=layout.tp),
        Line(
            name="seats by memory",
            formula=f"{'(1 - watermark) × ' if kept else ''}left / a request of mean length at its end, in blocks of 16"
            " tokens, rounded down" + of_all[0],
            numbers=f"{kept}{plain(layout.free_bytes)} // {plain(most)}" + of_all[1],
            value=layout.seats(longest),
            unit="",
        ),
        *_longest_lines(served, layout),
        Line(
            name=f"step of {units.counted(inside, 'request')}{', drafts and check' if served.drafts else ''}, at least",
            formula="sum over matmuls and attentions of max(FLOPs / peak, bytes / bandwidth), on one GPU",
            numbers=plain(copy.bound.step_s(inside)),
            value=copy.bound.step_s(inside),
            unit="s",
        ),
        *_wanted_lines(served, fleet),
        *_expected_lines(served, fleet),
        *_drafted_lines(served),
    ]


def _weights_line(served: Served, layout: ServedLayout) -> Line:
    stored = " + ".join(
        f"{plain(number)} × {bits:g}" for number, bits in weights_in(served.model, served.weights).values()
    )
    if layout.pp > 1:
        first, last = table_bytes_in(served.model, served.weights)
        beside = first if served.model.tied_head else first + last
        return _bytes(
            "weights on each GPU, of the fullest stage",
            "(layers of a stage / layers × (weights × bits / 8 - table and head) + the larger of both) / tp",
            f"({plain(layout.layers_share)} × (({stored}) / 8 - {plain(beside)}) + {plain(max(first, last))})"
            f" / {layout.tp}",
            layout.weights_bytes,
        )
    if layout.dp == 1:
        numbers = f"({stored}) / 8 / {layout.tp}"
        return _bytes("weights on each GPU", "weights × bits / 8 / GPUs", numbers, layout.weights_bytes)
    experts = experts_bytes_in(served.model, served.weights)
    return _bytes(
        "weights on each GPU",
        "experts / all GPUs of the copy + everything else / tp",
        f"{plain(experts)} / {layout.gpus} + (({stored}) / 8 - {plain(experts)}) / {layout.tp}",
        layout.weights_bytes,
    )


def _adapter_lines(served: Served, layout: ServedLayout) -> list[Line]:
    """What adapters take of each GPU."""
    lora = served.adapters
    if lora is None:
        return []
    of_one = layout.layers_share * adapter_bytes(served.model, rank=lora.rank, tp=layout.tp, ep=layout.ep, dp=layout.dp)
    return [
        _bytes(
            "an adapter on each GPU",
            "rank × (inputs + outputs) × 2 bytes of all matrices and experts of a stage, one of both cut over the GPUs",
            f"{lora.rank} × {plain(of_one / lora.rank)}",
            of_one,
        ),
        _bytes("all adapters", "adapters × bytes of one", f"{lora.number} × {plain(of_one)}", layout.adapters_bytes),
    ]


def _wanted_lines(served: Served, fleet: Fleet) -> list[Line]:
    """What adapters add to a step: the bound, which is in the step's."""
    lora, layout = served.adapters, fleet.copy.layout
    inside = math.ceil(fleet.inside / layout.pp)  # of one batch
    if lora is None:
        return []
    each, own = served.drafts.checked if served.drafts else 1, math.ceil(inside / layout.dp)
    distinct = lora.distinct(own)
    bound_s = sum(layout_adapters_s(layout, own=own, requests=inside, each=each))
    return [
        Line(
            name=f"different adapters of {units.counted(own, 'request')}",
            formula="adapters × (1 - (1 - 1 / adapters)^requests)",
            numbers=f"{lora.number} × (1 - (1 - 1 / {lora.number})^{own})",
            value=distinct,
            unit="",
        ),
        Line(
            name="adapters in that step, at least",
            formula="sum over matmuls of A x and B (A x) of max(FLOPs / peak, bytes / bandwidth)",
            numbers=plain(bound_s),
            value=bound_s,
            unit="s",
        ),
    ]


def _request_bytes(served: Served, layout: ServedLayout, tokens: int) -> float:
    """Of one request on one GPU, at its largest."""
    element = dtypes.bytes_per_element(served.cache)
    held = held_bytes(
        served.model, tokens=tokens, bytes_per_element=element, allocator=layout.paged, tp=layout.tp, peak=True
    )
    return layout.layers_share * held / layout.dcp


def _shared_said(layout: ServedLayout) -> tuple[str, str]:
    kept = f", of which each GPU keeps 1 / {layout.dcp}" if layout.dcp > 1 else ""
    kept += f", of which a stage keeps {plain(layout.layers_share)}" if layout.pp > 1 else ""
    return (f" × groups{kept}", f" × {layout.dp}") if layout.dp > 1 else (kept, "")


def _longest_lines(served: Served, layout: ServedLayout) -> list[Line]:
    """What the longest recorded request needs."""
    if not served.lengths.drawn:
        return []
    tokens = min(served.lengths.most, served.model.max_context)
    most, of_all = _request_bytes(served, layout, tokens), _shared_said(layout)
    return [
        Line(
            name=f"of the longest, {tokens:,} tokens, there is room for",
            formula="left / its cache at its end, rounded down" + of_all[0],
            numbers=f"{plain(layout.free_bytes)} // {plain(most)}" + of_all[1],
            value=replace(layout, watermark=0.0).seats(tokens),
            unit="",
        )
    ]


def _drafted_lines(served: Served) -> list[Line]:
    if not served.drafts:
        return []
    share, drafted = served.drafts.accepted_share, served.drafts.drafted
    return [
        Line(
            name="tokens of a check",
            formula="1 + a + a^2 + ... + a^k, a accepted, k drafted",
            numbers=" + ".join(f"{share:g}^{place}" for place in range(drafted + 1)),
            value=served.yielded,
            unit="",
        )
    ]


def _expected_lines(served: Served, fleet: Fleet) -> list[Line]:
    if fleet.copy.expected is None:
        return []
    inside, times = fleet.inside, fleet.copy.expected
    token, drafts = token_of(served, fleet), served.drafts
    parts = {name: seconds for name, seconds in token.parts.items() if name != "prompts of others"}
    step_s = token.step_s
    if drafts or served.stages:
        step_s = times.step_s(inside)
        parts["drafts" if drafts else "handovers between stages"] = step_s - token.step_s
    new = served.lengths.new
    return [
        Line(
            name=f"step of {units.counted(inside, 'request')}, expected",
            formula=" + ".join(parts),
            numbers=" + ".join(plain(seconds) for seconds in parts.values()),
            value=step_s,
            unit="s",
        ),
        Line(
            name=f"a prompt by itself{', on average' if served.lengths.drawn else ''}, expected",
            formula="computed tokens × what each adds to a step + a step of one request",
            numbers=f"{new} × {plain(times.per_new_token_s)} + {plain(times.step_s(1))}",
            value=times.prompt_s,
            unit="s",
        ),
    ]


def token_of(served: Served, fleet: Fleet) -> ExpectedToken:
    """The expected token of as many requests as are inside; in stages, of as many as are in a batch."""
    layout = fleet.copy.layout
    checked, batch = served.drafts.checked if served.drafts else 1, math.ceil(fleet.inside / layout.pp)
    return expected_of(layout, served.lengths, batch, served.engine, served.experts_over(layout), checked)


def _bytes(name: str, formula: str, numbers: str, value: float) -> Line:
    return Line(name=name, formula=formula, numbers=numbers, value=value, unit="B", binary=True)


def money_lines(part: Part, gpus: int, tokens_per_s: float, price: float | None) -> list[Line]:
    """A million tokens of answers of so many GPUs, in joules and in dollars."""
    watts, per_million = part.facts.get("tdp_w"), serving.TOKENS_PER_MILLION
    lines = [
        Line(
            name="tokens of answers in a second",
            formula="simulated, of all copies",
            numbers=plain(tokens_per_s),
            value=tokens_per_s,
            unit="token/s",
        )
    ]
    if watts is not None:
        lines.append(
            Line(
                name="energy of a million tokens, of the GPUs alone",
                formula="GPUs × power limit / tokens of answers in a second × 1,000,000",
                numbers=f"{gpus} × {plain(watts.value)} / {plain(tokens_per_s)} × 1000000",
                value=gpus * watts.value / tokens_per_s * per_million,
                unit="J",
            )
        )
    if price is None:
        return lines
    dollars = serving.dollars_per_million_tokens(
        dollars_per_hour=price * gpus, tokens_per_s=tokens_per_s, busy_share=1.0
    )
    return [
        *lines,
        Line(
            name="a million tokens of answers",
            formula="GPUs × price of an hour / 3,600 / tokens/s × 1,000,000",
            numbers=f"{gpus} × {plain(price)} / 3600 / {plain(tokens_per_s)} × 1000000",
            value=dollars,
            unit="dollar",
        ),
    ]


def fleet_data(fleet: Fleet) -> dict[str, object]:
    """In base SI, for a script."""
    inside, copy, seen = fleet.inside, fleet.copy, fleet.seen
    return {
        "tp": copy.layout.tp,
        "weights_bytes": copy.layout.weights_bytes,
        "adapters_bytes": copy.layout.adapters_bytes,
        "pp": copy.layout.pp,
        "dp": copy.layout.dp,
        "dcp": copy.layout.dcp,
        "copies": fleet.copies,
        "num_gpus": fleet.gpus,
        "num_gpus_at_least": fleet.at_least,
        "seats": copy.seats,
        "longest_context_by_memory": copy.layout.longest_context(),
        "max_num_seqs": fleet.limits.max_num_seqs,
        "inside": seen.inside,
        "max_num_batched_tokens": fleet.limits.max_num_batched_tokens,
        "times_are": copy.kind,
        "bound_step_s": copy.bound.step_s(inside),
        "expected_step_s": copy.expected.step_s(inside) if copy.expected else None,
        "bound_prompt_s": copy.bound.prompt_s,
        "expected_prompt_s": copy.expected.prompt_s if copy.expected else None,
        "copy_carries_requests_per_s": fleet.largest.requests_per_s if fleet.largest else None,
        "waiting_s": fleet.waiting_s,
        **_percentiles(seen),
        "tokens_per_s": fleet.tokens_per_s,
        "tokens_per_s_per_gpu": fleet.tokens_per_s / fleet.gpus,
        "tokens_per_s_per_user": seen.tokens_per_s / seen.inside,
    }


def _percentiles(seen: ReplicaRun) -> dict[str, float]:
    both = {"ttft": seen.ttft_s, "itl": seen.itl_s, "tpot": seen.tpot_s}
    return {f"{name}_{which}_s": both[name][place] for name in both for place, which in enumerate(("p50", "p99"))}
