"""Drills on the work of training: a step's FLOPs where six per parameter is too few, and the share of the peak that
was reached.
"""

import random
from itertools import product

from threeloops.drills.engine import catalogued
from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, tera
from threeloops.drills.roofline.intensity import dense
from threeloops.models import model_flops
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.model_flops import layer_matmul_parameters
from threeloops.models.parameters import model_parameters
from threeloops.units import fmt_si

TAUGHT = Taught("inner", "Roofline")

SOURCE_TRAINING = (
    "Kaplan et al., 2020, arXiv:2001.08361, section 2.1; Narayanan et al., 2021, arXiv:2104.04473, appendix (attention)"
)
SOURCE_MFU = (
    "Chowdhery et al., PaLM, 2022, arXiv:2204.02311, section 4.1 and appendix B; peak of the part: see `threeloops"
    " sources`, read in 2026"
)

# --- training beyond 6N --------------------------------------------------------------------------


def _training_draw(model: Model, *, tokens: int, name: str) -> Draw:
    """A model's numbers as the prompt gives them, beside the model itself."""
    ((layer, num_layers),) = model.groups
    assert isinstance(layer.attention, Attention)
    working = num_layers * layer_matmul_parameters(layer, hidden=model.hidden) + model.hidden * model.vocab
    total = model_parameters(model).total
    heads = {"heads": layer.attention.num_heads, "head_dim": layer.attention.head_dim}
    return drawn(
        model=model,
        name=name,
        layers=num_layers,
        **heads,
        working=working,
        total=total,
        table=model.hidden * model.vocab,
        tokens=tokens,
    )


def _draw_training(rng: random.Random) -> Draw:
    key = rng.choice(("llama-3-8b", "qwen2.5-7b"))
    return _training_draw(
        catalogued.model(key), tokens=rng.randrange(11_000, 19_500, 250), name=catalogued.model_name(key)
    )


def _small_training(rng: random.Random) -> Draw:
    attention = Attention(num_heads=rng.choice((4, 6)), num_kv_heads=2, head_dim=3)
    layer = Layer(
        attention=attention, mlp=DenseMlp(intermediate=7, gated=True, activation="silu"), norm="rmsnorm", num_norms=2
    )
    model = Model(
        name="drawn", hidden=5, vocab=11, groups=((layer, rng.choice((2, 3))),), tied_head=False, max_context=99
    )
    return _training_draw(model, tokens=rng.choice((6, 9)), name="drawn")


def _derive_training(p: Draw) -> Derivation:
    step = model_flops.training_flops(p.model, batch=1, sequence=p.tokens, causal="exact", recompute="none")
    attended = f"{p.tokens} × ({p.tokens} + 1) / 2"
    return Derivation(
        value=step.model,
        formula="6 × working weights × tokens + 3 × 2 matmuls × 2 × layers × heads × head dim × attended pairs",
        substitution=f"6 × {p.working} × {p.tokens} + 3 × 2 × 2 × {p.layers} × {p.heads} × {p.head_dim} × {attended}",
        source=SOURCE_TRAINING,
    )


def _count_training(p: Draw) -> float:
    """Walk one pass: every weight on its way to a token, every pair of tokens. Forward multiplies once, backward once
    for either factor.
    """
    flops, ((layer, num_layers),) = 0, p.model.groups
    attention, hidden, wide = layer.attention, p.model.hidden, layer.mlp.intermediate
    query, key_value = attention.num_heads * attention.head_dim, attention.num_kv_heads * attention.head_dim
    matrices = [
        (hidden, query),
        (hidden, key_value),
        (hidden, key_value),
        (query, hidden),
        (hidden, wide),
        (hidden, wide),
        (wide, hidden),
    ]
    for position in range(p.tokens):
        for _pass in ("forward", "gradient of one factor", "gradient of the other"):
            for rows, columns in num_layers * matrices + [(hidden, p.model.vocab)]:
                flops += sum(2 for _ in range(rows * columns))
            for _layer, _head, _seen, _product in product(
                range(num_layers), range(attention.num_heads), range(position + 1), ("scores", "values")
            ):
                flops += sum(2 for _ in range(attention.head_dim))
    return float(flops)


def _attended(p: Draw, pairs: float) -> float:
    """Training FLOPs of attention, both products, for that many pairs of tokens."""
    return float(12 * p.layers * p.heads * p.head_dim * pairs)


