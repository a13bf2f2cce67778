"""Block Adam: Adam whose two moments are kept in 8 bits, so that one can see what the blocks and the codes are for.

A moment is stored as a code of one byte per value and one fp32 scale per block, the block's largest magnitude.
"linear" codes are evenly spaced; "dynamic" ones spend their bits on decades: seven of them, with ever fewer values
the smaller they are.

>>> state = Narrow(torch.tensor([1.0, -0.5, 0.001, 100.0]), block=2, codes="dynamic", signed=True)
>>> [round(value, 4) for value in state.values().tolist()]
[1.0, -0.5008, 0.0008, 100.0]

Source: Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2021, arXiv:2110.02861, sections 1.3 and 2
        (blocks, dynamic codes)
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

from threeloops import checks
from threeloops.measure.inner_loop.machine import one_core

DECADES = 7


@lru_cache(maxsize=8)
def code_book(codes: str, signed: bool) -> Tensor:
    """The 256 values, at most, between -1 (or 0) and 1 that a byte can stand for, in ascending order."""
    checks.one_of(("linear", "dynamic"), codes=codes)
    if codes == "linear":
        # linspace would miss zero by a bit
        return torch.arange(-127, 128) / 127 if signed else torch.arange(256) / 255
    positive = [0.0, 1.0]
    for decade in range(DECADES):
        edges = torch.linspace(0.1, 1, 2**decade + 1 if signed else 2 ** (decade + 1) + 1, dtype=torch.float64)
        positive += ((edges[1:] + edges[:-1]) / 2 * 10.0 ** (decade - DECADES + 1)).tolist()
    # -1 would be the 257th
    values = {*positive, *(-value for value in positive if value < 1)} if signed else set(positive)
    return torch.tensor(sorted(values), dtype=torch.float32)


class Narrow:
    """A tensor kept as one byte per value and one fp32 scale per block; block=None: one scale for all."""

    def __init__(self, values: Tensor, *, block: int | None, codes: str, signed: bool) -> None:
        self.shape, self.book = values.shape, code_book(codes, signed)
        block = values.numel() if block is None else block
        padded = nn.functional.pad(values.flatten(), (0, -values.numel() % block)).view(-1, block)
        self.scales = padded.abs().amax(1, keepdim=True)
        places = padded / self.scales.clamp(min=1e-38)
        middles = (self.book[1:] + self.book[:-1]) / 2
        self.codes = torch.bucketize(places, middles).to(torch.uint8)

    def values(self) -> Tensor:
        """What the codes stand for."""
        return (self.book[self.codes.int()] * self.scales).flatten()[: self.shape.numel()].view(self.shape)

    @property
    def bytes(self) -> int:
        """Codes and scales; the book is the same for all."""
        return self.codes.nbytes + self.scales.nbytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """What training left behind."""

    losses: tuple[float, ...]
    moment_bytes: int
    parameters: int


def train(*, steps: int, codes: str, block: int | None) -> Trained:
    """Fit a small net with Adam whose moments are kept as codes between updates; codes="fp32" keeps them whole.

    Assumes:  tensors of any size are narrowed (bitsandbytes leaves those below 4,096 values in fp32); one thread,
              because on tensors this small several wait for each other longer than they compute
    """
    checks.one_of(("fp32", "linear", "dynamic"), codes=codes)
    checks.count(steps=steps)
    if block is not None:
        checks.count(block=block)
    with one_core():
        return _trained(steps=steps, codes=codes, block=block)


def _trained(*, steps: int, codes: str, block: int | None) -> Trained:
    random = torch.Generator().manual_seed(1)
    inputs = torch.randn(256, 32, generator=random)
    wanted = torch.sin(2 * inputs[:, :1]) + inputs[:, 1:2] * inputs[:, 2:3]
    torch.manual_seed(2)
    net = nn.Sequential(nn.Linear(32, 128), nn.Tanh(), nn.Linear(128, 64), nn.Tanh(), nn.Linear(64, 1))
    kept: list[list[Tensor | Narrow]] = [[torch.zeros_like(each), torch.zeros_like(each)] for each in net.parameters()]
    losses = []
    for step in range(1, steps + 1):
        net.zero_grad()
        loss = nn.functional.mse_loss(net(inputs), wanted)
        loss.backward()
        losses.append(float(loss.detach()))
        for parameter, moments in zip(net.parameters(), kept, strict=True):
            _update(parameter, moments, step=step, codes=codes, block=block)
    held = [moment if isinstance(moment, Narrow) else moment.nbytes for moments in kept for moment in moments]
    parameters = sum(each.numel() for each in net.parameters())
    return Trained(losses=tuple(losses), moment_bytes=_sum(held), parameters=parameters)


def _sum(held: Iterable["Narrow | int"]) -> int:
    return sum(each.bytes if isinstance(each, Narrow) else each for each in held)


def _update(
    parameter: nn.Parameter, moments: list["Tensor | Narrow"], *, step: int, codes: str, block: int | None
) -> None:
    """One update of Adam (learning rate 0.003, 0.9 and 0.999); what is kept for the next one is narrowed at the
    end.
    """
    momentum, variance = (moment.values() if isinstance(moment, Narrow) else moment for moment in moments)
    gradient = parameter.grad
    assert gradient is not None
    momentum = 0.9 * momentum + (1 - 0.9) * gradient
    variance = 0.999 * variance + (1 - 0.999) * gradient**2
    root = (variance / (1 - 0.999**step)).sqrt()
    parameter.data -= 0.003 / (1 - 0.9**step) * momentum / (root + 1e-8)
    moments[:] = [momentum, variance]
    if codes != "fp32":
        moments[:] = [
            Narrow(momentum, block=block, codes=codes, signed=True),
            Narrow(variance, block=block, codes=codes, signed=False),
        ]
