"""Drills on one step of decoding: its floor, the batch at which arithmetic takes over, many GPUs, and experts."""

import itertools
import random

from threeloops.drills.decode_speed.times import POPE, TB
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import giga, tera
from threeloops.operations.expert_layers import experts_touched
from threeloops.product_loop import decode_floor, serving
from threeloops.simulate.product_loop import decode_clock
from threeloops.units import GB, MB, TFLOP, billion, fmt_bytes

TAUGHT = Taught("product", "Prefill and decode")

MICRO = 1e-6

# --- the floor of one token ----------------------------------------------------------------------


# TB/s and dense TFLOP/s in BF16 of cards that exist (L40S, A100, H100, H200), and the most of these models that
# they hold in 4 bits, in billions of parameters
CARDS = ((0.864, 362, 70.6), (2.0, 312, 123), (3.35, 989.4, 123), (4.8, 989.4, 123))


def _draw_floor(rng: random.Random) -> Draw:
    bandwidth, peak, most = rng.choice(CARDS)
    return drawn(
        billions=rng.choice([size for size in (7.2, 8.0, 14.8, 32.5, 70.6, 123) if size <= most]),
        group=rng.choice((16, 32, 64)),
        bandwidth=bandwidth * TB,
        peak=peak * TFLOP,
    )


def _floor(p: Draw, *, element: float = 0.5, scale: float = 2.0) -> float:
    return float(p.billions * billion * (element + scale / p.group) / p.bandwidth)


def _count_floor(p: Draw) -> float:
    """Walk the weights: two to a byte, and two bytes more at the beginning of every group."""
    read = 0.0
    for weight in range(round(p.billions * billion)):
        read += 2 if weight % p.group == 0 else 0
        read += 1 if weight % 2 == 0 else 0
    return float(read / p.bandwidth)


FLOOR = Drill(
    key="decode-latency-floor",
    taught=TAUGHT,
    title="The least time for one token",
    unit="s",
    target_s=80,
    draw=_draw_floor,
    small=lambda rng: drawn(
        billions=rng.choice((128e-9, 192e-9)),
        group=rng.choice((16, 32)),
        bandwidth=rng.choice((10.0, 20.0)),
        peak=rng.choice((900.0, 700.0)),
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters is kept in 4 bits, with a scale of 2 bytes for every"
        f" {p.group} parameters. The card delivers {p.bandwidth / TB:g} TB/s and computes {p.peak / TFLOP:g} TFLOP/s."
        " One user, a short context. How long does one token take at least?"
    ),
    derive=lambda p: Derivation(
        value=serving.decode_step_s(
            weights_bytes=p.billions * billion * (0.5 + 2 / p.group),
            cache_bytes=0,
            batch=1,
            flops_per_token=2 * p.billions * billion,
            memory_bytes_per_s=p.bandwidth,
            peak_flops_per_s=p.peak,
        ),
        formula="parameters × (half a byte + 2 / group) / bandwidth: longer than 2 × parameters / peak",
        substitution=f"{giga(p.billions * billion)} × (0.5 + 2 / {p.group}) / {tera(p.bandwidth)}",
        source=POPE,
    ),
    count=_count_floor,
    slips=(
        Slip("no-scales", lambda p: _floor(p, scale=0))
        | "You read half a byte per parameter. The scales are read with them.",
        Slip("arithmetic", lambda p: 2 * p.billions * billion / p.peak)
        | "That is the arithmetic. Which takes longer here, computing or reading?",
        Slip("sixteen-bits", lambda p: _floor(p, element=2, scale=0))
        | "You read the weights in 16 bits. They are kept, and read, in fewer.",
        Slip("bits-as-bytes", lambda p: _floor(p, element=4)) | "You gave a parameter four bytes. It has four bits.",
        Slip("one-byte", lambda p: _floor(p, element=1)) | "You gave a parameter a whole byte. Four bits are less.",
    ),
)

# --- where arithmetic takes over -----------------------------------------------------------------


def _draw_ridge(rng: random.Random) -> Draw:
    billions = rng.choice((7.2, 8.0, 9.4, 14.8))
    bandwidth, peak = rng.choice(((2.0, 312.0), (3.35, 989.4), (4.8, 989.4)))
    share = rng.randrange(12, 25) / 100  # of the longest cache with which any batch suffices
    cache = round(share * 2 * billions * billion * bandwidth * TB / (peak * TFLOP) / MB)
    return drawn(billions=billions, bandwidth=bandwidth * TB, peak=peak * TFLOP, cache=round(cache * MB))


