"""Published layouts: what teams ran, on what, and how fast it was; from catalog/layouts.toml, as the planner's own
types.

>>> row = published("megatron-145b")
>>> row.cluster.num_gpus, row.degrees["pp"], round(row.tokens_per_gpu_s)
(1536, 8, 124)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Any

from threeloops import checks
from threeloops.facts import hardware
from threeloops.facts.fact import Fact, catalogue_files, read_fact
from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.model_flops import training_flops
from threeloops.training_loop.parallelism.layout_rules import Rules, refusal
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.planner import Choices, Planned, planned

_ASSUMED = "assumed"
_FORMATS = {"fp8": "best_gemm_flops_per_s_fp8"}  # other formats: the 16-bit rate


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLayout:
    """One row: everything the planner needs to judge it, and what was measured."""

    key: str
    name: str
    year: int
    job: Job
    cluster: Cluster
    rules: Rules
    degrees: Mapping[str, int]
    open_choices: Choices  # what the publication leaves open, with what it states in lists of one
    choices: Choices  # what its software could do: the planner's own search
    measured: Fact
    tokens_per_gpu_s: float
    note: str


def published_keys() -> tuple[str, ...]:
    """The key of every published layout."""
    rows, _ = _rows()
    return tuple(key for key in rows if key != _ASSUMED)


@lru_cache(maxsize=32)
def published(key: str) -> PublishedLayout:
    """One published layout by its key."""
    rows, sources = _rows()
    checks.one_of([name for name in rows if name != _ASSUMED], layout=key)
    row = rows[key]
    job = _job(row)
    facts = {name: read_fact(fact, sources, where=f"{key}.{name}") for name, fact in row["published"].items()}
    ((kind, measured),) = facts.items()
    context = tuple(row["choices"]["context"])
    return PublishedLayout(
        key=key,
        name=row["name"],
        year=row["year"],
        job=job,
        cluster=_cluster(row["cluster"], assumptions()),
        rules=Rules(tensor_leaves_domain=False, uneven_stages=row["uneven_stages"]),
        degrees=row["degrees"],
        open_choices=_choices(row["published_choices"], (row["degrees"]["cp"],)),
        choices=_choices(row["choices"], context),
        measured=measured,
        tokens_per_gpu_s=(
            1 / measured.value if kind == "gpu_s_per_token" else measured.value / _flops_per_token(row, job)
        ),
        note=row.get("note", ""),
    )


def assumptions() -> dict[str, Fact]:
    """The constants that every row is judged with: one set, fitted to none of them."""
    rows, sources = _rows()
    return {
        name: read_fact(fact, sources, where=f"{_ASSUMED}.{name}") for name, fact in rows[_ASSUMED]["published"].items()
    }


def _rows() -> tuple[dict[str, Mapping[str, Any]], Mapping[str, Any]]:
    for _, content in catalogue_files():
        if "layouts" in content:
            return content["layouts"], content["sources"]
    raise ValueError("the catalogue has no layouts")


def _flops_per_token(row: Mapping[str, Any], job: Job) -> float:
    """What a publication that prints FLOP/s counts for a token: with the recomputation, where its layout has nothing
    but full recompute.
    """
    recompute = "full" if row["published_choices"]["recomputes"] == ["full"] else "none"
    flops = training_flops(job.model, batch=1, sequence=job.sequence, causal=job.causal, recompute=recompute)
    return flops.hardware / flops.tokens


def _job(row: Mapping[str, Any]) -> Job:
    model = catalogue.model(row["model"]) if "model" in row else _gpt(row["name"], row["gpt"])
    return Job(
        model=model, expert_tp=1, **{"dispatch_bytes": 2, "tables_as_layers": False, "dropout": False, **row["job"]}
    )


def _gpt(name: str, shape: Mapping[str, int]) -> Model:
    """A GPT with the proportions of GPT-2 and 3: heads that fill the width, a feed-forward block four times as wide,
    one table for both ends.
    """
    heads, hidden = shape["num_heads"], shape["hidden"]
    layer = Layer(
        attention=Attention(
            num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads, qkv_bias=True, output_bias=True
        ),
        mlp=DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu", bias=True),
        norm="layernorm",
        num_norms=2,
    )
    groups = ((layer, shape["num_layers"]),)
    return Model(
        name=name,
        hidden=hidden,
        vocab=shape["vocab"],
        groups=groups,
        tied_head=True,
        max_context=shape["sequence"],
        learned_positions=shape["sequence"],
    )


def _cluster(row: Mapping[str, Any], assumed: Mapping[str, Fact]) -> Cluster:
    part, domain, network = (hardware.part(row[name]) for name in ("part", "domain", "network"))
    return Cluster(
        num_gpus=row["gpus"],
        domain_gpus=int(domain["domain_gpus"]),
        peak_flops_per_s=part.peak_flops_per_s(row["format"]),
        gemm_flops_per_s=part[_FORMATS.get(row["format"], "best_gemm_flops_per_s_bf16")],
        attention_flops_per_s=part["best_gemm_flops_per_s_bf16"],
        memory_bytes_per_s=part["memory_bytes_per_s"],
        usable_bytes=part.capacity_bytes(),
        fast_bytes_per_s_one_way=row.get("fast_bytes_per_s_one_way", domain["bytes_per_s_one_way"]),
        slow_bytes_per_s_one_way=network["bytes_per_s_one_way"] / row.get("gpus_per_card", 1),
        link_efficiency=assumed["link_efficiency"].value,
        alpha_s=assumed["alpha_s"].value,
    )


def _choices(row: Mapping[str, Any], context: tuple[int, ...]) -> Choices:
    return Choices(
        micro_batches=tuple(row["micro_batches"]),
        zero_stages=tuple(row["zero_stages"]),
        recomputes=tuple(row["recomputes"]),
        schedules=tuple((schedule, chunks) for schedule, chunks in row["schedules"]),
        context=context,
    )


def stated_layouts(row: PublishedLayout) -> list[Layout]:
    """Every layout that a publication may mean: its degrees, with what it leaves open tried in all ways."""
    open_choices = row.open_choices
    return [
        Layout(**row.degrees, micro_batch=size, zero_stage=stage, recompute=recompute, schedule=schedule, chunks=chunks)
        for size, stage, recompute in product(
            open_choices.micro_batches, open_choices.zero_stages, open_choices.recomputes
        )
        for schedule, chunks in open_choices.schedules
    ]


def planned_as_published(row: PublishedLayout) -> Planned:
    """The planner's view of a published layout: the fastest of its readings.

    Raises:   ValueError with the first reason if there is none
    """
    return planned_readings(row)[0]


def planned_readings(row: PublishedLayout) -> tuple[Planned, ...]:
    """The planner's view of every reading of a published layout, of stated_layouts those that are legal and fit;
    fastest first.

    Raises:   ValueError with the first reason if there is none
    """
    refusals = {
        layout: refusal(layout, job=row.job, cluster=row.cluster, rules=row.rules) for layout in stated_layouts(row)
    }
    legal = [planned(layout, job=row.job, cluster=row.cluster) for layout, why in refusals.items() if why is None]
    fitting = [plan for plan in legal if plan.fits]
    if not fitting:
        first = next((why.sentence for why in refusals.values() if why), "it does not fit in memory")
        raise ValueError(f"{row.key}: {first}")
    return tuple(sorted(fitting, key=lambda plan: -plan.tokens_per_gpu_s))
