"""Recordings: the file is what it says or is refused, replay never invents, and predictions are what paper arithmetic
gives for known ceilings.
"""

import dataclasses
import datetime
import json
import math

import pytest

from threeloops.cli import main
from threeloops.facts import hardware, recorded
from threeloops.facts.recorded_cases import DEVICES, KINDS, Case
from threeloops.facts.recorded_suite import suite
from threeloops.figures.inner_loop import recorded_bars
from threeloops.inner_loop import prediction_error
from threeloops.inner_loop.prediction_error import NOT_PREDICTED

GEMM = Case(kind="gemm", dtype="bf16", sizes={"m": 8192, "n": 8192, "k": 8192})
ROW = Case(kind="gemm", dtype="bf16", sizes={"m": 1, "n": 16_384, "k": 16_384})
COPY = Case(kind="copy", dtype="fp32", sizes={"bytes": 2**31})
LAUNCH = Case(kind="launch", dtype="fp32", sizes={"operations": 1000})
FP8 = Case(kind="gemm", dtype="fp8", sizes={"m": 8192, "n": 8192, "k": 8192})


def stamp(**other):
    words = {
        "hardware": "A card",
        "device": "cuda",
        "part": "h100-sxm5",
        "clocks": "as it likes",
        "driver": "1.0",
        "software": "torch",
        "threads": 3,
        "measured": datetime.date(2026, 11, 22),
    }
    return recorded.Stamp(**(words | other))


def timed(case, median, fastest=None):
    return recorded.Measured(
        case=case,
        n=7,
        median=median,
        lower_quartile=0.97 * median,
        upper_quartile=1.05 * median,
        fastest=fastest or 0.9 * median,
    )


def recording(*measured, skipped=(), **other):
    cases = (*(one.case for one in measured), *(case for case, _ in skipped))
    words = {case.name: reason for case, reason in skipped}
    return recorded.Recording(
        stamp=stamp(**other), cases=cases, measured={one.case.name: one for one in measured}, skipped=words
    )


FULL = recording(
    timed(GEMM, 1.6e-3), timed(ROW, 0.2e-3), timed(COPY, 1.5e-3), timed(LAUNCH, 3e-3), skipped=[(FP8, "no such unit")]
)


def test_a_recording_comes_back_from_its_file_as_it_went_in(tmp_path):
    (tmp_path / "card.json").write_text(recorded.as_text(FULL))
    assert recorded.in_folder(tmp_path) == (FULL,)
    assert recorded.in_folder(tmp_path / "nowhere") == ()


def changed(where, value):
    content = json.loads(recorded.as_text(FULL))
    place = content
    for step in where[:-1]:
        place = place[step]
    if value is KeyError:
        del place[where[-1]]
    else:
        place[where[-1]] = value
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not JSON"),
        ("[]", "a recording must be a table of names and values, not"),
        (changed(["stamp"], KeyError), "'stamp' is missing; a recording needs format, stamp, cases"),
        (changed(["format"], 2), "format=2 must be 1"),
        (changed(["stamp", "driver"], KeyError), "'driver' is missing; a stamp needs"),
        (changed(["stamp", "driver"], " "), "driver=' ' must be words"),
        (changed(["stamp", "owner"], "me"), "field='owner' is not known"),
        (changed(["stamp", "measured"], "yesterday"), "measured='yesterday' must be a day, like '2026-11-22'"),
        (changed(["stamp", "part"], "h100-sxm"), "part='h100-sxm' is not known; did you mean 'h100-sxm5'"),
        (changed(["stamp", "device"], "tpu"), "device='tpu' is not known"),
        (changed(["cases"], {}), "cases={} must be a list"),
        (changed(["cases", 0, "n"], 1), f"case '{GEMM.name}': n=1 must be a whole number of at least 2"),
        (changed(["cases", 0, "unit"], "ms"), "unit='ms' is not known"),
        (changed(["cases", 0, "median"], -1), "median=-1 must be greater than 0"),
        (changed(["cases", 0, "median"], 1.0), "must lie between the quartiles"),
        (changed(["cases", 0, "median"], math.inf), "median=inf must be finite"),
        (changed(["cases", 0, "fastest"], KeyError), "'fastest' is missing; a case needs"),
        (changed(["cases", 0, "sizes", "m"], 8191), "its sizes belong to gemm-bf16-m8191"),
        (changed(["cases", 0, "sizes", "m"], 1.5), "m=1.5 must be a whole number"),
        (changed(["cases", 0, "sizes"], {"m": 1}), "sizes of gemm must be m, n, k, not m"),
        (changed(["cases", 0, "kind"], "gem"), "kind='gem' is not known; did you mean 'gemm'"),
        (changed(["cases", 4, "skipped"], ""), "skipped must give the reason in words"),
        (changed(["cases", 1], json.loads(recorded.as_text(FULL))["cases"][0]), "stands there twice"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence_that_names_it(text, told, tmp_path):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValueError, match="recording 'bad.json'") as refusal:
        recorded.read(tmp_path / "bad.json")
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_missing_file_is_refused_too(tmp_path):
    with pytest.raises(ValueError, match=r"recording 'none.json' cannot be read \(No such file"):
        recorded.read(tmp_path / "none.json")


