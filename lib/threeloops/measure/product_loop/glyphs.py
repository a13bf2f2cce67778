"""Glyphs: sixteen hexadecimal digits drawn small and noisy, and a small network that reads them. Something trained
that every machine can make in seconds, to be compressed and asked again.

>>> images, labels = drawn(6, seed=3)
>>> images.shape, int(labels.max()) < len(FONT)
(torch.Size([6, 64]), True)
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

SIDE = 8  # pixels of an image's side
HIDDEN = 64  # width of the teacher's two hidden layers
STUDENT = 32  # width of the student's
NOISE = 0.25  # standard deviation of what is added to every pixel

# Seven rows of five pixels, each row a number of five bits, the leftmost pixel highest.
FONT = (
    (14, 17, 19, 21, 25, 17, 14),
    (4, 12, 4, 4, 4, 4, 14),
    (14, 17, 1, 2, 4, 8, 31),
    (31, 2, 4, 2, 1, 17, 14),
    (2, 6, 10, 18, 31, 2, 2),
    (31, 16, 30, 1, 1, 17, 14),
    (6, 8, 16, 30, 17, 17, 14),
    (31, 1, 2, 4, 8, 8, 8),
    (14, 17, 17, 14, 17, 17, 14),
    (14, 17, 17, 15, 1, 2, 12),
    (14, 17, 17, 17, 31, 17, 17),
    (30, 17, 17, 30, 17, 17, 30),
    (14, 17, 16, 16, 16, 17, 14),
    (28, 18, 17, 17, 17, 18, 28),
    (31, 16, 16, 30, 16, 16, 31),
    (31, 16, 16, 30, 16, 16, 16),
)
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]  # of images, what the network says of them, labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Sets:
    """Images to train on, to calibrate with, and to be tested on; no two sets share an image."""

    train: tuple[Tensor, Tensor]
    calibration: Tensor
    test: tuple[Tensor, Tensor]


def drawn(number: int, *, seed: int) -> tuple[Tensor, Tensor]:
    """Images of [number, 64] and their labels: a glyph somewhere in the square, of some brightness, under noise."""
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(len(FONT), (number,), generator=draw)
    rows = torch.randint(SIDE - 6, (number,), generator=draw).tolist()
    columns = torch.randint(SIDE - 4, (number,), generator=draw).tolist()
    bright = 0.6 + 0.8 * torch.rand(number, 1, 1, generator=draw)
    images = torch.zeros(number, SIDE, SIDE)
    shapes = _shapes()
    for image, label, row, column in zip(images, labels.tolist(), rows, columns, strict=True):
        image[row : row + 7, column : column + 5] = shapes[label]
    images = images * bright + NOISE * torch.randn(images.shape, generator=draw)
    return images.flatten(1), labels


@functools.cache
def sets() -> Sets:
    """The three sets of this book."""
    return Sets(train=drawn(16384, seed=1), calibration=drawn(512, seed=2)[0], test=drawn(4096, seed=3))


def network(*, hidden: int = HIDDEN, seed: int = 0) -> nn.Sequential:
    """Three linear layers, with ReLU between them, and random weights."""
    state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    made = nn.Sequential(
        nn.Linear(SIDE * SIDE, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, len(FONT))
    )
    torch.random.set_rng_state(state)
    return made


def fit(
    model: nn.Module, images: Tensor, labels: Tensor, *, epochs: int, loss: Loss | None = None, rate: float = 3e-3
) -> nn.Module:
    """The model, trained in place: AdamW over shuffled batches of 128, its rate falling to nothing."""
    shuffle = torch.Generator().manual_seed(5)
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate)
    steps = epochs * -(-len(images) // 128)
    falling = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    for _ in range(epochs):
        for batch in torch.randperm(len(images), generator=shuffle).split(128):
            said = model(images[batch])
            wrong = loss(images[batch], said, labels[batch]) if loss else None
            optimiser.zero_grad()
            (nn.functional.cross_entropy(said, labels[batch]) if wrong is None else wrong).backward()
            optimiser.step()
            falling.step()
    return model


@functools.cache
def trained() -> nn.Sequential:
    """The teacher: trained once in a session; copy it before you change it."""
    model = network()
    fit(model, *sets().train, epochs=16)
    return model


@torch.no_grad()
def accuracy(model: nn.Module) -> float:
    """Share of the test images that are read correctly."""
    images, labels = sets().test
    return float((model(images).argmax(1) == labels).float().mean())


def linear_layers(model: nn.Module) -> list[nn.Linear]:
    """The model's linear layers, from the input on."""
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)]


@torch.no_grad()
def layer_inputs(model: nn.Sequential, images: Tensor) -> list[Tensor]:
    """What each linear layer is given for these images."""
    found = []
    for layer in model:
        if isinstance(layer, nn.Linear):
            found.append(images)
        images = layer(images)
    return found


@functools.cache
def _shapes() -> Tensor:
    return torch.tensor([[[row >> (4 - column) & 1 for column in range(5)] for row in glyph] for glyph in FONT]).float()
