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

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from threeloops import checks
from threeloops.product_loop.expected.expected_token import PROMPTS, ExpectedToken, expected_token
from threeloops.product_loop.sizing.adapter_times import expected_adapters_s
from threeloops.product_loop.sizing.bound_steps import bound_prompt_s, bound_step_s
from threeloops.product_loop.sizing.request_lengths import RequestLengths
from threeloops.product_loop.sizing.served_layout import ServedLayout

ADAPTERS = "adapters"  # of a step, beside the parts of an expected token


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

    @property
    def per_chunk_token_s(self) -> float:
        """What a token of every group's chunk adds to a step: its own, and those of all groups where they share."""
        return self.per_new_token_s + (self.groups - 1) * self.per_shared_token_s

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
    Raises:   ValueError for a model, format or part whose kernels are not timed
    Measured: tests.product_loop.sizing.test_request_times.test_few_users_of_a_server_wait_about_a_step
    """
    if layout.dcp > 1:
        raise ValueError(f"dcp={layout.dcp}: no attention and exchanges of decode context parallelism are timed")
    steps = [(requests, expected_of(layout, lengths, requests, engine, ep, checked)) for requests in doubled(most)]
    decode_s = tuple((requests, token.step_s) for requests, token in steps)

    def prompt_s(one: RequestLengths) -> tuple[float, float]:
        token = expected_of(layout, one, 1, engine, ep)
        return token.prompt_s, token.shared_prompt_s

    return _with_prompts(layout, decode_s, lengths, prompt_s)


def expected_of(
    layout: ServedLayout, lengths: RequestLengths, requests: int, engine: str, ep: int, checked: int = 1
) -> ExpectedToken:
    """The expected token, rung by rung, of so many requests; `checked` as expected_token has it.

    Formula:  expected_token, and where there are adapters expected_adapters_s of a step and of each prompt
    Measured: tests.product_loop.sizing.test_adapter_times.test_prompts_of_others_bring_their_adapters
    """
    token = expected_token(
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
    if layout.adapters is None:
        return token
    of_model: tuple[Any, ...] = (layout.model, layout.part, layout.adapters)
    step_s = expected_adapters_s(*of_model, tp=layout.tp, tokens=requests * checked, requests=requests)
    prompt_s = expected_adapters_s(*of_model, tp=layout.tp, tokens=lengths.new, requests=1)
    others = token.parts[PROMPTS] + (requests - 1) / lengths.answer * prompt_s
    parts = token.parts | {PROMPTS: others, ADAPTERS: step_s}
    return replace(token, parts=parts, prompt_s=token.prompt_s + prompt_s)


def bound_times(layout: ServedLayout, lengths: RequestLengths, *, most: int, checked: int = 1) -> RequestTimes:
    """Seconds that no engine beats, for up to `most` requests at a time.

    Formula:  bound_step_s for 1, 2, 4, … requests, and bound_prompt_s
    Assumes:  as both
    Counted:  tests.product_loop.sizing.test_request_times.test_a_small_batch_reads_weights_and_caches
    """
    grid = tuple(
        (requests, bound_step_s(layout, requests=requests, context=lengths.mean_context, checked=checked))
        for requests in doubled(most)
    )
    return _with_prompts(layout, grid, lengths, lambda one: bound_prompt_s(layout, one))


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


def doubled(most: int) -> Iterable[int]:
    """One, two, four, … and the most."""
    checks.count(most=most)
    some = 1
    while some < most:
        yield some
        some *= 2
    yield most