def _ridge(p: Draw, *, flops: float = 2, element: float = 2, sign: int = -1) -> float:
    weights = p.billions * billion
    gained = flops * weights / p.peak + sign * p.cache / p.bandwidth
    return float(element * weights / p.bandwidth / gained)


def _derive_ridge(p: Draw) -> Derivation:
    weights = giga(p.billions * billion)
    return Derivation(
        value=decode_floor.compute_bound_batch(
            weights_bytes=2 * p.billions * billion,
            cache_bytes_per_request=p.cache,
            flops_per_token=2 * p.billions * billion,
            memory_bytes_per_s=p.bandwidth,
            peak_flops_per_s=p.peak,
        ),
        formula="(weights / bandwidth) / (FLOP per token / peak − cache of a request / bandwidth)",
        substitution=(
            f"(2 × {weights} / {tera(p.bandwidth)}) / (2 × {weights} / {tera(p.peak)} − {p.cache} /"
            f" {tera(p.bandwidth)})"
        ),
        source=POPE,
    )


def _count_ridge(p: Draw) -> float:
    """Where reading and computing cross: on the straight lines through batches of 1 and 2, both played out."""
    step = {"weights": [2 * p.billions * billion], "cache": p.cache, "flops": 2 * p.billions * billion}
    (read_1, compute_1), (read_2, compute_2) = (
        decode_clock.clock(requests=requests, **step, bytes_per_s=p.bandwidth, flops_per_s=p.peak)
        for requests in (1, 2)
    )
    behind, caught_up = read_1 - compute_1, (compute_2 - compute_1) - (read_2 - read_1)
    return 1 + behind / caught_up


RIDGE = Drill(
    key="decode-compute-bound-batch",
    taught=TAUGHT,
    title="The batch at which arithmetic takes over",
    unit="",
    target_s=150,
    draw=_draw_ridge,
    small=lambda rng: drawn(
        billions=rng.choice((30e-9, 50e-9)), bandwidth=1000.0, peak=rng.choice((20e3, 30e3)), cache=rng.choice((1, 0.5))
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters in 16 bits decodes on a card with {p.bandwidth / TB:g}"
        f" TB/s and {p.peak / TFLOP:g} TFLOP/s. Every request has a KV cache of {p.cache / MB:,.0f} MB. From which"
        " batch on does all the arithmetic of a step take longer than all its reading, weights and caches? (Memory is"
        " no limit; a fraction is fine.)"
    ),
    derive=_derive_ridge,
    count=_count_ridge,
    prerequisites=("serving-decode-step",),
    slips=(
        Slip("no-caches", lambda p: p.peak / p.bandwidth)
        | "That is the ridge point, from which on the matmuls compute for longer. The question also counts the"
        " caches.",
        Slip("caches-help", lambda p: _ridge(p, sign=1))
        | "You let the caches bring arithmetic sooner. They add reading, and put it off.",
        Slip("one-byte", lambda p: _ridge(p, element=1)) | "You gave a parameter one byte. 16 bits are two.",
        Slip("three-passes", lambda p: _ridge(p, flops=6))
        | "You counted the FLOPs of training. Nothing is learnt here.",
    ),
)

# --- many GPUs -----------------------------------------------------------------------------------


def _draw_tensor(rng: random.Random) -> Draw:
    billions, layers = rng.choice(((32.5, 64), (70.6, 80), (123.0, 88)))
    return drawn(
        billions=billions,
        layers=layers,
        tp=rng.choice((4, 16)),
        bandwidth=rng.choice((3.35, 4.8)) * TB,
        cache=round(2 * billions * rng.randrange(30, 55)) * 10_000_000,
        latency_us=rng.randrange(32, 52),
    )


def _tensor(p: Draw, *, reading: float | None = None, sums: float = 2.0) -> float:
    read = (2 * p.billions * billion + p.cache) / p.tp if reading is None else reading
    return float(read / p.bandwidth + sums * p.layers * p.latency_us * MICRO)


