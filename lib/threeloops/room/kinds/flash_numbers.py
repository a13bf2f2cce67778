"""The numbers to know: which facts of which parts, and what the book's formulas make of them."""

import math

from threeloops import units
from threeloops.drills.engine import catalogued
from threeloops.drills.engine.bank import DRILLS
from threeloops.drills.engine.drill import drawn
from threeloops.drills.engine.judge import close
from threeloops.driving import latency_budget
from threeloops.facts import hardware
from threeloops.inner_loop.number_formats import FP16
from threeloops.models import model_flops
from threeloops.models.parameters import model_parameters
from threeloops.operations import roofline
from threeloops.product_loop import kv_cache
from threeloops.room.kinds.flash import BAND, Flash, Number, together
from threeloops.training_loop.memory.recipes import recipe_named

# --- from the catalogue --------------------------------------------------------------------------

FACTS = {
    "memory_bytes": "memory, as the datasheet prints it",
    "memory_bytes_per_s": "memory bandwidth",
    "sms": "number of SMs",
    "l2_bytes": "L2 cache",
    "shared_memory_bytes_per_sm": "shared memory per SM, at most",
    "register_file_bytes_per_sm": "register file per SM",
    "tdp_w": "power limit",
    "link_bytes_per_s_one_way": "NVLink bandwidth in one direction, all links together",
    "bytes_per_s_one_way": "bandwidth in one direction",
    "domain_gpus": "number of GPUs that NVLink joins in a rack",
    "peaks.bf16": "dense BF16 peak on tensor cores",
    "peaks.fp8": "dense FP8 peak on tensor cores",
}
TELLING = {
    "memory_bytes": r" \d+GB",
    "domain_gpus": r" NVL\d+| \(\d+ [^)]*\)",
}  # what in a part's name would be the answer
COUNTS = ("SM", "GPU")  # asked as plain numbers
INNER = (
    ("h100-sxm5", "memory_bytes"),
    ("h100-sxm5", "memory_bytes_per_s"),
    ("h100-sxm5", "peaks.bf16"),
    ("h100-sxm5", "peaks.fp8"),
    ("h100-sxm5", "sms"),
    ("h100-sxm5", "l2_bytes"),
    ("h100-sxm5", "shared_memory_bytes_per_sm"),
    ("h100-sxm5", "register_file_bytes_per_sm"),
    ("h100-sxm5", "tdp_w"),
    ("a100-sxm4-80gb", "memory_bytes_per_s"),
    ("a100-sxm4-80gb", "peaks.bf16"),
    ("a100-sxm4-80gb", "sms"),
    ("h200-sxm", "memory_bytes"),
    ("h200-sxm", "memory_bytes_per_s"),
    ("b200-hgx", "memory_bytes_per_s"),
    ("b200-hgx", "peaks.bf16"),
    ("mi300x", "memory_bytes"),
    ("pcie-5-x16", "bytes_per_s_one_way"),
)
TRAINING = (
    ("a100-sxm4-80gb", "link_bytes_per_s_one_way"),
    ("h100-sxm5", "link_bytes_per_s_one_way"),
    ("b200-hgx", "link_bytes_per_s_one_way"),
    ("infiniband-ndr", "bytes_per_s_one_way"),
    ("gb200-nvl72", "domain_gpus"),
)
DRIVING = (("jetson-agx-orin-64gb", "memory_bytes_per_s"), ("drive-thor", "memory_bytes_per_s"))


def _of_part(part_key: str, fact: str) -> Number:
    part = catalogued.part(part_key)
    found, unit = part.all_facts()[fact]
    return Number(
        value=found.value,
        unit="" if unit in COUNTS else unit,
        whole=unit in COUNTS,
        told=f"printed as “{found.printed}” ({found.kind})",
        source=f"{found.title}, {found.url}, read {found.checked}",
        near=(*_misread(part, fact), *_of_others(part, fact, found.value)),
    )


def _misread(part: hardware.Part, fact: str) -> list[tuple[str, float, str]]:
    """The same part's numbers that are quoted in its place."""
    kind, _, dtype = fact.partition(".")
    if kind == "peaks" and dtype in part.sparse_peaks:
        return [("sparse", part.sparse_peaks[dtype].value, "That is the peak with 2:4 sparsity.")]
    if fact.endswith("one_way"):
        value = part[fact]
        return [
            ("both-directions", 2 * value, "That is both directions added, as it is advertised."),
            ("bits", units.BITS_PER_BYTE * value, "Bits, or bytes?"),
        ]
    return []


