"""Drills on a decode step under the roofline: weights that a batch shares, attention that it does not, and the
kernels' launches.
"""

import random
from itertools import count

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import AsFunction, Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, tera
from threeloops.drills.roofline.intensity import SOURCE_PART, dense, roofs
from threeloops.models.architecture import Attention
from threeloops.models.parameters import model_parameters
from threeloops.operations import kernels, roofline
from threeloops.operations.roofline import Work
from threeloops.units import fmt_si, us

TAUGHT = Taught("inner", "Roofline")

SOURCE_DECODE = f"Pope et al., 2022, arXiv:2211.05102 (decoding reads every weight for each step); {SOURCE_PART}"
SOURCE_SHARED = (
    "Ainslie et al., 2023, arXiv:2305.13245 (query heads that share keys and values); Shazeer, 2019, arXiv:1911.02150"
    " (bytes per operation)"
)
SOURCE_LAUNCH = (
    "PyTorch documentation, CUDA semantics, asynchronous execution; CUDA C++ Programming Guide, read in 2026"
)

# --- the batch that fills the machine ------------------------------------------------------------

BATCH_PARTS = ("h100-sxm5", "b200-hgx", "gb200", "mi300x", "l40s", "l4")


def _draw_batch(rng: random.Random) -> Draw:
    k, n = rng.choice(
        (
            (4096, 4096),
            (3584, 3584),
            (2880, 4096),
            (4096, 2880),
            (3072, 3072),
            (3072, 4096),
            (4096, 3072),
            (5120, 5120),
            (4096, 6144),
            (5120, 4096),
        )
    )
    return drawn(**dense(rng.choice(BATCH_PARTS)), k=k, n=n, bytes_per_element=2, weight_bytes=1)


def _small_batch(rng: random.Random) -> Draw:
    k, n = rng.choice(((50, 40), (36, 60)))
    return drawn(
        part="drawn",
        peak=rng.choice((53, 61)),
        memory=rng.choice((5, 6)),
        k=k,
        n=n,
        bytes_per_element=2,
        weight_bytes=1,
    )


def _derive_batch(p: Draw) -> Derivation:
    ridge = roofline.ridge_point(peak_flops_per_s=p.peak, memory_bytes_per_s=p.memory)

    def intensity(tokens: int) -> float:
        product = kernels.gemm(
            m=tokens, n=p.n, k=p.k, bytes_per_element=p.bytes_per_element, weight_bytes_per_element=p.weight_bytes
        )
        return product.arithmetic_intensity

    printed = f"{tera(p.peak)} / {tera(p.memory)}"
    return Derivation(
        value=next(tokens for tokens in count(1) if intensity(tokens) >= ridge),
        formula="the batch b with 2 × b × k × n / (weights + b × activations) = peak / bandwidth, rounded up",
        substitution=(
            f"ceil({printed} × {p.weight_bytes} / (2 − {printed} × {p.bytes_per_element} × (1 / {p.k} + 1 / {p.n})))"
        ),
        source=SOURCE_DECODE,
    )


def _count_batch(p: Draw) -> float:
    """Put one more token in the batch until the machine takes as long to multiply as to move what the product really
    moves.
    """
    import numpy as np

    from threeloops.simulate.inner_loop import tiled_gemm

    weights = np.ones((p.k, p.n), dtype=np.int8)
    for tokens in count(1):
        inputs = np.ones((tokens, p.k), dtype=np.float16)
        room = inputs.nbytes + 2 * weights.nbytes + 2 * tokens * p.n
        done = tiled_gemm.multiply(
            inputs, weights, tile_m=tokens, tile_n=p.n, tile_k=p.k, fast_bytes=room, keep_between_tiles=True
        )
        if 2 * done.multiply_adds * p.memory >= done.moved_bytes * p.peak:
            return float(tokens)
    raise AssertionError("some batch fills the machine")


def _batch(ridge: float, *, per_token: float, weight_bytes: float) -> float:
    """Tokens at which 2 FLOPs per weight and token meet `weight_bytes` per weight and `per_token` bytes per weight
    and token.
    """
    return float(ridge * weight_bytes / (2 - ridge * per_token))