TENSOR = Drill(
    key="decode-tensor-parallel-step",
    taught=TAUGHT,
    title="A step on many GPUs",
    unit="s",
    target_s=130,
    draw=_draw_tensor,
    small=lambda rng: drawn(
        billions=rng.choice((4e-9, 6e-9)),
        layers=rng.choice((3, 5)),
        tp=rng.choice((4, 16)),
        bandwidth=rng.choice((1e4, 3e4)),
        cache=rng.choice((5, 7)),
        latency_us=rng.randrange(20, 52),
    ),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters in 16 bits, {p.layers} layers, decodes tensor-parallel on"
        f" {p.tp} GPUs of {p.bandwidth / TB:g} TB/s each. The caches of the batch take {p.cache / GB:g} GB and split"
        f" evenly. Attention and MLP of each layer end in an all-reduce of {p.latency_us} µs, with nothing to hide"
        " behind. Reading, not computing, sets the pace. How long is a step at least?"
    ),
    derive=lambda p: Derivation(
        value=decode_floor.tensor_parallel_step_s(
            weights_bytes=2 * p.billions * billion,
            cache_bytes=p.cache,
            tp=p.tp,
            memory_bytes_per_s=p.bandwidth,
            all_reduces=2 * p.layers,
            all_reduce_s=p.latency_us * MICRO,
        ),
        formula="(weights + caches) / (GPUs × bandwidth) + 2 × layers × time of an all-reduce",
        substitution=(
            f"(2 × {giga(p.billions * billion)} + {p.cache:.0f}) / ({p.tp} × {tera(p.bandwidth)}) + 2 × {p.layers} ×"
            f" {p.latency_us}e-6"
        ),
        source="Pope et al., 2022, arXiv:2211.05102, section 3 (partitioned layers and their sums)",
    ),
    count=lambda p: decode_clock.ranks_step_s(
        layers=[2 * p.billions * billion / p.layers] * p.layers,
        caches=[p.cache / p.layers] * p.layers,
        ranks=p.tp,
        bytes_per_s=p.bandwidth,
        all_reduce_s=p.latency_us * MICRO,
    ),
    prerequisites=("serving-decode-step",),
    slips=(
        Slip("no-all-reduce", lambda p: _tensor(p, sums=0))
        | "You read, and added nothing up. Each layer waits for the sum over all GPUs.",
        Slip("one-per-layer", lambda p: _tensor(p, sums=1))
        | "You added up once per layer. Attention and MLP each end in a sum.",
        Slip("cache-not-split", lambda p: _tensor(p, reading=2 * p.billions * billion / p.tp + p.cache))
        | "You let each GPU read all caches. Heads are split, and their caches with them.",
        Slip("one-gpu", lambda p: _tensor(p, reading=2 * p.billions * billion + p.cache))
        | "You read everything from one memory. The GPUs read their parts at the same time.",
    ),
    function=AsFunction(
        takes=("billions", "layers", "tp", "bandwidth", "cache", "latency_us"),
        limit={"tp": 1},
        limit_case="a single GPU, which has no other GPU's part to add",
    ),
)

# --- experts -------------------------------------------------------------------------------------


def _draw_experts(rng: random.Random) -> Draw:
    experts, top_k = rng.choice(((128, 4), (256, 8), (160, 6), (128, 6), (60, 4)))
    fewest, most = int(0.28 * experts / top_k) + 1, int(0.5 * experts / top_k)
    return drawn(
        experts=experts,
        top_k=top_k,
        batch=rng.randint(max(3, fewest), most),
        layers=rng.choice((24, 36, 58, 61)),
        expert_mb=rng.choice((13.3, 17.7, 25.2, 44.0)),
    )


def _read(p: Draw, experts: float) -> float:
    return float(p.layers * experts * p.expert_mb * MB)


def _derive_experts(p: Draw) -> Derivation:
    touched = experts_touched(num_experts=p.experts, top_k=p.top_k, tokens=p.batch, routing="uniform")
    return Derivation(
        value=decode_floor.mixture_read_bytes(
            always_bytes=0, num_layers=p.layers, experts_touched=touched, expert_bytes=p.expert_mb * MB
        ),
        formula="layers × experts × (1 − (1 − top k / experts)^batch) × bytes of an expert",
        substitution=(f"{p.layers} × {p.experts} × (1 − (1 − {p.top_k} / {p.experts})**{p.batch}) × {p.expert_mb:g}e6"),
        source="Fedus et al., 2022, arXiv:2209.01667, section 2 (top-k routing); expectation of a coverage",
    )


def _count_experts(p: Draw) -> float:
    """Every way in which the tokens can choose, each as likely as the others."""
    choices = list(itertools.combinations(range(p.experts), p.top_k))
    sizes = [len(set().union(*way)) for way in itertools.product(choices, repeat=p.batch)]
    return _read(p, sum(sizes) / len(sizes))


