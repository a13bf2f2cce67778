"""Training stack: one small language model trained on this machine's processor, with six repairs that can be switched
on one by one.

The baseline does everything by hand and in turn: it prepares each batch in plain Python, multiplies in fp32, runs
operation by operation, and updates tensor by tensor. Every run starts from the same weights and sees the same
batches, so that losses can be compared.

>>> sorted(SWITCHES)
['accumulation', 'bf16', 'checkpointing', 'compile', 'fused optimiser', 'loader']
"""

import math
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from threeloops import checks
from threeloops.measure.inner_loop.machine import one_core
from threeloops.measure.models.block_mlps import Dense
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.models.architecture import Attention, DenseMlp, Layer

SWITCHES = ("loader", "bf16", "compile", "fused optimiser", "accumulation", "checkpointing")
VOCAB, HIDDEN, HEADS, LAYERS, SEQUENCE, BATCH = 2000, 128, 4, 3, 128, 4
# of text that is read for each sequence: preparing a batch takes about a quarter of the time that training on it does
WORDS = 2500
SLOW = 3  # times the baseline's step: a repair that takes longer is no repair here, and is not run again to say so
WARM_UP, ENOUGH = 2, 2  # steps that are not timed, and timed ones that say that a run is slow
LAYER = Layer(
    attention=Attention(num_heads=HEADS, num_kv_heads=HEADS, head_dim=HIDDEN // HEADS),
    mlp=DenseMlp(intermediate=4 * HIDDEN, gated=False, activation="gelu_new"),
    norm="layernorm",
    num_norms=2,
)


class Texts(Dataset[Tensor]):
    """Batches of token ids, each made from text in plain Python whenever it is asked for."""

    def __init__(self, batches: int) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return self.batches

    def __getitem__(self, index: int) -> Tensor:
        return torch.tensor([_tokens(index * BATCH + row) for row in range(BATCH)])


def _tokens(seed: int) -> list[int]:
    """One sequence: a text of made-up words, counted and looked up as a tokeniser would."""
    words = [f"w{(seed * 7919 + place * place * 31) % 977}" for place in range(WORDS)]
    ids = [sum((ord(letter) + 1) * 31**place for place, letter in enumerate(word)) % VOCAB for word in words]
    return ids[: SEQUENCE + 1]


class Language(nn.Module):
    """Look-up, a few blocks with plain GPT-2 activations, and a head."""

    def __init__(self, *, recompute: str) -> None:
        super().__init__()
        self.table = nn.Embedding(VOCAB, HIDDEN)
        blocks = (
            TransformerBlock(
                LAYER, hidden=HIDDEN, kernels="sdpa", dropout=0.0, dtype=torch.float32, recompute=recompute
            )
            for _ in range(LAYERS)
        )
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(HIDDEN, VOCAB, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        """The sum of the losses of all tokens: whoever accumulates divides once, by all of them."""
        logits = self.head(self.blocks(self.table(ids[:, :-1])))
        return nn.functional.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten(), reduction="sum")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run: medians per step, in seconds; what waited for the backward pass at the most; and where the loss
    went.
    """

    switches: tuple[str, ...]
    step_s: float
    load_s: float  # from asking for a batch to having it
    model_s: float  # forward and backward
    update_s: float
    first_step_s: float  # compiling included
    saved_bytes: int  # kept for the backward pass of one micro-batch
    losses: tuple[float, ...]


def run(switches: Collection[str], *, steps: int = 6, limit_s: float = math.inf) -> Ran:
    """Train for some steps on one thread, with the given repairs, and time each part of each step but the first two.
    A run whose first timed steps both take more than limit_s seconds ends with them.

    Raises:   ValueError for an unknown switch; what torch raises if "compile" is on and there is no C++ compiler
    """
    for switch in switches:
        checks.one_of(SWITCHES, switch=switch)
    checks.count(at_least=WARM_UP + 1, steps=steps)
    with one_core():
        return _run(switches, steps, limit_s)


def beside(ways: Mapping[str, Collection[str]], *, rounds: int = 3, steps: int = 6) -> dict[str, list[tuple[Ran, Ran]]]:
    """For every way its runs, each with the baseline of its round: a machine changes its pace, and what ran in one
    round met about the same.

    Assumes:  a way that is more than SLOW times as slow as its baseline (bf16, on a processor whose torch has no
              kernels for it) is run in the first round only, for four steps, and that run stands in the others
    Raises:   ValueError for an unknown switch
    """
    checks.count(rounds=rounds)
    found: dict[str, list[tuple[Ran, Ran]]] = {name: [] for name in ways}
    for _ in range(rounds):
        base = run((), steps=steps)
        for name, switches in ways.items():
            before = found[name][0] if found[name] else None
            if before is not None and before[1].step_s > SLOW * before[0].step_s:
                ran = before[1]
            else:
                ran = run(switches, steps=steps, limit_s=SLOW * base.step_s)
            found[name].append((base, ran))
    return found


def _run(switches: Collection[str], steps: int, limit_s: float) -> Ran:
    torch.manual_seed(5)
    model = Language(recompute="full" if "checkpointing" in switches else "none")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused="fused optimiser" in switches, foreach=False)
    narrow, pieces = "bf16" in switches, 4 if "accumulation" in switches else 1
    saved = _saved_bytes(model, Texts(1)[0][: BATCH // pieces], narrow=narrow)
    if "compile" in switches:
        _compile(model)
    clocks, losses = [], []
    batches = _batches(steps, "loader" in switches)
    for _ in range(steps):
        times = [time.perf_counter()]
        ids = next(batches)
        times.append(time.perf_counter())
        losses.append(_gradients(model, ids, pieces=pieces, narrow=narrow))
        times.append(time.perf_counter())
        optimizer.step()
        optimizer.zero_grad()
        times.append(time.perf_counter())
        clocks.append(times)
        if len(clocks) == WARM_UP + ENOUGH and min(row[3] - row[0] for row in clocks[WARM_UP:]) > limit_s:
            break
    load, between, update = (median(row[i + 1] - row[i] for row in clocks[WARM_UP:]) for i in range(3))
    return Ran(
        switches=tuple(switches),
        step_s=median(row[3] - row[0] for row in clocks[WARM_UP:]),
        load_s=load,
        model_s=between,
        update_s=update,
        first_step_s=clocks[0][3] - clocks[0][0],
        saved_bytes=saved,
        losses=tuple(losses),
    )


def _compile(model: Language) -> None:
    """Compile what is written out in plain operations, the activations, and leave the rest: a region that compiles in
    seconds, not minutes.
    """
    torch._dynamo.reset()
    for block in model.blocks:
        assert isinstance(block, TransformerBlock)
        assert isinstance(block.mlp, Dense)
        block.mlp.activation = torch.compile(block.mlp.activation, dynamic=False)


def _batches(steps: int, ahead: bool) -> Iterator[Tensor]:
    """Batches on demand, or from a worker process that works ahead."""
    return iter(
        DataLoader(Texts(steps), batch_size=None, num_workers=1 if ahead else 0, prefetch_factor=4 if ahead else None)
    )


def _gradients(model: nn.Module, ids: Tensor, *, pieces: int, narrow: bool) -> float:
    """Forward and backward, piece by piece; gradients add up, and every piece is divided by the tokens of all."""
    total, tokens = 0.0, ids[:, 1:].numel()
    for piece in ids.chunk(pieces):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow):
            loss = model(piece) / tokens
        loss.backward()
        total += float(loss.detach())
    return total


def _saved_bytes(model: nn.Module, ids: Tensor, *, narrow: bool) -> int:
    """Bytes that one forward pass keeps, each storage once, parameters left out."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def note(tensor: Tensor) -> Tensor:
        if tensor.untyped_storage().data_ptr() not in own:
            kept.setdefault(tensor.untyped_storage().data_ptr(), tensor)
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=narrow),
    ):
        model(ids)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())


def epoch_starts_s(*, persistent: bool, workers: int, epochs: int = 3) -> list[float]:
    """Seconds from the start of each epoch to its first batch: new workers for every epoch, or the same ones."""
    checks.count(workers=workers, epochs=epochs)
    loader = DataLoader(Texts(4), batch_size=None, num_workers=workers, persistent_workers=persistent)
    taken = []
    for _ in range(epochs):
        begin = time.perf_counter()
        batches = iter(loader)
        next(batches)
        taken.append(time.perf_counter() - begin)
        for _ in batches:
            pass
    return taken
