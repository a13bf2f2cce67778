"""Request times: how long the steps of a served layout take for requests of one length, in two ways: the roofline's
bound, which no machine beats, and the time that measured kernels add up to.

>>> from threeloops.facts import hardware
>>> from threeloops.models import catalogue
>>> one = ServedLayout(
...     model=catalogue.model("llama-3-8b"),
...     part=hardware.part("h100-sxm5"),
...     weights="bf16",
...     cache="bf16",
...     tp=1,
...     memory_utilisation=0.92,
...     other_bytes=3e9,
... )
>>> chat = RequestLengths(prompt=1500, kept=0, answer=300)
>>> bound, expected = bound_times(one, chat, most=64), expected_times(one, chat, most=64, engine="vLLM", ep=1)
>>> f"{bound.step_s(64) * 1e3:.1f} ms at least, {expected.step_s(64) * 1e3:.1f} ms expected"
'8.7 ms at least, 11.2 ms expected'

Source: Williams, Waterman, Patterson, 2009, doi:10.1145/1498765.1498785 (the bound); expected/expected_token.py
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks, dtypes
from threeloops.facts.hardware import Part
from threeloops.models.architecture import Attention, LatentAttention, MoeMlp
from threeloops.models.forward_step import MATRIX, ForwardStep, Op
from threeloops.models.transformer import layer_ops, model_ops
from threeloops.operations import roofline
from threeloops.product_loop import kv_cache
from threeloops.product_loop.expected.expected_token import ExpectedToken, expected_token
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.served_layout import ServedLayout
from threeloops.product_loop.sizing.stored_weights import mean_weight_bytes

ATTENTION, EXPERTS = "attention", "expert_"
WIDE_PEAKS = ("bf16", "fp16", "fp32")  # the first that a part lists
WIDE_FORMAT = "bf16"  # of activations, and of products in which weights alone are narrow


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTimes:
    """Seconds of one replica's steps."""

    decode_s: tuple[tuple[int, float], ...]  # of a step with so many requests, fewest first, from one on
    prompt_s: float  # of one prompt by itself, on average
    new: int  # tokens of a prompt that are computed, on average
    groups: int = 1  # of GPUs with requests of their own: of several each reads prompts of its own
    shared_prompt_s: float = 0.0  # of prompt_s, what prompts of other groups add to: experts and their exchanges
    prompts_s: tuple[tuple[int, float], ...] = ()  # of prompts of so many computed tokens, where lengths are drawn

    def step_s(self, requests: int) -> float:
        """A decode step of so many requests; between two numbers that were computed, on the line between them."""
        if requests > self.decode_s[-1][0]:
            raise ValueError(f"requests={requests} must be at most {self.decode_s[-1][0]}")
        return _on_the_line(self.decode_s, requests)

    def alike(self, new: int) -> int:
        """Tokens of average cost that take as long as a prompt of so many: attention grows with its square.

        Formula:  (time of the prompt by itself - step of one request) / per_new_token_s; between two lengths that were
                  computed, a prompt's time lies on the line between them
        """
        if not self.prompts_s or not self.per_new_token_s:
            return new
        return max(1, round((_on_the_line(self.prompts_s, new) - self.step_s(1)) / self.per_new_token_s))

    @property
    def decoding(self) -> "RequestTimes":
        """The same where prompts are read elsewhere."""
        return replace(self, prompt_s=self.step_s(1), shared_prompt_s=0.0, prompts_s=())

    @property
    def per_new_token_s(self) -> float:
        """What a token of a prompt adds to a step that is taken anyway.

        Formula:  (time of the prompt by itself - step of one request) / computed tokens
        """
        return max(0.0, self.prompt_s - self.step_s(1)) / self.new

    @property
    def per_shared_token_s(self) -> float:
        """Of per_new_token_s, what all groups take part in; nothing where there is one."""
        return min(self.per_new_token_s, self.shared_prompt_s / self.new) if self.groups > 1 else 0.0

    def reading_s(self, prompts: float) -> float:
        """What so many prompts, on average, add to a step.

        Formula:  computed tokens * (prompts * shared + max(min(1, prompts), prompts / groups) * what a group takes by
                  itself): the others wait for the group that reads
        """
        own_s = self.per_new_token_s - self.per_shared_token_s
        at_once = max(min(1.0, prompts), prompts / self.groups)
        return self.new * (prompts * self.per_shared_token_s + at_once * own_s)

    def work_s(self, requests: int, answer: int) -> float:
        """Seconds of the replica that one request of so many inside uses up.

        Formula:  answer / requests * (step + reading_s(requests / answer)): in each step requests / answer end and come
        """
        return answer / requests * (self.step_s(requests) + self.reading_s(requests / answer))


