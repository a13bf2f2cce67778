"""A whole training step of a small or a fake language model, with the bytes alive after each of its operations.

The model is built from its description and is a plain one: embedding table, blocks, final norm, head, cross-entropy
in fp32, AdamW.

>>> from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
>>> layer = Layer(
...     attention=Attention(num_heads=3, num_kv_heads=3, head_dim=8),
...     mlp=DenseMlp(intermediate=96, gated=False, activation="gelu"),
...     norm="layernorm",
...     num_norms=2,
... )
>>> tiny = Model(name="tiny", hidden=24, vocab=50, groups=((layer, 2),), tied_head=False, max_context=99)
>>> step = watch(tiny, sequence=7, micro_batch=2, kernels="sdpa", dtype=torch.float32, every=0, steps=1)
>>> step.states_bytes == 16 * step.parameters  # weights, gradients and two moments in fp32
True
"""

import contextlib
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

from threeloops import checks
from threeloops.measure.models.block_operations import norm
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.training_loop import alive_bytes
from threeloops.measure.training_loop.alive_bytes import Reading
from threeloops.models.architecture import Layer, Model
from threeloops.training_loop.memory.activation_kernels import KERNELS


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedStep:
    """Readings of one or more steps, weights included from the start. Phases are "forward 1", "backward 1", "update
    1", "forward 2" and so on.
    """

    readings: tuple[Reading, ...]
    parameters: int
    weights_bytes: int
    kept_bytes: int  # when the first loss is there: beyond the weights, what waits for the backward pass
    states_bytes: int  # after the last update
    layer_runs: int  # forward, the second ones included

    def peak(self, phase: str) -> Reading:
        """The reading with most bytes of a phase."""
        return max(
            (reading for reading in self.readings if reading.phase == phase), key=lambda reading: reading.alive_bytes
        )

    def by_phase(self, columns: int) -> tuple[dict[str, list[int]], list[str]]:
        """For a picture: the most bytes in each of so many stretches of operations, under forward, backward or
        update, and the stretches' names.
        """
        checks.count(columns=columns)
        step = max(1, -(-len(self.readings) // columns))
        tops = [
            max(self.readings[start : start + step], key=lambda reading: reading.alive_bytes)
            for start in range(0, len(self.readings), step)
        ]
        kinds = list(dict.fromkeys(_kind(top) for top in tops))
        names = [f"{top.phase}, {top.operation.removeprefix('aten.')}" for top in tops]
        return {kind: [top.alive_bytes if _kind(top) == kind else 0 for top in tops] for kind in kinds}, names


def _kind(reading: Reading) -> str:
    """The phase without the number of its step."""
    return reading.phase.split()[0]


class PlainModel(nn.Module):
    """Token ids to logits; with every > 0, segments of that many blocks keep their input alone."""

    def __init__(self, model: Model, *, kernels: str, dtype: torch.dtype, every: int) -> None:
        super().__init__()
        self.every, self.layer_runs = every, 0
        self.table = nn.Embedding(model.vocab, model.hidden, dtype=dtype)
        layers = [layer for layer, count in model.groups for _ in range(count)]
        self.blocks = nn.ModuleList(self._block(layer, model.hidden, kernels, dtype) for layer in layers)
        self.norm = norm(model.hidden, layers[-1].norm, KERNELS[kernels], dtype)
        self.head = nn.Linear(model.hidden, model.vocab, bias=False, dtype=dtype)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.table(ids)
        segment = self.every or len(self.blocks)
        for start in range(0, len(self.blocks), segment):
            run = nn.Sequential(*self.blocks[start : start + segment])
            x = checkpoint(run, x, use_reentrant=False) if self.every else run(x)
        logits: Tensor = self.head(self.norm(x))
        return logits

    def _block(self, layer: Layer, hidden: int, kernels: str, dtype: torch.dtype) -> nn.Module:
        block = TransformerBlock(layer, hidden=hidden, kernels=kernels, dropout=0.0, dtype=dtype)
        block.register_forward_pre_hook(self._count)
        return block

    def _count(self, module: nn.Module, inputs: object) -> None:
        self.layer_runs += 1


def watch(
    model: Model,
    *,
    sequence: int,
    micro_batch: int,
    kernels: str,
    dtype: torch.dtype,
    every: int,
    steps: int,
    fake: bool = False,
) -> WatchedStep:
    """Train for some steps of one micro-batch each, and weigh them operation by operation.

    every: layers per checkpointed segment; 0 keeps everything. fake: nothing is computed, no memory is taken; sizes
    are those of a real step.

    Assumes:  as torch does by default: gradients are made during the backward pass and dropped before the next step,
              moments are made in the first update; parameters are updated one after another (foreach=False: on GPUs
              torch updates many at once and needs more room for it)
    """
    checks.count(sequence=sequence, micro_batch=micro_batch, steps=steps)
    checks.count(at_least=0, every=every)
    checks.one_of(KERNELS, kernels=kernels)
    torch.manual_seed(11)
    with FakeTensorMode() if fake else contextlib.nullcontext(), alive_bytes.watched() as seen:
        net = PlainModel(model, kernels=kernels, dtype=dtype, every=every)
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-4, foreach=False)
        weights_bytes = seen.alive_bytes
        ids, targets = torch.randint(0, model.vocab, (2, micro_batch, sequence)).unbind()
        seen.readings.clear()
        for step in range(1, steps + 1):
            seen.begin(f"forward {step}")
            loss = nn.functional.cross_entropy(net(ids).float().flatten(0, 1), targets.flatten())
            if step == 1:
                kept_bytes = seen.alive_bytes - weights_bytes
            seen.begin(f"backward {step}")
            loss.backward()
            seen.begin(f"update {step}")
            optimizer.step()
            del loss
            states_bytes = seen.alive_bytes - ids.nbytes - targets.nbytes
            optimizer.zero_grad()
    return WatchedStep(
        readings=tuple(seen.readings),
        parameters=sum(parameter.numel() for parameter in net.parameters()),
        weights_bytes=weights_bytes,
        kept_bytes=kept_bytes,
        states_bytes=states_bytes,
        layer_runs=net.layer_runs,
    )
