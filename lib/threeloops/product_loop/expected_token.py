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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from threeloops import checks, dtypes
from threeloops.facts import hardware
from threeloops.facts.engine_exchanges import engine_all_reduce_s
from threeloops.facts.served_points import ServedPoint, served_points
from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.forward_step import VECTOR, ForwardStep
from threeloops.models.transformer import layer_ops
from threeloops.operations.expected_times import expected_decode, expected_prefill, expected_product
from threeloops.operations.recorded_rates import copy_share, small_kernel_s
from threeloops.training_loop.parallelism.layout_step import rank_layer
from threeloops.training_loop.parallelism.product_rates import layer_products

ACTIVATIONS = HEAD_FORMAT = "bf16"
# Engines whose iterations hold prompts and single tokens together. Source: TensorRT-LLM's documentation, "In-flight
# batching"; vLLM's, "Chunked prefill" (on by default); SGLang's, "Server arguments" (--enable-mixed-chunk is off)
MIXED = {"TensorRT-LLM": True, "vLLM": True, "SGLang": False}
FLOOR = ("weights over bandwidth", "KV cache over bandwidth")
PROMPTS = "prompts of others"
IN_A_NORM = "residual"  # an engine adds the residual in the norm that follows
MEMORY_SHARE = 0.9  # vLLM's gpu_memory_utilization, unless it is set; the others leave about as much
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
) -> ExpectedToken:
    """The time between two tokens with so many requests at a time, each of `prompt` tokens, answered by `answer`.

    Formula:  weights and caches over bandwidth + what measured products and attention take beyond that + two
              all-reduces a layer + small kernels, each its bytes at a copy's rate and the shortest kernel's time
              + (requests - 1) / answer * time of one prompt: while one request gets its answer, each other one
              brings a prompt; where the engine is in MIXED, its iteration makes a token for every other request
              and reads the weights once: products, all-reduces and small kernels of a step are saved that often
    Shapes:   products [requests, hidden] x [hidden, columns / tp] per GPU; caches hold prompt + answer / 2 tokens
    Units:    prompt, answer in tokens; format: of weights and what multiplies them; cache: of keys and values; head and
              activations have 16 bits
    Assumes:  the engine's all-reduces of 2026; for products and attention vLLM's kernels; one prompt an iteration, none
              kept; no time of the host, of sampling, of the network to the client
    Raises:   ValueError for experts, windows, latent or recurrent layers, for a part, format or number of GPUs that
              was not measured, for heads that tp does not divide
    """
    checks.count(tp=tp, requests=requests, prompt=prompt, answer=answer)
    checks.one_of(MIXED, engine=engine)
    layers = [(_dense(model, layer, tp), count) for layer, count in model.groups]
    context = prompt + answer // 2
    bandwidth = hardware.part(part)["memory_bytes_per_s"]
    read = _weight_bytes(model, tp, format) / bandwidth
    cached = requests * context * sum(count * _token_bytes(layer, tp, cache) for layer, count in layers) / bandwidth
    products_s = sum(count * _products_s(model, layer, requests, part, format, tp) for layer, count in layers)
    products_s += _product_s(part, requests, model.vocab / tp, model.hidden, HEAD_FORMAT)
    attention_s = sum(
        count * expected_decode(part, **_heads(layer, tp), batch=requests, tokens=context, cache=cache).seconds
        for layer, count in layers
    )
    prompt_s = _prompt_s(model, layers, part=part, format=format, cache=cache, tp=tp, tokens=prompt, engine=engine)
    parts = {
        FLOOR[0]: read,
        FLOOR[1]: cached,
        "products beyond that": products_s - read,
        "attention beyond that": attention_s - cached,
        "all-reduces": model.num_layers * _exchanges_s(model, part, tp, requests, engine),
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


def _dense(model: Model, layer: Layer, tp: int) -> Layer:
    attention = layer.attention
    if not isinstance(attention, Attention) or attention.window or not isinstance(layer.mlp, DenseMlp):
        raise ValueError(f"{model.name}: only dense layers with whole attention have measured kernels here")
    if attention.num_heads % tp:
        raise ValueError(f"tp={tp} does not divide the {attention.num_heads} heads of {model.name}")
    return layer


def _heads(layer: Layer, tp: int) -> dict[str, int]:
    one = layer.attending
    assert isinstance(one, Attention)  # as _dense has seen
    kv_heads = max(1, one.num_kv_heads // tp)
    return {"num_heads": one.num_heads // tp, "num_kv_heads": kv_heads, "head_dim": one.head_dim}


def _token_bytes(layer: Layer, tp: int, cache: str) -> float:
    """Keys and values of one token in a layer, on one GPU."""
    one = _heads(layer, tp)
    return 2 * one["num_kv_heads"] * one["head_dim"] * dtypes.bytes_per_element(cache)


def _weight_bytes(model: Model, tp: int, format: str) -> float:
    """What one GPU reads of the weights in a step: layers in their format, the head in its own."""
    elements = sum(
        count * one.columns * one.inner
        for layer, count in model.groups
        for one in layer_products(layer, hidden=model.hidden, rows=1, tp=tp, ep=1)
    )
    head = model.vocab / tp * model.hidden * dtypes.bytes_per_element(HEAD_FORMAT)
    return elements * dtypes.bytes_per_element(format) + head


def _product_s(part: str, rows: int, columns: float, inner: float, format: str) -> float:
    return expected_product(part, m=rows, n=round(columns), k=round(inner), format=format).seconds


def _products_s(model: Model, layer: Layer, rows: int, part: str, format: str, tp: int) -> float:
    made = layer_products(layer, hidden=model.hidden, rows=rows, tp=tp, ep=1)
    return sum(_product_s(part, rows, one.columns, one.inner, format) for one in made)


def _exchanges_s(model: Model, part: str, tp: int, rows: int, engine: str) -> float:
    """Of one layer: the outputs of both its halves are added up over the GPUs."""
    size = rows * model.hidden * dtypes.bytes_per_element(ACTIVATIONS)
    return 2 * engine_all_reduce_s(part, engine=engine, ranks=tp, size_bytes=size) if tp > 1 else 0.0


def _small_s(model: Model, layer: Layer, tp: int, part: str, phase: str, tokens: int, cache: str) -> float:
    """Norms, rotation, activation and the write into the cache of one layer, for the new tokens."""
    element = dtypes.bytes_per_element(ACTIVATIONS)
    batch, sequence = (tokens, 1) if phase == "decode" else (1, tokens)
    counted: dict[str, Any] = {"causal": "half", "fused_attention": True, "logits": "last"}
    step = ForwardStep(phase=phase, batch=batch, sequence=sequence, bytes_per_element=element, **counted)
    ops = layer_ops(rank_layer(layer, tp), hidden=model.hidden, rotary=model.rotary, step=step)
    small = [op for op in ops if op.unit == VECTOR]
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
    tokens: int,
    engine: str,
) -> float:
    """One prompt by itself, up to its first token."""
    each = (
        count
        * (
            _products_s(model, layer, tokens, part, format, tp)
            + expected_prefill(part, **_heads(layer, tp), batch=1, tokens=tokens, cache=cache).seconds
            + _exchanges_s(model, part, tp, tokens, engine)
            + _small_s(model, layer, tp, part, "prefill", tokens, cache)
        )
        for layer, count in layers
    )
    return sum(each) + _product_s(part, 1, model.vocab / tp, model.hidden, HEAD_FORMAT)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedPoint:
    """A served point beside what was expected of it."""

    point: ServedPoint
    expected: ExpectedToken
    seated: bool  # whether the caches hold all requests

    @property
    def error(self) -> float:
        """Expected over measured time between two tokens, less 1: above 0 where the server was quicker."""
        return self.expected.total_s / self.point.tpot_s - 1

    @property
    def first_error(self) -> float | None:
        """The same of the time to the first token, expected as a mean; None where a run does not say how many requests
        it had, or where some waited for a seat.
        """
        if self.point.rounds is None or not self.seated:
            return None
        expected_s = first_token_s(self.expected, requests=self.point.requests, rounds=self.point.rounds)
        return expected_s / self.point.ttft_s - 1

    @property
    def over_floor(self) -> float:
        """Measured time over the floor's."""
        return self.point.tpot_s / self.expected.floor_s


@functools.cache
def judged_points() -> tuple[JudgedPoint, ...]:
    """Every served point of the catalogue."""
    return tuple(map(_judge, served_points()))


def _judge(point: ServedPoint) -> JudgedPoint:
    formats: dict[str, Any] = {"part": point.part, "format": point.format, "cache": point.cache, "tp": point.tp}
    model, tokens = catalogue.model(point.model), point.mean_prompt + point.mean_answer
    held = seats(model, **formats, tokens=tokens)
    expected = expected_token(
        model,
        **formats,
        requests=min(point.requests, held),
        prompt=point.mean_prompt,
        answer=point.mean_answer,
        engine=point.engine,
    )
    return JudgedPoint(point=point, expected=expected, seated=held >= point.requests)


def seats(model: Model, *, part: str, format: str, cache: str, tp: int, tokens: int) -> int:
    """How many requests of so many tokens the caches of tp GPUs hold; whoever comes later waits for a first token.

    Formula:  (MEMORY_SHARE * capacity - weights / tp) / (tokens * bytes of a token on one GPU)
    Assumes:  what else lies in memory fits into the tenth that engines leave
    Raises:   ValueError if not even one fits

    >>> from threeloops.models import catalogue
    >>> formats = {"format": "fp8", "cache": "fp8"}
    >>> seats(catalogue.model("llama-3-70b"), part="h200-sxm", **formats, tp=1, tokens=8192)
    48
    """
    checks.count(tp=tp, tokens=tokens)
    free = MEMORY_SHARE * hardware.part(part).capacity_bytes() - _weight_bytes(model, tp, format)
    each = tokens * sum(count * _token_bytes(layer, tp, cache) for layer, count in model.groups)
    if free < each:
        raise ValueError(f"{model.name} in {format} leaves no room for {tokens} tokens on {tp} of {part}; use more")
    return int(free / each)


def worth(judged: Sequence[JudgedPoint]) -> Iterator[tuple[str, float, float]]:
    """Rung by rung: its name, what it adds, and how far up that is; medians of shares of the measured time."""
    reached = [0.0] * len(judged)
    for name in judged[0].expected.parts:
        shares = [one.expected.parts[name] / one.point.tpot_s for one in judged]
        reached = [up + share for up, share in zip(reached, shares, strict=True)]
        yield name, median(shares), median(reached)
