"""Small language models: a target, a draft and a distilled draft, trained here in about a minute and kept for the next
part.

They write like the pages of `character_text`, badly; everything else about serving them is as with a large model.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from threeloops import checks
from threeloops.measure import kept_models
from threeloops.measure.product_loop import character_text
from threeloops.measure.product_loop.character_decoder import Decoder, DecoderSizes
from threeloops.units import fmt_seconds

KEPT = kept_models.KEPT
CONTEXT = 256  # tokens that a model has seen at once in training: it is not asked for more
SEED = 20
HELD_OUT_BATCH = 32
# Most steps see short windows, from which a model learns fastest; the last ones teach it the positions of the whole.
SHORT = 64
LONG_STEPS = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All that decides what a trained model is, besides the machine's rounding."""

    sizes: DecoderSizes
    steps: int
    batch: int = 8  # windows in a step; of those as long as the whole context, half as many
    learning_rate: float = 3e-3
    taught_by: str = ""  # the model whose shares are learnt in place of the text's next character
    begins_as: str = ""  # the model whose weights are the first ones

    def __post_init__(self) -> None:
        checks.count(steps=self.steps)
        checks.count(at_least=2, batch=self.batch)
        checks.positive(learning_rate=self.learning_rate)


_DRAFT = DecoderSizes(hidden=64, layers=1, heads=4, kv_heads=2, head_dim=16, intermediate=176)
RECIPES = {
    "target": Recipe(
        sizes=DecoderSizes(hidden=160, layers=3, heads=8, kv_heads=4, head_dim=20, intermediate=440), steps=420
    ),
    "draft": Recipe(sizes=_DRAFT, steps=700, learning_rate=4e-3),
    "distilled": Recipe(sizes=_DRAFT, steps=250, learning_rate=2e-3, taught_by="target", begins_as="draft"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model that can be asked, and what its training came to on this machine."""

    decoder: Decoder
    held_out_nats: float  # per character of the text held out; not comparable between Pythons
    training_s: float

    @property
    def num_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.decoder.parameters())


def trained(name: str) -> TrainedModel:
    """The model of this name: the kept copy, or one trained now and kept. Prints one line that says which.

    Assumes:  whoever asks second, in this process or another, waits for the first one's training and takes its copy
    Raises:   ValueError for a name that has no recipe
    """
    if name not in RECIPES:
        raise ValueError(f"no model is called {name!r}; there are {', '.join(RECIPES)}")
    print(f"{name}: measured", end=" ", flush=True)
    _make_sure_of(name)
    model = _loaded(name, kept_path(name))
    print(f"{_said(model)}; the kept copy {kept_path(name).name}")
    return model


def kept_path(name: str) -> Path:
    """Where a model's copy lies, whether or not it is there yet."""
    return kept_models.path(KEPT, name, _digest(name))


def _digest(name: str) -> str:
    """Changes when the recipe changes, or one that it builds on, or how text becomes numbers."""
    recipe = RECIPES[name]
    before = [_digest(needed) for needed in (recipe.taught_by, recipe.begins_as) if needed]
    words = (asdict(recipe), before, CONTEXT, SHORT, LONG_STEPS, SEED, character_text.SYMBOLS)
    return kept_models.digest(words)


def _make_sure_of(name: str) -> None:
    """Train what has no copy yet, the models that it learns from first, and say so on the line that has been begun."""
    path = kept_path(name)
    if path.exists():
        return
    recipe = RECIPES[name]
    for needed in (recipe.taught_by, recipe.begins_as):
        if needed:
            _make_sure_of(needed)
    kept_models.make_sure_of(
        path, lambda: _as_kept(recipe), said=f"no copy of {name} yet: trained now, half a minute on a free core"
    )


def _as_kept(recipe: Recipe) -> dict[str, Any]:
    teacher, first = (
        _loaded(needed, kept_path(needed)).decoder if needed else None
        for needed in (recipe.taught_by, recipe.begins_as)
    )
    model = made(recipe, teacher=teacher, first=first)
    return {"weights": model.decoder.state_dict(), "nats": model.held_out_nats, "training_s": model.training_s}


def _loaded(name: str, path: Path) -> TrainedModel:
    kept = kept_models.loaded(path)
    decoder = Decoder(RECIPES[name].sizes)
    decoder.load_state_dict(kept["weights"])
    return TrainedModel(
        decoder=decoder.eval().requires_grad_(False), held_out_nats=kept["nats"], training_s=kept["training_s"]
    )


def _said(model: TrainedModel) -> str:
    return (
        f"{model.num_parameters:,} parameters, {model.held_out_nats:.3f} nats per character held out, trained in"
        f" {fmt_seconds(model.training_s)} (Python {character_text.PYTHON})"
    )


def made(recipe: Recipe, *, teacher: Decoder | None = None, first: Decoder | None = None) -> TrainedModel:
    """Train by a recipe; nothing is kept. With a teacher, the loss is the cross-entropy against the teacher's shares of
    all symbols (Hinton et al., 2015, arXiv:1503.02531, at temperature 1), without one against the text's next symbol.
    """
    learnt, held_out = character_text.split()
    with _own_seed():
        decoder = Decoder(recipe.sizes)
        if first is not None:
            decoder.load_state_dict(first.state_dict())
        optimiser = torch.optim.AdamW(
            decoder.parameters(), lr=recipe.learning_rate, betas=(0.9, 0.95), weight_decay=0.05, fused=True
        )
        rate = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, max_lr=recipe.learning_rate, total_steps=recipe.steps, pct_start=0.1
        )
        started = time.perf_counter()  # after the optimiser: its first construction imports for seconds
        for step in range(recipe.steps):
            whole = step >= (1 - LONG_STEPS) * recipe.steps
            window, windows = (CONTEXT, recipe.batch // 2) if whole else (SHORT, recipe.batch)
            begins = torch.randint(len(learnt) - CONTEXT - 1, (windows, 1))
            text = learnt[begins + torch.arange(window + 1)]
            loss = _loss(decoder, text, teacher)
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(decoder.parameters(), 1.0)
            optimiser.step()
            rate.step()
    training_s = time.perf_counter() - started
    decoder.eval().requires_grad_(False)
    return TrainedModel(decoder=decoder, held_out_nats=nats_per_character(decoder, held_out), training_s=training_s)


def _loss(decoder: Decoder, text: Tensor, teacher: Decoder | None) -> Tensor:
    scores = decoder(text[:, :-1]).flatten(0, 1)
    if teacher is None:
        return functional.cross_entropy(scores, text[:, 1:].flatten())
    with torch.no_grad():
        shares = teacher(text[:, :-1]).softmax(dim=-1).flatten(0, 1)
    return functional.cross_entropy(scores, shares)


def nats_per_character(decoder: Decoder, text: Tensor) -> float:
    """Mean surprise over a text, read in pieces of the training's context: -ln of the share that the model gave to the
    character that came.
    """
    pieces = text[: len(text) // CONTEXT * CONTEXT].view(-1, CONTEXT)
    with torch.no_grad():
        losses = [
            functional.cross_entropy(decoder(some[:, :-1]).flatten(0, 1), some[:, 1:].flatten(), reduction="sum").item()
            for some in pieces.split(HELD_OUT_BATCH)
        ]
    return sum(losses) / (len(pieces) * (CONTEXT - 1))


@contextmanager
def _own_seed() -> Iterator[None]:
    """A fixed seed inside, the caller's random numbers untouched."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        yield


@torch.no_grad()
def greedy(decoder: Decoder, prompt: str, *, tokens: int) -> str:
    """What the model alone answers, always with its likeliest symbol, without any cache: the slow truth that servers
    are held against.
    """
    numbers = character_text.numbered(prompt)
    for _ in range(tokens):
        numbers.append(int(decoder(torch.tensor([numbers]))[0, -1].argmax()))
    return character_text.read_back(numbers[-tokens:]) if tokens else ""
