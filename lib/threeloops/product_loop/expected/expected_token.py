"""Expected token: from the floor of a decode step to the time between two tokens that a server's user sees, rung by
rung, by measured kernels; nothing in it is fitted to a server.

>>> from threeloops.models import catalogue
>>> llama = catalogue.model("llama-3-70b")
>>> served = {"requests": 16, "prompt": 1024, "answer": 1024, "engine": "vLLM"}
>>> one = expected_token(llama, part="h200-sxm", format="fp8", cache="fp8", tp=4, **served)
>>> [name for name in one.parts][:2], one.floor_s < one.total_s
(['weights over bandwidth', 'KV cache over bandwidth'], True)

Source: operations/expected_times.py, facts/engine_exchanges.py and operations/recorded_rates.py (kernels);
        Pope et al., 2022, arXiv:2211.05102, section 2 (the floor)
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks, dtypes
from threeloops.facts import hardware
from threeloops.facts.engine_exchanges import engine_all_reduce_s
from threeloops.models.architecture import Attention, LatentAttention, Layer, Model, MoeMlp
from threeloops.models.forward_step import VECTOR, ForwardStep
from threeloops.models.transformer import layer_ops
from threeloops.operations.expected_times import CACHE as LATENT_CACHE
from threeloops.operations.expected_times import (
    expected_decode,
    expected_experts,
    expected_latent,
    expected_prefill,
    expected_product,
)
from threeloops.operations.latent_module import HIDDEN
from threeloops.operations.recorded_rates import copy_share, small_kernel_s
from threeloops.product_loop.expected.rank_memory import (
    BESIDE,
    HEAD_FORMAT,
    LATENT_FORMATS,
    always_products,
    has_latents,
    rank_cache_bytes,
    rank_heads,
    rank_latent_bytes,
    rank_token_bytes,
    rank_weight_bytes,
    within_window,
)
from threeloops.training_loop.parallelism.layout_step import rank_layer

ACTIVATIONS = "bf16"
# Engines whose iterations hold prompts and single tokens together. Source: TensorRT-LLM's documentation, "In-flight
# batching"; vLLM's, "Chunked prefill" (on by default); SGLang's, "Server arguments" (--enable-mixed-chunk is off)
MIXED = {"TensorRT-LLM": True, "vLLM": True, "SGLang": False}
FLOOR = ("weights over bandwidth", "KV cache over bandwidth")
PROMPTS = "prompts of others"
IN_A_NORM = "residual"  # an engine adds the residual in the norm that follows
IN_A_BLOCK = ("latent_", "rotary")  # of latent attention, which was timed with them and with its cache's writing
IN_THE_EXPERTS = "expert_"  # gathering, activation and adding up are in the experts' measured time
CACHE_WRITES = 1  # kernels a layer that put the new keys and values into the cache


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    """Seconds between two tokens of one request, by cause; the parts add up."""

    parts: dict[str, float]
    prompt_s: float  # of one prompt, computed by itself

    @property
    def floor_s(self) -> float:
        """Every weight and the caches of all requests, read once at the datasheet's rate."""
        return sum(self.parts[name] for name in FLOOR)

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())

    @property
    def step_s(self) -> float:
        """A step without a prompt."""
        return self.total_s - self.parts[PROMPTS]


