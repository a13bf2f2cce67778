"""The page of numbers of each loop: read from the catalogue or computed by the library when the page is made."""

from threeloops import units
from threeloops.driving import latency_budget, sensor_data
from threeloops.dtypes import bytes_per_element
from threeloops.facts.hardware import part
from threeloops.inner_loop import block_formats, number_formats
from threeloops.models import catalogue
from threeloops.models.parameter_buckets import ParameterBuckets
from threeloops.models.parameters import model_parameters
from threeloops.operations import roofline
from threeloops.product_loop import kv_cache, queueing, serving, speculative
from threeloops.sheets import numbers_hardware as parts
from threeloops.sheets.layout import Page, Table
from threeloops.training_loop.memory import rank_states
from threeloops.training_loop.memory.recipes import recipe_named

MODELS = (
    "llama-2-7b",
    "llama-3-8b",
    "llama-2-13b",
    "llama-3-70b",
    "mixtral-8x7b",
    "deepseek-v3",
    "qwen3-32b",
    "gemma-3-27b",
)
RECIPES = ("zero-paper", "megatron", "deepspeed", "autocast", "pure-bf16")
STAGES = {0: "nothing shared", 1: "ZeRO-1: optimiser state", 2: "ZeRO-2: and gradients", 3: "ZeRO-3: and weights"}
EXAMPLE_MODEL, EXAMPLE_CONTEXT, EXAMPLE_GPUS = "llama-2-7b", 8192, 8
DECODER = "h100-sxm5"
SPEEDS_KM_H = (30, 50, 80, 100, 120, 130)
CHAIN_S = 0.1  # from sensor to actuator
FRAME_RATE = 30
# of a machine that brakes firmly on a dry road; both are choices, and stand on the page
REACTION_S, DECELERATION = 0.5, 6.0
LATE, PARTS = 0.01, (1, 5, 10, 50, 100)
CAMERAS = ((6, 1920, 1080), (8, 1920, 1280), (11, 3840, 2160))
BITS_PER_PIXEL = 12
LOADS = (0.5, 0.7, 0.8, 0.9, 0.95, 0.99)
ACCEPTED, DRAFTED, DRAFT_COST = (0.6, 0.7, 0.8, 0.9), (3, 5, 7), 0.05


def formats() -> Table:
    """Where formats end and how far their numbers lie apart."""
    rows = []
    for form in number_formats.FORMATS.values():
        layout, gap = f"1+{form.exponent_bits}+{form.mantissa_bits}", number_formats.spacing(1.0, form)
        rows.append((form.name, layout, f"{form.largest:.5g}", f"{form.smallest_normal:.3g}", f"{gap:.3g}"))
    head = ("format", "sign+exponent+mantissa", "largest", "smallest normal", "gap at one")
    return Table(title="Number formats", head=head, rows=tuple(rows))


def blocks() -> Table:
    """Bits that a quantised weight really costs."""
    rows = []
    for form in block_formats.BLOCK_FORMATS.values():
        wide = number_formats.BF16.bits / form.bits_per_element
        rows.append((form.name, f"{form.block}", f"{form.bits_per_element:.4g}", f"{wide:.3g}×"))
    return Table(
        title="Formats with scales", head=("format", "block", "bits per element", "smaller than bf16"), rows=tuple(rows)
    )


def model_shapes() -> Table:
    """Weights, caches and the floor of a decode step."""
    rows, rate = [], part(DECODER)["memory_bytes_per_s"]
    for key in MODELS:
        model, entry = catalogue.model(key), catalogue.model_entry(key)
        count = model_parameters(model)
        weights, active = (number * bytes_per_element("bf16") for number in (count.total, count.active))
        token = kv_cache.bytes_per_token(model, bytes_per_element=bytes_per_element("bf16"))
        context = kv_cache.request_bytes(model, tokens=EXAMPLE_CONTEXT, bytes_per_element=bytes_per_element("bf16"))
        row = (
            entry.name,
            units.fmt_si(count.total, ""),
            units.fmt_si(count.active, ""),
            units.fmt_bytes(weights, base=10),
        )
        rows.append(
            (*row, units.fmt_bytes(token, base=2), units.fmt_bytes(context, base=2), units.fmt_seconds(active / rate))
        )
    head = (
        "model",
        "parameters",
        "active",
        "weights, bf16",
        "cache per token",
        f"cache of {EXAMPLE_CONTEXT:,} tokens",
        f"read once, {part(DECODER).name}",
    )
    note = (
        "Read once: active weights over memory bandwidth, the least that one token for one user takes on one such"
        " device, whether or not they fit on it."
    )
    return Table(title="Models", head=head, rows=tuple(rows), note=note)


