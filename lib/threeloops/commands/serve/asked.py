"""Asked: from flags to what is to be served."""

import argparse
import math

from threeloops import spelling
from threeloops.commands.budget import weights_format
from threeloops.commands.named import model_named, part_named, rate_named
from threeloops.commands.serve.copies import Served
from threeloops.commands.typed import quantity
from threeloops.facts.request_traces import KEYS, request_trace
from threeloops.models.architecture import LatentAttention, Model
from threeloops.product_loop import kv_cache
from threeloops.product_loop.expected.expected_token import MIXED
from threeloops.product_loop.kv_quantisation import cache_format
from threeloops.product_loop.sizing.adapter_times import ServedAdapters, reserved_rank
from threeloops.product_loop.sizing.drafted_steps import Drafts
from threeloops.product_loop.sizing.engine_limits import Promises
from threeloops.product_loop.sizing.request_lengths import RequestLengths, of_requests
from threeloops.product_loop.sizing.staged_times import Stages

# Flags that count something, so that what is below one means nothing; an answer has a sentence of its own.
COUNTS = (
    *("prompt", "users", "gpus", "tp", "pp", "dp", "dcp", "ep", "prefill_tp", "prefill_dp", "draft_tokens"),
    *("adapters", "adapter_rank"),
)


def asked_for(given: argparse.Namespace) -> Served:
    """What is to be served, where, and what is promised.

    Raises:   ValueError in one sentence for what does not fit together
    """
    _refuse_below_one(given)
    model, engine = model_named(given.model, given.catalog), _engine(given)
    kv_cache.refuse_sharing(model, dcp=given.dcp)
    _engine_shares(engine, model, given.dcp)
    lengths, traced = _lengths(given, model)
    timed = {name: getattr(given, name) for name in ("ttft", "itl", "tpot")}
    promised_s = {f"{name}_s": _quantity(name, text, "s") for name, text in timed.items() if text is not None}
    return Served(
        model=model,
        part=part_named("hardware", given.hardware, given.catalog),
        weights=weights_format(given.weights),
        cache=_cache(given.cache, model),
        engine=engine,
        ep=given.ep,
        stages=_stages(given),
        dp=given.dp,
        dcp=given.dcp,
        drafts=_drafts(given),
        adapters=_adapters(given),
        lengths=lengths,
        traced=traced,
        promised=Promises(**promised_s),
        memory_utilisation=given.share,
        other_bytes=_quantity("other", given.other, "B"),
        watermark=_watermark(given.watermark, engine),
    )


def _refuse_below_one(given: argparse.Namespace) -> None:
    for name in COUNTS:
        number = getattr(given, name)
        if number is not None and number < 1:
            raise ValueError(f"--{name.replace('_', '-')} {number} must be a whole number of at least 1")
    if not 0 < given.share <= 1:
        raise ValueError(f"--share {given.share:g} must lie between 0 and 1, and not be 0: a share of the memory")
    if given.price is not None and not 0 < given.price < math.inf:
        raise ValueError(f"--price {given.price:g} must be greater than 0, and finite: dollars for an hour of one GPU")


def _quantity(name: str, text: str, like: str) -> float:
    try:
        return quantity(text, like)
    except ValueError as error:
        raise ValueError(f"--{name} {text}: {error}") from error


def _cache(typed: str, model: Model) -> str:
    """The format of keys and values, if an engine of these has it."""
    form = cache_format(model, cache=typed)
    if form.engine:
        raise ValueError(
            f"--cache {form.name} is counted by `threeloops kv` and `threeloops fit`; the times that serve knows are of"
            " plain formats: give bf16 or fp8"
        )
    return form.name


