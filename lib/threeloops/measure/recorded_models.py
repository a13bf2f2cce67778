"""Recorded models: a training step, a decode step, a prompt's forward pass, a layer of experts and the draw of a token,
as a case's sizes describe them.

>>> sizes = {"tokens": 5, "experts": 4, "top_k": 2, "hidden": 16, "intermediate": 8}
>>> experts(Case(kind="experts_loop", dtype="bf16", sizes=sizes), "cpu")().shape
torch.Size([5, 16])
"""

import functools

import torch
from torch import Tensor
from torch.nn import functional

from threeloops.facts.recorded_cases import Case
from threeloops.measure import recorded_training
from threeloops.measure.models.transformer_block import TransformerBlock
from threeloops.measure.product_loop import closed_loop
from threeloops.measure.product_loop.decode_step import DecodeStep
from threeloops.measure.recorded_needs import DTYPES, Call, Skipped, graph, needs_graphs
from threeloops.models.recorded_work import decode_layer, loop_answers

NUCLEUS = 0.9


def train(case: Case, device: str) -> Call:
    """A step of training, or the most bytes that one allocates."""
    peak = case.kind == "train_peak"
    if peak and device == "cpu":
        raise Skipped("torch counts what it allocates on a GPU only")
    step = recorded_training.step(case, device=device, compiled=case.kind == "train_compiled")
    return (lambda: recorded_training.peak_bytes(step)) if peak else step


def decode(case: Case, device: str) -> Call:
    """The layers of one decode step."""
    sizes = {name: case.sizes[name] for name in ("layers", "hidden", "batch", "context")}
    if case.kind == "decode_graph":
        needs_graphs(device)
    step = DecodeStep(decode_layer(case), **sizes, dtype=DTYPES[case.dtype], device=device)
    x = torch.randn(sizes["batch"], sizes["hidden"], device=device).to(DTYPES[case.dtype])
    if case.kind == "decode_compiled":
        compiled = torch.compile(step)
        compiled(x)  # compiles now, so that a machine without a compiler is skipped and not timed
        return lambda: compiled(x)
    return (lambda: step(x)) if case.kind == "decode_eager" else graph(lambda: step(x))


def prefill(case: Case, device: str) -> Call:
    """The same layers over a whole prompt."""
    hidden, dtype = case.sizes["hidden"], DTYPES[case.dtype]
    layer = decode_layer(case)
    with torch.device(device):
        blocks = [
            TransformerBlock(layer, hidden=hidden, kernels="sdpa", dropout=0.0, dtype=dtype)
            for _ in range(case.sizes["layers"])
        ]
        prompt = torch.randn(case.sizes["batch"], case.sizes["tokens"], hidden, dtype=dtype)

    @torch.no_grad()
    def forward() -> Tensor:
        x = prompt
        for block in blocks:
            x = block(x)
        return x

    return forward


@functools.lru_cache(maxsize=1)
def _served(sizes: tuple[tuple[str, int], ...], dtype: str, device: str) -> list[closed_loop.Answered]:
    """The loop once, for both times that are recorded of it."""
    case = Case(kind="loop_gap", dtype=dtype, sizes=dict(sizes))
    names = ("layers", "hidden", "vocabulary", "users", "prompt")
    engine = closed_loop.Engine(
        decode_layer(case),
        **{name: case.sizes[name] for name in names},
        longest=case.sizes["answer"],
        dtype=DTYPES[dtype],
        device=device,
    )
    engine.serve([2] * case.sizes["users"])  # libraries set themselves up on first use
    return engine.serve(loop_answers(case))


def loop(case: Case, device: str) -> Call:
    """The seconds of every request of a small engine: to its first token, or between two."""
    served = _served(tuple(case.sizes.items()), case.dtype, device)
    return lambda: [one.first_s if case.kind == "loop_first" else one.gap_s for one in served]


def experts(case: Case, device: str) -> Call:
    """A layer of experts behind its router: tokens in, tokens out; experts are dealt out to the tokens in turn."""
    tokens, count, top_k, hidden, wide = case.sizes.values()
    dtype = DTYPES[case.dtype]
    with torch.device(device):
        x = torch.randn(tokens, hidden, dtype=dtype)
        up = torch.randn(count, 2 * wide, hidden, dtype=dtype).transpose(1, 2)
        down = torch.randn(count, hidden, wide, dtype=dtype).transpose(1, 2)
        chosen = torch.arange(tokens * top_k) % count
        order, ends = chosen.argsort(stable=True), chosen.bincount(minlength=count).cumsum(0)
    rows = order // top_k

    def grouped() -> Tensor:
        gate, value = torch._grouped_mm(x[rows], up, offs=marks).chunk(2, dim=-1)
        found = torch._grouped_mm(functional.silu(gate) * value, down, offs=marks)
        return torch.zeros_like(x).index_add_(0, rows, found)

    def loop() -> Tensor:
        out = torch.zeros_like(x)
        for expert, (start, end) in enumerate(zip([0, *stops], stops, strict=False)):
            if start < end:
                mine = rows[start:end]
                gate, value = (x[mine] @ up[expert]).chunk(2, dim=-1)
                out.index_add_(0, mine, (functional.silu(gate) * value) @ down[expert])
        return out

    marks, stops = ends.to(torch.int32), ends.tolist()
    return grouped if case.kind == "experts_grouped" else loop


def sample(case: Case, device: str) -> Call:
    """The next token of every row of logits: the likeliest, or a draw from the likeliest ones that reach a sum."""
    logits = torch.randn(case.sizes["rows"], case.sizes["width"], device=device)

    def top_p() -> Tensor:
        ordered, places = logits.softmax(-1).sort(descending=True)
        kept = ordered.masked_fill(ordered.cumsum(-1) - ordered > NUCLEUS, 0.0)
        return places.gather(-1, kept.multinomial(1))

    return (lambda: logits.argmax(-1)) if case.kind == "sample_greedy" else top_p
