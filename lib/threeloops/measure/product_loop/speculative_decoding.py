"""Speculative decoding with real models: a draft proposes, the target checks all of it in one step, and what was
refused is taken back from both caches by lowering a length.

Requests of a batch accept differently many tokens, so each has its own length in both caches. A draft may also be a
table of what followed in the text before: `PairTable` needs no model at all.

Source: Leviathan et al., 2023, arXiv:2211.17192, algorithm 1
"""

import statistics
import time
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from threeloops import checks
from threeloops.measure.product_loop.character_decoder import Decoder, KvCache


@dataclass(slots=True, kw_only=True)
class Speculation:
    """What came out, and how often what was tried was accepted."""

    tokens: list[list[int]]  # of each request, the prompt left out
    seconds: float
    checks: int = 0  # of one request each
    tried: list[int] = field(default_factory=list)  # by place in the draft: how many drafts got so far …
    accepted: list[int] = field(default_factory=list)  # … and were accepted there

    @property
    def accepted_share(self) -> float:
        """Of the drafted tokens that were really judged, the share that was accepted."""
        return sum(self.accepted) / sum(self.tried)

    @property
    def tokens_per_check(self) -> float:
        """Accepted tokens, and one of the target's own for every check."""
        return 1 + sum(self.accepted) / self.checks

    @property
    def seconds_per_token(self) -> float:
        return self.seconds / max(map(len, self.tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Speculation against the target alone, and the costs that explain it, in steps of the target."""

    draft_cost: float
    check_cost: float
    tokens_per_check: float
    drafted: int
    faster: float  # times, on the clock; the median of the rounds
    slowest: float  # the same in the round where speculation did worst …
    fastest: float  # … and best: lines that lie closer than these are not told apart

    @property
    def explained(self) -> float:
        """Times faster by the costs alone: tokens of a check over what its steps take."""
        return self.tokens_per_check / (self.drafted * self.draft_cost + self.check_cost)


class Drafts(Protocol):
    """What proposes tokens."""

    def begin(self, prompts: Tensor, *, capacity: int) -> None:
        """Read the prompts, their last tokens left out."""

    def propose(self, last: Tensor, number: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
        """(tokens [batch, number], shares they were drawn from [batch, number, symbols]) after the last token."""

    def keep(self, drafted: Tensor, accepted: Tensor) -> None:
        """Forget all but the first `accepted` of the drafted tokens."""


class ModelDraft:
    """A small model with a cache of its own. After a draft that was accepted as a whole, its cache lacks the last
    drafted token: it is read together with the next one.
    """

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = decoder

    def begin(self, prompts: Tensor, *, capacity: int) -> None:
        self.cache = KvCache(self.decoder.sizes, batch=len(prompts), capacity=capacity)
        self.decoder(prompts[:, :-1], cache=self.cache)
        self.missing = torch.zeros(len(prompts), dtype=torch.long)
        self.skipped = torch.zeros(len(prompts), dtype=torch.long)

    def propose(self, last: Tensor, number: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
        counts = 1 + self.missing
        first = torch.where(
            self.missing[:, None] > 0, torch.stack([self.skipped, last], 1), torch.stack([last, last], 1)
        )
        scores = self.decoder(first, cache=self.cache, counts=counts)
        shares = [scores[torch.arange(len(last)), counts - 1].softmax(-1)]
        tokens = [torch.multinomial(shares[0], 1, generator=draw)]
        self.before = self.cache.lengths.clone()  # with the last token read
        for _ in range(number - 1):
            shares.append(self.decoder(tokens[-1], cache=self.cache)[:, -1].softmax(-1))
            tokens.append(torch.multinomial(shares[-1], 1, generator=draw))
        return torch.cat(tokens, 1), torch.stack(shares, 1)

    def keep(self, drafted: Tensor, accepted: Tensor) -> None:
        number = drafted.shape[1]
        self.missing = (accepted == number).long()
        self.skipped = drafted[:, -1]
        self.cache.lengths = self.before + accepted.clamp_max(number - 1)


class PairTable:
    """A draft without a model: the shares of what followed each pair of tokens in a text."""

    def __init__(self, text: Tensor, *, symbols: int) -> None:
        self.symbols = symbols
        seen = torch.full((symbols * symbols, symbols), 0.01)
        seen.index_put_((text[:-2] * symbols + text[1:-1], text[2:]), torch.ones(len(text) - 2), accumulate=True)
        self.shares = seen / seen.sum(-1, keepdim=True)

    def begin(self, prompts: Tensor, *, capacity: int) -> None:
        self.older = prompts[:, -2]

    def propose(self, last: Tensor, number: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
        self.last, older, shares, tokens = last, self.older, [], [last]
        for _ in range(number):
            shares.append(self.shares[older * self.symbols + tokens[-1]])
            older = tokens[-1]
            tokens.append(torch.multinomial(shares[-1], 1, generator=draw)[:, 0])
        return torch.stack(tokens[1:], 1), torch.stack(shares, 1)

    def keep(self, drafted: Tensor, accepted: Tensor) -> None:
        known = torch.cat([self.last[:, None], drafted], 1)
        self.older = known[torch.arange(len(known)), accepted]


@torch.no_grad()
def speculate(
    target: Decoder, draft: Drafts, prompts: Tensor, *, tokens: int, drafted: int, seed: int = 0
) -> Speculation:
    """At least `tokens` tokens of every request, sampled at temperature 1."""
    checks.count(tokens=tokens, drafted=drafted)
    draw, batch = torch.Generator().manual_seed(seed), len(prompts)
    capacity = prompts.shape[1] + (tokens + 2) * (drafted + 1)  # a fast request goes on while a slow one is behind
    cache = KvCache(target.sizes, batch=batch, capacity=capacity)
    target(prompts[:, :-1], cache=cache)
    draft.begin(prompts, capacity=capacity)
    last, out = prompts[:, -1], [list[int]() for _ in range(batch)]
    made = Speculation(tokens=out, seconds=0.0, tried=[0] * drafted, accepted=[0] * drafted)
    began = time.perf_counter()
    while min(map(len, out)) < tokens:
        offered, shares = draft.propose(last, drafted, draw)
        before = cache.lengths.clone()
        wanted = target(torch.cat([last[:, None], offered], 1), cache=cache).softmax(-1)
        taken, last = judged(offered, shares, wanted, draw)
        cache.lengths = before + 1 + taken
        draft.keep(offered, taken)
        _note(made, offered, taken, last)
    made.seconds = time.perf_counter() - began
    return made


def judged(offered: Tensor, shares: Tensor, wanted: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """(how many of each row's drafted tokens are accepted, the token that follows them).

    Accept each with probability min(1, wanted / offered share); after the first refusal draw from what the target has
    more of, max(0, wanted - offered), and after a whole draft from the target's own next shares.
    """
    batch, number = offered.shape
    mine = wanted[:, :-1].gather(-1, offered[..., None])[..., 0]
    theirs = shares.gather(-1, offered[..., None])[..., 0]
    passed = torch.rand(batch, number, generator=draw) * theirs < mine
    taken = passed.long().cumprod(1).sum(1)
    left = torch.cat([(wanted[:, :-1] - shares).clamp_min(0), wanted[:, -1:]], 1)
    follow = left[torch.arange(batch), taken]
    return taken, torch.multinomial(follow, 1, generator=draw)[:, 0]


@torch.no_grad()
def plain_seconds_per_token(target: Decoder, prompts: Tensor, *, tokens: int, seed: int = 0) -> float:
    """The target alone, one token a step."""
    draw = torch.Generator().manual_seed(seed)
    cache = KvCache(target.sizes, batch=len(prompts), capacity=prompts.shape[1] + tokens)
    target(prompts[:, :-1], cache=cache)
    last = prompts[:, -1:]
    began = time.perf_counter()
    for _ in range(tokens):
        last = torch.multinomial(target(last, cache=cache)[:, -1].softmax(-1), 1, generator=draw)
    return (time.perf_counter() - began) / tokens


def _note(made: Speculation, offered: Tensor, taken: Tensor, last: Tensor) -> None:
    number = offered.shape[1]
    for row, (count, own) in enumerate(zip(taken.tolist(), last.tolist(), strict=True)):
        made.tokens[row] += [*offered[row, :count].tolist(), own]
        made.checks += 1
        for place in range(min(count + 1, number)):
            made.tried[place] += 1
            made.accepted[place] += place < count


@torch.no_grad()
def step_seconds(decoder: Decoder, prompts: Tensor, *, tokens: int, repeats: int = 20) -> float:
    """Seconds of the fastest of some steps in which every request has so many tokens, after its prompt: what else runs
    on the machine only adds to it.
    """
    checks.count(tokens=tokens, repeats=repeats)
    cache = KvCache(decoder.sizes, batch=len(prompts), capacity=prompts.shape[1] + tokens)
    decoder(prompts, cache=cache)
    before, new, took = cache.lengths.clone(), prompts[:, :1].expand(-1, tokens), []
    for _ in range(repeats):
        cache.lengths = before.clone()
        began = time.perf_counter()
        decoder(new, cache=cache)
        took.append(time.perf_counter() - began)
    return min(took)


def compared(
    target: Decoder, draft: ModelDraft, prompts: Tensor, *, tokens: int, drafted: int, repeats: int = 5
) -> Comparison:
    """Both ways and their steps, in rounds, and the median round of each ratio: what else runs on the machine comes and
    goes, and slows both sides of a ratio that are timed right after one another.
    """
    checks.count(repeats=repeats)
    rounds = [_round(target, draft, prompts, tokens, drafted, seed) for seed in range(repeats)]
    draft_cost, check_cost, tokens_per_check, faster = zip(*rounds, strict=True)
    return Comparison(
        draft_cost=statistics.median(draft_cost),
        check_cost=statistics.median(check_cost),
        tokens_per_check=statistics.fmean(tokens_per_check),
        drafted=drafted,
        faster=statistics.median(faster),
        slowest=min(faster),
        fastest=max(faster),
    )


def _round(
    target: Decoder, draft: ModelDraft, prompts: Tensor, tokens: int, drafted: int, seed: int
) -> tuple[float, float, float, float]:
    """(draft cost, check cost, tokens per check, times faster) of one round."""
    step_s = step_seconds(target, prompts, tokens=1)
    draft_s = step_seconds(draft.decoder, prompts, tokens=1)
    check_s = step_seconds(target, prompts, tokens=drafted + 1)
    plain_s = plain_seconds_per_token(target, prompts, tokens=tokens, seed=seed)
    made = speculate(target, draft, prompts, tokens=tokens, drafted=drafted, seed=seed)
    spent_s = made.seconds * len(prompts) / sum(map(len, made.tokens))
    return draft_s / step_s, check_s / step_s, made.tokens_per_check, plain_s / spent_s
