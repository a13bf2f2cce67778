"""Expected steps: recounted by hand where a layout is simple, one cause at a time where it is not, and against our own
recording of a training step.
"""

from dataclasses import replace

import pytest

from threeloops.facts import hardware
from threeloops.facts.recorded import Measured, find
from threeloops.models import catalogue
from threeloops.models.architecture import Attention, DenseMlp, Layer, Model
from threeloops.models.recurrent_layers import StateSpace
from threeloops.operations.expected_times import expected_product, expected_scan
from threeloops.operations.recorded_rates import copy_share, sustained_share
from threeloops.training_loop.parallelism.expected_step import ExpectedStep, expected_step
from threeloops.training_loop.parallelism.layouts import Cluster, Job, Layout
from threeloops.training_loop.parallelism.software import Software, usual_software

PART = "h100-sxm5"
ONE = Layout(dp=1, tp=1, pp=1, cp=1, ep=1, micro_batch=8, zero_stage=0, recompute="none", schedule="1f1b", chunks=1)
PLAIN = Software(attention="flash-2", loss="plain", gradient_bytes_moved=0, overlaps_tensor=False)


def gpt(*, num_layers: int, hidden: int, heads: int, vocab: int) -> Model:
    attention = Attention(num_heads=heads, num_kv_heads=heads, head_dim=hidden // heads)
    mlp = DenseMlp(intermediate=4 * hidden, gated=False, activation="gelu")
    layer = Layer(attention=attention, mlp=mlp, norm="layernorm", num_norms=2)
    return Model(
        name="a GPT", hidden=hidden, vocab=vocab, groups=((layer, num_layers),), tied_head=True, max_context=1024
    )


RECORDED = gpt(num_layers=24, hidden=1024, heads=16, vocab=50304)  # what `threeloops record` trains


def job(model: Model, *, sequence: int = 1024, global_batch: int = 8) -> Job:
    return Job(
        model=model,
        sequence=sequence,
        global_batch=global_batch,
        recipe="autocast",
        kernels="fused",
        causal="half",
        sequence_parallel=False,
        dropout=False,
        tables_as_layers=False,
        expert_tp=1,
        dispatch_bytes=2,
    )


def cluster(*, num_gpus: int = 1) -> Cluster:
    part = hardware.part(PART)
    best = part["best_gemm_flops_per_s_bf16"]
    return Cluster(
        num_gpus=num_gpus,
        domain_gpus=8,
        peak_flops_per_s=part.peak_flops_per_s("bf16"),
        gemm_flops_per_s=best,
        attention_flops_per_s=best,
        memory_bytes_per_s=part["memory_bytes_per_s"],
        usable_bytes=part.capacity_bytes(),
        fast_bytes_per_s_one_way=450e9,
        slow_bytes_per_s_one_way=50e9,
        link_efficiency=0.8,
        alpha_s=5e-6,
    )


def expected(layout: Layout, wanted: Job, *, software: Software = PLAIN, part: str = PART) -> ExpectedStep:
    return expected_step(
        layout, job=wanted, cluster=cluster(num_gpus=layout.num_gpus), part=part, format="bf16", software=software
    )


def test_products_are_the_sum_of_every_product_of_the_step() -> None:
    """24 layers of queries with keys and values, output, up and down, then the head; each forward and twice backward:
    the same three lengths in other roles.
    """
    rows, shapes = 8192, [(3 * 1024, 1024), (1024, 1024), (4096, 1024), (1024, 4096)]
    took_s = 0.0
    for columns, inner, times in [*((n, k, 24) for n, k in shapes), (50304, 1024, 1)]:
        for m, n, k in ((rows, columns, inner), (rows, inner, columns), (columns, inner, rows)):
            took_s += times * expected_product(PART, m=m, n=n, k=k, format="bf16").seconds
    step = expected(ONE, job(RECORDED))
    assert step.parts["matmuls"] == pytest.approx(took_s)
    assert step.parts["clock under load"] == pytest.approx(took_s * (1 / sustained_share(PART, "bf16") - 1))


def test_bytes_are_counted_by_hand() -> None:
    """A layer moves, in units of tokens × width × 2 bytes: two norms (2 each, 3 back), two sums (3, 3), an activation
    four times as wide (2, 3). Plain cross-entropy moves 36 bytes a logit.
    """
    unit = 8192 * 1024 * 2
    layer = 2 * (2 + 3) + 2 * (3 + 3) + 4 * (2 + 3)
    rate = hardware.part(PART)["memory_bytes_per_s"] * copy_share()
    step = expected(ONE, job(RECORDED))
    rotary = 24 * 2 * (2 + 2) * unit if RECORDED.rotary else 0
    assert step.parts["vector work"] == pytest.approx((24 * layer * unit + rotary) / rate, rel=0.01)
    assert step.parts["loss"] == pytest.approx(36 * 8192 * 50304 / rate)


def test_a_scan_is_counted_by_hand() -> None:
    """Six layers of Mamba 2 among twelve, each alone in its layer: forward once, backward two and a half times."""
    wide, sizes = 4 * 1024, {"num_heads": 64, "head_dim": 64, "state_dim": 128, "groups": 8, "chunk": 128}
    state = StateSpace(**sizes, conv_entries=4, conv_bias=True, bias=False)
    model = gpt(num_layers=6, hidden=1024, heads=16, vocab=50304)
    ((layer, _),) = model.groups
    blocks = [(replace(layer, attention=state, mlp=None, num_norms=1), 6), (replace(layer, attention=None), 6)]
    step = expected(ONE, job(replace(model, groups=tuple(blocks))))
    once_s = expected_scan(PART, family="state_scan", batch=8, tokens=1024, **sizes).seconds
    assert step.parts["scans"] == pytest.approx(6 * 3.5 * once_s)
    assert step.parts["attention"] == 0
    shapes = [(wide + 2 * 8 * 128 + wide + 64, 1024, 6), (1024, wide, 6), (4096, 1024, 6), (1024, 4096, 6)]
    took_s = 0.0
    for columns, inner, times in [*shapes, (50304, 1024, 1)]:
        for m, n, k in ((8192, columns, inner), (8192, inner, columns), (columns, inner, 8192)):
            took_s += times * expected_product(PART, m=m, n=n, k=k, format="bf16").seconds
    assert step.parts["matmuls"] == pytest.approx(took_s)
    assert step.carried == ("scans at the share of their roof that b200-hgx reached",)


def test_bytes_of_gates_and_convolutions_are_counted_by_hand() -> None:
    """A layer moves, in tokens × 2 bytes: a norm of its input (2, 3 back) and a sum (3, 3); Mamba 2's convolution reads
    and writes its channels (2, 3), a norm over all heads and a gate before it (2, 3; 3, 5).
    """
    inner, channels = 4096, 4096 + 2 * 8 * 128
    sizes = {"num_heads": 64, "head_dim": 64, "state_dim": 128, "groups": 8, "chunk": 128}
    state = StateSpace(**sizes, conv_entries=4, conv_bias=True, bias=False)
    model = gpt(num_layers=1, hidden=1024, heads=16, vocab=50304)
    ((layer, _),) = model.groups
    alone = replace(layer, attention=state, mlp=None, num_norms=1)
    step = expected(ONE, job(replace(model, groups=((alone, 1),))))
    moved = 8192 * 2 * (1024 * (2 + 3 + 3 + 3) + channels * (2 + 3) + inner * (2 + 3 + 3 + 5))
    rate = hardware.part(PART)["memory_bytes_per_s"] * copy_share()
    assert step.parts["vector work"] == pytest.approx(moved / rate, rel=0.01)


def test_our_own_recorded_step_takes_longer_and_a_compiled_one_less_so() -> None:
    """Nothing here was fitted to it: what an eager program adds (casts, launches, norms in fp32) is in no part."""
    name = "bf16-layers24-hidden1024-heads16-vocabulary50304-tokens1024-batch8"
    step = expected(ONE, job(RECORDED))
    eager, compiled = (find(f"train_{way}-{name}", PART) for way in ("eager", "compiled"))
    assert isinstance(eager, Measured)
    assert isinstance(compiled, Measured)
    assert step.total_s < compiled.median < eager.median < 1.5 * step.total_s


def test_the_attention_kernel_decides_most_at_long_sequences() -> None:
    long = job(RECORDED, sequence=16_384)
    steps = [
        expected(replace(ONE, micro_batch=1), long, software=replace(PLAIN, attention=kernel)).parts["attention"]
        for kernel in ("cudnn", "flash-2", "triton-2023")
    ]
    assert steps == sorted(steps)
    assert steps[2] > 2.5 * steps[0]


@pytest.mark.parametrize(
    ("layout", "cause"),
    [
        ({"recompute": "full"}, "recomputation"),
        ({"tp": 2}, "tensor-parallel exchanges"),
        ({"pp": 2}, "pipeline bubble"),
        ({"dp": 2, "micro_batch": 4, "zero_stage": 3}, "fewer SMs beside it"),
    ],
)
def test_a_cause_takes_time_where_its_layout_asks_for_it(layout: dict[str, object], cause: str) -> None:
    assert expected(ONE, job(RECORDED)).parts[cause] == 0
    assert expected(replace(ONE, **layout), job(RECORDED)).parts[cause] > 0


def test_exchanges_beside_their_products_are_waited_for_once() -> None:
    llama = job(catalogue.model("llama-3-8b"), sequence=8192)
    split = replace(ONE, tp=4, micro_batch=1)
    waited, beside = (
        expected(split, llama, software=replace(PLAIN, overlaps_tensor=overlaps)).parts["tensor-parallel exchanges"]
        for overlaps in (False, True)
    )
    assert beside == pytest.approx(waited / 4)


def test_expert_exchanges_beside_the_passes_of_another_micro_batch_are_waited_for_once() -> None:
    qwen = job(catalogue.model("qwen3-30b-a3b"), sequence=4096, global_batch=64)
    split = replace(ONE, dp=8, ep=8, micro_batch=2)
    waited, beside = (
        expected(split, qwen, software=replace(PLAIN, overlaps_experts=overlaps)).parts for overlaps in (False, True)
    )
    assert beside["expert exchanges"] == pytest.approx(waited["expert exchanges"] / 4)  # the first of four
    assert 0 < beside["fewer SMs beside it"] - waited["fewer SMs beside it"] < waited["expert exchanges"] / 2


def test_modules_that_run_again_take_their_forward_pass_once_more() -> None:
    """24 layers: two norms move 2 units of tokens x width x 2 bytes each, an activation 4 x 2, two products of the MLP
    at the clock under load.
    """
    step = expected(ONE, job(RECORDED), software=replace(PLAIN, recomputes=("layernorm", "mlp")))
    moved = (2 * 2 + 4 * 2) * 8192 * 1024 * 2
    products_s = sum(
        expected_product(PART, m=8192, n=n, k=k, format="bf16").seconds for n, k in ((4096, 1024), (1024, 4096))
    )
    rate = hardware.part(PART)["memory_bytes_per_s"] * copy_share()
    by_hand_s = 24 * (moved / rate + products_s / sustained_share(PART, "bf16"))
    assert step.parts["recomputation"] == pytest.approx(by_hand_s, rel=0.01)
    core = expected(ONE, job(RECORDED), software=replace(PLAIN, recomputes=("core_attn",)))
    selective = expected(replace(ONE, recompute="selective"), job(RECORDED))
    assert core.parts["recomputation"] == pytest.approx(selective.parts["recomputation"])


def test_experts_that_run_again_send_their_tokens_again() -> None:
    """Dispatch and combine twice forward and once backward, where it was once each."""
    qwen = job(catalogue.model("qwen3-30b-a3b"), sequence=4096, global_batch=64)
    split = replace(ONE, dp=8, ep=8, micro_batch=2)
    once, again = (expected(split, qwen, software=replace(PLAIN, recomputes=some)).parts for some in ((), ("moe",)))
    assert again["expert exchanges"] == pytest.approx(3 / 2 * once["expert exchanges"])
    every = expected(replace(split, recompute="full"), qwen).parts
    assert 0 < again["recomputation"] < every["recomputation"]
    assert every["expert exchanges"] == pytest.approx(again["expert exchanges"])


def test_products_have_the_format_of_their_role_and_wide_layers_have_16_bits() -> None:
    def matmuls_s(software: Software, format: str) -> float:
        step = expected_step(ONE, job=job(RECORDED), cluster=cluster(), part=PART, format=format, software=software)
        return step.parts["matmuls"]

    wide_s, narrow_s = matmuls_s(PLAIN, "bf16"), matmuls_s(PLAIN, "fp8")
    assert narrow_s != wide_s
    roles = replace(PLAIN, formats=(("attention", "bf16"), ("mlp", "bf16")))
    assert matmuls_s(roles, "fp8") == pytest.approx(wide_s)
    assert matmuls_s(replace(PLAIN, wide_layers=24), "fp8") == pytest.approx(wide_s)
    assert matmuls_s(replace(PLAIN, wide_layers=6), "fp8") == pytest.approx(narrow_s + (wide_s - narrow_s) / 4)


def test_a_second_head_multiplies_and_loses_once_more() -> None:
    one, two = (expected(ONE, job(RECORDED), software=replace(PLAIN, more_heads=some)).parts for some in (0, 1))
    shapes = ((8192, 50304, 1024), (8192, 1024, 50304), (50304, 1024, 8192))
    took_s = sum(expected_product(PART, m=m, n=n, k=k, format="bf16").seconds for m, n, k in shapes)
    assert two["matmuls"] - one["matmuls"] == pytest.approx(took_s)
    assert two["loss"] == pytest.approx(2 * one["loss"])


def test_biases_of_experts_pass_over_memory_where_no_kernel_adds_them() -> None:
    """gpt-oss: 36 layers of 8 x 1,024 tokens with 4 experts each, 2,880 wide inside and out: clamps move 16 bytes an
    element forward and 30 backward, biases 12 and 16 with weights of 2 bytes.
    """
    oss = job(catalogue.model("gpt-oss-120b"))
    within, apart = (expected(ONE, oss, software=replace(PLAIN, bias_weight_bytes=some)).parts for some in (0, 2))
    moved = 36 * 8192 * 4 * 2880 * (16 + 30 + 12 + 16)
    rate = hardware.part(PART)["memory_bytes_per_s"] * copy_share()
    assert apart["vector work"] - within["vector work"] == pytest.approx(moved / rate)
    qwen = job(catalogue.model("qwen3-30b-a3b"))  # no biases
    assert expected(ONE, qwen).parts == expected(ONE, qwen, software=replace(PLAIN, bias_weight_bytes=2)).parts


def test_another_card_of_the_same_chip_has_the_same_products() -> None:
    large, small = (
        expected(ONE, job(RECORDED), part=part).parts["matmuls"] for part in ("a100-sxm4-80gb", "a100-sxm4-40gb")
    )
    assert large == small


def test_what_cannot_be_expected_is_refused() -> None:
    with pytest.raises(ValueError, match="part='mi300x'"):
        expected(ONE, job(RECORDED), part="mi300x")
    with pytest.raises(ValueError, match="attention='flash-9'"):
        replace(PLAIN, attention="flash-9")
    with pytest.raises(ValueError, match="recomputes='attn'"):
        replace(PLAIN, recomputes=("attn",))
    with pytest.raises(ValueError, match="formats='experts in'"):
        replace(PLAIN, formats=(("experts in", "bf16"),))
    with pytest.raises(ValueError, match="bias_weight_bytes=3"):
        replace(PLAIN, bias_weight_bytes=3)
    with pytest.raises(ValueError, match="scanned=16: state_scan was measured on b200-hgx for scanned from 64 on"):
        expected(replace(ONE, micro_batch=1, tp=4), job(catalogue.model("nemotron-3-nano-30b-a3b")))
    assert usual_software("a100-sxm4-80gb").attention == "flash-2"