BATCH = Drill(
    key="roofline-decode-batch",
    taught=TAUGHT,
    title="How many have to share the ride",
    unit="token",
    target_s=180,
    draw=_draw_batch,
    small=_small_batch,
    prompt=lambda p: (
        f"In decoding, each request brings one token per step. A projection of {p.k:,} × {p.n:,} has its weights in 8"
        f" bits; tokens go in and come out in 16 bits, and it is calculated in BF16. The machine is an {p.part}:"
        f" {roofs(p)}. From how many tokens per step on is the projection no longer memory-bound?"
    ),
    derive=_derive_batch,
    count=_count_batch,
    prerequisites=("roofline-ridge-point", "roofline-gemm-intensity"),
    slips=(
        Slip("weights-only", lambda p: _batch(p.peak / p.memory, per_token=0, weight_bytes=p.weight_bytes))
        | "You moved the weights alone. Hundreds of tokens, in and out, are traffic too, and they put the"
        " crossing further off.",
        Slip("ridge-itself", lambda p: p.peak / p.memory)
        | "That is the ridge point, in FLOP per byte. How many FLOPs does one token bring for each byte of"
        " weights?",
        Slip(
            "sixteen-bit-weights",
            lambda p: _batch(p.peak / p.memory, per_token=p.bytes_per_element * (1 / p.k + 1 / p.n), weight_bytes=2),
        )
        | "You stored the weights in 16 bits. Smaller weights arrive sooner, and fewer tokens keep the machine"
        " busy meanwhile.",
        Slip(
            "twice-the-ridge",
            lambda p: _batch(
                2 * p.peak / p.memory, per_token=p.bytes_per_element * (1 / p.k + 1 / p.n), weight_bytes=p.weight_bytes
            ),
        )
        | "Your ridge is twice too far off: either you took a peak that is not for dense BF16, or you counted a"
        " multiply-add as one operation.",
        Slip(
            "outputs-forgotten",
            lambda p: _batch(p.peak / p.memory, per_token=p.bytes_per_element / p.k, weight_bytes=p.weight_bytes),
        )
        | "You read tokens and weights and wrote nothing. The outputs cross the bus too.",
    ),
)

# --- attention in decoding -----------------------------------------------------------------------


def _draw_decode_attention(rng: random.Random) -> Draw:
    key = rng.choice(("llama-3-8b", "llama-3-70b", "qwen2.5-7b", "qwen3-235b-a22b", "llama-3-405b", "mixtral-8x22b"))
    attention = catalogued.model(key).groups[0][0].attention
    assert isinstance(attention, Attention)
    heads = {"query_heads": attention.num_heads, "kv_heads": attention.num_kv_heads, "head_dim": attention.head_dim}
    return drawn(
        name=catalogued.model_name(key),
        **heads,
        kv_bytes=1,
        batch=rng.choice((12, 20, 28, 44)),
        tokens=rng.choice((9_000, 14_000, 22_000, 30_000)),
    )


def _small_decode_attention(rng: random.Random) -> Draw:
    heads = {"query_heads": 2 * rng.choice((5, 7)), "kv_heads": 2, "head_dim": rng.choice((6, 8))}
    return drawn(name="drawn", **heads, kv_bytes=1, batch=rng.choice((3, 4)), tokens=rng.choice((9, 13)))


def _derive_decode_attention(p: Draw) -> Derivation:
    step = kernels.attention(
        batch=p.batch,
        num_heads=p.query_heads,
        num_kv_heads=p.kv_heads,
        head_dim=p.head_dim,
        query_tokens=1,
        context_tokens=p.tokens,
        causal="full",
        fused=True,
        bytes_per_element=2,
        kv_bytes_per_element=p.kv_bytes,
    )
    return Derivation(
        value=step.arithmetic_intensity,
        formula=(
            "4 × query heads × tokens / (2 × KV heads × tokens × bytes per element + queries and outputs), whatever the"
            " batch and the head width"
        ),
        substitution=(
            f"4 × {p.query_heads} × {p.tokens} / (2 × {p.kv_heads} × {p.tokens} × {p.kv_bytes} + 2 × {p.query_heads}"
            " × 2)"
        ),
        source=SOURCE_SHARED,
    )


def _count_decode_attention(p: Draw) -> float:
    """Let each request attend for one step, block by block, and watch what is multiplied and what crosses to fast
    memory.
    """
    import numpy as np

    from threeloops.simulate.inner_loop import tiled_attention

    multiply_adds = moved_bytes = 0
    for _ in range(p.batch):
        queries = np.ones((p.query_heads, 1, p.head_dim), dtype=np.float16)
        keys, values = (np.ones((p.kv_heads, p.tokens, p.head_dim), dtype=np.int8) for _ in ("keys", "values"))
        done = tiled_attention.fused_attention(queries, keys, values, causal=False, query_block=1, key_block=4)
        multiply_adds, moved_bytes = multiply_adds + done.multiply_adds, moved_bytes + done.moved_bytes
    return 2 * multiply_adds / moved_bytes


DECODE_ATTENTION = Drill(
    key="roofline-decode-attention",
    taught=TAUGHT,
    title="Attention for one more token",
    unit="FLOP/B",
    target_s=90,
    fewest=20,  # close to twice the query heads of a KV head, which real models share by few numbers
    draw=_draw_decode_attention,
    small=_small_decode_attention,
    prompt=lambda p: (
        f"{p.name} attends with {p.query_heads} query heads and {p.kv_heads} KV heads, {p.head_dim} wide. Its KV cache"
        " is kept in 8 bits; the kernel is fused and reads each key and value once for all the query heads that need"
        f" it. {p.batch} requests decode together, each with its own context of {p.tokens:,} tokens. What is the"
        " arithmetic intensity of the attention kernel (two matmuls; the softmax does not count)?"
    ),
    derive=_derive_decode_attention,
    count=_count_decode_attention,
    prerequisites=("roofline-ridge-point",),
    slips=(
        Slip("group-forgotten", lambda p: 2 / p.kv_bytes)
        | "You fetched keys and values anew for every query head. Here several of them use one fetch.",
        Slip("batch", lambda p: p.batch * 2 * p.query_heads / p.kv_heads / p.kv_bytes)
        | "You let the batch share. It shares weights; each request has keys and values of its own.",
        Slip("half", lambda p: p.query_heads / p.kv_heads / p.kv_bytes)
        | "Half of it: either you took a 16-bit cache, or you counted a multiply-add as one operation.",
        Slip("keys-or-values", lambda p: 4 * p.query_heads / p.kv_heads / p.kv_bytes)
        | "You multiplied with keys and values but read only one of them.",
        Slip("one-kv-head", lambda p: 2 * p.query_heads / p.kv_bytes)
        | "You let all query heads share one key and value. This model keeps several of each.",
    ),
)