def recipes() -> Table:
    """Bytes per parameter, and what sharding leaves of them on each GPU."""
    count = model_parameters(catalogue.model(EXAMPLE_MODEL)).total
    rows = []
    for name in RECIPES:
        recipe = recipe_named(name)
        by_stage = {stage: name if stage in recipe.zero_stages else recipe.at_other_stages for stage in STAGES}
        states = [
            rank_states.model_states(
                parameters=ParameterBuckets(split_matrices=count),
                recipe=used,
                zero_stage=stage,
                dp=EXAMPLE_GPUS,
                tp=1,
                pp=1,
            )
            for stage, used in by_stage.items()
        ]
        rows.append(
            (name, f"{states[0].total_bytes / count:g}", *(units.fmt_bytes(one.total_bytes, base=2) for one in states))
        )
    head = ("recipe", "bytes per parameter", *STAGES.values())
    title = f"Model states of {catalogue.model_entry(EXAMPLE_MODEL).name} on each of {EXAMPLE_GPUS} GPUs"
    return Table(
        title=title, head=head, rows=tuple(rows), note="Activations come on top, and none of this divides them."
    )


def waiting() -> Table:
    """How long a queue makes one wait, in service times."""
    rows = [
        (f"{units.fmt_percent(load)}", f"{queueing.mm1_wait_s(requests_per_s=load, service_s=1.0):.3g}")
        for load in LOADS
    ]
    head = ("load", "mean wait, in service times")
    return Table(
        title="Queues",
        head=head,
        rows=tuple(rows),
        note="One server, arrivals and services at random. Everything beyond 80 % is bought with waiting.",
    )


def _draft(share: float, drafted: int) -> str:
    tokens = speculative.tokens_per_check(accepted_share=share, drafted=drafted)
    return f"{tokens:.2f} ({speculative.speedup(accepted_share=share, drafted=drafted, draft_cost=DRAFT_COST):.2f}×)"


def drafting() -> Table:
    """Tokens per check of the large model, and the gain."""
    rows = [(units.fmt_percent(share), *(_draft(share, drafted) for drafted in DRAFTED)) for share in ACCEPTED]
    head = ("accepted", *(f"{drafted} drafted" for drafted in DRAFTED))
    note = (
        f"Tokens per check, and the gain if a drafted token costs {units.fmt_percent(DRAFT_COST)} of a step of the"
        " large model and a check costs one step."
    )
    return Table(title="Speculative decoding", head=head, rows=tuple(rows), note=note)


def speeds() -> Table:
    """Metres that pass while a computer thinks."""
    rows = []
    for km_h in SPEEDS_KM_H:
        speed = km_h * units.km / units.hour
        frame, chain = (
            latency_budget.distance_m(speed_m_per_s=speed, seconds=seconds) for seconds in (1 / FRAME_RATE, CHAIN_S)
        )
        stop = latency_budget.stopping_distance_m(
            speed_m_per_s=speed, reaction_s=REACTION_S, deceleration_m_per_s2=DECELERATION
        )
        rows.append((f"{km_h} km/h", f"{speed:.1f} m/s", f"{frame:.2f} m", f"{chain:.2f} m", f"{stop:.0f} m"))
    head = ("speed", "", f"per frame at {FRAME_RATE}/s", f"in {units.fmt_seconds(CHAIN_S)}", "to stand still")
    note = f"To stand still: {units.fmt_seconds(REACTION_S)} until the brakes bite, then {DECELERATION:g} m/s²."
    return Table(title="Distances", head=head, rows=tuple(rows), note=note)


