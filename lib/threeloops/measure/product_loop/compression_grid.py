"""Compression grid: three small networks, pruned to five shares and rounded to seven widths, each asked 4,096 times.

Run as a program, it measures all of them and writes what it found, with where and when, into
`threeloops/facts/compressed_glyphs.py`:

    python -m threeloops.measure.product_loop.compression_grid
"""

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import nn

from threeloops import facts
from threeloops.facts.compressed_glyphs import BITS, LABELS, NETWORKS, SPARSITIES
from threeloops.measure import timing
from threeloops.measure.product_loop import distillation, glyphs, pruning, quantisers
from threeloops.measure.product_loop.quantisers import Scheme

GROUP = 16
TUNING_EPOCHS = 4
_TEACHER, NETWORKS_BY_LABELS, NETWORKS_BY_TEACHER = NETWORKS
WIDE = 16  # bits in which nothing is rounded here: a 16-bit float costs no accuracy on this network


def networks() -> dict[str, nn.Sequential]:
    """The three networks, by the names of the table."""
    teacher = glyphs.trained()
    made = (teacher, distillation.taught_by_labels(labels=LABELS), distillation.taught_by_teacher(teacher))
    return dict(zip(NETWORKS, made, strict=True))


def sparse(name: str, model: nn.Sequential, *, share: float) -> nn.Sequential:
    """The model without this share of its weights, trained on with what it had been trained with."""
    if share == 0:
        return model
    thin = pruning.pruned(model, share=share)
    images, known = glyphs.sets().train
    seen, loss, epochs = len(images), None, TUNING_EPOCHS
    if name == NETWORKS_BY_LABELS:
        seen, epochs = LABELS, TUNING_EPOCHS * len(images) // LABELS
    elif name == NETWORKS_BY_TEACHER:
        loss = distillation.answers_of(glyphs.trained())
    glyphs.fit(thin, images[:seen], known[:seen], epochs=epochs, loss=loss)
    return pruning.fixed(thin)


def measured() -> dict[str, dict[float, tuple[float, ...]]]:
    """Network -> share pruned -> accuracy for every width."""
    found: dict[str, dict[float, tuple[float, ...]]] = {}
    for name, model in networks().items():
        found[name] = {}
        for share in SPARSITIES:
            thin = sparse(name, model, share=share)
            found[name][share] = tuple(round(_accuracy(thin, bits), 4) for bits in BITS)
    return found


def _accuracy(model: nn.Sequential, bits: int) -> float:
    if bits == WIDE:
        return glyphs.accuracy(model)
    return glyphs.accuracy(quantisers.rounded_model(model, Scheme(bits=bits, scope=GROUP)))


def written(found: Mapping[str, Mapping[float, tuple[float, ...]]], *, stamp: str) -> str:
    """The table's module with these numbers in place of the old ones."""
    path = Path(facts.__path__[0]) / "compressed_glyphs.py"
    before = path.read_text(encoding="utf-8").partition("# --- measured")[0]
    rows = "".join(
        f"    {name!r}: {{\n"
        + "".join(f"        {share}: {values},\n" for share, values in shares.items())
        + "    },\n"
        for name, shares in found.items()
    )
    table = f"STAMP = {stamp!r}\nACCURACIES: dict[str, dict[float, tuple[float, ...]]] = {{\n{rows}}}\n"
    maker = "threeloops.measure.product_loop.compression_grid"
    return f"{before}# --- measured by {maker} ---\n\n" + table.replace("'", '"')


if __name__ == "__main__":
    torch.set_num_threads(1)
    here = timing.this_machine()
    stamp = f"{here.hardware}, {here.software}, {here.measured.isoformat()}"
    (Path(facts.__path__[0]) / "compressed_glyphs.py").write_text(written(measured(), stamp=stamp), encoding="utf-8")
