"""Four things to write by hand: what is asked, how long it takes, what it is marked by, and one solution.

The graded set `coding` tries the same functions on hidden draws; two prompts are function drills whole, so their
draws, limit case and usual mistakes come from there. `solution` is code that a test runs.
"""

from dataclasses import dataclass

from threeloops import units
from threeloops.drills.engine.drill import seeded
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import ORDINARY_DRAWS
from threeloops.models import catalogue
from threeloops.models.parameters import model_parameters
from threeloops.sheets.layout import Page, Table

MEMORY_MODEL, SEQUENCE, BATCH = "opt-13b", 2048, 4


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingDrill:
    """One thing to write, and how it is marked: points with what earns them."""

    key: str
    title: str
    minutes: int
    prompt: str
    rubric: tuple[tuple[int, str], ...]
    solution: str
    graded: tuple[str, ...]  # the functions of the graded set in which the same thing is tried on hidden draws


def memory_prompt() -> str:
    """The model's numbers come from the catalogue."""
    model = catalogue.model(MEMORY_MODEL)
    count, name = model_parameters(model).total, catalogue.model_entry(MEMORY_MODEL).name
    return (
        "Write training_bytes(parameters, layers, hidden, sequence, batch, gpus): bytes on one of `gpus` GPUs that"
        " shard all states and train on `batch` sequences each, with Adam in mixed precision: weights and gradients in"
        " 16 bits, master weights and both moments in 32. Layers are a plain transformer's (GELU, four times as wide"
        " inside, dropout) and run the attention core again in the backward pass. Leave out embedding and head"
        f" activations.\nThen, without running it, for a model like {name}:"
        f" {count:,} parameters, {model.num_layers} layers, hidden {model.hidden:,}, sequence {SEQUENCE:,}, batch"
        f" {BATCH}. Does it fit on 80 GB? And on each of four such GPUs?"
    )


MEMORY_SOLUTION = """
def training_bytes(parameters, layers, hidden, sequence, batch, gpus):
    weights, gradients, master, moments = 2, 2, 4, 8  # bytes per parameter
    states = parameters * (weights + gradients + master + moments)
    kept = 34 * sequence * batch * hidden  # per layer, attention core run again: Korthikanti et al., 2022, section 4
    return states / gpus + layers * kept  # each GPU has a batch of its own: sharding does not divide it
""".strip()

CHECKPOINT_SOLUTION = '''
import torch
from torch.utils.checkpoint import checkpoint


class CheckpointedStack(torch.nn.Module):
    """Blocks of which only the input of every `every`-th is kept; the ones between are run again in the backward pass."""

    def __init__(self, blocks, every):
        super().__init__()
        self.blocks, self.every = torch.nn.ModuleList(blocks), every

    def forward(self, x):
        for start in range(0, len(self.blocks), self.every):
            x = checkpoint(self._run, start, x, use_reentrant=False)
        return x

    def _run(self, start, x):
        for block in self.blocks[start : start + self.every]:
            x = block(x)
        return x
'''.strip()  # noqa: E501

NUMBERS_SOLUTION = """


def peak_bytes(layers, every, block_bytes, input_bytes):
    peak, inputs = 0, 0
    for start in range(0, layers, every):
        inputs += input_bytes
        peak = max(peak, inputs + min(every, layers - start) * block_bytes - input_bytes)
    return peak


def step_flops(layers, every, forward_flops):
    last = layers % every or every  # torch's checkpoint_sequential leaves the last segment alone
    return forward_flops * (3 * layers + layers - last)
""".rstrip()

REDUCE_SOLUTION = """
def all_reduce_s(parameters, bytes_per_gradient, ranks, bucket_bytes, alpha, rate):
    size = parameters * bytes_per_gradient
    rings = -(-size // bucket_bytes)  # rounded up
    steps = 2 * (ranks - 1)  # once around to add up, once around to hand out
    return rings * steps * alpha + steps * size / ranks / rate
""".strip()

DECODE_SOLUTION = """
def decode_step_s(weights, batch, windowed, full, window, kv_heads, head_dim, tokens, bandwidth):
    slots = full * tokens + windowed * min(window, tokens)
    cache = slots * 2 * kv_heads * head_dim * 2  # keys and values, two bytes each
    return (weights + batch * cache) / bandwidth
""".strip()


def _asked(key: str, signature: str) -> str:
    """A function drill in words: one draw of it as an example, and what the function gets."""
    asked = FUNCTIONS[key]
    example = asked.drill.prompt(asked.drill.draw(seeded("sheet", key)))
    base = "It takes bytes, seconds and bytes per second"
    return (
        f"Write {signature}({', '.join(asked.takes)}), which answers this for any numbers. {base}, and returns"
        f" {asked.returns}.\n{example}"
    )