def test_replay_finds_the_latest_by_key_and_by_reported_name():
    older = recording(timed(GEMM, 9.0), measured=datetime.date(2025, 1, 1))
    for on in ("h100-sxm5", "A card"):
        for both in ((older, FULL), (FULL, older)):
            assert recorded.find(GEMM.name, on, recordings=both).median == 1.6e-3
    skipped_later = recording(skipped=[(GEMM, "out of memory")], measured=datetime.date(2027, 1, 1))
    assert recorded.find(GEMM.name, "h100-sxm5", recordings=(FULL, skipped_later)).median == 1.6e-3


def test_what_nobody_measured_is_said_to_be_so():
    assert recorded.find(FP8.name, "h100-sxm5", recordings=(FULL,)).words == "skipped: no such unit"
    other = recorded.find(GEMM.name, "b200-hgx", recordings=(FULL,))
    assert (other.words, bool(other)) == ("not yet recorded", False)
    with pytest.raises(ValueError, match="case='gemm-bf61' is not known"):
        recorded.find("gemm-bf61", "h100-sxm5", recordings=(FULL,))
    with pytest.raises(ValueError, match="hardware='h100-sxm' is not known; did you mean 'h100-sxm5'"):
        recorded.find(GEMM.name, "h100-sxm", recordings=(FULL,))


def test_the_shipped_recordings_are_sound_and_name_nobody():
    for one in recorded.shipped():
        assert one.measured
        assert "/" not in one.stamp.hardware + one.stamp.note
        for case in one.measured.values():
            assert case.n >= 5
    assert all(one.stamp.device == "cpu" for one in recorded.shipped() if not one.stamp.part)


def test_no_recorded_gpu_beats_its_datasheet():
    """Of what is said to be a bound, no measurement on a part of the catalogue is faster."""
    gpus = [one for one in recorded.shipped() if one.stamp.part]
    assert {one.stamp.part for one in gpus} >= {"h100-sxm5", "h200-sxm"}
    for part in {one.stamp.part for one in gpus}:
        mine = [one for one in gpus if one.stamp.part == part]
        rows = [row for one in mine for row in prediction_error.rows(one, origin="datasheet")]
        assert len(rows) > 150
        assert not [(row.case.name, row.ratio) for row in rows if row.measured.fastest < row.predicted_s]


GPUS = ("h100-sxm5", "h200-sxm")


def took(kind, part, **sizes):
    return recorded.find(Case(kind=kind, dtype="fp32", sizes=sizes).name, part).median


@pytest.mark.parametrize("part", GPUS)
def test_recorded_warps_take_the_turns_that_are_counted_on_paper(part):
    """Lanes that meet in a bank are served one after the other, and so are the ways of a warp that parts."""
    for stride in (1, 2, 4, 8, 16, 32):
        turns = took("banks", part, requests=2**18, stride=stride) / took("banks", part, requests=2**18, stride=33)
        assert turns == pytest.approx(stride, rel=0.05)
    for ways in (1, 2, 4, 8, 16, 32):
        times = took("paths", part, steps=2**14, paths=ways) / took("paths", part, steps=2**14, paths=1)
        assert times == pytest.approx(ways, rel=0.03)


