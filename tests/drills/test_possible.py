"""What a drill draws could stand in a real rack: named parts run at their own rates, named models have their own
layers and heads, clocks, rates and memories exist, and groups divide.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.drills.test_every_drill import drawn, every_drill
from tests.seeds import seeds

from threeloops import units
from threeloops.drills.decode_speed import configs
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.answers_in_text import figures
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import Draw, Drill
from threeloops.facts import hardware
from threeloops.facts.hardware import Part
from threeloops.models import catalogue
from threeloops.models.architecture import Attention
from threeloops.models.parameters import model_parameters
from threeloops.room.kinds import spots
from threeloops.room.kinds.band_draws import INTERVIEW, draws
from threeloops.room.kinds.spots.spot import drawn_case
from threeloops.room.kinds.table import draw_of
from threeloops.room.kinds.tables import TABLES

PARTS = {part.name: part for part in map(hardware.part, hardware.part_keys())}
MODELS = {catalogue.model_entry(key).name: catalogue.model(key) for key in catalogue.model_keys()}
PRINTED = 0.006  # a rate is printed with three digits
FASTEST_CLOCK_HZ = max(
    part.facts[name].value
    for part in PARTS.values()
    for name in ("boost_clock_hz", "all_core_boost_clock_hz")
    if name in part.facts
)
CLOCK = re.compile(r"([\d.,]*\d) ?([MG])Hz")
OTHER_RATES = {  # rates in a prompt that are no rate of the part it names, and what they are
    "measured-card-between-nodes": "a network card's",
    "network-host-detour": "the rate of the cards behind the bus that it names",
    "roofline-binding-level": "out of the L2: bytes per cycle and clock, rounded",
    "roofline-measured-ceiling": "measured, below the peak",
}
TOTALS = {"network-brochure-total": "added up over all GPUs"}
MEMORY_CLOCKS = ("soc-memory-bandwidth",)  # data move on both edges of it


def asked() -> Iterator[tuple[str, str, Draw]]:
    """(key, words, numbers) of everything with numbers that is no drill's own draw."""
    for key in INTERVIEW:
        yield from ((key, DRILLS[key].prompt(p), p) for p in draws(key))
    for worked in spots.WORKED:
        yield from ((worked.key, worked.prompt(p), p) for p, _ in (drawn_case(worked, str(seed)) for seed in seeds(60)))
    for table in TABLES:
        yield from ((table.key, table.prompt(p), p) for p in (draw_of(table, str(seed)) for seed in seeds(60)))


def impossible(key: str, words: str, p: Draw) -> list[str]:
    """Everything in a question that no catalogue would have."""
    short = vars(p).get("gpu")  # A100, with the rates of its longer name
    named = [part for name, part in PARTS.items() if name in words or (isinstance(short, str) and short in name)]
    return [*_rates(key, words, named), *_clocks(key, words, named), *_models(p), *_groups(p), *_cards(p)]


def _rates(key: str, words: str, named: list[Part]) -> Iterator[str]:
    for unit, fastest in FASTEST.items():
        known = [rate for part in named for rate in _known_rates(part, unit)]
        for figure, amount in figures(words, unit):
            if named and key not in OTHER_RATES and not any(abs(amount - rate) <= PRINTED * rate for rate in known):
                yield f"{figure}: no rate of {' or '.join(part.name for part in named)}"
            if amount > fastest * (1 + PRINTED) and key not in TOTALS:
                yield f"{figure}: nothing in the catalogue is so fast"


def _known_rates(part: Part, unit: str) -> Iterator[float]:
    """Dense and sparse, one way and both, as rates are quoted."""
    for fact, its_unit in part.all_facts().values():
        if its_unit in (unit, "OP/s") or (unit, its_unit) == ("B/s", "bit/s"):
            scale = 1 / units.BITS_PER_BYTE if its_unit == "bit/s" else 1
            yield from (fact.value * scale * ways for ways in (0.5, 1, 2))
    yield from (fact.value for fact in part.sparse_peaks.values() if unit == "FLOP/s")


FASTEST = {
    unit: max(rate for part in PARTS.values() for rate in _known_rates(part, unit)) for unit in ("FLOP/s", "B/s")
}


def _clocks(key: str, words: str, named: list[Part]) -> Iterator[str]:
    boosts = [part["boost_clock_hz"] for part in named if "boost_clock_hz" in part.facts]
    most = max(boosts, default=FASTEST_CLOCK_HZ)
    for digits, prefix in CLOCK.findall(words):
        clock = float(digits.replace(",", "")) * (units.MHz if prefix == "M" else units.GHz)
        if clock > most * (1 + PRINTED) and key not in MEMORY_CLOCKS:
            yield f"{digits} {prefix}Hz: the clock stops at {most / units.GHz:g} GHz"