EXPERTS = Drill(
    key="decode-experts-read",
    taught=TAUGHT,
    title="How many experts a batch wakes",
    unit="B",
    target_s=130,
    draw=_draw_experts,
    small=lambda rng: drawn(
        experts=rng.choice((4, 5)), top_k=2, batch=rng.choice((2, 3)), layers=rng.choice((3, 5)), expert_mb=0.5
    ),
    prompt=lambda p: (
        f"Each of {p.layers} layers has {p.experts} experts of {p.expert_mb:g} MB, of which every token uses {p.top_k}."
        f" A decode step serves {p.batch} requests, whose tokens choose evenly and independently of one another. How"
        " many bytes of expert weights does the step read on average?"
    ),
    derive=_derive_experts,
    count=_count_experts,
    slips=(
        Slip("all-different", lambda p: _read(p, p.top_k * p.batch))
        | "You let no two tokens choose the same expert. Some do, and it is read once for both.",
        Slip("one-token", lambda p: _read(p, p.top_k))
        | "Those are the experts of one token. The batch has more, and they choose others.",
        Slip("all-experts", lambda p: _read(p, p.experts))
        | "You read every expert. So small a batch leaves some of them alone.",
        Slip("untouched", lambda p: _read(p, p.experts * (1 - p.top_k / p.experts) ** p.batch))
        | "Those are the experts that no token chose.",
        Slip("one-layer", lambda p: _derive_experts(p).value / p.layers)
        | "That is one layer. Each layer has its own experts and its own router.",
    ),
    function=AsFunction(
        takes=("experts", "top_k", "batch", "layers", "expert_mb"), limit={"batch": 1}, limit_case="a single request"
    ),
)

# --- fewer bits for the weights alone ------------------------------------------------------------


def _draw_bits(rng: random.Random) -> Draw:
    billions = rng.choice((7.2, 8.0, 13.0, 14.8, 32.5))
    return drawn(
        billions=billions,
        group=16,
        batch=rng.randrange(7, 11),
        per_request=round(billions * rng.randrange(7, 13)) * 10_000_000,
    )


def _times(p: Draw, *, element: float = 0.5, scale: float = 2.0, batch: int | None = None) -> float:
    caches = (p.batch if batch is None else batch) * p.per_request
    weights = p.billions * billion
    return float((2 * weights + caches) / (weights * (element + scale / p.group) + caches))


def _derive_bits(p: Draw) -> Derivation:
    weights = giga(p.billions * billion)

    def step(bytes_per_parameter: float) -> float:
        return serving.decode_step_s(
            weights_bytes=bytes_per_parameter * p.billions * billion,
            cache_bytes=p.batch * p.per_request,
            batch=p.batch,
            flops_per_token=1,
            memory_bytes_per_s=1,
            peak_flops_per_s=p.batch,
        )

    return Derivation(
        value=step(2) / step(0.5 + 2 / p.group),
        formula="(weights in 16 bits + caches) / (weights in 4 bits with scales + caches)",
        substitution=(
            f"(2 × {weights} + {p.batch} × {p.per_request}) / ((0.5 + 2 / {p.group}) × {weights} + {p.batch} ×"
            f" {p.per_request})"
        ),
        source=POPE,
    )


def _count_bits(p: Draw) -> float:
    """Read both models weight by weight, each followed by the caches."""
    before = after = 0.0
    for weight in range(round(p.billions * billion)):
        before += 2
        after += (2 if weight % p.group == 0 else 0) + (1 if weight % 2 == 0 else 0)
    for _ in range(p.batch):
        before += p.per_request
        after += p.per_request
    return before / after


BITS = Drill(
    key="decode-weights-in-four-bits",
    taught=TAUGHT,
    title="A quarter of the weights, not of the step",
    unit="",
    target_s=120,
    draw=_draw_bits,
    small=lambda rng: drawn(billions=rng.choice((32e-9, 64e-9)), group=16, batch=rng.choice((7, 9)), per_request=4),
    prompt=lambda p: (
        f"A dense model of {p.billions:g} billion parameters in 16 bits decodes for {p.batch} requests, each with a KV"
        f" cache of {fmt_bytes(p.per_request, base=10)}. Its weights are put into 4 bits, with a scale of 2 bytes for"
        f" every {p.group}; the caches stay as they are. Reading sets the pace before and after. How many times as fast"
        " does it decode?"
    ),
    derive=_derive_bits,
    count=_count_bits,
    prerequisites=("serving-decode-step",),
    slips=(
        Slip("weights-alone", lambda p: _times(p, batch=0))
        | "That is how much smaller the weights are. A step reads something else, too.",
        Slip("one-cache", lambda p: _times(p, batch=1)) | "You read the cache of one request. The batch has more.",
        Slip("no-scales", lambda p: _times(p, scale=0))
        | "You read half a byte per parameter. The scales are read with them.",
        Slip("turned-over", lambda p: 1 / _times(p)) | "That is how many times as long a step becomes.",
        Slip("eight-bits", lambda p: _times(p, element=1, scale=0))
        | "You gave a parameter a whole byte. Four bits are less.",
    ),
)

DRILLS = (FLOOR, RIDGE, TENSOR, EXPERTS, BITS)