@pytest.mark.parametrize("part", GPUS)
def test_recorded_loads_obey_littles_law(part):
    """Bytes under way over the latency of a chain of loads is the bandwidth, until the memory is busy."""
    latency_s = took("chase", part, bytes=2**29, loads=10_000) / 10_000
    assert 300e-9 < latency_s < 400e-9
    for loads in (1, 4):
        for warps in (1, 2, 4, 8, 16, 32, 64):
            under_way = 132 * warps * loads * 128
            reached = 2**30 / took("inflight", part, bytes=2**30, warps=warps, loads=loads)
            if reached < 0.4 * hardware.part(part)["memory_bytes_per_s"]:
                assert reached == pytest.approx(under_way / latency_s, rel=0.2)


@pytest.mark.parametrize("part", GPUS)
def test_recorded_latencies_are_near_what_others_measured(part):
    clock = hardware.part(part)["boost_clock_hz"]
    found = hardware.part("h100-sxm5")
    for fact, size in (("l1_latency_cycles", 2**14), ("l2_latency_cycles", 2**20), ("memory_latency_cycles", 2**29)):
        cycles = took("chase", part, bytes=size, loads=10_000) / 10_000 * clock
        assert cycles == pytest.approx(found[fact], rel=0.1)


@pytest.mark.parametrize("part", GPUS)
def test_recorded_strides_fetch_sectors_and_from_memory_two_at_a_time(part):
    """Up to eight numbers apart, a read costs its share of a sector; further apart, memory gives 64 bytes."""
    times = {stride: took("strided", part, reads=2**26, stride=stride) for stride in (1, 2, 4, 8, 16, 32)}
    for stride in (2, 4, 8, 16):
        assert times[stride] / times[1] == pytest.approx(stride, rel=0.1)
    assert times[32] / times[16] < 1.25


def test_every_case_of_every_suite_has_a_name_of_its_own_and_a_prediction():
    ceiling = prediction_error.Ceilings(
        origin="measured",
        memory_bytes_per_s=1e12,
        peak_flops_per_s=dict.fromkeys(("fp32", "tf32", "bf16", "fp16", "fp8", "int8"), 1e14),
        launch_s=1e-9,
        sm_hz=2e9,
        host_bytes_per_s=64e9,
    )
    for device in DEVICES:
        for quick in (False, True):
            cases = suite(device=device, quick=quick)
            assert len({case.name for case in cases}) == len({case.label for case in cases}) == len(cases)
            assert {case.kind for case in cases} == set(KINDS)
            assert all(
                prediction_error.predicted_s(case, ceiling) > 0 for case in cases if case.kind not in NOT_PREDICTED
            )