@functools.lru_cache(maxsize=4096)
def expected_token(
    model: Model,
    *,
    part: str,
    format: str,
    cache: str,
    tp: int,
    requests: int,
    prompt: int,
    answer: int,
    engine: str,
    ep: int = 1,
    kept: int = 0,
) -> ExpectedToken:
    """The time between two tokens with so many requests at a time, each of `prompt` tokens, answered by `answer`.

    Formula:  weights and caches over bandwidth + what measured products and attention take beyond that + two
              all-reduces a layer + small kernels, each its bytes at a copy's rate and the shortest kernel's time
              + (requests - 1) / answer * time of one prompt: while one request gets its answer, each other one
              brings a prompt; where the engine is in MIXED, its iteration makes a token for every other request
              and reads the weights once: products, all-reduces and small kernels of a step are saved that often
    Shapes:   products [requests, hidden] x [hidden, columns / tp] per GPU; caches hold prompt + answer / 2 tokens; of
              the tp GPUs ep groups hold different experts, and the GPUs of a group a share of their width
    Units:    prompt, answer, kept in tokens, kept: of the prompt those whose keys and values a prefix cache has;
              the rest is computed and attends to them. format: of weights and what multiplies them; cache: of keys
              and values; head, router and activations have 16 bits
    Assumes:  the engine's all-reduces of 2026; for products, experts and attention vLLM's kernels; one prompt an
              iteration; a router that chooses evenly, for what a step reads; a layer with a window takes
              what attention over its window takes, and of a prompt what as many short ones of two windows take; no
              time of the host, of sampling, of the network to the client
    Raises:   ValueError for recurrent layers, for latents of other widths than DeepSeek-V3's, for a part, format or
              number of GPUs that was not measured, for heads that tp or GPUs that ep does not divide
    Measured: tests.product_loop.expected.test_expected_token.test_a_recorded_decode_loop_takes_about_what_is_expected
    """
    checks.count(tp=tp, requests=requests, prompt=prompt, answer=answer)
    checks.count(at_least=0, kept=kept)
    if kept >= prompt:
        raise ValueError(f"kept={kept} must be less than prompt={prompt}: at least the last token is computed")
    checks.one_of(MIXED, engine=engine)
    layers = [(_measured(model, layer, tp, ep), count) for layer, count in model.groups]
    context = prompt + answer // 2
    bandwidth = hardware.part(part)["memory_bytes_per_s"]
    read = rank_weight_bytes(model, tp, format, tokens=requests) / bandwidth
    cached = requests * sum(count * rank_cache_bytes(layer, tp, cache, context) for layer, count in layers) / bandwidth
    products_s = sum(count * _products_s(model, layer, requests, part, format, tp, ep) for layer, count in layers)
    products_s += _product_s(part, requests, model.vocab / tp, model.hidden, HEAD_FORMAT)
    attention_s = sum(count * _decode_s(layer, tp, part, requests, context, cache, format) for layer, count in layers)
    blocks = sum(count * rank_latent_bytes(layer, tp, format) for layer, count in layers) / bandwidth  # timed whole
    formats: dict[str, Any] = {"part": part, "format": format, "cache": cache, "tp": tp, "ep": ep}
    prompt_s = _prompt_s(model, layers, **formats, tokens=prompt, kept=kept, engine=engine)
    parts = {
        FLOOR[0]: read,
        FLOOR[1]: cached,
        "products beyond that": products_s + blocks - read,
        "attention beyond that": attention_s - blocks - cached,
        "all-reduces": sum(count * _exchanges_s(model, layer, part, tp, requests, engine) for layer, count in layers),
        "small kernels": sum(
            count * _small_s(model, layer, tp, part, "decode", requests, cache) for layer, count in layers
        ),
    }
    prompts = (requests - 1) / answer
    shared_s = sum(parts.values()) - cached - parts["attention beyond that"] if MIXED[engine] else 0.0
    parts[PROMPTS] = prompts * prompt_s - min(1.0, prompts) * shared_s
    return ExpectedToken(parts=parts, prompt_s=prompt_s)


def first_token_s(expected: ExpectedToken, *, requests: int, rounds: int) -> float:
    """The mean time to the first token where so many requests begin at once, and each that ends is followed by the
    next, `rounds` times as many in all.

    Formula:  half a step + own prompt + (requests - 1) / 2 * prompt / rounds: of those that begin at once the mean one
              waits for half the others' prompts, and they are one in `rounds`
    Assumes:  whoever comes later finds no other prompt; all have a seat
    Counted:  tests.product_loop.expected.test_expected_token.test_who_begins_with_others_waits_for_half_of_them
    """
    checks.count(requests=requests, rounds=rounds)
    return expected.step_s / 2 + expected.prompt_s * (1 + (requests - 1) / 2 / rounds)


def _measured(model: Model, layer: Layer, tp: int, ep: int) -> Layer:
    attention, mlp = layer.attention, layer.mlp
    if not isinstance(attention, Attention | LatentAttention) or (isinstance(mlp, MoeMlp) and mlp.latent):
        raise ValueError(f"{model.name}: only attention with keys and values, or with latents, has measured kernels")
    if has_latents(layer) and model.hidden != HIDDEN:
        raise ValueError(f"{model.name}: of latent attention only blocks of DeepSeek-V3's width were timed")
    if attention.num_heads % tp:
        raise ValueError(f"tp={tp} does not divide the {attention.num_heads} heads of {model.name}")
    checks.divides(part="ep", part_value=ep, whole="tp", whole_value=tp)
    return layer


