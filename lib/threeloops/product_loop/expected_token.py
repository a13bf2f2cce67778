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
from threeloops.models.architecture import Attention, Layer, Model, MoeMlp
from threeloops.models.forward_step import VECTOR, ForwardStep
from threeloops.models.transformer import layer_ops
from threeloops.operations.expected_times import expected_decode, expected_experts, expected_prefill, expected_product
from threeloops.operations.expert_layers import experts_touched
from threeloops.operations.recorded_rates import copy_share, small_kernel_s
from threeloops.training_loop.parallelism.layout_step import rank_layer
from threeloops.training_loop.parallelism.product_rates import Product, layer_products

ACTIVATIONS = HEAD_FORMAT = "bf16"
# Engines whose iterations hold prompts and single tokens together. Source: TensorRT-LLM's documentation, "In-flight
# batching"; vLLM's, "Chunked prefill" (on by default); SGLang's, "Server arguments" (--enable-mixed-chunk is off)
MIXED = {"TensorRT-LLM": True, "vLLM": True, "SGLang": False}
FLOOR = ("weights over bandwidth", "KV cache over bandwidth")
PROMPTS = "prompts of others"
IN_A_NORM = "residual"  # an engine adds the residual in the norm that follows
IN_THE_EXPERTS = "expert_"  # gathering, activation and adding up are in the experts' measured time
MEMORY_SHARE = 0.9  # vLLM's gpu_memory_utilization, unless it is set; the others leave about as much
CACHE_WRITES = 1  # kernels a layer that put the new keys and values into the cache
BESIDE = {"mxfp4": "bf16"}  # the format of all other weights, where experts alone are quantised (gpt-oss)


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
) -> ExpectedToken:
    """The time between two tokens with so many requests at a time, each of `prompt` tokens, answered by `answer`.

    Formula:  weights and caches over bandwidth + what measured products and attention take beyond that + two
              all-reduces a layer + small kernels, each its bytes at a copy's rate and the shortest kernel's time
              + (requests - 1) / answer * time of one prompt: while one request gets its answer, each other one
              brings a prompt; where the engine is in MIXED, its iteration makes a token for every other request
              and reads the weights once: products, all-reduces and small kernels of a step are saved that often
    Shapes:   products [requests, hidden] x [hidden, columns / tp] per GPU; caches hold prompt + answer / 2 tokens; of
              the tp GPUs ep groups hold different experts, and the GPUs of a group a share of their width
    Units:    prompt, answer in tokens; format: of weights and what multiplies them; cache: of keys and values; head,
              router and activations have 16 bits
    Assumes:  the engine's all-reduces of 2026; for products, experts and attention vLLM's kernels; one prompt an
              iteration, none kept; a router that chooses evenly, for what a step reads; a layer with a window takes
              what attention over its window takes, and of a prompt what as many short ones of two windows take; no
              time of the host, of sampling, of the network to the client
    Raises:   ValueError for latent or recurrent layers, for a part, format or number of GPUs that was not measured,
              for heads that tp or GPUs that ep does not divide
    """
    checks.count(tp=tp, requests=requests, prompt=prompt, answer=answer)
    checks.one_of(MIXED, engine=engine)
    layers = [(_measured(model, layer, tp, ep), count) for layer, count in model.groups]
    context = prompt + answer // 2
    bandwidth = hardware.part(part)["memory_bytes_per_s"]
    read = _weight_bytes(model, tp, format, tokens=requests) / bandwidth
    cached = requests * sum(count * _cache_bytes(layer, tp, cache, context) for layer, count in layers) / bandwidth
    products_s = sum(count * _products_s(model, layer, requests, part, format, tp, ep) for layer, count in layers)
    products_s += _product_s(part, requests, model.vocab / tp, model.hidden, HEAD_FORMAT)
    attention_s = sum(count * _decode_s(layer, tp, part, requests, context, cache) for layer, count in layers)
    formats: dict[str, Any] = {"part": part, "format": format, "cache": cache, "tp": tp, "ep": ep}
    prompt_s = _prompt_s(model, layers, **formats, tokens=prompt, engine=engine)
    parts = {
        FLOOR[0]: read,
        FLOOR[1]: cached,
        "products beyond that": products_s - read,
        "attention beyond that": attention_s - cached,
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
    """
    checks.count(requests=requests, rounds=rounds)
    return expected.step_s / 2 + expected.prompt_s * (1 + (requests - 1) / 2 / rounds)


def _measured(model: Model, layer: Layer, tp: int, ep: int) -> Layer:
    attention, mlp = layer.attention, layer.mlp
    if not isinstance(attention, Attention) or (isinstance(mlp, MoeMlp) and mlp.latent):
        raise ValueError(f"{model.name}: only layers with keys and values of heads have measured kernels here")
    if attention.num_heads % tp:
        raise ValueError(f"tp={tp} does not divide the {attention.num_heads} heads of {model.name}")
    checks.divides(part="ep", part_value=ep, whole="tp", whole_value=tp)
    return layer


def _attention(layer: Layer) -> Attention:
    assert isinstance(layer.attention, Attention)  # as _measured has seen
    return layer.attention


def _heads(layer: Layer, tp: int) -> dict[str, int]:
    one = _attention(layer)
    kv_heads = max(1, one.num_kv_heads // tp)
    return {"num_heads": one.num_heads // tp, "num_kv_heads": kv_heads, "head_dim": one.head_dim}


def _token_bytes(layer: Layer, tp: int, cache: str) -> float:
    """Keys and values of one token in a layer, on one GPU."""
    one = _heads(layer, tp)
    return 2 * one["num_kv_heads"] * one["head_dim"] * dtypes.bytes_per_element(cache)


def _cache_bytes(layer: Layer, tp: int, cache: str, tokens: int) -> float:
    """Keys and values that one GPU keeps of a request in a layer."""
    return _within(layer, tokens) * _token_bytes(layer, tp, cache)


def _within(layer: Layer, tokens: int, windows: int = 1) -> int:
    """Of so many tokens those that a window, or several, lets through."""
    window = _attention(layer).window
    return min(tokens, windows * window) if window else tokens


def _decode_s(layer: Layer, tp: int, part: str, requests: int, context: int, cache: str) -> float:
    tokens = _within(layer, context)
    return expected_decode(part, **_heads(layer, tp), batch=requests, tokens=tokens, cache=cache).seconds


def _prefill_s(layer: Layer, tp: int, part: str, tokens: int, cache: str) -> float:
    """A windowed layer's prompt is cut into as many of two windows as are whole, and the rest in proportion."""
    short = _within(layer, tokens, windows=2)
    whole = tokens // short
    whole_s = expected_prefill(part, **_heads(layer, tp), batch=whole, tokens=short, cache=cache).seconds
    return whole_s * tokens / (whole * short)


def _weight_bytes(model: Model, tp: int, format: str, tokens: int | None = None) -> float:
    """What one GPU holds of the weights, or reads of them in a step of so many tokens."""
    beside = sum(
        count * one.columns * one.inner for layer, count in model.groups for one in _always(layer, model.hidden, 1, tp)
    )
    routed = sum(count * _expert_elements(layer, model.hidden, tp, tokens) for layer, count in model.groups)
    head = model.vocab / tp * model.hidden * dtypes.bytes_per_element(HEAD_FORMAT)
    held = beside * dtypes.bytes_per_element(BESIDE.get(format, format)) + routed * dtypes.bytes_per_element(format)
    return held + head


def _expert_elements(layer: Layer, hidden: int, tp: int, tokens: int | None) -> float:
    """A layer's weights of experts on one GPU: all, or those that so many tokens touch."""
    moe = layer.mlp
    if not isinstance(moe, MoeMlp):
        return 0.0
    choice = {"num_experts": moe.num_experts, "top_k": moe.top_k}
    used = moe.num_experts if tokens is None else experts_touched(**choice, tokens=tokens, routing="uniform")
    return used * moe.expert.num_matrices * hidden * moe.expert.intermediate / tp


def _always(layer: Layer, hidden: int, rows: int, tp: int) -> list[Product]:
    """The products of a layer that every token takes: all but its experts'."""
    made = layer_products(layer, hidden=hidden, rows=rows, tp=tp, ep=1)
    return [one for one in made if one.groups == 1]


def _product_s(part: str, rows: int, columns: float, inner: float, format: str) -> float:
    return expected_product(part, m=rows, n=round(columns), k=round(inner), format=format).seconds


def _products_s(model: Model, layer: Layer, rows: int, part: str, format: str, tp: int, ep: int) -> float:
    """Of one layer: its products, its router and its experts."""
    plain = BESIDE.get(format, format)
    seconds = sum(
        _product_s(part, rows, one.columns, one.inner, plain) for one in _always(layer, model.hidden, rows, tp)
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
    sizes = (wide, wide, squares) if _attention(layer).qk_norm_spans_heads else (wide, wide)
    return sum(engine_all_reduce_s(part, engine=engine, ranks=tp, size_bytes=size) for size in sizes)


def _small_s(model: Model, layer: Layer, tp: int, part: str, phase: str, tokens: int, cache: str) -> float:
    """Norms, rotation, activation and the write into the cache of one layer, for the new tokens."""
    element = dtypes.bytes_per_element(ACTIVATIONS)
    batch, sequence = (tokens, 1) if phase == "decode" else (1, tokens)
    counted: dict[str, Any] = {"causal": "half", "fused_attention": True, "logits": "last"}
    counted |= {"routing": "uniform"} if isinstance(layer.mlp, MoeMlp) else {}
    step = ForwardStep(phase=phase, batch=batch, sequence=sequence, bytes_per_element=element, **counted)
    ops = layer_ops(rank_layer(layer, tp), hidden=model.hidden, rotary=model.rotary, step=step)
    small = [op for op in ops if op.unit == VECTOR and not op.name.startswith(IN_THE_EXPERTS)]
    moved = sum(op.count * op.work.moved_bytes for op in small) + 2 * tokens * _token_bytes(layer, tp, cache)
    kernels = sum(op.count for op in small if IN_A_NORM not in op.name) + CACHE_WRITES
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
    engine: str,
) -> float:
    """One prompt by itself, up to its first token."""
    each = (
        count
        * (
            _products_s(model, layer, tokens, part, format, tp, ep)
            + _prefill_s(layer, tp, part, tokens, cache)
            + _exchanges_s(model, layer, part, tp, tokens, engine)
            + _small_s(model, layer, tp, part, "prefill", tokens, cache)
        )
        for layer, count in layers
    )
    return sum(each) + _product_s(part, 1, model.vocab / tp, model.hidden, HEAD_FORMAT)


def seats(model: Model, *, part: str, format: str, cache: str, tp: int, tokens: int) -> int:
    """How many requests of so many tokens the caches of tp GPUs hold; whoever comes later waits for a first token.

    Formula:  (MEMORY_SHARE * capacity - weights / tp) / bytes of a request's keys and values on one GPU
    Assumes:  what else lies in memory fits into the tenth that engines leave
    Raises:   ValueError if not even one fits

    >>> from threeloops.models import catalogue
    >>> formats = {"format": "fp8", "cache": "fp8"}
    >>> seats(catalogue.model("llama-3-70b"), part="h200-sxm", **formats, tp=1, tokens=8192)
    48
    """
    checks.count(tp=tp, tokens=tokens)
    free = MEMORY_SHARE * hardware.part(part).capacity_bytes() - _weight_bytes(model, tp, format)
    each = sum(count * _cache_bytes(layer, tp, cache, tokens) for layer, count in model.groups)
    if free < each:
        raise ValueError(f"{model.name} in {format} leaves no room for {tokens} tokens on {tp} of {part}; use more")
    return int(free / each)
