"""Expected token: from the floor of a decode step to the time between two tokens that a server's user sees, rung by
rung, by measured kernels; nothing in it is fitted to a server.

>>> from threeloops.models import catalogue
>>> llama = catalogue.model("llama-3-70b")
>>> served = {"requests": 16, "prompt": 1024, "answer": 1024, "engine": "vLLM"}
>>> one = expected_token(llama, part="h200-sxm", format="fp8", cache="fp8", tp=4, **served)
>>> [name for name in one.parts][:2], one.floor_s < one.total_s
(['weights over bandwidth', 'KV cache over bandwidth'], True)

Source: layer_times.py (kernels); Pope et al., 2022, arXiv:2211.05102, section 2 (the floor)
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from threeloops import checks
from threeloops.facts import hardware
from threeloops.models.architecture import Layer, Model, MoeMlp
from threeloops.product_loop.expected.layer_times import (
    attention_decode_s,
    attention_prefill_s,
    layer_exchanges_s,
    layer_experts_s,
    layer_products_s,
    measured_layer,
    plain_product_s,
    small_kernels_s,
)
from threeloops.product_loop.expected.rank_memory import (
    HEAD_FORMAT,
    ServedCut,
    has_latents,
    rank_cache_bytes,
    rank_latent_bytes,
    rank_weight_bytes,
)

# Engines whose iterations hold prompts and single tokens together. Source: TensorRT-LLM's documentation, "In-flight
# batching"; vLLM's, "Chunked prefill" (on by default); SGLang's, "Server arguments" (--enable-mixed-chunk is off)
MIXED = {"TensorRT-LLM": True, "vLLM": True, "SGLang": False}
FLOOR = ("weights over bandwidth", "KV cache over bandwidth")
PROMPTS = "prompts of others"
EXCHANGES = ("all-reduces", "exchanges")  # of one group of GPUs, and of several that share experts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedToken:
    """Seconds between two tokens of one request, by cause; the parts add up."""

    parts: dict[str, float]
    prompt_s: float  # of one prompt, computed by itself
    shared_prompt_s: float  # of that, experts and exchanges: prompts of other groups of GPUs add to them

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
    dp: int = 1,
    kept: int = 0,
    checked: int = 1,
) -> ExpectedToken:
    """The time between two tokens with so many requests at a time, each of `prompt` tokens, answered by `answer`.

    Formula:  weights and caches over bandwidth + what measured products and attention take beyond that + two
              all-reduces a layer + small kernels, each its bytes at a copy's rate and the shortest kernel's time
              + (requests - 1) / answer * time of one prompt: while one request gets its answer, each other one
              brings a prompt; where the engine is in MIXED, its iteration makes a token for every other request
              and reads the weights once: products, all-reduces and small kernels of a step are saved that often
    Shapes:   products [requests, hidden] x [hidden, columns / tp] per GPU; caches hold prompt + answer / 2 tokens; of
              the tp GPUs ep groups hold different experts, and the GPUs of a group a share of their width. dp groups
              of tp GPUs share experts alone: each has requests / dp of its own, an all-gather before the experts and a
              reduce-scatter after them stand for an all-reduce, and prompts of several groups are read at once
    Units:    prompt, answer, kept, checked in tokens; kept: of the prompt those whose keys and values a prefix cache
              has; the rest is computed and attends to them. checked: of one request in a step, which reads its cache
              once for all of them: one, or with drafts one more than those. format: of weights and what multiplies
              them; cache: of keys and values; head, router and activations have 16 bits
    Assumes:  the engine's all-reduces of 2026; for products, experts and attention vLLM's kernels; one prompt an
              iteration; a router that chooses evenly, for what a step reads; a layer with a window takes
              what attention over its window takes, and of a prompt what as many short ones of two windows take;
              several checked tokens of a latent layer attend one by one; no time of the host, of sampling, of the
              network to the client
    Raises:   ValueError for dp without experts, for recurrent layers, for latents of other widths than DeepSeek-V3's,
              for a part, format or number of GPUs that was not measured, for heads that tp or GPUs that ep does not
              divide
    Measured: tests.product_loop.expected.test_expected_token.test_a_recorded_decode_loop_takes_about_what_is_expected
    """
    checks.count(tp=tp, dp=dp, requests=requests, prompt=prompt, answer=answer)
    checks.count(at_least=0, kept=kept)
    checks.count(checked=checked)
    if kept >= prompt:
        raise ValueError(f"kept={kept} must be less than prompt={prompt}: at least the last token is computed")
    checks.one_of(MIXED, engine=engine)
    cut = ServedCut(tp=tp, ep=ep, dp=dp)
    layers = [(measured_layer(model, layer, cut), count) for layer, count in model.groups]
    if dp > 1 and not any(isinstance(layer.mlp, MoeMlp) for layer, _ in layers):
        raise ValueError(f"dp={dp} groups share experts, and {model.name} has none: they are copies of it")
    own = math.ceil(requests / dp)
    rows, all_rows = own * checked, requests * checked
    context = prompt + answer // 2
    bandwidth = hardware.part(part)["memory_bytes_per_s"]
    read = rank_weight_bytes(model, tp, format, tokens=all_rows, dp=dp) / bandwidth
    cached = own * sum(count * rank_cache_bytes(layer, tp, cache, context) for layer, count in layers) / bandwidth
    products_s = sum(count * layer_products_s(model, layer, rows, part, format, cut) for layer, count in layers)
    products_s += sum(count * layer_experts_s(model, layer, all_rows, part, format, cut) for layer, count in layers)
    products_s += plain_product_s(part, rows, model.vocab / tp, model.hidden, HEAD_FORMAT)
    attention_s = sum(
        count * attention_decode_s(layer, tp, part, rows if has_latents(layer) else own, context, cache, format)
        for layer, count in layers
    )
    blocks = sum(count * rank_latent_bytes(layer, tp, format) for layer, count in layers) / bandwidth  # timed whole
    formats: dict[str, Any] = {"part": part, "format": format, "cut": cut}
    shared_prompt_s = _shared_prompt_s(model, layers, **formats, new=prompt - kept, engine=engine)
    prompt_s = shared_prompt_s + _own_prompt_s(model, layers, **formats, cache=cache, tokens=prompt, kept=kept)
    parts = {
        FLOOR[0]: read,
        FLOOR[1]: cached,
        "matmuls beyond that": products_s + blocks - read,
        "attention beyond that": attention_s - blocks - cached,
        EXCHANGES[dp > 1]: sum(
            count * layer_exchanges_s(model, layer, part, cut, all_rows, rows, engine) for layer, count in layers
        ),
        "small kernels": sum(
            count * small_kernels_s(model, layer, tp, part, "decode", rows, cache) for layer, count in layers
        ),
    }
    prompts = (requests - 1) / answer
    shared_s = sum(parts.values()) - cached - parts["attention beyond that"] if MIXED[engine] else 0.0
    at_once = max(min(1.0, prompts), prompts / dp)  # groups wait for the one that reads a prompt
    read_s = prompts * shared_prompt_s + at_once * (prompt_s - shared_prompt_s)
    parts[PROMPTS] = read_s - min(1.0, prompts) * shared_s
    return ExpectedToken(parts=parts, prompt_s=prompt_s, shared_prompt_s=shared_prompt_s)


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


def _shared_prompt_s(
    model: Model,
    layers: Sequence[tuple[Layer, int]],
    *,
    part: str,
    format: str,
    cut: ServedCut,
    new: int,
    engine: str,
) -> float:
    """Of one prompt by itself what all GPUs take part in."""
    return sum(
        count
        * (
            layer_experts_s(model, layer, new, part, format, cut)
            + layer_exchanges_s(model, layer, part, cut, new, new, engine)
        )
        for layer, count in layers
    )


def _own_prompt_s(
    model: Model,
    layers: Sequence[tuple[Layer, int]],
    *,
    part: str,
    format: str,
    cache: str,
    cut: ServedCut,
    tokens: int,
    kept: int,
) -> float:
    """What one group of GPUs takes for a prompt, from the first token on that is not kept, up to its first answer."""
    new, tp = tokens - kept, cut.tp
    each = (
        count
        * (
            layer_products_s(model, layer, new, part, format, cut)
            + attention_prefill_s(layer, tp, part, tokens, cache, format)
            - (attention_prefill_s(layer, tp, part, kept, cache, format) if kept else 0.0)
            + small_kernels_s(model, layer, tp, part, "prefill", new, cache)
        )
        for layer, count in layers
    )
    return sum(each) + plain_product_s(part, 1, model.vocab / tp, model.hidden, HEAD_FORMAT)
