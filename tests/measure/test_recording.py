"""The recorder on this machine's CPU: every case is measured or refused by name, and what is timed does the work that
is predicted.
"""

import pytest
import torch

from threeloops.cli import main
from threeloops.commands import record
from threeloops.facts import recorded
from threeloops.facts.hardware import part_keys
from threeloops.facts.recorded_cases import DEVICES, KINDS, SAMPLED, Case
from threeloops.facts.recorded_suite import suite
from threeloops.inner_loop.prediction_error import rows
from threeloops.measure import recorded_kernels, recorded_threads, recording
from threeloops.measure.inner_loop.flops import counted_flops
from threeloops.models import transformer
from threeloops.models.forward_step import ForwardStep
from threeloops.models.recorded_work import decode_layer, train_flops

DECODE = Case(
    kind="decode_eager",
    dtype="fp32",
    sizes={
        "layers": 3,
        "hidden": 96,
        "heads": 6,
        "kv_heads": 2,
        "head_dim": 16,
        "intermediate": 80,
        "batch": 2,
        "context": 40,
    },
)


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A quick recording by the command, as a reader makes it."""
    folder, threads = tmp_path_factory.mktemp("recorded"), torch.get_num_threads()
    torch.set_num_threads(1)  # two that wait for each other take many times as long beside another test
    assert main(["record", "--quick", "--device", "cpu", "--note", "in a test", "--into", str(folder)]) == 0
    torch.set_num_threads(threads)
    (path,) = folder.iterdir()
    return path


def test_the_command_writes_one_file_that_reads_back(quick):
    made = recorded.read(quick)
    assert quick.name.endswith(f"{made.stamp.measured}-quick.json")
    assert made.stamp.device == "cpu"
    assert made.stamp.note == "in a test"
    assert f"torch {torch.__version__}" in made.stamp.software
    assert {case.name for case in made.cases} == {case.name for case in suite(device="cpu", quick=True)}
    assert {*made.measured, *made.skipped} == {case.name for case in made.cases}
    assert all(one.n == 5 for one in made.measured.values() if one.case.kind not in SAMPLED)
    assert {one.n for one in made.measured.values() if one.case.kind in SAMPLED} == {6}  # requests
    assert rows(made, origin="measured")


def test_what_a_cpu_does_not_run_is_skipped_with_its_reason(quick):
    made = recorded.read(quick)
    reasons = {case.kind: made.skipped[case.name] for case in made.cases if case.name in made.skipped}
    ladder = {"ladder_naive", "ladder_tiled", "ladder_registers"}
    cudnn = {"attention_cudnn", "attention_cudnn_backward"}
    graphs = {"launch_graph", "gemm_graph", "decode_graph"}
    compiled = {"layernorm_compiled", "decode_compiled", "train_compiled"}
    products = {"gemm", "gemm_long", "gemm_int4", "tiled_gemm", "reread", "saxpy"}
    threads = {"chase", "inflight", "strided", "banks", "paths"}
    copies = {f"copy_{way}_gpu{memory}" for way in ("to", "from") for memory in ("", "_pageable")}
    assert set(reasons) == {"train_peak"} | products | ladder | cudnn | graphs | compiled | threads | copies
    assert "Triton needs a GPU" in reasons["saxpy"]
    said = {made.skipped[case.name] for case in made.cases if case.name in made.skipped and case.kind == "gemm"}
    assert said == {
        "TF32 is a format of GPUs' tensor cores",
        "torch multiplies 8-bit numbers on a CPU by a reference loop, which says nothing about the machine",
    }
    assert reasons["decode_compiled"] == "left out of a quick recording"


def test_no_recorded_product_beats_physics(quick):
    for one in recorded.read(quick).measured.values():
        if one.case.kind == "gemm":
            m, n, k = (one.case.sizes[size] for size in "mnk")
            assert 1e6 < 2 * m * n * k / one.median < 200e12


def test_no_copy_within_a_working_set_beats_physics(quick):
    (one,) = [one for one in recorded.read(quick).measured.values() if one.case.kind == "recopy"]
    assert one.case.sizes["moved_bytes"] == 4 * one.case.sizes["bytes"]
    assert 1e7 < one.case.sizes["moved_bytes"] / one.median < 1e12


def test_a_case_that_fails_is_skipped_and_the_others_go_on(monkeypatch):
    def broken(case, device):
        raise RuntimeError("/home/somebody/secret")

    monkeypatch.setitem(recorded_kernels.BUILDERS, "copy", broken)
    copy, launch = (
        Case(kind="copy", dtype="fp32", sizes={"bytes": 64}),
        Case(kind="launch", dtype="fp32", sizes={"operations": 3}),
    )
    made = recording.recorded([copy, launch], device="cpu", repeats=2)
    assert made.skipped == {copy.name: "it ended in RuntimeError"}  # no path of anybody's machine
    assert list(made.measured) == [launch.name]


def test_a_run_that_is_stopped_has_lost_nothing():
    cases = [Case(kind="launch", dtype="fp32", sizes={"operations": count}) for count in (1, 2, 3)]
    kept = []

    def stop_after_two(made):
        kept.append(made)
        if len(kept) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recording.recorded(cases, device="cpu", repeats=2, keep=stop_after_two)
    again = recorded.parsed(recorded.as_text(kept[-1]), where="what was kept")
    assert list(again.measured) == [case.name for case in cases[:2]]


def test_every_kind_can_be_built():
    assert set(recorded_kernels.BUILDERS) == set(KINDS)


def test_the_decode_step_that_is_timed_does_the_predicted_flops():
    step = ForwardStep(
        phase="decode", batch=2, sequence=40, causal="full", fused_attention=True, logits="last", bytes_per_element=4
    )
    ops = transformer.layer_ops(decode_layer(DECODE), hidden=96, rotary=True, step=step) * 3
    assert (
        counted_flops(recorded_kernels.call(DECODE, device="cpu")).total == transformer.total(ops, unit="matrix").flops
    )


def test_the_training_step_that_is_timed_does_the_predicted_flops():
    """Torch counts a masked product in full: so does the whole prediction with half the pairs added."""
    sizes = {"layers": 2, "hidden": 48, "heads": 3, "vocabulary": 70, "tokens": 20, "batch": 2}
    case = Case(kind="train_eager", dtype="bf16", sizes=sizes)
    step = recorded_kernels.call(case, device="cpu")
    step()
    hidden_pairs = 20 * 20 - 20 * 21 // 2
    counted = counted_flops(step).total
    # five products backward and two forward, of which the prediction counts four and two
    masked, again = 2 * 2 * 2 * 48 * hidden_pairs * 3, 2 * 2 * 2 * 48 * 20 * 20 // 2
    assert counted == train_flops(case) + 2 * masked + 2 * again


def test_layernorm_is_the_same_in_one_kernel_and_in_nine():
    outputs = []
    for way in ("fused", "steps"):
        torch.manual_seed(5)
        case = Case(kind=f"layernorm_{way}", dtype="fp32", sizes={"rows": 7, "width": 40})
        outputs.append(recorded_kernels.call(case, device="cpu")())
    torch.testing.assert_close(*outputs)


def test_attention_is_the_same_fused_and_not():
    sizes = {"batch": 2, "heads": 3, "head_dim": 16, "tokens": 24}
    outputs = []
    for way in ("fused", "unfused"):
        torch.manual_seed(5)
        outputs.append(recorded_kernels.call(Case(kind=f"attention_{way}", dtype="fp32", sizes=sizes), device="cpu")())
    torch.testing.assert_close(*outputs)


def test_experts_give_the_same_one_by_one_and_together():
    """And the same as the sum over each token's experts, written out."""
    sizes = {"tokens": 9, "experts": 6, "top_k": 2, "hidden": 16, "intermediate": 8}
    outputs = []
    for way in ("grouped", "loop"):
        torch.manual_seed(5)
        outputs.append(recorded_kernels.call(Case(kind=f"experts_{way}", dtype="fp32", sizes=sizes), device="cpu")())
    torch.testing.assert_close(*outputs)
    torch.manual_seed(5)
    x, up, down = torch.randn(9, 16), torch.randn(6, 16, 16), torch.randn(6, 16, 8)
    expected = torch.zeros(9, 16)
    for token in range(9):
        for expert in ((2 * token) % 6, (2 * token + 1) % 6):
            gate, value = (up[expert] @ x[token]).chunk(2)
            expected[token] += down[expert] @ (torch.nn.functional.silu(gate) * value)
    torch.testing.assert_close(outputs[0], expected)


