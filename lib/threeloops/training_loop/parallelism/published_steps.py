"""Published steps: training steps that teams ran and printed, as the planner's own types, and how far expected steps
are from them.

>>> rows = published_steps()
>>> len(rows), sorted({row.publisher for row in rows})[:2]
(315, ['BigScience', 'MosaicML'])

Source: catalog/training_steps.toml; nothing is fitted to its rows
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Any

from threeloops.facts import hardware
from threeloops.facts.fact import catalogue_files
from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model, MoeMlp
from threeloops.training_loop.parallelism.expected_step import ExpectedStep, expected_step
from threeloops.training_loop.parallelism.layout_step import layout_step
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.published_layouts import assumptions
from threeloops.training_loop.parallelism.software import UNFUSED, Software

TENSOR_CORE_WIDTH = 8  # of 16-bit numbers: a head whose width is no multiple runs without tensor cores, or padded
PEAKS = {"nvfp4": "fp4"}  # by the catalogue's names of formats
BEST = {"fp8": "best_gemm_flops_per_s_fp8", "bf16": "best_gemm_flops_per_s_bf16"}
DEGREES = ("dp", "tp", "pp", "cp", "ep")
SETTINGS = ("micro_batch", "zero_stage", "recompute", "chunks")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedStep:
    """One row: what ran, on what, with which software, and how long a step took."""

    key: str
    publisher: str
    source: str  # the page that prints it: title and address
    release: str  # of the software, where the page names one
    model: Model
    job: Job
    layout: Layout
    cluster: Cluster
    part: str
    format: str
    software: Software
    measured_s: float
    unseen: bool  # entered once the prediction was finished
    apart: str  # why the row is no test of a prediction; empty where it is one

    @property
    def dense(self) -> bool:
        return self.job.experts is None


@functools.cache
def published_steps() -> tuple[PublishedStep, ...]:
    """All rows of the catalogue."""
    (content,) = [content for _, content in catalogue_files() if "training_steps" in content]
    pages = {key: f"{page['title']}, {page['url']}" for key, page in content["sources"].items()}
    groups = content["training_steps"].items()
    recipes = {"recipes": list(content["training_recipes"].values())}
    return tuple(_step(key, row | recipes, pages[row["source"]]) for key, group in groups for row in _rows(group))


def _rows(group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Each row of a group with what all of them share."""
    shared = {name: value for name, value in group.items() if name not in ("rows", "columns")}
    return (shared | dict(zip(group["columns"], row, strict=True)) for row in group["rows"])


def _step(key: str, row: Mapping[str, Any], source: str) -> PublishedStep:
    recipe = _recipe(row)
    job = _job(row, recipe)
    tokens = job.tokens / row["num_gpus"]
    return PublishedStep(
        key=f"{key}-{row['id']}",
        publisher=row["publisher"],
        source=source,
        release=row.get("release", ""),
        model=job.model,
        job=job,
        layout=Layout(
            **{name: row[name] for name in (*DEGREES, *SETTINGS)},
            schedule="interleaved" if row["chunks"] > 1 else "1f1b",
        ),
        cluster=_cluster(row),
        part=row["part"],
        format=row["format"],
        software=Software(
            **{name: row[name] for name in ("attention", "loss", "gradient_bytes_moved", "overlaps_tensor")},
            overlaps_experts=row.get("overlaps_experts", False),
            **_told(row, recipe),
        ),
        measured_s=row["step_s"] if "step_s" in row else tokens / row["tokens_per_gpu_s"],
        unseen=row.get("unseen", False),
        apart=row.get("apart", "") or _apart(job, row),
    )


