"""Request lengths: what each request brings and gets, of one mean or drawn from what real users asked.

>>> chat = of_requests([(100, 10), (300, 30)], hit=0.5)
>>> chat.prompt, chat.kept, chat.answer
(200, 100, 20)
>>> chat.mean_context, chat.mean_end  # the longer answer is there three times as long
(262, 275)
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from threeloops import checks

BLOCK = 16  # tokens: a prefix cache keeps whole blocks (vLLM's block_size)
GRID = 12  # lengths of prompts that are timed where lengths are drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestLengths:
    """What each request brings and gets, in tokens: the mean of each, and single requests where they are known."""

    prompt: int
    kept: int  # of the prompt, what a prefix cache has: nobody computes it again
    answer: int
    drawn: tuple[tuple[int, int], ...] = ()  # prompt and answer of single requests, equally likely

    def __post_init__(self) -> None:
        checks.count(prompt=self.prompt, answer=self.answer)
        checks.count(at_least=0, kept=self.kept)
        if self.kept >= self.prompt:
            raise ValueError(f"kept={self.kept} must be less than prompt={self.prompt}: the last token is computed")

    @property
    def new(self) -> int:
        """Tokens of the prompt that are computed."""
        return self.prompt - self.kept

    @property
    def mean_context(self) -> int:
        """Tokens in the cache of a request that decodes: halfway through its answer.

        Formula:  prompt + answer / 2; of drawn requests the mean over all moments, at which longer answers are more
                  often met: sum of answer * (prompt + answer / 2) / sum of answers
        """
        return self._while_there(lambda prompt, answer: prompt + answer / 2) or self.prompt + self.answer // 2

    @property
    def mean_end(self) -> int:
        """Tokens that a request with a seat has at its end.

        Formula:  prompt + answer; of drawn requests the mean over all moments, as mean_context
        """
        return self._while_there(lambda prompt, answer: prompt + answer) or self.prompt + self.answer

    @property
    def most(self) -> int:
        """Tokens of the longest request that is drawn, at its end; of one length, of that."""
        return max((prompt + answer for prompt, answer in self.drawn), default=self.prompt + self.answer)

    def each(self) -> Iterator["RequestLengths"]:
        """Every drawn request by itself, with as large a share of its prompt kept."""
        for prompt, answer in self.drawn:
            yield self._one(prompt, answer)

    def grid(self) -> Iterator["RequestLengths"]:
        """A few requests from the shortest drawn prompt to the longest, each so many times longer than the last."""
        longest = max(prompt for prompt, _ in self.drawn)
        shortest = min(longest, max(BLOCK, min(prompt for prompt, _ in self.drawn)))
        ratio = longest / shortest
        for prompt in sorted({round(shortest * ratio ** (place / (GRID - 1))) for place in range(GRID)}):
            yield self._one(prompt, self.answer)

    def _one(self, prompt: int, answer: int) -> "RequestLengths":
        kept = min(prompt - 1, round(self.kept / self.prompt * prompt))
        return replace(self, prompt=prompt, kept=kept // BLOCK * BLOCK, answer=answer, drawn=())

    def _while_there(self, tokens: Callable[[int, int], float]) -> int:
        """The mean over all moments; 0 where no requests are known."""
        there = sum(answer for _, answer in self.drawn)
        return round(sum(answer * tokens(prompt, answer) for prompt, answer in self.drawn) / there) if there else 0


def of_requests(requests: Sequence[tuple[int, int]], *, hit: float) -> RequestLengths:
    """The lengths of single requests, prompt and answer kept together, of whose prompts a cache has this share."""
    checks.count(requests=len(requests))
    prompt, answer = (round(sum(column) / len(requests)) for column in zip(*requests, strict=True))
    kept = min(prompt - 1, round(hit * prompt))
    return RequestLengths(prompt=prompt, kept=kept, answer=answer, drawn=tuple(requests))
