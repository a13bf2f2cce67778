"""Recorded training: one step of a GPT-2 on this machine's GPU or CPU, as a case's sizes describe it.

>>> sizes = {"layers": 1, "hidden": 16, "heads": 2, "vocabulary": 50, "tokens": 8, "batch": 2}
>>> train = step(Case(kind="train_eager", dtype="bf16", sizes=sizes), device="cpu", compiled=False)
>>> float(train()) > float(train())  # the same batch again: it learns it by heart
True
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from threeloops.facts.recorded_cases import Case
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.models.recorded_work import train_layer

RATE = 1e-3


class Language(nn.Module):
    """Look-ups of tokens and places, blocks with gelu in one kernel, a norm and a head of its own."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        hidden, vocabulary = case.sizes["hidden"], case.sizes["vocabulary"]
        self.table, self.places = nn.Embedding(vocabulary, hidden), nn.Embedding(case.sizes["tokens"], hidden)
        self.blocks = nn.ModuleList(
            TransformerBlock(train_layer(case), hidden=hidden, kernels="sdpa", dropout=0.0, dtype=torch.float32)
            for _ in range(case.sizes["layers"])
        )
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, ids: Tensor, targets: Tensor) -> Tensor:
        x = self.table(ids) + self.places.weight
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())


def step(case: Case, *, device: str, compiled: bool) -> Callable[[], Tensor]:
    """A whole step on one batch: forward and backward with autocast to the case's format, then fused AdamW on fp32
    weights. Compiled, each block is a region of its own, so that one is compiled and not all of them.
    """
    with torch.device(device):
        model = Language(case)
        ids = torch.randint(case.sizes["vocabulary"], (case.sizes["batch"], case.sizes["tokens"] + 1))
    if compiled:
        for block in model.blocks:
            block.compile()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, fused=True)
    narrow = {"bf16": torch.bfloat16, "fp16": torch.float16}[case.dtype]

    def train() -> Tensor:
        with torch.autocast(device, dtype=narrow):
            loss: Tensor = model(ids[:, :-1], ids[:, 1:])
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        return loss.detach()

    if compiled:
        train()  # compiles now, so that a machine without a compiler is skipped and not timed
    return train


def peak_bytes(train: Callable[[], Tensor]) -> int:
    """The most bytes that a step has allocated at once, after one that set up the optimiser's states."""
    train()
    torch.cuda.reset_peak_memory_stats()
    train()
    return torch.cuda.max_memory_allocated()