def test_a_draw_comes_from_the_likeliest_tokens():
    case = Case(kind="sample_top_p", dtype="fp32", sizes={"rows": 3, "width": 400})
    torch.manual_seed(5)
    draw = recorded_kernels.call(case, device="cpu")
    torch.manual_seed(5)
    logits = torch.randn(3, 400)
    for _ in range(20):
        for row, token in zip(logits.softmax(-1), draw()[:, 0], strict=True):
            assert row[row > row[token]].sum() <= 0.9  # those before it had not yet reached the sum


def test_the_prompt_that_is_timed_does_the_predicted_flops():
    sizes = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "intermediate": 96}
    case = Case(kind="prefill_eager", dtype="fp32", sizes=sizes | {"batch": 2, "tokens": 24})
    step = ForwardStep(
        phase="prefill", batch=2, sequence=24, causal="full", fused_attention=True, logits="last", bytes_per_element=4
    )
    ops = transformer.layer_ops(decode_layer(case), hidden=64, rotary=False, step=step) * 2
    counted = counted_flops(recorded_kernels.call(case, device="cpu")).total
    assert counted == transformer.total(ops, unit="matrix").flops  # torch counts a masked product in full


def test_warps_that_part_have_a_loop_for_each_way():
    source = recorded_threads.paths_source(3)
    assert source.count("for (int i") == 3
    assert len({line for line in source.splitlines() if line.startswith("for")}) == 3  # so that none can be joined