def _rubric(key: str, said: str) -> tuple[tuple[int, str], ...]:
    """Marks of a function drill: ordinary draws, the limit case, and what is said."""
    asked = FUNCTIONS[key]
    return (
        (
            4,
            (
                f"right on {ORDINARY_DRAWS} fresh draws (`sheet.check_function({key!r}, …)` in a notebook draws and"
                " judges them)"
            ),
        ),
        (2, f"right in the limit case: {asked.limit_case}"),
        (2, f"stayed clear of the usual mistakes: {', '.join(slip.key for slip in asked.drill.slips)}"),
        (2, said),
    )


def drills() -> tuple[CodingDrill, ...]:
    """The four."""
    return (
        CodingDrill(
            key="training-memory",
            title="Memory of a training run, from memory",
            minutes=8,
            prompt=memory_prompt(),
            rubric=(
                (3, "sixteen bytes a parameter, each of the four parts named"),
                (
                    3,
                    (
                        "activations grow with sequence and batch, not with parameters; the attention core adds"
                        " nothing, because it is run again"
                    ),
                ),
                (2, "the size of the answer before the code: states first, then activations, then the sum"),
                (2, "sharding divides states by four; activations only if each GPU also gets a quarter of the batch"),
            ),
            solution=MEMORY_SOLUTION,
            graded=("coding-sharded-bill",),
        ),
        CodingDrill(
            key="checkpointed-stack",
            title="A stack of blocks that forgets and computes again",
            minutes=12,
            prompt=(
                "Write CheckpointedStack(blocks, every) in PyTorch. Between forward and backward it keeps the inputs of"
                " one block in `every`, and nothing that happens inside blocks; gradients equal those of the plain"
                " stack. Does a larger `every` keep more or less between the passes? And at the peak? Then write"
                " peak_bytes(layers, every, block_bytes, input_bytes), the most activations at one moment of the"
                " backward pass, and step_flops(layers, every, forward_flops) of a step that leaves the last segment"
                " alone."
            ),
            rubric=(
                (3, "gradients equal those of the plain stack"),
                (3, "every block runs twice, also where `every` does not divide their number"),
                (
                    2,
                    (
                        "not `if i % every == 0: checkpoint(one block)`: that runs only one block in `every` again and"
                        " keeps all of the others"
                    ),
                ),
                (
                    2,
                    (
                        "n blocks in segments of k: n / k inputs wait, and one segment is alive, k b − 1 more, if a"
                        " block keeps as much as b inputs. One term falls with k, one grows: least near k = √(n / b)."
                        " So k > 1 is for n well above b, many light blocks; n = 10 blocks of b = 9 want k = 1"
                    ),
                ),
            ),
            solution=CHECKPOINT_SOLUTION + NUMBERS_SOLUTION,
            graded=("coding-segments-peak", "coding-step-flops"),
        ),
        CodingDrill(
            key="all-reduce",
            title="Time of an all-reduce in buckets",
            minutes=5,
            prompt=_asked("coding-bucketed-all-reduce", "all_reduce_s"),
            rubric=_rubric(
                "coding-bucketed-all-reduce",
                "said whether latency or bandwidth binds, and which bucket would change it",
            ),
            solution=REDUCE_SOLUTION,
            graded=("coding-bucketed-all-reduce",),
        ),
        CodingDrill(
            key="decode-step",
            title="Time of a decode step",
            minutes=5,
            prompt=_asked("coding-decode-step", "decode_step_s"),
            rubric=_rubric("coding-decode-step", "said which of weights, windows and whole contexts is read most"),
            solution=DECODE_SOLUTION,
            graded=("coding-decode-step",),
        ),
    )


def marks() -> Table:
    """What the points of all four are for."""
    rows = tuple((one.title, f"{points}", told) for one in drills() for points, told in one.rubric)
    return Table(title="What the points are for", head=("write", "points", "for"), rows=rows)


def pages(*, answers: bool) -> tuple[Page, ...]:
    """The questions on one page; with answers, marks and solutions on the next ones."""
    asked = drills()
    minutes = units.counted(sum(one.minutes for one in asked), "minute")
    intro = (
        f"{minutes} in all, on paper or in an empty editor, speaking as you go. Ten points each; `threeloops sheet"
        " coding --answers` says what for, and the graded set `coding` tries the functions on hidden draws."
    )
    questions = Table(
        title="",
        head=("minutes", "write", "asked"),
        rows=tuple((f"{one.minutes}", one.title, one.prompt) for one in asked),
    )
    sheets = [Page(title="Four things to write", intro=intro, tables=(questions,))]
    if answers:
        sheets += [_marked(one) for one in asked]
    return tuple(sheets)


def _marked(one: CodingDrill) -> Page:
    rubric = Table(title="", head=("points", "for"), rows=tuple((f"{points}", told) for points, told in one.rubric))
    return Page(title=f"{one.title}: marks and one solution", intro=one.prompt, tables=(rubric,), listing=one.solution)