def _of_others(part: hardware.Part, fact: str, value: float) -> list[tuple[str, float, str]]:
    """The same fact of other parts that are asked about, where it differs."""
    rows = []
    for key in dict.fromkeys(key for key, asked in (*INNER, *TRAINING, *DRIVING) if asked == fact and key != part.key):
        other = catalogued.part(key)
        theirs = other.all_facts()[fact][0].value
        if not close(theirs, value, 2 * BAND):
            rows.append((f"{key}", theirs, f"That is the figure of the {other.name}."))
    return rows


def _part_flash(part_key: str, fact: str, loop: str, section: str) -> Flash:
    return Flash(
        key=f"fact-{part_key}-{fact.replace('_', '-').replace('.', '-')}",
        words=f"{FACTS[fact]}?",
        loop=loop,
        section=section,
        number=lambda: _of_part(part_key, fact),
        part=part_key,
        telling=TELLING.get(fact, ""),
    )


# --- from formulas ------------------------------------------------------------------------------


def _ridge(part_key: str) -> Number:
    part = catalogued.part(part_key)
    peak, memory = part.peak_flops_per_s("bf16"), part["memory_bytes_per_s"]
    return Number(
        value=roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=memory),
        unit="FLOP/B",
        told=f"{units.fmt_si(peak, 'FLOP/s')} / {units.fmt_si(memory, 'B/s')}",
        source="Williams, Waterman, Patterson, CACM 52(4), 2009, doi:10.1145/1498765.1498785",
        near=(("sparse", part.sparse_peak_flops_per_s("bf16") / memory, "That is with the peak of 2:4 sparsity."),),
    )


def _states() -> Number:
    state = recipe_named("zero-paper").hidden_matrices
    return Number(
        value=state.total_bytes,
        unit="B",
        told="2 weight + 2 gradient + 12 for the update: master copy, momentum, variance",
        source="Rajbhandari et al., ZeRO, 2019, arXiv:1910.02054, section 3.1",
        near=(
            ("no-master-copy", state.total_bytes - state.master_bytes, "The fp32 master copy is missing."),
            ("weights-only", state.weight_bytes, "That is the weight alone."),
        ),
    )


def _training_flops() -> Number:
    return Number(
        value=model_flops.six_n_d(num_parameters=1, tokens=1),
        unit="FLOP",
        told="2 forward, 4 backward",
        source="Kaplan et al., 2020, arXiv:2001.08361, section 2.1",
        near=(
            ("forward-only", 2.0, "That is the forward pass."),
            ("one-gradient", 4.0, "The backward pass computes two gradients."),
        ),
    )


def _kv(model_key: str) -> Number:
    model, key_and_value = catalogued.model(model_key), 2
    return Number(
        value=kv_cache.bytes_per_token(model, bytes_per_element=2),
        unit="B/token",
        told="2 × layers × KV heads × head dim × 2 bytes",
        source="Ainslie et al., 2023, arXiv:2305.13245",
        near=(
            (
                "half",
                kv_cache.bytes_per_token(model, bytes_per_element=2) / key_and_value,
                "Keys and values are both cached.",
            ),
        ),
    )


def _weights(model_key: str) -> Number:
    parameters = model_parameters(catalogued.model(model_key)).total
    return Number(
        value=2 * parameters,
        unit="B",
        told=f"2 bytes × {parameters:,} parameters",
        source="the model's config; see `threeloops sources`",
        near=(
            ("one-byte", parameters, "A 16-bit weight is two bytes."),
            ("fp32", 4 * parameters, "That is in 32 bits."),
        ),
    )


def _scores() -> Number:
    drill, numbers = (
        DRILLS["attention-score-matrix"],
        {"heads": 1, "kv_heads": 1, "head_dim": 128, "batch": 1, "tokens": 8192, "bytes_per_element": 2},
    )
    derived = drill.derive(drawn(**numbers))
    return Number(
        value=derived.value, unit="B", told=f"{derived.formula} = {derived.in_numbers}", source=derived.source
    )