# On paper, with an H100's datasheet (989.4 TFLOP/s, 3.35 TB/s, fp32 66.9 TFLOP/s).
@pytest.mark.parametrize(
    ("case", "seconds"),
    [
        (GEMM, 2 * 8192**3 / 989.4e12),
        (ROW, 2 * (16_384**2 + 2 * 16_384) / 3.35e12),
        (COPY, 2 * 2**31 / 3.35e12),
        (Case(kind="triad", dtype="fp32", sizes={"bytes": 2**30}), 3 * 2**30 / 3.35e12),
        (Case(kind="saxpy", dtype="fp32", sizes={"elements": 2**28, "load_bits": 32}), 12 * 2**28 / 3.35e12),
        # Scores of 8 heads x 4096 x 4096 in bf16 are 2^28 bytes; four trips of them, and Q, K, V, output of 4 MiB
        # each.
        (
            Case(
                kind="attention_unfused", dtype="bf16", sizes={"batch": 1, "heads": 8, "head_dim": 64, "tokens": 4096}
            ),
            (4 * 2**28 + 4 * 2**22) / 3.35e12,
        ),
        # Fused: 4 x 8 x 4096^2 x 64 FLOP, above the ridge.
        (
            Case(kind="attention_fused", dtype="bf16", sizes={"batch": 1, "heads": 8, "head_dim": 64, "tokens": 4096}),
            4 * 8 * 4096**2 * 64 / 989.4e12,
        ),
        # However often its tiles are fetched.
        (
            Case(kind="tiled_gemm", dtype="fp16", sizes={"m": 4096, "n": 4096, "k": 4096, "tile": 16}),
            2 * 4096**3 / 989.4e12,
        ),
        # Fifty products, and one launch.
        (
            Case(kind="gemm_graph", dtype="bf16", sizes={"m": 4096, "n": 4096, "k": 4096, "calls": 50}),
            50 * 2 * 4096**3 / 989.4e12,
        ),
        # A causal mask leaves half of the pairs and the diagonal; backward is 2.5 times as much.
        (
            Case(
                kind="attention_cudnn_backward",
                dtype="bf16",
                sizes={"batch": 1, "heads": 16, "head_dim": 128, "tokens": 8192},
            ),
            2.5 * 4 * 16 * 128 * (8192 * 8193 / 2) / 989.4e12,
        ),
        # Nine kernels on a quarter of a gigabyte: five read and write it, two only read it.
        (
            Case(kind="layernorm_steps", dtype="fp32", sizes={"rows": 16_384, "width": 4096}),
            12 * 2**28 / 3.35e12,
        ),
        # Two lanes meet in each bank: two turns a request, at 1.98 GHz.
        (Case(kind="banks", dtype="fp32", sizes={"requests": 2**18, "stride": 2}), 2 * 2**18 / 1.98e9),
        (Case(kind="banks", dtype="fp32", sizes={"requests": 2**18, "stride": 33}), 2**18 / 1.98e9),
        # 64 warps on an SM, four of them issue in a cycle, each goes all three ways.
        (Case(kind="paths", dtype="fp32", sizes={"steps": 2**14, "paths": 3}), 64 * 2**14 * 3 / 4 / 1.98e9),
        # A sector of 32 bytes for each number.
        (Case(kind="strided", dtype="fp32", sizes={"reads": 2**26, "stride": 8}), 32 * 2**26 / 3.35e12),
        (Case(kind="copy_to_gpu", dtype="fp32", sizes={"bytes": 2**28}), 2**28 / 64e9),
        # Half a byte a weight, and 4 bytes for each 128 of them.
        (
            Case(kind="gemm_int4", dtype="bf16", sizes={"m": 1, "n": 28_672, "k": 4096}),
            (28_672 * 4096 * (0.5 + 4 / 128) + 2 * (28_672 + 4096)) / 3.35e12,
        ),
        # 16 tokens and 8 experts for each: all 128 have one.
        (
            Case(
                kind="experts_grouped",
                dtype="bf16",
                sizes={"tokens": 16, "experts": 128, "top_k": 8, "hidden": 2048, "intermediate": 768},
            ),
            2 * (128 * 3 * 2048 * 768 + 2 * 16 * 2048) / 3.35e12,
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Case) else "",
)
def test_predictions_are_what_paper_says(case, seconds):
    ceiling = prediction_error.ceilings(FULL, origin="datasheet")
    assert prediction_error.predicted_s(case, ceiling) == pytest.approx(seconds, rel=2e-3)


def test_a_decode_step_is_predicted_from_its_weights_and_its_launches():
    sizes = {
        "layers": 8,
        "hidden": 4096,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "intermediate": 14_336,
        "batch": 1,
        "context": 4096,
    }
    graph, eager = (Case(kind=f"decode_{way}", dtype="bf16", sizes=sizes) for way in ("graph", "eager"))
    weights = 8 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 14_336) * 2
    cache = 8 * 2 * 4096 * 1024 * 2
    ceiling = prediction_error.ceilings(FULL, origin="datasheet")
    assert prediction_error.predicted_s(graph, ceiling) == pytest.approx((weights + cache) / 3.35e12, rel=0.005)
    slow = dataclasses.replace(ceiling, launch_s=1e-3)
    assert prediction_error.predicted_s(eager, slow) == pytest.approx(8 * 11e-3)  # eleven kernels a layer
    assert prediction_error.predicted_s(graph, dataclasses.replace(ceiling, launch_s=7e-3)) == 7e-3  # one launch


def test_ceilings_that_were_measured_are_not_counted_as_predictions():
    small = Case(kind="copy", dtype="fp32", sizes={"bytes": 2**29})
    half = Case(kind="gemm", dtype="bf16", sizes={"m": 4096, "n": 4096, "k": 4096})
    fast = timed(GEMM, 1.6e-3, fastest=1.5e-3)
    mine = recording(
        fast,
        timed(ROW, 0.2e-3),
        timed(COPY, 1.5e-3, fastest=1.4e-3),
        timed(small, 0.4e-3),
        timed(half, 0.3e-3),
        timed(LAUNCH, 3e-3),
    )
    ceiling = prediction_error.ceilings(mine, origin="measured")
    assert ceiling.memory_bytes_per_s == pytest.approx(2 * 2**31 / 1.4e-3)
    assert ceiling.peak_flops_per_s == {"bf16": pytest.approx(2 * 8192**3 / 1.5e-3)}
    assert ceiling.launch_s == pytest.approx(3e-6)
    assert [row.case for row in prediction_error.rows(mine, origin="measured")] == [ROW, small, half]
    assert [row.case for row in prediction_error.rows(mine, origin="datasheet")] == [GEMM, ROW, COPY, small, half]