def cameras() -> Table:
    """What cameras deliver before anybody compresses it."""
    rows = []
    for number, width, height in CAMERAS:
        rate = sensor_data.camera_bytes_per_s(
            cameras=number, width=width, height=height, bits_per_pixel=BITS_PER_PIXEL, frames_per_s=FRAME_RATE
        )
        rows.append(
            (
                f"{number} cameras, {width} × {height}",
                units.fmt_si(rate, "B/s"),
                units.fmt_bytes(rate * units.hour, base=10),
            )
        )
    return Table(
        title="Cameras",
        head=(f"{BITS_PER_PIXEL} bits per pixel, {FRAME_RATE}/s", "rate", "in an hour"),
        rows=tuple(rows),
    )


def late() -> Table:
    """How often at least one of several parts is late."""
    rows = [
        (f"{number}", units.fmt_percent(latency_budget.any_late_share(late_share=LATE, parts=number)))
        for number in PARTS
    ]
    note = f"Each late in {units.fmt_percent(LATE)} of frames, independently. A worst case is not a p99."
    return Table(title="Waiting for all of them", head=("parts", "frames with one late"), rows=tuple(rows), note=note)


def prefill() -> Table:
    """A prompt's time at the roof."""
    device, rows = part(DECODER), []
    peak = device.peak_flops_per_s("bf16")
    ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=device["memory_bytes_per_s"])
    for key in MODELS[:4]:
        work = 2 * model_parameters(catalogue.model(key)).active
        told = [
            units.fmt_seconds(
                serving.prefill_s(tokens=1000, flops_per_token=work, peak_flops_per_s=peak, utilisation=share)
            )
            for share in (1.0, 0.5)
        ]
        rows.append((catalogue.model_entry(key).name, units.fmt_si(work, "FLOP"), *told))
    note = (
        f"2 FLOP per parameter and token, attention left out. Weights read once serve {ridge:.0f} tokens for free: the"
        " ridge point, at two bytes a weight."
    )
    return Table(
        title=f"A prompt of 1,000 tokens, {device.name}",
        head=("model", "per token", "at the roof", "at half of it"),
        rows=tuple(rows),
        note=note,
    )


def page(loop: str) -> Page:
    """The numbers of one loop."""
    intro = (
        "Every figure is in the catalogue with the page that it was read on (`threeloops sources`), or was computed"
        " when this sheet was made."
    )
    tables: tuple[Table, ...]
    if loop == "inner":
        tables, read = (
            (parts.accelerators(), parts.latencies(), formats(), blocks()),
            parts.sources(parts.ACCELERATORS, parts.ACCELERATOR_FACTS)
            + parts.sources(parts.LATENCY_PARTS, parts.LATENCIES),
        )
    elif loop == "training":
        gradients = model_parameters(catalogue.model(EXAMPLE_MODEL)).total * bytes_per_element("bf16")
        tables, read = (
            (parts.links(gradients), recipes(), model_shapes()),
            parts.sources(parts.LINKS, ("bytes_per_s_one_way", "advertised_bytes_per_s")),
        )
    elif loop == "product":
        tables, read = (
            (model_shapes(), prefill(), drafting(), waiting()),
            parts.sources((DECODER,), ("memory_bytes_per_s", "peaks.bf16")),
        )
    else:
        tables, read = (
            (parts.systems_on_chip(), speeds(), cameras(), late()),
            parts.sources(parts.SYSTEMS_ON_CHIP, ("memory_bytes_per_s", "engines")),
        )
    if loop in ("training", "product"):
        read += tuple(
            dict.fromkeys(
                f"{entry.title} ({entry.checked.isoformat()})" for entry in map(catalogue.model_entry, MODELS)
            )
        )
    title = f"Numbers of the {loop} loop" if loop != "driving" else "Numbers of driving"
    return Page(title=title, intro=intro, tables=tables, sources=tuple(dict.fromkeys(read)))