def test_only_what_is_missing_is_measured_and_nothing_of_the_same_day_is_lost(tmp_path, monkeypatch):
    cases = [Case(kind="launch", dtype="fp32", sizes={"operations": count}) for count in (1, 2)]
    cases += [Case(kind="softmax", dtype="fp32", sizes={"rows": rows, "width": 8}) for rows in (1, 2)]
    monkeypatch.setattr("threeloops.commands.record.suite", lambda **_: cases[:3])
    assert main(["record", "--quick", "--device", "cpu", "--into", str(tmp_path)]) == 0
    monkeypatch.setattr("threeloops.commands.record.suite", lambda **_: cases)
    assert main(["record", "--quick", "--missing", "--device", "cpu", "--into", str(tmp_path)]) == 0
    (path,) = tmp_path.iterdir()
    assert list(recorded.read(path).measured) == [case.name for case in cases]
    known = recorded.read(path)
    assert record.missing(cases, [known]) == cases[:2]  # a launch sets a ceiling of every recording


def test_driver_names_lead_to_parts_of_the_catalogue():
    assert set(recording.DRIVER_NAMES.values()) <= set(part_keys())
    assert "NVIDIA GeForce RTX 3080" not in recording.DRIVER_NAMES  # with 10 GB or 12: its name does not say which


def test_refusals(capsys):
    assert main(["record", "--quick", "--device", "tpu"]) == 2
    assert f"--device 'tpu' is not known; did you mean 'cpu'? Known: {', '.join(DEVICES)}" in capsys.readouterr().err
    with pytest.raises(ValueError, match="repeats=1 must be"):
        recording.recorded([], device="cpu", repeats=1)
    with pytest.raises(ValueError, match="part='h100' is not known"):
        recording.stamp_of(device="cpu", part="h100")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_every_case_of_the_quick_suite_runs_on_a_gpu_or_says_why_not():
    made = recording.recorded(suite(device="cuda", quick=True), device="cuda", repeats=3)
    assert not [reason for reason in made.skipped.values() if reason.startswith("it ended in")]