TRAINING = Drill(
    key="roofline-training-flops",
    taught=TAUGHT,
    title="One long sequence",
    unit="FLOP",
    target_s=180,
    draw=_draw_training,
    small=_small_training,
    prompt=lambda p: (
        f"{p.name} stores {billions(p.total)} parameters, of which {billions(p.table)} are the input table, read row by"
        f" row; the output head is a matrix of its own. It has {p.layers} layers with {p.heads} query heads,"
        f" {p.head_dim} wide. A training step runs forward and backward over one sequence of {p.tokens:,} tokens, each"
        " attending to itself and to what came before, without recomputing anything. How many FLOPs are its matrix"
        " matmuls?"
    ),
    derive=_derive_training,
    count=_count_training,
    prerequisites=("roofline-mfu",),
    slips=(
        Slip("attention-forgotten", lambda p: 6 * p.working * p.tokens)
        | "You charged the weights alone. At this length, what the tokens do with each other is no longer small.",
        Slip("all-pairs", lambda p: 6 * p.working * p.tokens + _attended(p, p.tokens**2))
        | "You let every token attend to all of them. This question charges only what the causal mask leaves.",
        Slip("one-product", lambda p: 6 * p.working * p.tokens + _attended(p, p.tokens * (p.tokens + 1) / 2) / 2)
        | "You charged one of attention's two matmuls. It meets the keys, and then the values.",
        Slip(
            "table-included",
            lambda p: 6 * (p.working + p.table) * p.tokens + _attended(p, p.tokens * (p.tokens + 1) / 2),
        )
        | "You let the input table multiply. Looking a row up costs no FLOP.",
        Slip("forward-only", lambda p: (6 * p.working * p.tokens + _attended(p, p.tokens * (p.tokens + 1) / 2)) / 3)
        | "That is the forward pass. The step learns, too.",
        Slip("one-gradient", lambda p: (6 * p.working * p.tokens + _attended(p, p.tokens * (p.tokens + 1) / 2)) * 2 / 3)
        | "You let the backward pass cost as much as the forward pass. Each matmul has two factors, and both"
        " need a gradient.",
    ),
)

# --- share of the peak ---------------------------------------------------------------------------


def _draw_mfu(rng: random.Random) -> Draw:
    machine, gpus = (
        drawn(**dense(rng.choice(("h100-sxm5", "a100-sxm4-80gb", "h200-sxm", "b200-hgx")))),
        rng.choice((24, 40, 56, 96)),
    )
    parameters, share = rng.choice((7.1e9, 9.4e9, 14.2e9, 32.5e9)), rng.choice((0.31, 0.37, 0.42, 0.46))
    rate = float(f"{share * gpus * machine.peak / (6 * parameters):.2e}")
    return drawn(**vars(machine), gpus=gpus, parameters=parameters, tokens_per_s=int(rate))


def _derive_mfu(p: Draw) -> Derivation:
    needed = model_flops.six_n_d(num_parameters=p.parameters, tokens=p.tokens_per_s)
    return Derivation(
        value=needed / (p.gpus * p.peak),
        formula="6 × parameters × tokens per second / (GPUs × dense peak)",
        substitution=f"6 × {p.parameters:.0f} × {p.tokens_per_s} / ({p.gpus} × {tera(p.peak)})",
        source=SOURCE_MFU,
    )


def _count_mfu(p: Draw) -> float:
    """One second of training: every token meets every weight forward, and twice backward; the rest of what the GPUs
    could do is lost.
    """
    useful, possible = 0, sum(p.peak for _ in range(p.gpus))
    for _token, _weight in product(range(p.tokens_per_s), range(p.parameters)):
        for _pass in ("forward", "gradient of the input", "gradient of the weight"):
            useful += len(("multiply", "add"))
    return float(useful / possible)


MFU = Drill(
    key="roofline-mfu",
    taught=TAUGHT,
    title="Useful, not busy",
    unit="",
    target_s=120,
    draw=_draw_mfu,
    small=lambda rng: drawn(
        part="drawn",
        peak=rng.choice((900, 1300)),
        memory=1,
        gpus=rng.choice((3, 5)),
        parameters=rng.choice((30, 40)),
        tokens_per_s=rng.choice((4, 7)),
    ),
    prompt=lambda p: (
        f"A dense model of {billions(p.parameters)} parameters trains in BF16 on {p.gpus} GPUs of the type {p.part}."
        f" Together they get through {p.tokens_per_s:,} tokens per second; each layer's forward pass is run a second"
        f" time in the backward pass to save memory. Each GPU's peak in BF16 is {fmt_si(p.peak, 'FLOP/s')} dense."
        " Neglect attention's own matmuls. What is the model FLOPs utilisation (MFU)?"
    ),
    derive=_derive_mfu,
    count=_count_mfu,
    slips=(
        Slip("recompute-counted", lambda p: 8 * p.parameters * p.tokens_per_s / (p.gpus * p.peak))
        | "You counted what is calculated twice. That is hardware utilisation, HFU: it goes up when you waste"
        " more.",
        Slip("forward-only", lambda p: 2 * p.parameters * p.tokens_per_s / (p.gpus * p.peak))
        | "You counted the forward pass. Learning takes a backward pass as well.",
        Slip("one-gradient", lambda p: 4 * p.parameters * p.tokens_per_s / (p.gpus * p.peak))
        | "You let the backward pass cost as much as the forward pass. Input and weights both need a gradient.",
        Slip("sparse-peak", lambda p: 3 * p.parameters * p.tokens_per_s / (p.gpus * p.peak))
        | "Half of it: either you doubled the peak for a sparsity that this model has not, or you counted"
        " multiply-adds.",
        Slip("one-gpu", lambda p: 6 * p.parameters * p.tokens_per_s / p.peak)
        | "You held the whole cluster's tokens against one GPU.",
    ),
)

DRILLS = (TRAINING, MFU)
