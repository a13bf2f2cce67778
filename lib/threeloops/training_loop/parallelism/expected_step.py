"""Expected step: what a training step takes by measured kernels, cause by cause, beside layout_step's at best rates.

Nothing in it is fitted to a training run: products, attention and collectives come from tables of single kernels, the
clock under load and the rate of memory from one recorded card, everything else from bytes. How far it is from steps
that others published says `published_steps`.

Source: operations/expected_times.py, operations/attention_kernels.py and network/measured_collectives.py (kernels);
        the modules that count each part (layout_step)
"""

from dataclasses import dataclass

from threeloops.facts import hardware
from threeloops.facts.kernel_times import kernel_table
from threeloops.models.recurrent_layers import DeltaState, StateSpace
from threeloops.operations.expected_times import scan_timed_on
from threeloops.operations.recorded_rates import copy_share
from threeloops.training_loop.memory.fit import held_buckets
from threeloops.training_loop.memory.rank_states import rank_buckets
from threeloops.training_loop.network.measured_collectives import expected_collective
from threeloops.training_loop.parallelism import layouts, pipelines
from threeloops.training_loop.parallelism.expected_passes import (
    Pass,
    copied_bytes_per_s,
    head_pass,
    layer_pass,
    scan_family,
)
from threeloops.training_loop.parallelism.group_traffic import blocks_share, group_traffic
from threeloops.training_loop.parallelism.layout_step import (
    exchanged_s,
    optimiser_s,
    uncovered_hops_s,
)
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.published_layouts import assumptions
from threeloops.training_loop.parallelism.software import Software

