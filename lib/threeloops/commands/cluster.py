"""From flags to a training job and the machines it runs on: what `threeloops plan` and `threeloops step` share."""

import argparse
import re
from dataclasses import dataclass

from threeloops import checks, dtypes, spelling
from threeloops.commands.named import model_named, part_named, rate_named
from threeloops.commands.typed import whole
from threeloops.commands.working import Line, plain, share_of_memory
from threeloops.facts import hardware
from threeloops.facts.hardware import Part
from threeloops.models.model_flops import training_flops
from threeloops.models.parameters import model_parameters
from threeloops.training_loop.parallelism.layout_rules import Rules
from threeloops.training_loop.parallelism.layouts import Cluster, Job
from threeloops.training_loop.parallelism.planner import Planned
from threeloops.training_loop.parallelism.published_layouts import assumptions
from threeloops.training_loop.parallelism.step_time import mfu_of_tokens, training_s
from threeloops.training_loop.run.cost import dollars
from threeloops.units import counted, fmt, fmt_percent

FORMATS = ("bf16", "fp16", "fp8", "nvfp4")  # what the layers' products are computed in
MEASURED = {"bf16": "best_gemm_flops_per_s_bf16", "fp8": "best_gemm_flops_per_s_fp8"}
MOST_GPUS = 131_072
RULES = Rules(tensor_leaves_domain=False, uneven_stages=True)
SOURCES = (
    "Narayanan et al., 2021, arXiv:2104.04473, sections 2 and 3 (what a layout costs, and who sends what)",
    "Korthikanti et al., 2022, arXiv:2205.05198 (activations, sequence parallelism, selective recompute)",
    "Rajbhandari et al., 2019, arXiv:1910.02054 (ZeRO stages); OpenXLA's table of measured matmuls (rates by shape)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A job and a cluster, with what is said of them."""

    job: Job
    cluster: Cluster
    part: Part
    format: str  # of the layers' products
    attention: str | None  # the kernel of expected times, where one was named
    inputs: dict[str, str]
    flops_per_token: float  # of the model, forward and backward, nothing computed twice
    training_tokens: float | None
    dollars_per_gpu_hour: float | None

    def mfu(self, plan: Planned) -> float:
        """Model FLOPs utilisation of a layout."""
        return mfu_of_tokens(
            flops_per_token=self.flops_per_token,
            tokens_per_gpu_s=plan.tokens_per_gpu_s,
            peak_flops_per_s=self.cluster.peak_flops_per_s,
        )

    def training_s(self, plan: Planned) -> float | None:
        """Seconds until all tokens are through; None where nobody said how many."""
        if self.training_tokens is None:
            return None
        return training_s(
            tokens=self.training_tokens, tokens_per_gpu_s=plan.tokens_per_gpu_s, num_gpus=self.cluster.num_gpus
        )

    def dollars(self, plan: Planned) -> float | None:
        """What that costs; None where nobody said how many tokens, or what an hour costs."""
        seconds = self.training_s(plan)
        if seconds is None or self.dollars_per_gpu_hour is None:
            return None
        return dollars(gpu_s=seconds * self.cluster.num_gpus, dollars_per_gpu_hour=self.dollars_per_gpu_hour)


def asked(given: argparse.Namespace, *, num_gpus: int) -> Asked:
    """The job and the cluster that the flags describe."""
    checks.count(gpus=num_gpus, sequence=given.sequence, batch=given.batch)
    if num_gpus > MOST_GPUS:
        raise ValueError(f"--gpus {num_gpus:,} is more than is searched here; give {MOST_GPUS:,} at most")
    if given.tokens is not None:
        checks.positive(tokens=given.tokens)
    if given.price is not None:
        checks.positive(price=given.price)
        if given.tokens is None:
            raise ValueError("--price gives dollars for a whole run; say with --tokens how long that is, like 15T")
    part = part_named("hardware", given.hardware, given.catalog)
    if part.engines:
        raise ValueError(f"--hardware {part.key}: a system on a chip is not planned for; give a card like h100-sxm5")
    form = spelling.key_of({name: dtypes.SPELLINGS.get(name, ()) for name in FORMATS}, dtype=given.dtype)
    job = _job(given, form)
    cluster, said = _cluster(given, part, form, num_gpus)
    model = job.model
    # before any search: a model whose training is not counted is refused here
    flops = training_flops(model, batch=1, sequence=job.sequence, causal=job.causal, recompute="none")
    made_for = f"; {model.name} was made for {model.max_context:,} at most" if job.sequence > model.max_context else ""
    inputs = {
        "model": f"{model.name}, {fmt(model_parameters(model).total, '')} parameters",
        "cluster": f"{counted(num_gpus, 'GPU')}, {part.name}",
        **said,
        "step": f"{job.global_batch:,} sequences of {job.sequence:,} tokens: {fmt(job.tokens, '')} tokens{made_for}",
        "recipe": f"{given.recipe}, kernels {given.kernels}",
        "training": f"{plain(given.tokens)} tokens" if given.tokens else "no --tokens given, so no days and no dollars",
    }
    if given.tokens:
        inputs["price"] = f"${given.price:,g} for an hour of one GPU" if given.price else "no --price given: no dollars"
    return Asked(
        job=job,
        cluster=cluster,
        part=part,
        format=form,
        attention=given.attention,
        inputs=inputs,
        flops_per_token=flops.model / flops.tokens,
        training_tokens=given.tokens,
        dollars_per_gpu_hour=given.price,
    )


def _job(given: argparse.Namespace, form: str) -> Job:
    return Job(
        model=model_named(given.model, given.catalog),
        sequence=given.sequence,
        global_batch=given.batch,
        recipe=given.recipe,
        kernels=given.kernels,
        causal="exact",
        sequence_parallel=True,
        dropout=False,
        tables_as_layers=False,
        expert_tp=1,
        dispatch_bytes=1 if form == "fp8" else 2,
        vocab_multiple=128,
    )


def _cluster(given: argparse.Namespace, part: Part, form: str, num_gpus: int) -> tuple[Cluster, dict[str, str]]:
    """The cluster, and in words what was taken for it."""
    assumed = assumptions()
    rates = {name: _reached(part, name, given.reach) for name in (form, _attention_format(form))}
    domain, fast = _node(given, part, num_gpus)
    slow = fast
    if num_gpus > domain:
        if not given.network:
            raise ValueError(
                f"{num_gpus:,} GPUs are more than the {domain} of a node: say with --network what joins the nodes, each"
                " GPU's share of it, for example --network infiniband-ndr or --network 50GB/s"
            )
        slow = rate_named("network", given.network, given.catalog)
    cluster = Cluster(
        num_gpus=num_gpus,
        domain_gpus=domain,
        peak_flops_per_s=part.peak_flops_per_s(dtypes.peak_format(form)),
        gemm_flops_per_s=rates[form],
        attention_flops_per_s=rates[_attention_format(form)],
        memory_bytes_per_s=part["memory_bytes_per_s"],
        usable_bytes=part.capacity_bytes() * share_of_memory(given.share),
        fast_bytes_per_s_one_way=fast,
        slow_bytes_per_s_one_way=slow,
        link_efficiency=assumed["link_efficiency"].value,
        alpha_s=assumed["alpha_s"].value,
        rates_by_shape=True,
    )
    of_peak = fmt_percent(rates[form] / cluster.peak_flops_per_s)
    how = "given" if given.reach else "measured"
    reached = f"one way; collectives reach {fmt_percent(cluster.link_efficiency)} of that"
    out = f"; {fmt(slow, 'B/s')} out of it" if num_gpus > domain else ""
    links = f"{domain} GPUs a node, {fmt(fast, 'B/s')} each{out}, {reached}" if num_gpus > 1 else "none: one GPU"
    return cluster, {
        "matmuls": f"{form}, {of_peak} of the dense peak of {fmt(cluster.peak_flops_per_s, 'FLOP/s')} ({how})",
        "links": links,
        "memory": f"{fmt(cluster.usable_bytes, 'B', binary=True)} to use",
    }


def _attention_format(form: str) -> str:
    return "bf16" if form in ("fp8", "nvfp4") else form


def _node(given: argparse.Namespace, part: Part, num_gpus: int) -> tuple[int, float]:
    """How many GPUs fast links join, and one GPU's rate on them."""
    node = None
    if not re.fullmatch(r"-?[\d,]+", given.node):
        node = hardware.part(hardware.part_key(given.node, kind="node", overlay=given.catalog), overlay=given.catalog)
        if "domain_gpus" not in node.facts:
            raise ValueError(f"--node {given.node}: that joins no GPUs; give a number, or a name like dgx-h100")
    domain = int(node["domain_gpus"]) if node else whole(given.node)
    checks.count(node=domain)
    if given.link:
        return domain, rate_named("link", given.link, given.catalog)
    if node:
        return domain, node["bytes_per_s_one_way"]
    if "link_bytes_per_s_one_way" in part.facts:
        return domain, part["link_bytes_per_s_one_way"]
    if min(num_gpus, domain) == 1:
        return domain, part["memory_bytes_per_s"]  # nobody sends anything inside a node of one
    raise ValueError(
        f"the catalogue knows no link between cards for {part.key}: say with --link what joins them inside a node, for"
        " example --link pcie-4-x16, or --node 1 if nothing does"
    )


def _reached(part: Part, form: str, reach: float | None) -> float:
    """What the best matmuls reach: as measured, or the share that was given."""
    peak = part.peak_flops_per_s(dtypes.peak_format(form))
    if reach is not None:
        checks.positive(reach=reach)
        checks.fraction(reach=reach)
        return peak * reach
    if MEASURED.get(form) in part.facts:
        return part[MEASURED[form]]
    h100 = hardware.part("h100-sxm5")
    known = fmt_percent(h100[MEASURED["bf16"]] / h100.peak_flops_per_s("bf16"))
    raise ValueError(
        f"nobody measured for the catalogue what {form} matmuls reach on {part.key}: give a share of its dense peak,"
        f" for example --reach 0.75 (an h100-sxm5 reaches {known} in bf16)"
    )


def throughput_lines(wanted: Asked, plan: Planned) -> list[Line]:
    """From a step to tokens a second, the share of the peak, days and dollars."""
    job, gpus, step_s = wanted.job, wanted.cluster.num_gpus, plan.step.total_s
    rate = job.tokens / step_s
    lines = [
        Line(
            name="tokens per second",
            formula="sequences × tokens / step",
            numbers=f"{job.global_batch} × {plain(job.sequence)} / {plain(step_s)}",
            value=rate,
            unit="token/s",
        ),
        Line(
            name="MFU",
            formula="model FLOPs per token × tokens per second / (GPUs × dense peak)",
            numbers=(
                f"{plain(wanted.flops_per_token)} × {plain(rate)} / ({plain(gpus)} ×"
                f" {plain(wanted.cluster.peak_flops_per_s)})"
            ),
            value=wanted.mfu(plan),
            unit="",
        ),
    ]
    seconds, money = wanted.training_s(plan), wanted.dollars(plan)
    if seconds is not None:
        numbers = f"{plain(wanted.training_tokens or 0)} / {plain(rate)}"
        lines.append(Line(name="training", formula="tokens / rate", numbers=numbers, value=seconds, unit="s"))
    if seconds is not None and money is not None:
        numbers = f"{plain(gpus)} × {plain(seconds)} / 3600 × {wanted.dollars_per_gpu_hour}"
        lines.append(Line(name="dollars", formula="GPUs × hours × price", numbers=numbers, value=money, unit=""))
    return lines
