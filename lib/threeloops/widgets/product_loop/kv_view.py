"""KV view: what the KV explorer shows for a state, as figure, sentence and table. No widget in here.

>>> shown = view(State(model="llama-3-8b", card="h100-sxm5", tp=1, kept_in="bf16", tokens=8192, requests=32))
>>> print(shown.summary)
32 requests of 8,192 tokens: 34.4 GB of cache beside 16.1 GB of weights and 3.00 GB of activations and graphs on each GPU, 67.9 % of what the engine may use. Most that fit: 55.
"""  # noqa: E501

from dataclasses import dataclass

from threeloops import checks
from threeloops.facts import hardware
from threeloops.figures.product_loop import memory_bar
from threeloops.models import catalogue, parameters
from threeloops.models.architecture import Attention, Model
from threeloops.product_loop import kv_cache
from threeloops.product_loop.kv_allocators import VllmPaged
from threeloops.product_loop.kv_quantisation import NVFP4, PER_TOKEN_HEAD, UNQUANTISED, Quantisation
from threeloops.units import counted, fmt_bytes, fmt_percent
from threeloops.widgets.view import View

MODELS = {
    "Llama 2 7B (32 KV heads)": "llama-2-7b",
    "Llama 3 8B (8 KV heads)": "llama-3-8b",
    "Llama 3 70B (8 KV heads)": "llama-3-70b",
    "Qwen2.5 7B (4 KV heads)": "qwen2.5-7b",
    "Gemma 3 27B (windows)": "gemma-3-27b",
    "gpt-oss-120b (windows)": "gpt-oss-120b",
    "DeepSeek-V3 (latent)": "deepseek-v3",
}
CARDS = {"L4": "l4", "A100 80GB": "a100-sxm4-80gb", "H100": "h100-sxm5", "H200": "h200-sxm", "B200": "b200-hgx"}
# Bytes of an element, and the scales that are cached beside the elements.
FORMATS: dict[str, tuple[float, Quantisation]] = {
    "bf16": (2, UNQUANTISED),
    "fp8": (1, UNQUANTISED),
    "int8 + scales": (1, PER_TOKEN_HEAD),
    "nvfp4": (0.5, NVFP4),
}
TENSOR_PARALLEL = (1, 2, 4, 8)
TOKENS = tuple(2**power for power in range(9, 18))
REQUESTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
SHARE = 0.92  # of the memory that the driver reports: vLLM's gpu_memory_utilization unless told otherwise
OTHER_BYTES = 3e9  # activations and CUDA graphs: an assumption, the one that part 11 of chapter 3 plans with
COLUMNS = ("cache in", "bytes per token", "cache on each GPU", "most requests that fit")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Where the controls stand."""

    model: str
    card: str
    tp: int
    kept_in: str
    tokens: int
    requests: int

    def __post_init__(self) -> None:
        checks.one_of(MODELS.values(), model=self.model)
        checks.one_of(CARDS.values(), card=self.card)
        checks.one_of(FORMATS, kept_in=self.kept_in)
        for name, value, known in (
            ("tp", self.tp, TENSOR_PARALLEL),
            ("tokens", self.tokens, TOKENS),
            ("requests", self.requests, REQUESTS),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} must be one of {', '.join(map(str, known))}")


def possible_tp(model: Model) -> tuple[int, ...]:
    """Tensor-parallel degrees over which a model's heads split."""
    return tuple(tp for tp in TENSOR_PARALLEL if all(_splits(layer.attention, tp) for layer, _ in model.groups))


def _splits(attention: object, tp: int) -> bool:
    if not isinstance(attention, Attention):
        return True
    return attention.num_heads % tp == 0 and (attention.num_kv_heads % tp == 0 or tp % attention.num_kv_heads == 0)


def view(state: State) -> View:
    """What to show for a state; the weights are in bf16 and split evenly."""
    model, memory = catalogue.model(state.model), hardware.part(state.card)["usable_bytes"]
    weights = 2 * parameters.model_parameters(model).total / state.tp
    budget = SHARE * memory
    always = weights + OTHER_BYTES
    rows = {name: _row(model, state, name, free=budget - always) for name in FORMATS}
    _, cache, most = rows[state.kept_in]
    used = always + cache
    figure = memory_bar.memory_bar(
        {"weights": weights, "activations and graphs": OTHER_BYTES, "KV cache": cache},
        memory_bytes=memory,
        budget_bytes=budget,
        title=_title(always=always, used=used, budget=budget),
        caption=(
            f"Each of {counted(state.tp, 'GPU')}: {counted(state.requests, 'request')} of {state.tokens:,} tokens,"
            f" cache in {state.kept_in}, in blocks of 16 tokens; weights in bf16."
        ),
    )
    summary = (
        f"{counted(state.requests, 'request')} of {state.tokens:,} tokens: {fmt_bytes(cache, base=10)} of cache beside"
        f" {fmt_bytes(weights, base=10)} of weights and {fmt_bytes(OTHER_BYTES, base=10)} of activations and"
        f" graphs on each GPU, {fmt_percent(used / budget)} of what the engine may use. Most that fit: {most:,}."
    )
    table = tuple(
        (name, f"{token:,.0f}", fmt_bytes(held, base=10), f"{fits:,}") for name, (token, held, fits) in rows.items()
    )
    return View(columns=COLUMNS, figure=figure, summary=summary, rows=table)


def _row(model: Model, state: State, name: str, *, free: float) -> tuple[float, float, int]:
    """Bytes of a token, bytes that the allocator holds for all requests, and how many would fit."""
    bytes_per_element, quantisation = FORMATS[name]
    token = kv_cache.bytes_per_token(model, bytes_per_element=bytes_per_element, quantisation=quantisation, tp=state.tp)
    request = kv_cache.held_bytes(
        model,
        tokens=state.tokens,
        bytes_per_element=bytes_per_element,
        allocator=VllmPaged(),
        quantisation=quantisation,
        tp=state.tp,
        peak=True,
    )
    return token, state.requests * request, max(0, int(free // request))


def _title(*, always: float, used: float, budget: float) -> str:
    if always > budget:
        return "Nothing is left for the cache"
    return f"{'It fits' if used <= budget else 'It does not fit'}: {fmt_percent(used / budget)} of the engine's memory"