def test_a_recording_without_ceilings_says_what_it_lacks():
    with pytest.raises(ValueError, match="A card: launch was not recorded"):
        prediction_error.ceilings(recording(timed(GEMM, 1.0)), origin="measured")
    with pytest.raises(ValueError, match="neither copy nor triad was recorded"):
        prediction_error.ceilings(recording(timed(GEMM, 1.0), timed(LAUNCH, 1.0)), origin="measured")
    with pytest.raises(ValueError, match="no matmul was recorded"):
        prediction_error.ceilings(recording(timed(COPY, 1.0), timed(LAUNCH, 1.0)), origin="measured")
    with pytest.raises(ValueError, match="A card is no part of the catalogue"):
        prediction_error.ceilings(recording(timed(LAUNCH, 1.0), part=""), origin="datasheet")
    with pytest.raises(ValueError, match="origin='guess' is not known"):
        prediction_error.ceilings(FULL, origin="guess")


def test_the_count_counts_both_directions_and_its_own_edge():
    rows = [
        prediction_error.Row(case=GEMM, hardware="A card", predicted_s=1.0, measured=timed(GEMM, ratio))
        for ratio in (0.4, 0.79, 0.81, 1.0, 1.19, 1.3, 1.6)
    ]
    assert prediction_error.within(rows, 0.2) == 3
    assert prediction_error.within(rows, 0.5) == 5
    assert [round(row.ratio, 2) for row in rows] == [0.4, 0.79, 0.81, 1.0, 1.19, 1.3, 1.6]


def test_the_command_prints_the_table_and_the_count(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(recorded, "shipped", lambda: ())
    assert main(["record", "--table", "--into", str(tmp_path)]) == 2
    assert "nothing is recorded yet" in capsys.readouterr().err
    (tmp_path / "card.json").write_text(recorded.as_text(FULL))
    assert main(["record", "--table", "--into", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "A card" in printed
    # 2 × 8192³ / 989.4e12 = 1.111 ms against 1.6; the row 0.160 ms against 0.2; the copy 1.282 against 1.5.
    assert [line.split("ratio ")[1] for line in printed.splitlines() if "ratio" in line] == ["1.44", "1.25", "1.17"]
    assert "skipped, no such unit: gemm, fp8, 8192×8192×8192" in printed
    assert printed.endswith("3 cases with a prediction: 1 recorded within 20 % of it, 3 within 50 %.\n")
    assert main(["record", "--table", "--into", str(tmp_path), "--ceilings", "guess"]) == 2
    assert "--ceilings 'guess' is not known" in capsys.readouterr().err


def test_the_command_lists_every_name(capsys):
    assert main(["record", "--list"]) == 0
    listed = capsys.readouterr().out.split()
    assert len(set(listed)) == len(listed)
    assert GEMM.name in listed


def test_bars_say_how_far_the_recorded_time_is_from_the_predicted():
    pairs = recorded_bars.pairs(prediction_error.rows(FULL, origin="datasheet"))
    figure = recorded_bars.recorded_bars(pairs, title="A finding", caption="What to see.")
    values = figure.spec["data"]["values"]
    assert [row["label"] for row in values if row["series"] == "recorded"] == [
        "1.17×",
        "1.25×",
        "1.44×",
    ]
    assert all(row["to"] > row["from"] for row in values)
    assert figure.alt.startswith("Recorded over predicted: from 1.17 to 1.44 times.")
    assert len(figure.png()) < 60_000
    with pytest.raises(ValueError, match="pairs is empty"):
        recorded_bars.recorded_bars([], title="A finding", caption="What to see.")
    with pytest.raises(ValueError, match="two pairs have the same name"):
        recorded_bars.recorded_bars(pairs[:1] * 2, title="A finding", caption="What to see.")
