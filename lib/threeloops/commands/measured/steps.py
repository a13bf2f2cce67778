"""`threeloops measured steps`: how far expected times are from training steps that others ran and printed."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from threeloops.commands.working import aligned
from threeloops.models.parameters import model_parameters
from threeloops.operations.expected_times import errors_of
from threeloops.training_loop.parallelism.published_steps import (
    Judged,
    PublishedStep,
    error_without,
    judged_steps,
    not_judged_because,
    one_a_configuration,
    published_steps,
)
from threeloops.units import fmt_percent

HEAD = ("training steps", "rows", "configurations", "at best rates", "expected", "p90", "sign", "too slow")
SIZES = ((5e9, "below 5 billion parameters"), (50e9, "5 to 50 billion"), (1e15, "50 billion and more"))
LENGTHS = ((2048, "up to 2,048 tokens"), (8192, "4,096 and 8,192 tokens"), (1e15, "16,384 tokens and more"))
FAR = 0.2
FAR_HEAD = (f"more than {FAR:.0%} off".replace("%", " %"), "configurations", "of", "sign")
# Where errors above FAR stand, and what is known of them: the first that fits.
FAR_OFF: tuple[tuple[str, Callable[[PublishedStep], bool], str], ...] = (
    (
        "BigScience, tensor groups of eight",
        lambda row: row.publisher == "BigScience" and row.layout.tp == 8,
        "unknown; with and without waiting for each launch its page prints 0, 0 and 7 %; how a node's eight GPUs are"
        " linked is not said",
    ),
    ("BigScience, smaller groups", lambda row: row.publisher == "BigScience", "unknown, like those of eight"),
    (
        "gpt-oss-120b",
        lambda row: row.model.name == "gpt-oss-120b",
        "unknown; biases added and activations clamped outside of kernels are charged, as its recipes say; what is"
        " lacking in bf16 still goes with the tokens and with the card's memory rate, but for B200 in release 25.11 and"
        " B300 in 26.02, which lack more",
    ),
    (
        "Nemotron 3 Super in nvfp4",
        lambda row: row.model.name.startswith("nemotron-3-super") and row.format == "nvfp4",
        "unknown; 16 layers in bf16 and some products in wider formats are charged; in fp8 its steps take as long",
    ),
    (
        "other experts, one sequence at a time",
        lambda row: not row.dense and row.layout.micro_batch == 1,
        "unknown; the waits of launches are not counted, and its kernels are short",
    ),
    (
        "FSDP on 128 GPUs and more",
        lambda row: row.publisher == "MosaicML" and row.cluster.num_gpus >= 128,
        "unknown; it grows with the number of GPUs",
    ),
    (
        "FSDP, others",
        lambda row: row.publisher == "MosaicML",
        "unknown; most of a micro-batch's exchange seems to be waited for where micro-batches are small",
    ),
    ("the rest", lambda row: True, "unknown"),
)
MEANS = (
    "Errors are of tokens per second, predicted over printed, less 1; one for each configuration, the mean over"
    " releases. at best rates: the planner's median; expected, p90: median and ninth decile of the error's size by"
    " measured kernels; sign: its median with sign, above 0 where runs were slower than expected; too slow: the share"
    " that was expected to take longer than it took. Nothing is fitted to these rows. left out: the median with sign"
    " if one cause is left out or, where there is a best rate, priced at that."
)


def report() -> str:
    """The errors by publisher, device, size, length and layout; what each cause is worth; what is not judged."""
    judged = judged_steps()
    groups: dict[tuple[int, str], list[Judged]] = {}
    for one in judged:
        for label in enumerate(labels(one)):
            groups.setdefault(label, []).append(one)
    rows = [_row(what, groups[kind, what]) for kind, what in sorted(groups, key=_place) if what]
    left = Counter(not_judged_because(row) for row in published_steps())
    apart = [f"{count} rows not judged: {why}" for why, count in sorted(left.items()) if why]
    return "\n".join(
        [
            *aligned([HEAD, *rows]),
            *("", *aligned([("left out", "sign"), *_causes(judged)])),
            *("", *aligned([FAR_HEAD, *_far_off(judged)])),
            *("", *(f"{what}: {why}" for what, _, why in FAR_OFF)),
            *("", MEANS, *apart),
        ]
    )


def _place(label: tuple[int, str]) -> tuple[int, int, str]:
    """Kinds in the order of labels; sizes and lengths rising, all others by name."""
    kind, what = label
    rising = [name for _, name in (*SIZES, *LENGTHS)]
    return kind, rising.index(what) if what in rising else 0, what


def labels(one: Judged) -> tuple[str, ...]:
    """The groups that a row belongs to, one of each kind; empty where it belongs to none."""
    row = one.row
    known = row.dense and row.software.attention != "unfused"
    parameters = model_parameters(row.model).total
    return (
        "all",
        "dense, attention kernel known" if known else "",
        "" if row.dense else "mixtures of experts",
        "" if row.dense else row.model.name,
        "entered once the prediction was finished" if row.unseen else "",
        row.publisher,
        f"on {row.part}",
        f"in {row.format}",
        next(what for most, what in SIZES if parameters < most),
        next(what for most, what in LENGTHS if row.job.sequence <= most),
        "one node" if row.cluster.num_gpus <= row.cluster.domain_gpus else "several nodes",
        "pipelines" if row.layout.pp > 1 else "",
    )


def _row(what: str, some: Sequence[Judged]) -> tuple[str, ...]:
    signed = one_a_configuration(some, lambda one: one.error)
    planned = one_a_configuration(some, lambda one: one.planned_error)
    found = errors_of(signed)
    return (
        what,
        str(len(some)),
        str(found.rows),
        _signed(median(planned)),
        fmt_percent(found.median),
        fmt_percent(found.ninth_decile),
        _signed(found.signed_median),
        fmt_percent(sum(error < 0 for error in signed) / len(signed)),
    )


def _causes(judged: Sequence[Judged]) -> list[tuple[str, str]]:
    rows = sorted(error_without(judged).items(), key=lambda item: -item[1])
    return [(cause, _signed(error)) for cause, error in rows]


def _far_off(judged: Sequence[Judged]) -> Iterator[tuple[str, ...]]:
    """How many configurations of each kind are far off, their median with sign, and what is known of them."""
    kinds: dict[str, list[Judged]] = {what: [] for what, _, _ in FAR_OFF}
    for one in judged:
        kinds[next(what for what, fits, _ in FAR_OFF if fits(one.row))].append(one)
    for what in kinds:
        errors = one_a_configuration(kinds[what], lambda one: one.error)
        far = [error for error in errors if abs(error) > FAR]
        if far:
            yield what, str(len(far)), str(len(errors)), _signed(median(far))


def _signed(share: float) -> str:
    return f"{share:+.1%}".replace("%", " %")