def _recipe(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the recipe of a row's release says beyond the page, if one fits."""
    fits = (
        recipe for recipe in row["recipes"] if all(row.get(name) in values for name, values in recipe["rows"].items())
    )
    return next(fits, {})


def _told(row: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """The software of it."""
    return {
        "recomputes": tuple(recipe.get("recomputes", ())),
        "formats": tuple(recipe.get("formats", {}).items()),
        "wide_layers": recipe.get("wide_layers", 0),
        # DeepEP and HybridEP, which send a token once, know routing weights in fp32 only
        "bias_weight_bytes": recipe.get("biases_apart", False) * (4 if row.get("dispatches_once") else 2),
        "more_heads": recipe.get("next_tokens", 0),
    }


def _predicting_more(model: Model, next_tokens: int) -> Model:
    """With a layer of attention and one of experts for each token after the next one."""
    (attention,) = [layer for layer, _ in model.groups if isinstance(layer.attention, Attention)]
    (experts,) = [layer for layer, _ in model.groups if isinstance(layer.mlp, MoeMlp)]
    return replace(model, groups=(*model.groups, (attention, next_tokens), (experts, next_tokens)))


def _apart(job: Job, row: Mapping[str, Any]) -> str:
    attention = job.model.groups[0][0].attention
    if row["attention"] == UNFUSED and isinstance(attention, Attention) and attention.head_dim % TENSOR_CORE_WIDTH:
        return "heads whose width no tensor core takes"
    return ""


def _job(row: Mapping[str, Any], recipe: Mapping[str, Any]) -> Job:
    model = catalogue.model(row["model"]) if "model" in row else _gpt(row)
    if recipe.get("next_tokens"):
        model = _predicting_more(model, recipe["next_tokens"])
    return Job(
        model=model,
        sequence=row["sequence"],
        global_batch=row["global_batch"],
        recipe=row["recipe"],
        kernels="korthikanti" if row["attention"] == UNFUSED else "fused",
        causal=row["causal"],
        sequence_parallel=row["sequence_parallel"],
        dropout=False,
        tables_as_layers=row.get("tables_as_layers", False),
        expert_tp=1,
        dispatch_bytes=2,
        dispatches_once=row.get("dispatches_once", False),
        vocab_multiple=128 if row["recipe"] == "megatron" else None,
    )


def _gpt(row: Mapping[str, Any]) -> Model:
    """A GPT with a feed-forward block four times as wide, one table for both ends, and norms in front."""
    num_layers, hidden, heads = row["shape"]
    attention = Attention(
        num_heads=heads,
        num_kv_heads=heads,
        head_dim=hidden // heads,
        qkv_bias=row["bias"],
        output_bias=row["bias"],
    )
    mlp = DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu", bias=row["bias"])
    layer = Layer(attention=attention, mlp=mlp, norm="layernorm", num_norms=2)
    return Model(
        name=f"GPT of {num_layers} layers, {hidden:,} wide",
        hidden=hidden,
        vocab=row["vocab"],
        groups=((layer, num_layers),),
        tied_head=True,
        max_context=row["sequence"],
        learned_positions=row["sequence"],
    )


def _cluster(row: Mapping[str, Any]) -> Cluster:
    part, assumed = hardware.part(row["part"]), assumptions()
    peak = part.peak_flops_per_s(PEAKS.get(row["format"], row["format"]))
    wide = part[BEST["bf16"]] if BEST["bf16"] in part.facts else part.peak_flops_per_s("bf16")
    best = BEST.get(row["format"], "")
    return Cluster(
        num_gpus=row["num_gpus"],
        domain_gpus=row["domain_gpus"],
        peak_flops_per_s=peak,
        gemm_flops_per_s=part[best] if best in part.facts else peak,
        attention_flops_per_s=wide,
        memory_bytes_per_s=part["memory_bytes_per_s"],
        usable_bytes=part.capacity_bytes(),
        fast_bytes_per_s_one_way=part["link_bytes_per_s_one_way"],
        slow_bytes_per_s_one_way=row["network_bytes_per_s"],
        link_efficiency=assumed["link_efficiency"].value,
        alpha_s=assumed["alpha_s"].value,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A row beside what was expected of it, and what the planner says at best rates."""

    row: PublishedStep
    expected: ExpectedStep
    planned_s: float

    @property
    def error(self) -> float:
        """Expected tokens per second over the run's, less 1: above 0 where the run was slower."""
        return self.row.measured_s / self.expected.total_s - 1

    @property
    def planned_error(self) -> float:
        """The same of the planner, at best rates."""
        return self.row.measured_s / self.planned_s - 1


@functools.cache
def judged_steps() -> tuple[Judged, ...]:
    """Every row that is a test of a prediction and that can be predicted."""
    return tuple(_judged(row) for row in published_steps() if not not_judged_because(row))


def not_judged_because(row: PublishedStep) -> str:
    """Why a row is not judged: it says something else; empty where it is."""
    return row.apart


def _judged(row: PublishedStep) -> Judged:
    return Judged(
        row=row,
        expected=expected_step(
            row.layout, job=row.job, cluster=row.cluster, part=row.part, format=row.format, software=row.software
        ),
        planned_s=layout_step(row.layout, job=row.job, cluster=row.cluster).total_s,
    )


def one_a_configuration(judged: Sequence[Judged], error: Callable[[Judged], float]) -> list[float]:
    """One error for each configuration that was measured in several releases: the mean of theirs."""
    return [fmean(map(error, same)) for same in _configurations(judged)]


def release_spread() -> list[float]:
    """Of each configuration that several releases of one software ran: the slowest step over the fastest, which no
    prediction can know that does not know the release.
    """
    same = _configurations(judged_steps())
    took_s = [[one.row.measured_s for one in rows] for rows in same if len({one.row.release for one in rows}) > 1]
    return [max(some) / min(some) for some in took_s]


def _configurations(judged: Sequence[Judged]) -> list[list[Judged]]:
    """Rows of equal publisher, model, part, format, length, batch and layout."""
    same: dict[tuple[object, ...], list[Judged]] = {}
    for one in judged:
        row = one.row
        key = (row.publisher, row.model.name, row.part, row.format, row.job.sequence, row.job.global_batch, row.layout)
        same.setdefault(key, []).append(one)
    return list(same.values())


def error_without(judged: Sequence[Judged]) -> dict[str, float]:
    """What each cause is worth: the median error, with its sign, of all configurations if the cause is left out or,
    where there is a best rate, priced at that; under "nothing" what it is with all of them.
    """
    causes = judged[0].expected.parts
    return {"nothing": _median_without(judged, "")} | {cause: _median_without(judged, cause) for cause in causes}


def _median_without(judged: Sequence[Judged], cause: str) -> float:
    def error(one: Judged) -> float:
        left_out = one.expected.parts.get(cause, 0.0) - one.expected.at_best.get(cause, 0.0)
        return one.row.measured_s / (one.expected.total_s - left_out) - 1

    return median(one_a_configuration(judged, error))