def _latent_s(layer: Layer, tp: int, phase: str, part: str, batch: int, tokens: int, cache: str, format: str) -> float:
    checks.one_of((LATENT_CACHE,), cache=cache)
    checks.one_of(LATENT_FORMATS, format=format)
    sizes = {"batch": batch, "num_heads": layer.attending.num_heads // tp, "tokens": tokens}
    return expected_latent(part, phase=phase, **sizes, format=LATENT_FORMATS[format]).seconds


def _decode_s(layer: Layer, tp: int, part: str, requests: int, context: int, cache: str, format: str) -> float:
    if has_latents(layer):
        return _latent_s(layer, tp, "decode", part, requests, context, cache, format)
    tokens = within_window(layer, context)
    return expected_decode(part, **rank_heads(layer, tp), batch=requests, tokens=tokens, cache=cache).seconds


def _prefill_s(layer: Layer, tp: int, part: str, tokens: int, cache: str, format: str) -> float:
    """A windowed layer's prompt is cut into as many of two windows as are whole, and the rest in proportion."""
    if has_latents(layer):
        return _latent_s(layer, tp, "prefill", part, 1, tokens, cache, format)
    short = within_window(layer, tokens, windows=2)
    whole = tokens // short
    whole_s = expected_prefill(part, **rank_heads(layer, tp), batch=whole, tokens=short, cache=cache).seconds
    return whole_s * tokens / (whole * short)


def _product_s(part: str, rows: int, columns: float, inner: float, format: str) -> float:
    return expected_product(part, m=rows, n=round(columns), k=round(inner), format=format).seconds


def _products_s(model: Model, layer: Layer, rows: int, part: str, format: str, tp: int, ep: int) -> float:
    """Of one layer: its products, its router and its experts."""
    plain = BESIDE.get(format, format)
    seconds = sum(
        _product_s(part, rows, one.columns, one.inner, plain) for one in always_products(layer, model.hidden, rows, tp)
    )
    moe = layer.mlp
    if not isinstance(moe, MoeMlp):
        return seconds
    choice = {"num_experts": moe.num_experts, "top_k": moe.top_k, "intermediate": moe.expert.intermediate * ep // tp}
    experts = expected_experts(part, tokens=rows, hidden=model.hidden, ep=ep, format=format, **choice)
    return seconds + _product_s(part, rows, moe.num_experts, model.hidden, HEAD_FORMAT) + experts.seconds


def _exchanges_s(model: Model, layer: Layer, part: str, tp: int, rows: int, engine: str) -> float:
    """Of one layer: the outputs of both its halves are added up over the GPUs, and where a norm spans the heads of all
    of them, the mean squares of queries and keys in fp32. Source: vLLM, model_executor/layers/minimax_rms_norm.py
    """
    if tp == 1:
        return 0.0
    wide = rows * model.hidden * dtypes.bytes_per_element(ACTIVATIONS)
    squares = rows * 2 * dtypes.bytes_per_element("fp32")
    spans = isinstance(layer.attention, Attention) and layer.attention.qk_norm_spans_heads
    sizes = (wide, wide, squares) if spans else (wide, wide)
    return sum(engine_all_reduce_s(part, engine=engine, ranks=tp, size_bytes=size) for size in sizes)


def _small_s(model: Model, layer: Layer, tp: int, part: str, phase: str, tokens: int, cache: str) -> float:
    """Norms, rotation, activation and the write into the cache of one layer, for the new tokens."""
    element = dtypes.bytes_per_element(ACTIVATIONS)
    batch, sequence = (tokens, 1) if phase == "decode" else (1, tokens)
    counted: dict[str, Any] = {"causal": "half", "fused_attention": True, "logits": "last"}
    counted |= {"routing": "uniform"} if isinstance(layer.mlp, MoeMlp) else {}
    counted |= {"latent": "absorbed"} if has_latents(layer) else {}
    step = ForwardStep(phase=phase, batch=batch, sequence=sequence, bytes_per_element=element, **counted)
    ops = layer_ops(rank_layer(layer, tp), hidden=model.hidden, rotary=model.rotary, step=step)
    block = has_latents(layer)
    counted_there = (IN_THE_EXPERTS, *(IN_A_BLOCK if block else ()))
    small = [op for op in ops if op.unit == VECTOR and not op.name.startswith(counted_there)]
    written = 0.0 if block else 2 * tokens * rank_token_bytes(layer, tp, cache)
    moved = sum(op.count * op.work.moved_bytes for op in small) + written
    kernels = sum(op.count for op in small if IN_A_NORM not in op.name) + (0 if block else CACHE_WRITES)
    rate = hardware.part(part)["memory_bytes_per_s"] * copy_share()
    return kernels * small_kernel_s() + moved / rate


def _prompt_s(
    model: Model,
    layers: Sequence[tuple[Layer, int]],
    *,
    part: str,
    format: str,
    cache: str,
    tp: int,
    ep: int,
    tokens: int,
    kept: int,
    engine: str,
) -> float:
    """One prompt by itself, up to its first token, from the first token on that is not kept."""
    new = tokens - kept
    each = (
        count
        * (
            _products_s(model, layer, new, part, format, tp, ep)
            + _prefill_s(layer, tp, part, tokens, cache, format)
            - (_prefill_s(layer, tp, part, kept, cache, format) if kept else 0.0)
            + _exchanges_s(model, layer, part, tp, new, engine)
            + _small_s(model, layer, tp, part, "prefill", new, cache)
        )
        for layer, count in layers
    )
    return sum(each) + _product_s(part, 1, model.vocab / tp, model.hidden, HEAD_FORMAT)