def _lengths(given: argparse.Namespace, model: Model) -> tuple[RequestLengths, str]:
    """Of two means, or of a recorded trace, and its key: of that all requests that the model was made for."""
    either = "give --prompt 2k and --answer 500, or --lengths azure-conversation"
    if given.lengths is not None:
        if given.prompt is not None or given.answer is not None:
            raise ValueError(f"--lengths {given.lengths} says how long prompts and answers are: {either}, not both")
        known = {key: (key.replace("conversation", "conversations"),) for key in KEYS}
        key = spelling.key_of(known, lengths=given.lengths)
        recorded = request_trace(key).sample
        fitting = [one for one in recorded if sum(one) <= model.max_context]
        if len(fitting) < len(recorded) / 2:
            raise ValueError(
                f"--lengths {key}: of {len(recorded):,} recorded requests {len(fitting):,} are within the"
                f" {model.max_context:,} tokens that {model.name} was made for; take another trace, or a model"
                " for longer contexts"
            )
        return of_requests(fitting, hit=given.hit), key
    if given.prompt is None or given.answer is None:
        raise ValueError(f"say how long requests are: {either}")
    if given.answer < 2:
        raise ValueError(f"--answer {given.answer}: give at least 2 tokens; a single one has no gap to the next")
    kept = min(round(given.hit * given.prompt), given.prompt - 1)
    return RequestLengths(prompt=given.prompt, kept=kept, answer=given.answer), ""


def _stages(given: argparse.Namespace) -> Stages | None:
    if given.pp == 1:
        if given.network:
            raise ValueError("--network is for stages on several nodes: give --pp 2, too")
        return None
    if not given.network:
        raise ValueError(
            f"--pp {given.pp}: say with --network what joins the nodes, each GPU's share of it, for example --network"
            " infiniband-ndr or --network 50GB/s"
        )
    return Stages(number=given.pp, network_bytes_per_s=rate_named("network", given.network, given.catalog))


def _engine(given: argparse.Namespace) -> str:
    known = {name: ("trtllm", "trt-llm", "tensorrt") if name == "TensorRT-LLM" else () for name in MIXED}
    return spelling.key_of(known, engine=given.engine)


def _engine_shares(engine: str, model: Model, dcp: int) -> None:
    """Source:   SGLang, docs/advanced_features/dcp.md, 2026 (of latents); TensorRT-LLM, features/helix.md, 2026

    Raises:   ValueError where the engine does not share the tokens of this model's cache
    """
    if dcp > 1 and engine == "TensorRT-LLM":
        raise ValueError(
            f"dcp={dcp}: TensorRT-LLM shares tokens only where other GPUs read the prompts (Helix), which is not"
            " counted; take --engine vllm"
        )
    latents = all(isinstance(layer.attention, LatentAttention) for layer, _ in model.groups)
    if dcp > 1 and engine == "SGLang" and not latents:
        raise ValueError(
            f"dcp={dcp}: SGLang shares the tokens of latents, and {model.name} keeps keys and values; take"
            " --engine vllm"
        )


def _watermark(share: float, engine: str) -> float:
    if share and engine != "vLLM":
        raise ValueError(f"--watermark {share:g} is vLLM's; {engine} admits by other rules: leave it out")
    if share == 1:
        raise ValueError("--watermark 1 keeps all blocks free; give a share below 1, like 0.05")
    return share


def _adapters(given: argparse.Namespace) -> ServedAdapters | None:
    """Adapters of the rank that the engine reserves for those that are asked for."""
    number, rank = given.adapters, given.adapter_rank
    if number is None and rank is None:
        return None
    if number is None or rank is None:
        raise ValueError(
            "adapters need --adapters 8 and --adapter-rank 16: how many lie in memory, and the largest of their ranks"
        )
    return ServedAdapters(number=number, rank=reserved_rank(rank, engine=_engine(given)))


def _drafts(given: argparse.Namespace) -> Drafts | None:
    drafted, accepted, cost = given.draft_tokens, given.acceptance, given.draft_cost
    if drafted is None and accepted is None and cost is None:
        return None
    if drafted is None or accepted is None or cost is None:
        raise ValueError(
            "drafts need --draft-tokens 3, --acceptance 0.7 and --draft-cost 0.05, none of which has a default:"
            " engines report how many they accept, and a head of one layer costs about its share of a step's weights"
        )
    return Drafts(drafted=drafted, accepted_share=accepted, cost=cost)