def _generation() -> Number:
    newer, older = (catalogued.part(key).peak_flops_per_s("bf16") for key in ("h100-sxm5", "a100-sxm4-80gb"))
    return Number(
        value=newer / older,
        unit="",
        told=f"{units.fmt_si(newer, 'FLOP/s')} / {units.fmt_si(older, 'FLOP/s')}",
        source="the datasheets of both; see `threeloops sources`",
    )


def _largest() -> Number:
    return Number(
        value=FP16.largest,
        unit="",
        whole=True,
        near=(("next-power", 2.0 ** round(math.log2(FP16.largest)), "That is the first power of two beyond it."),),
        told=f"{FP16.exponent_bits} exponent bits, {FP16.mantissa_bits} mantissa bits",
        source="IEEE 754-2019, section 3.4",
    )


def _metres_per_picture() -> Number:
    speed = 130 * units.kB / units.hour  # a kilometre is a thousand metres
    return Number(
        value=latency_budget.distance_m(speed_m_per_s=speed, seconds=1 / 30),
        unit="m",
        told="130 km/h are 36 m/s; a thirtieth of that",
        source="distance at constant speed",
        near=(("kmh", 130 / 30, "Kilometres per hour were taken for metres per second."),),
    )


DERIVED = (
    Flash(
        key="fact-ridge-h100",
        words="Ridge point of an H100 SXM5, dense BF16 against its memory?",
        loop="inner",
        section="Roofline",
        number=lambda: _ridge("h100-sxm5"),
    ),
    Flash(
        key="fact-ridge-a100",
        words="Ridge point of an A100 SXM4 80GB, dense BF16 against its memory?",
        loop="inner",
        section="Roofline",
        number=lambda: _ridge("a100-sxm4-80gb"),
    ),
    Flash(
        key="fact-h100-over-a100",
        words="How many times an A100's dense BF16 peak does an H100 SXM5 have?",
        loop="inner",
        section="The GPU",
        number=_generation,
    ),
    Flash(
        key="fact-largest-fp16",
        words="The largest number that FP16 can hold?",
        loop="inner",
        section="Number formats",
        number=_largest,
    ),
    Flash(
        key="fact-score-matrix",
        words="The scores of one attention head over 8,192 tokens in 16 bits, every token with every token: how large?",
        loop="inner",
        section="Fusion and FlashAttention",
        number=_scores,
    ),
    Flash(
        key="fact-state-per-parameter",
        words=(
            "Bytes per parameter of model states with Adam in mixed precision, as in the ZeRO paper, nothing sharded?"
        ),
        loop="training",
        section="Training memory",
        number=_states,
    ),
    Flash(
        key="fact-flops-per-parameter",
        words="FLOPs per parameter and token of a training step, nothing recomputed?",
        loop="training",
        section="Why many GPUs",
        number=_training_flops,
    ),
    Flash(
        key="fact-kv-llama-2-7b",
        words="KV cache of Llama 2 7B per token, in 16 bits?",
        loop="product",
        section="KV cache",
        number=lambda: _kv("llama-2-7b"),
    ),
    Flash(
        key="fact-kv-llama-3-8b",
        words="KV cache of Llama 3 8B per token, in 16 bits?",
        loop="product",
        section="KV cache",
        number=lambda: _kv("llama-3-8b"),
    ),
    Flash(
        key="fact-weights-llama-3-70b",
        words="Weights of Llama 3 70B in 16 bits?",
        loop="product",
        section="KV cache",
        number=lambda: _weights("llama-3-70b"),
    ),
    Flash(
        key="fact-metres-per-picture",
        words="Metres that a car at 130 km/h covers from picture to picture of a camera with 30 a second?",
        loop="driving",
        section="A car that must answer in time",
        number=_metres_per_picture,
    ),
)
FLASHES = (
    *(_part_flash(key, fact, "inner", "The GPU") for key, fact in INNER),
    *(_part_flash(key, fact, "training", "Network and cluster") for key, fact in TRAINING),
    *(_part_flash(key, fact, "driving", "Silicon in the car") for key, fact in DRIVING),
    *DERIVED,
)

IDEAS = together(FLASHES)