def _models(p: Draw) -> Iterator[str]:
    """What a draw says of a model that it names."""
    numbers = vars(p)
    model = MODELS.get(numbers.get("name", ""))
    if model is None:
        return
    attention = model.groups[0][0].attention
    true = {"hidden": model.hidden, "vocab": model.vocab, "parameters": model_parameters(model).total}
    if isinstance(attention, Attention):
        true |= {"query_heads": attention.num_heads, "heads": attention.num_heads, "head_dim": attention.head_dim}
        true |= {"kv_heads": attention.num_kv_heads}
    for name, value in true.items():
        if name in numbers and numbers[name] != value:
            yield f"{name}={numbers[name]}: {model.name} has {value}"
    if "layers" in numbers and model.num_layers % numbers["layers"]:  # all of them, or a stage's equal share
        yield f"layers={numbers['layers']}: no share of the {model.num_layers} of {model.name}"


MATRIX_PEAK = 100 * units.TFLOP  # FLOP/s; below, a peak is that of vector units


def _cards(p: Draw) -> Iterator[str]:
    """A card that is not named has the matrix peak and the memory of one card, not of two."""
    peak, memory = vars(p).get("peak", 0), vars(p).get("bandwidth", 0)
    if peak < MATRIX_PEAK or memory < units.GB:
        return
    cards = [part for part in PARTS.values() if "memory_bytes_per_s" in part.facts]
    near = [part for part in cards if abs(part["memory_bytes_per_s"] / memory - 1) < 0.05]
    if not any(abs(fact.value / peak - 1) < 0.05 for part in near for fact in part.peaks.values()):
        yield f"no card has {peak:.3g} FLOP/s and {memory:.3g} B/s"


DIVIDES = (  # (part, whole): ranks of a group, heads of a group, all equal
    ("kv_heads", "query_heads"),
    ("kv_heads", "heads"),
    ("tp", "heads"),
    ("pp", "layers"),
    ("per_node", "gpus"),
    ("tp", "gpus"),
    ("per_node", "ranks"),
    ("heads", "hidden"),
    ("tp", "hidden"),
)
WITHIN = ("share", "busy", "hit", "accepted", "headroom", "utilisation")  # shares of a whole


def _groups(p: Draw) -> Iterator[str]:
    numbers = vars(p)
    for part, whole in DIVIDES:
        counts = isinstance(numbers.get(part), int) and isinstance(numbers.get(whole), int)
        if counts and numbers[whole] % numbers[part]:
            yield f"{whole}={numbers[whole]} is not divided by {part}={numbers[part]}"
    if numbers.get("top_k", 0) > numbers.get("experts", numbers.get("top_k", 0)):
        yield f"{numbers['top_k']} of {numbers['experts']} experts"
    for name in WITHIN:
        if isinstance(numbers.get(name), float) and not 0 < numbers[name] <= 1:
            yield f"{name}={numbers[name]} is no share"


@every_drill
def test_every_draw_is_physically_possible(drill: Drill) -> None:
    for seed in seeds(1000)[-20:]:
        p = drawn(drill, seed)
        assert not impossible(drill.key, drill.prompt(p), p), f"seed {seed}"


def test_so_are_interview_numbers_worked_answers_and_tables() -> None:
    assert not [(key, found) for key, words, p in asked() if (found := impossible(key, words, p))]


# What lies in a card's memory while it decodes, in bytes.
RESIDENT: dict[str, Callable[[Drill, Any], float]] = {
    "serving-decode-step": lambda drill, p: drill.derive(p).value * p.bandwidth,
    "serving-batch-throughput": lambda drill, p: p.batch * p.bandwidth / drill.derive(p).value,
    "serving-batch-for-itl": lambda drill, p: p.itl_ms * units.ms * p.bandwidth,
    "decode-latency-floor": lambda drill, p: drill.derive(p).value * p.bandwidth,
    "coding-decode-step": lambda drill, p: drill.derive(p).value * p.bandwidth,
    "capacity-adapter-batch": lambda drill, p: drill.derive(p).value * p.memory,
    "decode-from-the-config": lambda drill, p: drill.derive(p).value * p.bandwidth,
    "stack-fused-update": lambda drill, p: 16 * p.parameters,  # weight, gradient and two moments in fp32
}


@pytest.mark.parametrize("key", RESIDENT)
def test_what_a_card_reads_or_updates_fits_into_it(key: str) -> None:
    drill = DRILLS[key]
    for seed in seeds(200):
        p = drawn(drill, seed)
        rate = vars(p).get("bandwidth") or p.memory
        sizes = [
            part["memory_bytes"]
            for part in PARTS.values()
            if {"memory_bytes", "memory_bytes_per_s"} <= set(part.facts)
            and abs(part["memory_bytes_per_s"] / rate - 1) < 0.15
        ]
        assert RESIDENT[key](drill, p) <= max(sizes), f"seed {seed}: {drill.prompt(p)}"


def test_a_decode_step_is_asked_of_every_model_that_allows_it_and_within_its_context() -> None:
    drill = DRILLS["decode-from-the-config"]
    draws = [drawn(drill, seed) for seed in range(100)]
    longest = {catalogued.model_name(key): catalogued.model(key).max_context for key in configs.REAL}
    assert {p.name for p in draws} == set(longest)
    assert all(p.tokens <= longest[p.name] for p in draws)