def expected_times(
    layout: ServedLayout, lengths: RequestLengths, *, most: int, engine: str, ep: int, checked: int = 1
) -> RequestTimes:
    """Seconds by kernels that others timed, for up to `most` requests at a time.

    Formula:  expected_token without the prompts of others, for 1, 2, 4, … requests, as many in every group
    Assumes:  as expected_token; caches as long as halfway through the answer
    Raises:   ValueError for a model, format or part whose kernels nobody timed
    Measured: tests.product_loop.sizing.test_request_times.test_few_users_of_a_server_wait_about_a_step
    """
    if layout.dcp > 1:
        raise ValueError(f"dcp={layout.dcp}: nobody timed attention and exchanges of decode context parallelism")
    steps = [(requests, expected_of(layout, lengths, requests, engine, ep, checked)) for requests in _doubled(most)]
    decode_s = tuple((requests, token.step_s) for requests, token in steps)

    def prompt_s(one: RequestLengths) -> tuple[float, float]:
        token = expected_of(layout, one, 1, engine, ep)
        return token.prompt_s, token.shared_prompt_s

    return _with_prompts(layout, decode_s, lengths, prompt_s)


def expected_of(
    layout: ServedLayout, lengths: RequestLengths, requests: int, engine: str, ep: int, checked: int = 1
) -> ExpectedToken:
    """The expected token, rung by rung, of so many requests; `checked` as expected_token has it."""
    return expected_token(
        layout.model,
        part=layout.part.key,
        format=layout.weights,
        cache=layout.cache,
        tp=layout.tp,
        requests=requests,
        prompt=lengths.mean_context - lengths.answer // 2,  # caches are as long as those of requests that decode
        answer=lengths.answer,
        kept=min(lengths.kept, lengths.mean_context - lengths.answer // 2 - 1),
        engine=engine,
        ep=ep,
        dp=layout.dp,
        checked=checked,
    )


def bound_times(layout: ServedLayout, lengths: RequestLengths, *, most: int, checked: int = 1) -> RequestTimes:
    """Seconds that no engine beats, for up to `most` requests at a time.

    Formula:  sum over a pass's products and attentions of max(FLOPs / peak, bytes / bandwidth) of one GPU, one after
              another; of the group with most requests
    Assumes:  datasheet rates; norms and all else that is no product ride along with one; every GPU takes an equal
              share of each, but of a cache what it keeps: a copy, where tp is more than the KV heads, or 1 / dcp of
              one; exchanges cost nothing; latent attention absorbed in decode; an even router
    Counted:  tests.product_loop.sizing.test_request_times.test_a_small_batch_reads_weights_and_caches
    """
    grid = tuple(
        (requests, bound_step_s(layout, requests=requests, context=lengths.mean_context, checked=checked))
        for requests in _doubled(most)
    )

    def prompt_s(one: RequestLengths) -> tuple[float, float]:
        own_s, shared_s = _pass_s(layout, "prefill", 1, 1, one.new)
        if one.kept:  # the new tokens attend to the whole prompt
            whole, kept, new = (_attention_s(layout, tokens) for tokens in (one.prompt, one.kept, one.new))
            own_s += whole - kept - new
        return own_s + shared_s, shared_s

    return _with_prompts(layout, grid, lengths, prompt_s)


def _with_prompts(
    layout: ServedLayout,
    decode_s: tuple[tuple[int, float], ...],
    lengths: RequestLengths,
    prompt_s: Callable[[RequestLengths], tuple[float, float]],
) -> RequestTimes:
    """Steps, and the time of prompts: of one length, or of all that may be drawn, on average."""
    timed: dict[str, Any] = {"decode_s": decode_s, "new": lengths.new, "groups": layout.dp}
    if not lengths.drawn:
        whole_s, shared_s = prompt_s(lengths)
        return RequestTimes(**timed, prompt_s=whole_s, shared_prompt_s=shared_s)
    grid = [(one.new, prompt_s(one)) for one in lengths.grid()]
    whole, shared = (tuple((new, both[which]) for new, both in grid) for which in (0, 1))
    mean_s, mean_shared_s = (
        sum(_on_the_line(points, one.new) for one in lengths.each()) / len(lengths.drawn) for points in (whole, shared)
    )
    return RequestTimes(**timed, prompt_s=mean_s, shared_prompt_s=mean_shared_s, prompts_s=whole)


def _on_the_line(points: Sequence[tuple[int, float]], at: int) -> float:
    """Between two points the line through them; before the first its value."""
    place = bisect_left(points, (at, 0.0))
    after, longer = points[place]
    if after == at or not place:
        return longer
    before, shorter = points[place - 1]
    return shorter + (longer - shorter) * (at - before) / (after - before)


def bound_step_s(layout: ServedLayout, *, requests: int, context: int, checked: int = 1) -> float:
    """Seconds that no engine beats, of one decode step of requests with so many tokens each.

    Formula:  as bound_times
    Units:    checked: tokens of each request in the step, which reads its cache once for all of them
    Counted:  tests.product_loop.sizing.test_request_times.test_a_small_batch_reads_weights_and_caches
    """
    own = math.ceil(requests / layout.dp)
    read = sum(_pass_s(layout, "decode", requests * checked, own * checked, context))
    return read + _cached_s(layout, own, context, checked)


def _doubled(most: int) -> Iterable[int]:
    checks.count(most=most)
    some = 1
    while some < most:
        yield some
        some *= 2
    yield most


def _ops(layout: ServedLayout, phase: str, batch: int, sequence: int) -> tuple[Op, ...]:
    return model_ops(layout.model, _step(layout, batch, sequence, phase))


def _step(layout: ServedLayout, batch: int, sequence: int, phase: str = "decode") -> ForwardStep:
    layers = [layer for layer, _ in layout.model.groups]
    latent = "absorbed" if phase == "decode" else "expanded"
    return ForwardStep(
        phase=phase,
        batch=batch,
        sequence=sequence,
        causal="exact",
        fused_attention=True,
        logits="last",
        bytes_per_element=dtypes.bytes_per_element(WIDE_FORMAT),
        weight_bytes_per_element=mean_weight_bytes(layout.model, layout.weights),
        kv_bytes_per_element=layout.cache_bytes,
        latent=latent if any(isinstance(layer.attention, LatentAttention) for layer in layers) else None,
        routing="uniform" if any(isinstance(layer.mlp, MoeMlp) for layer in layers) else None,
    )


def _attention_s(layout: ServedLayout, tokens: int) -> float:
    """Of a prompt of so many tokens, the attention alone."""
    return _sum_s(layout, (op for op in _ops(layout, "prefill", 1, tokens) if op.name == ATTENTION)) / layout.tp


def _pass_s(layout: ServedLayout, phase: str, batch: int, own: int, sequence: int) -> tuple[float, float]:
    """What a group of GPUs does with its own requests, and the experts, which all GPUs have for all requests."""
    own_ops = [op for op in _ops(layout, phase, own, sequence) if not op.name.startswith(EXPERTS)]
    if phase == "decode":  # attention is another matter: it reads what this GPU keeps of the caches
        own_ops = [op for op in own_ops if op.name != ATTENTION]
    shared_ops = [op for op in _ops(layout, phase, batch, sequence) if op.name.startswith(EXPERTS)]
    return _sum_s(layout, own_ops) / layout.tp, _sum_s(layout, shared_ops) / layout.gpus


def _cached_s(layout: ServedLayout, batch: int, tokens: int, checked: int) -> float:
    """Attention of one GPU over caches of so many tokens, in all layers."""
    part, element = layout.part, layout.cache_bytes
    peak, seconds = _peaks(part, layout.weights), 0.0
    for layer, count in layout.model.groups:
        window = layer.attention.window if isinstance(layer.attention, Attention) else None
        read = batch * min(tokens, window or tokens)
        whole, kept = (
            read * kv_cache.layer_bytes_per_token(layer.attention, bytes_per_element=element, tp=tp)
            for tp in (1, layout.tp)
        )
        ops = layer_ops(
            layer, hidden=layout.model.hidden, rotary=layout.model.rotary, step=_step(layout, batch, tokens)
        )
        for op in (op for op in ops if op.name == ATTENTION):
            moved = max(0.0, op.work.moved_bytes - whole) / layout.tp + kept / layout.dcp
            work = roofline.Work(flops=checked * op.work.flops / layout.tp, moved_bytes=moved)
            bound = roofline.time(work, peak_flops_per_s=peak(op), memory_bytes_per_s=part["memory_bytes_per_s"])
            seconds += count * op.count * bound.lower_bound_s
    return seconds


def _sum_s(layout: ServedLayout, ops: Iterable[Op]) -> float:
    peak, bandwidth = _peaks(layout.part, layout.weights), layout.part["memory_bytes_per_s"]
    bounds = (
        (op.count, roofline.time(op.work, peak_flops_per_s=peak(op), memory_bytes_per_s=bandwidth))
        for op in ops
        if op.unit == MATRIX
    )
    return sum(count * bound.lower_bound_s for count, bound in bounds)


def _peaks(part: Part, weights: str) -> Callable[[Op], float]:
    """Products run at their format's peak where the part has one, else in 16 bits (or 32), as attention and head do."""
    wide = part.peak_flops_per_s(next((name for name in WIDE_PEAKS if name in part.peaks), WIDE_FORMAT))
    own = dtypes.peak_format(weights) if weights in dtypes.BITS else WIDE_FORMAT
    narrow = part.peak_flops_per_s(own) if own in part.peaks else wide
    return lambda op: wide if op.name in (ATTENTION, "head") else narrow