# --- launches ------------------------------------------------------------------------------------


def _draw_launch(rng: random.Random) -> Draw:
    key, part = rng.choice(("gpt2-large", "gpt2-xl")), catalogued.part(rng.choice(("h100-sxm5", "h200-sxm")))
    model = catalogued.model(key)
    weights = {"layers": model.num_layers, "parameters": model_parameters(model).total}
    machine = {"part": part.name, "peak": part.peak_flops_per_s("bf16"), "memory": part["memory_bytes_per_s"]}
    return drawn(
        name=catalogued.model_name(key),
        **weights,
        **machine,
        launches=rng.randrange(10, 18),
        launch_s=rng.choice((4e-6, 5e-6, 6e-6, 7e-6)),
    )


def _small_launch(rng: random.Random) -> Draw:
    machine = {"part": "drawn", "peak": 1000, "memory": rng.choice((10, 20))}
    return drawn(
        name="drawn", layers=3, parameters=rng.choice((40, 60)), **machine, launches=rng.choice((5, 7)), launch_s=0.9
    )


def _derive_launch(p: Draw) -> Derivation:
    step = Work(flops=2 * p.parameters, moved_bytes=2 * p.parameters)
    launched = roofline.time(
        step,
        peak_flops_per_s=p.peak,
        memory_bytes_per_s=p.memory,
        launches=p.layers * p.launches,
        launch_overhead_s=p.launch_s,
    )
    return Derivation(
        value=launched.lower_bound_s,
        formula=(
            "the longer of two times: layers × kernels per layer × time of one launch, and bytes of the weights /"
            " bandwidth"
        ),
        substitution=f"max({p.layers} × {p.launches} × {p.launch_s!r}, 2 × {p.parameters} / {tera(p.memory)})",
        source=SOURCE_LAUNCH,
    )


def _count_launch(p: Draw) -> float:
    """The processor queues kernel after kernel, the device runs each once it is queued and the last one is done: the
    time between two steps' ends.
    """
    kernel_s = 2 * p.parameters / (p.layers * p.launches) / p.memory
    issued_s = done_s = 0.0
    ends = []
    for _step in range(4):
        for _ in range(p.layers * p.launches):
            issued_s += p.launch_s
            done_s = max(issued_s, done_s) + kernel_s
        ends.append(done_s)
    return ends[-1] - ends[-2]


LAUNCH = Drill(
    key="roofline-launch-bound",
    taught=TAUGHT,
    title="A small model, one request",
    unit="s",
    target_s=120,
    draw=_draw_launch,
    small=_small_launch,
    prompt=lambda p: (
        f"{p.name} ({billions(p.parameters)} parameters in 16 bits, {p.layers} layers) decodes one request with a short"
        f" context on an {p.part}, which moves {fmt_si(p.memory, 'B/s')}. A layer is {p.launches} kernels, and the"
        f" processor needs {p.launch_s / us:g} µs to issue each one; it may queue kernels ahead while the device works."
        " How long does a step take at least?"
    ),
    derive=_derive_launch,
    count=_count_launch,
    prerequisites=("roofline-time-bound",),
    slips=(
        Slip("memory-only", lambda p: 2 * p.parameters / p.memory)
        | "That is how long the weights take to read. Work out whether the processor can issue the kernels that"
        " fast.",
        Slip("added", lambda p: p.layers * p.launches * p.launch_s + 2 * p.parameters / p.memory)
        | "You added issuing and reading. The processor issues the next kernels while the device still works.",
        Slip("difference", lambda p: p.layers * p.launches * p.launch_s - 2 * p.parameters / p.memory)
        | "That is how long the device waits in each step. The question is how long the step takes.",
        Slip("one-layer", lambda p: p.launches * p.launch_s)
        | "You issued one layer's kernels. The step goes through all of them.",
        Slip("one-kernel-per-layer", lambda p: p.layers * p.launch_s)
        | "You issued one kernel per layer. Count what a layer is made of here.",
    ),
    function=AsFunction(
        takes=("layers", "launches", "launch_s", "parameters", "memory"),
        limit={"launches": 1},
        limit_case="one fused kernel per layer",
    ),
)

DRILLS = (BATCH, DECODE_ATTENTION, LAUNCH)
