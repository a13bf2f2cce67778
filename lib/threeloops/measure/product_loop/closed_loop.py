"""Closed loop: a small engine that serves so many users, each of whom asks again as soon as the last answer has ended,
on random weights of a model's shape.

It has what an engine needs and nothing else: a slot for every user, prompts before single tokens, a decode step for all
slots at once, out of a graph where there is a GPU, a head, the likeliest token, and a look at it after every step, as
whoever streams it must. A slot's cache has its full length from the start, and a step reads all of it. What is decoded
means nothing: weights are random.

>>> from threeloops.models.architecture import Attention, DenseMlp
>>> layer = Layer(
...     attention=Attention(num_heads=4, num_kv_heads=2, head_dim=8),
...     mlp=DenseMlp(intermediate=48, gated=True, activation="silu"),
...     norm="rmsnorm",
...     num_norms=2,
... )
>>> engine = Engine(layer, layers=2, hidden=32, vocabulary=50, users=2, prompt=5, longest=4, dtype=torch.float32)
>>> served = engine.serve([3, 2, 4])
>>> len(served), all(0 < one.first_s < one.last_s for one in served)
(3, True)
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from threeloops import checks
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.product_loop.decode_step import DecodeStep
from threeloops.measure.recorded_needs import graph
from threeloops.models.architecture import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request: seconds from its arrival to its first and to its last token."""

    tokens: int
    first_s: float
    last_s: float

    @property
    def gap_s(self) -> float:
        """The mean time between two of its tokens."""
        return (self.last_s - self.first_s) / (self.tokens - 1)


class Engine:
    """The model twice: as prompts go through it, and as single tokens do."""

    def __init__(
        self,
        layer: Layer,
        *,
        layers: int,
        hidden: int,
        vocabulary: int,
        users: int,
        prompt: int,
        longest: int,
        dtype: torch.dtype,
        device: str = "cpu",
    ) -> None:
        checks.count(layers=layers, hidden=hidden, vocabulary=vocabulary, users=users, prompt=prompt)
        checks.count(at_least=2, longest=longest)
        self.users, self.device = users, device
        with torch.device(device):
            self.blocks = nn.ModuleList(
                TransformerBlock(layer, hidden=hidden, kernels="sdpa", dropout=0.0, dtype=dtype) for _ in range(layers)
            )
            self.table = nn.Embedding(vocabulary, hidden, dtype=dtype)
            self.head = nn.Linear(hidden, vocabulary, bias=False, dtype=dtype)
            self.ids = torch.randint(vocabulary, (1, prompt))
            self.last = torch.zeros(users, dtype=torch.int64)
        self.step = DecodeStep(
            layer, layers=layers, hidden=hidden, batch=users, context=prompt + longest, dtype=dtype, device=device
        )
        self.decode = graph(self._decode) if device == "cuda" else self._decode

    @torch.no_grad()
    def _prefill(self) -> Tensor:
        x = self.table(self.ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x[:, -1]).argmax(-1)

    @torch.no_grad()
    def _decode(self) -> None:
        self.last.copy_(self.head(self.step(self.table(self.last))).argmax(-1))

    def serve(self, answers: Sequence[int], *, clock: Callable[[], float] = time.perf_counter) -> list[Answered]:
        """Answer so many requests, of so many tokens each, in this order: the first `users` of them are there at the
        beginning, each other one arrives when one ends. In the order in which they end.
        """
        for tokens in answers:
            checks.count(at_least=2, answer=tokens)
        waiting, begun = [(tokens, clock()) for tokens in answers[: self.users]], len(answers[: self.users])
        running: dict[int, list[float]] = {}  # slot -> tokens of its answer, those it has, arrival, first token
        done: list[Answered] = []
        while waiting or running:
            if waiting:
                tokens, arrived = waiting.pop(0)
                slot = next(slot for slot in range(self.users) if slot not in running)
                self.last[slot] = self._prefill()[0]
                self.last.tolist()  # whoever streams a token waits for it
                running[slot] = [tokens, 1, arrived, clock()]
                continue
            self.decode()
            self.last.tolist()
            now = clock()
            for slot, one in list(running.items()):
                one[1] += 1
                if one[1] == one[0]:
                    done.append(Answered(tokens=int(one[0]), first_s=one[3] - one[2], last_s=now - one[2]))
                    del running[slot]
                    if begun < len(answers):
                        waiting.append((answers[begun], now))
                        begun += 1
        return done