# Another card of the same chip, whose tables stand in.
CARRIED = {"a100-sxm4-40gb": "a100-sxm4-80gb"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStep:
    """One step of the slowest rank, in seconds by cause. The parts add up to the step."""

    parts: dict[str, float]
    # what the same causes would take at the best rates anybody reached, where they have one
    at_best: dict[str, float]
    carried: tuple[str, ...]  # what was not timed on this part, and on which it was

    @property
    def total_s(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """The slowest stage: so many layers, with heads or without."""

    layers: int
    heads: int
    layer: Pass
    head: Pass

    def of(self, cause: str) -> float:
        """Seconds of one micro-batch, both passes."""
        layer, head = sum(getattr(self.layer, cause)), sum(getattr(self.head, cause))
        return float(self.layers * layer + self.heads * head)

    @property
    def forward_s(self) -> float:
        return self.layers * self.layer.forward_s + self.heads * self.head.forward_s

    @property
    def backward_s(self) -> float:
        return self.layers * self.layer.backward_s + self.heads * self.head.backward_s


def expected_step(
    layout: Layout, *, job: Job, cluster: Cluster, part: str, format: str, software: Software
) -> ExpectedStep:
    """The step of a legal layout by measured kernels.

    Formula:  for each micro-batch: products at their real shapes (forward, and both gradients), attention by its
              kernel, scans of recurrent layers by theirs, everything else by its bytes at the rate of a recorded copy,
              head and loss on the last stage, gradients added up; exchanges of tensor groups as measured, those of
              other groups by their bytes, of experts beside the passes of another micro-batch where the software does
              that; modules that the software runs again, by their forward pass; + bubble, what sticks out of the
              data-parallel exchange, optimiser. Products under load take longer by what a recorded card lost in six
              seconds of them
    Assumes:  the slowest stage has the most layers, or is the last, with the head in 16 bits; experts get equal shares
              of the tokens, and theirs are one product with all their rows, whose weights are all read; while an
              exchange runs, the rest has fewer SMs (nothing is charged where the catalogue knows no SMs); no launch is
              waited for, and no rank is late
    Raises:   ValueError for a part, format or kernel that was not measured, for a scan of fewer heads than were
              timed
    Counted:  tests.training_loop.test_expected_step.test_bytes_are_counted_by_hand
    Measured: tests.training_loop.test_expected_step.test_our_own_recorded_step_takes_longer_and_a_compiled_one_less_so
    """
    timed = CARRIED.get(part, part)
    stage = _slowest_stage(
        layout,
        job,
        layer=layer_pass(layout, job, cluster, timed, format, software),
        head=head_pass(layout, job, cluster, timed, software),
        heads=1 + software.more_heads,
    )
    m = layouts.micro_batches(layout, job=job)
    again_s = {
        "selective": stage.layers * stage.layer.attention_s[0],
        "full": stage.layers * stage.layer.forward_s,
    }.get(layout.recompute, stage.layers * stage.layer.again_s)
    sent = group_traffic(layout, job=job, cluster=cluster, num_layers=layouts.stage_layers(layout, job=job))
    tensor_s = _tensor_s(layout, job, timed, software, otherwise=sent.tensor_s)
    backward_s = stage.backward_s + again_s
    sent_again = 3 / 2 if "moe" in software.recomputes else 1  # dispatch and combine once more, of two passes
    expert_s, beside_s = _expert_s(sent_again * sent.expert_s, m, stage.forward_s + backward_s, software)
    exposed_s = tensor_s + sent.context_s + expert_s
    data_s, hidden_s = exchanged_s(layout, sent, micro_batches=m, forward_s=stage.forward_s, backward_s=backward_s)
    loss_s = stage.heads * sum(stage.head.vector_s)
    parts = {
        "matmuls": m * stage.of("products_s"),
        "clock under load": m * stage.of("load_s"),
        "attention": m * stage.of("attention_s"),
        "scans": m * stage.of("scan_s"),
        "vector work": m * (stage.of("vector_s") - loss_s),
        "loss": m * loss_s,
        "recomputation": m * again_s,
        "gradients added up": m * _added_up_bytes(layout, job, software) / copied_bytes_per_s(cluster),
        "tensor-parallel exchanges": m * tensor_s,
        "context-parallel exchanges": m * sent.context_s,
        "expert exchanges": m * expert_s,
        "hops between stages": m * uncovered_hops_s(layout, sent.hop_s),
        "pipeline bubble": _bubble_s(layout, m, stage, backward_s, exposed_s),
        "exchange of gradients and weights": data_s,
        "fewer SMs beside it": (hidden_s + m * beside_s) * _sms_of_exchange(part),
        "optimiser": optimiser_s(layout, job, cluster) / copy_share(),
    }
    at_best = {
        "matmuls": m * (stage.layers * stage.layer.best_products_s + stage.heads * stage.head.best_products_s),
        "attention": m * stage.layers * stage.layer.best_attention_s,
        "scans": m * stage.layers * stage.layer.best_scan_s,
    }
    return ExpectedStep(parts=parts, at_best=at_best, carried=_carried(job, part, timed))


def _carried(job: Job, part: str, timed: str) -> tuple[str, ...]:
    """What another part's rows stand in for."""
    states = [layer.attention for layer, _ in job.model.groups if isinstance(layer.attention, DeltaState | StateSpace)]
    scans = {scan_timed_on(timed, family=scan_family(state)) for state in states} - {timed}
    whole = (f"kernels of {timed} for {part}",) if timed != part else ()
    return (*whole, *(f"scans at the share of their roof that {one} reached" for one in sorted(scans)))


def _slowest_stage(layout: Layout, job: Job, *, layer: Pass, head: Pass, heads: int) -> _Stage:
    most, last = layouts.stage_layers(layout, job=job), layouts.last_layers(layout, job=job)
    plain = _Stage(layers=most, heads=0, layer=layer, head=head)
    ending = _Stage(layers=last, heads=heads, layer=layer, head=head)
    return max(plain, ending, key=lambda stage: stage.forward_s + stage.backward_s)


def _added_up_bytes(layout: Layout, job: Job, software: Software) -> float:
    """Bytes moved to add a micro-batch's gradients to those before it, on the first stage."""
    held = held_buckets(layouts.training(layout, job=job, zero_stage=0), stage=0)
    mine = rank_buckets(held, tp=layout.tp, pp=1, ep=layout.ep, expert_tp=job.expert_tp)
    return software.gradient_bytes_moved * mine.total


def _tensor_s(layout: Layout, job: Job, part: str, software: Software, *, otherwise: float) -> float:
    """Exchanges of a tensor group for one micro-batch, as measured inside a node; else by their bytes.

    Formula:  one for each sub-block and pass (three passes with full recompute), and the gathered input once more;
              piece by piece beside its product, the first of tp pieces is waited for
    """
    table = kernel_table(part, "all_gather", "bf16")
    seconds = otherwise
    if layout.tp > 1 and layout.tp in table.axes["ranks"]:
        size = layout.micro_batch * job.sequence / layout.cp * job.model.hidden * job.bytes_per_element
        took = {
            op: expected_collective(part, op=op, ranks=layout.tp, size_bytes=size).seconds
            for op in ("all_gather", "reduce_scatter", "all_reduce")
        }
        halves = took["all_gather"] + took["reduce_scatter"]
        passes = 3 if layout.recompute == "full" else 2
        each = (
            halves * 2 * passes + 2 * took["all_gather"] if job.sequence_parallel else took["all_reduce"] * 2 * passes
        )
        seconds = layouts.stage_layers(layout, job=job) * blocks_share(job.model) * each
    return seconds / layout.tp if software.overlaps_tensor else seconds


def _expert_s(sent_s: float, m: int, passes_s: float, software: Software) -> tuple[float, float]:
    """Of a micro-batch's expert exchanges, seconds that are waited for, and those beside the passes of another."""
    beside_s = min(sent_s, passes_s) * (m - 1) / m if software.overlaps_experts else 0.0
    return sent_s - beside_s, beside_s


def _bubble_s(layout: Layout, m: int, stage: _Stage, backward_s: float, exposed_s: float) -> float:
    weights_s = stage.layers * stage.layer.products_s[2]
    idle = pipelines.bubble(
        schedule=layout.schedule,
        pp=layout.pp,
        micro_batches=m,
        forward_s=stage.forward_s + exposed_s / 3,
        input_gradient_s=backward_s - weights_s + exposed_s * 2 / 3,
        weight_gradient_s=weights_s,
        chunks=layout.chunks,
        overlapped_s=stage.forward_s + backward_s + exposed_s if layout.schedule == "dualpipe" else None,
    )
    return idle.idle_s


def _sms_of_exchange(part: str) -> float:
    """The share of a GPU's SMs that an exchange takes from what runs beside it."""
    facts = hardware.part(part).facts
    return assumptions()["exchange_sms"].value / facts["sms"].value if "sms" in facts else 0.0
