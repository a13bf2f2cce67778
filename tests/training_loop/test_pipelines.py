"""Pipelines: formulas against schedules that are run on a clock, schedules against torch's own, published anchors,
refusals.
"""

import random
from types import SimpleNamespace

import pytest

from threeloops.simulate.training_loop.in_flight import peak_alive
from threeloops.simulate.training_loop.pipeline_orders import SCHEDULES, orders
from threeloops.simulate.training_loop.pipeline_schedules import Work, run
from threeloops.training_loop.memory import in_flight
from threeloops.training_loop.parallelism import pipelines


def work(forward: float, input_gradient: float, weight_gradient: float, overlapped: float | None = None) -> Work:
    return Work(
        forward_s=forward, input_gradient_s=input_gradient, weight_gradient_s=weight_gradient, overlapped_s=overlapped
    )


def times(one: Work) -> dict[str, float]:
    return {
        "forward_s": one.forward_s,
        "input_gradient_s": one.input_gradient_s,
        "weight_gradient_s": one.weight_gradient_s,
    }


# --- bubbles ---


@pytest.mark.parametrize(("schedule", "chunks"), [("gpipe", 1), ("1f1b", 1), ("interleaved", 2), ("interleaved", 5)])
def test_bubble_of_a_run(schedule: str, chunks: int) -> None:
    rng = random.Random(7)
    for pp in (1, 2, 3, 5, 8):
        for rounds in (1, 2, 5):
            one = work(*(rng.randint(1, 9) for _ in range(3)))
            counted = run(schedule=schedule, pp=pp, micro_batches=rounds * pp, chunks=chunks, work=one, send_s=0)
            predicted = pipelines.bubble(
                schedule=schedule, pp=pp, micro_batches=rounds * pp, chunks=chunks, **times(one)
            )
            assert counted.idle_s == pytest.approx([predicted.idle_s] * pp)
            assert counted.step_s == pytest.approx(predicted.step_s)
            assert counted.idle_share == pytest.approx(predicted.share_of_step)


def test_zero_bubble_fills_what_weight_gradients_can_fill() -> None:
    """Whatever the three times are: the published formulas where W is not longer than F, and their limits beyond."""
    rng = random.Random(11)
    for _ in range(300):
        pp, one = rng.randint(1, 8), work(*(rng.randint(1, 9) for _ in range(3)))
        micro_batches = 2 * pp + rng.randint(0, 20)
        for schedule in ("zb-h1", "zb-h2"):
            counted = run(schedule=schedule, pp=pp, micro_batches=micro_batches, work=one, send_s=0)
            predicted = pipelines.bubble(schedule=schedule, pp=pp, micro_batches=micro_batches, **times(one))
            assert max(counted.idle_within_s) == pytest.approx(predicted.idle_s), (schedule, pp, micro_batches, one)


def test_interleaving_divides_the_zero_bubble_too() -> None:
    rng = random.Random(29)
    for _ in range(200):
        pp, chunks, rounds, one = (
            rng.randint(1, 7),
            rng.randint(2, 4),
            rng.randint(1, 4),
            work(*(rng.randint(1, 9) for _ in range(3))),
        )
        size = {"schedule": "zb-interleaved", "pp": pp, "micro_batches": rounds * pp, "chunks": chunks}
        counted = run(**size, work=one, send_s=0)
        assert max(counted.idle_within_s) == pytest.approx(pipelines.bubble(**size, **times(one)).idle_s), (size, one)


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 7])
def test_the_vee_leaves_no_bubble_where_the_passes_are_equal_and_one_elsewhere(pp: int) -> None:
    for micro_batches in (2 * pp - 1, 2 * pp, 5 * pp + 1):
        size = {"schedule": "zb-v", "pp": pp, "micro_batches": micro_batches, "chunks": 2}
        counted = run(**size, work=work(3, 3, 3), send_s=0)
        assert (
            max(counted.idle_within_s)
            == pytest.approx(pipelines.bubble(**size, forward_s=3, input_gradient_s=3, weight_gradient_s=3).idle_s)
            == 0
        )
        for unequal in (work(3, 4, 2), work(4, 3, 3)):
            assert (max(run(**size, work=unequal, send_s=0).idle_within_s) > 0) == (pp > 1)


def test_a_zero_bubble_in_a_vee_at_the_price_of_one_pipeline_and_of_twice_the_traffic() -> None:
    # sail-sg, Zero Bubble Pipeline Parallelism, table of schedules for F = D = W: activation memory of ZB-V 1x that
    # of 1F1B, communication 2x.
    plan = orders(schedule="zb-v", pp=5, micro_batches=20, chunks=2)
    held = run(schedule="zb-v", pp=5, micro_batches=20, chunks=2, work=work(1, 1, 1), send_s=0).peak_alive()
    assert (
        max(held) == max(run(schedule="1f1b", pp=5, micro_batches=20, work=work(1, 1, 1), send_s=0).peak_alive()) == 5
    )
    rank_of = {one.position: rank for rank, slots in enumerate(plan) for (one,) in slots}
    reached = {"F": 1, "D": -1}
    sent = sum(
        rank_of.get(one.position + reached[one.kind], rank) != rank
        for rank, slots in enumerate(plan)
        for (one,) in slots
        if one.kind in reached
    )
    assert sent == 2 * pipelines.step_boundary_bytes(tensor_bytes=1, pp=5, micro_batches=20)


def test_dualpipe_is_exact_for_equal_passes_and_never_worse_than_published() -> None:
    rng = random.Random(13)
    for _ in range(200):
        pp = rng.choice((2, 4, 6, 8))
        micro_batches = 2 * rng.randint(pp, 20)
        size = {"schedule": "dualpipe", "pp": pp, "micro_batches": micro_batches}
        equal = run(**size, work=work(2, 2, 2, 6), send_s=0)
        assert (
            max(equal.idle_s)
            == pipelines.bubble(**size, forward_s=2, input_gradient_s=2, weight_gradient_s=2, overlapped_s=6).idle_s
        )
        forward = rng.randint(4, 10)
        one = work(forward, rng.randint(forward, int(1.3 * forward)), rng.randint(int(0.6 * forward), forward))
        together = rng.uniform(
            one.input_gradient_s + one.weight_gradient_s, forward + one.input_gradient_s + one.weight_gradient_s
        )
        counted = max(run(**size, work=work(*times(one).values(), together), send_s=0).idle_s)
        predicted = pipelines.bubble(**size, **times(one), overlapped_s=together).idle_s
        assert 0.8 * predicted - 1e-9 <= counted <= predicted + 1e-9


def test_both_forms_are_named_and_belong_together() -> None:
    # 4 stages, 4 micro-batches: 3 of 7 time steps are lost, 3 for every 4 of work.
    few = pipelines.bubble(
        schedule="gpipe", pp=4, micro_batches=4, forward_s=1, input_gradient_s=1, weight_gradient_s=1
    )
    assert (few.share_of_step, few.over_ideal) == (pytest.approx(3 / 7), pytest.approx(3 / 4))
    # Narayanan et al., arXiv:2104.04473, section 2.2: the bubble is (p-1)/m of the ideal time, small when m is much
    # larger than p.
    assert pipelines.bubble(
        schedule="1f1b", pp=8, micro_batches=700, forward_s=1, input_gradient_s=1, weight_gradient_s=1
    ).over_ideal == pytest.approx(0.01)


def test_times_scale() -> None:
    one = {"schedule": "zb-h1", "pp": 5, "micro_batches": 9}
    slow, fast = (
        pipelines.bubble(**one, forward_s=3 * k, input_gradient_s=4 * k, weight_gradient_s=2 * k) for k in (2, 1)
    )
    assert slow.idle_s == 2 * fast.idle_s
    assert slow.over_ideal == fast.over_ideal


@pytest.mark.parametrize("pp", [1, 4, 7])
@pytest.mark.parametrize("share", [0.05, 0.2, 0.45])
def test_fewest_micro_batches(pp: int, share: float) -> None:
    fewest = pipelines.micro_batches_for(share_of_step=share, pp=pp)
    assert run(schedule="1f1b", pp=pp, micro_batches=fewest, work=work(1, 1, 1), send_s=0).idle_share <= share + 1e-9
    if fewest > 1:
        assert run(schedule="1f1b", pp=pp, micro_batches=fewest - 1, work=work(1, 1, 1), send_s=0).idle_share > share


def test_step_of_a_run() -> None:
    for pp, micro_batches, chunks in ((5, 9, 1), (3, 12, 2), (1, 4, 1)):
        schedule = "interleaved" if chunks > 1 else "1f1b"
        counted = run(
            schedule=schedule, pp=pp, micro_batches=micro_batches, chunks=chunks, work=work(1, 1, 1), send_s=0
        ).step_s
        assert pipelines.step_s(
            compute_s=3 * micro_batches, pp=pp, micro_batches=micro_batches, chunks=chunks
        ) == pytest.approx(counted)


# --- uneven stages and late links ---


def test_the_slowest_stage_sets_the_pace() -> None:
    rng = random.Random(17)
    for _ in range(200):
        micro_batches, works = (
            rng.randint(1, 20),
            [work(rng.randint(1, 9), rng.randint(1, 9), rng.randint(0, 9)) for _ in range(rng.randint(1, 7))],
        )
        counted = run(schedule="gpipe", pp=len(works), micro_batches=micro_batches, work=works, send_s=0).step_s
        backward = [one.input_gradient_s + one.weight_gradient_s for one in works]
        assert counted == pipelines.uneven_step_s(
            forward_s=[one.forward_s for one in works], backward_s=backward, micro_batches=micro_batches
        )


def test_1f1b_is_never_slower_than_gpipe_where_passes_are_in_proportion() -> None:
    rng = random.Random(19)
    for _ in range(100):
        works = [work(pace, pace, pace) for pace in (rng.randint(1, 9) for _ in range(rng.randint(2, 7)))]
        gpipe, other = (
            run(schedule=schedule, pp=len(works), micro_batches=12, work=works, send_s=0).step_s
            for schedule in ("gpipe", "1f1b")
        )
        assert 12 * max(3 * one.forward_s for one in works) <= other <= gpipe


@pytest.mark.parametrize("pp", [2, 4, 7])
def test_late_links_slow_1f1b_at_every_micro_batch(pp: int) -> None:
    short, long = (
        run(schedule="1f1b", pp=pp, micro_batches=rounds * pp, work=work(3, 3, 3), send_s=2).step_s
        for rounds in (15, 35)
    )
    assert (long - short) / (20 * pp) == pytest.approx(pipelines.one_f_one_b_pace_s(pass_s=9, pp=pp, send_s=2))


def test_late_links_cost_the_others_a_fixed_price() -> None:
    for schedule, chunks in (("gpipe", 1), ("interleaved", 2)):
        for micro_batches in (8, 16, 32):
            late, free = (
                run(
                    schedule=schedule,
                    pp=4,
                    micro_batches=micro_batches,
                    chunks=chunks,
                    work=work(3, 3, 3),
                    send_s=send_s,
                ).step_s
                for send_s in (0.5, 0)
            )
            assert late - free == pytest.approx(2 * (4 * chunks - 1) * 0.5)  # every seam once forward and once back


# --- memory ---


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_micro_batches_in_flight(schedule: str) -> None:
    chunks = {"interleaved": 3, "zb-interleaved": 3, "zb-v": 2}.get(schedule, 1)
    for pp in (2, 4, 6):
        for rounds in (2, 4):
            counted = run(
                schedule=schedule, pp=pp, micro_batches=rounds * pp, chunks=chunks, work=work(1, 1, 1, 3), send_s=0
            ).peak_alive()
            size = {"schedule": schedule, "pp": pp, "micro_batches": rounds * pp, "chunks": chunks}
            assert counted == pytest.approx(
                [in_flight.micro_batches_in_flight(stage=stage, **size) for stage in range(pp)]
            )


def test_the_clock_and_the_ticks_agree_on_what_is_alive() -> None:
    for schedule, chunks in (("gpipe", 1), ("1f1b", 1), ("interleaved", 3)):
        counted = run(
            schedule=schedule, pp=5, micro_batches=15, chunks=chunks, work=work(1, 1, 1), send_s=0
        ).peak_alive()
        ticks = peak_alive(schedule=schedule, pp=5, micro_batches=15, chunks=chunks)
        assert [chunks * alive for alive in counted] == pytest.approx(ticks)


def test_dropping_most_activations_after_the_input_gradient_saves_memory() -> None:
    played = run(schedule="zb-h1", pp=6, micro_batches=18, work=work(1, 1, 1), send_s=0)
    assert played.peak_alive(after_input_gradient=0)[-1] == 1
    assert played.peak_alive(after_input_gradient=0.5)[-1] < played.peak_alive()[-1] == 6


# --- torch's own schedules ---


class FakeStage:
    """Stands where torch's schedules have a stage; writes down what they ask of it."""

    is_first = is_last = has_backward = True

    def __init__(self, index: int) -> None:
        self.stage_index, self.done = index, []

    def __getattr__(self, name: str) -> object:
        return (lambda *args, **kwargs: []) if name.endswith("_ops") else (lambda *args, **kwargs: None)

    def forward_one_chunk(self, micro_batch: int, *args: object, **kwargs: object) -> None:
        self.done.append(("F", micro_batch))

    def backward_one_chunk(self, micro_batch: int, *args: object, **kwargs: object) -> None:
        self.done.append(("B", micro_batch))


@pytest.mark.parametrize(("schedule", "torch_name"), [("gpipe", "ScheduleGPipe"), ("1f1b", "Schedule1F1B")])
@pytest.mark.parametrize(("pp", "micro_batches"), [(4, 9), (5, 5), (1, 3)])
def test_torch_runs_its_single_schedules_in_our_order(
    schedule: str, torch_name: str, pp: int, micro_batches: int
) -> None:
    from torch.distributed.pipelining import schedules

    for rank, ours in enumerate(orders(schedule=schedule, pp=pp, micro_batches=micro_batches)):
        stage = FakeStage(rank)
        plan = getattr(schedules, torch_name).__new__(getattr(schedules, torch_name))
        plan.__dict__ |= {
            "_stage": stage,
            "_num_stages": pp,
            "_n_microbatches": micro_batches,
            "_stage_initialized": True,
            "_has_backward": True,
        }
        plan.__dict__ |= {"_check_inputs": lambda *args: args[:2], "_initialize_stage": lambda *args: None}
        plan.__dict__ |= {
            "_maybe_compute_loss": lambda *args: None,
            "_maybe_get_loss": lambda *args: None,
            "_update_losses": lambda *args: None,
        }
        plan.__dict__ |= {
            "scale_grads": False,
            "_stage_forward_initialized": True,
            "_stages_backward_initialized": True,
        }
        plan._step_microbatches([()] * micro_batches, [{}] * micro_batches)
        assert stage.done == [(one.kind, one.micro_batch) for (one,) in ours]


def torch_table(name: str, *, pp: int, micro_batches: int, chunks: int) -> list[list[tuple[str, int, int]]]:
    """Per rank, (kind, position, micro-batch) in the order of torch's table for schedules with several stages per
    rank.
    """
    from torch.distributed.pipelining import schedules

    letters = {"FORWARD": "F", "FULL_BACKWARD": "B", "BACKWARD_INPUT": "D", "BACKWARD_WEIGHT": "W"}
    plan = SimpleNamespace(
        pp_group_size=pp,
        n_local_stages=chunks,
        _n_microbatches=micro_batches,
        microbatches_per_round=pp,
        num_stages=pp * chunks,
    )
    tables = (getattr(schedules, name)._calculate_single_rank_operations(plan, rank) for rank in range(pp))
    return [
        [(letters[a.computation_type.name], a.stage_index, a.microbatch_index) for a in table if a is not None]
        for table in tables
    ]


@pytest.mark.parametrize(("pp", "micro_batches", "chunks"), [(4, 8, 2), (3, 9, 4), (5, 20, 3)])
def test_torch_interleaves_in_our_order(pp: int, micro_batches: int, chunks: int) -> None:
    ours = orders(schedule="interleaved", pp=pp, micro_batches=micro_batches, chunks=chunks)
    table = torch_table("ScheduleInterleaved1F1B", pp=pp, micro_batches=micro_batches, chunks=chunks)
    assert [[(one.kind, one.position, one.micro_batch) for (one,) in slots] for slots in ours] == table


@pytest.mark.parametrize(("pp", "micro_batches"), [(4, 8), (3, 9), (6, 18)])
def test_torch_zero_bubble_runs_in_the_order_of_h1(pp: int, micro_batches: int) -> None:
    """torch's interleaved zero bubble with one chunk per rank: the same passes, and each kind in the same places
    among them.
    """
    ours = orders(schedule="zb-h1", pp=pp, micro_batches=micro_batches)
    table = torch_table("ScheduleInterleavedZeroBubble", pp=pp, micro_batches=micro_batches, chunks=1)
    assert [[(one.kind, one.position, one.micro_batch) for (one,) in slots] for slots in ours] == table


@pytest.mark.parametrize(("pp", "micro_batches", "chunks"), [(4, 8, 2), (3, 9, 4), (5, 5, 3), (1, 4, 2)])
def test_torch_interleaves_its_zero_bubble_in_our_order(pp: int, micro_batches: int, chunks: int) -> None:
    ours = orders(schedule="zb-interleaved", pp=pp, micro_batches=micro_batches, chunks=chunks)
    table = torch_table("ScheduleInterleavedZeroBubble", pp=pp, micro_batches=micro_batches, chunks=chunks)
    assert [[(one.kind, one.position, one.micro_batch) for (one,) in slots] for slots in ours] == table


@pytest.mark.parametrize(("pp", "micro_batches"), [(4, 8), (4, 7), (3, 17), (1, 1), (6, 12)])
def test_torch_runs_its_vee_in_our_order(pp: int, micro_batches: int) -> None:
    ours = orders(schedule="zb-v", pp=pp, micro_batches=micro_batches, chunks=2)
    table = torch_table("ScheduleZBVZeroBubble", pp=pp, micro_batches=micro_batches, chunks=2)
    assert [[(one.kind, one.position, one.micro_batch) for (one,) in slots] for slots in ours] == table


# --- traffic and batch ---


@pytest.mark.parametrize(("pp", "chunks"), [(4, 1), (3, 2), (5, 4)])
def test_bytes_between_stages(pp: int, chunks: int) -> None:
    schedule, last = ("interleaved" if chunks > 1 else "1f1b"), pp * chunks - 1
    passes = [
        one for slots in orders(schedule=schedule, pp=pp, micro_batches=2 * pp, chunks=chunks) for (one,) in slots
    ]
    sent = sum(one.position < last if one.kind == "F" else one.position > 0 for one in passes)
    assert pipelines.step_boundary_bytes(tensor_bytes=7, pp=pp, micro_batches=2 * pp, chunks=chunks) == 7 * sent


def test_a_boundary_of_a_known_model() -> None:
    # Llama 3 70B is 8,192 wide; one sequence of 8,192 tokens in bf16 is 2**13 * 2**13 * 2 bytes = 128 MiB.
    assert pipelines.boundary_bytes(micro_batch=1, sequence=8192, hidden=8192, bytes_per_element=2) == 2**27


def test_stages_do_not_multiply_the_batch() -> None:
    # 8 micro-batches in each of 8 replicas are 64 micro-batches, whatever the number of stages.
    assert pipelines.global_batch(micro_batch=1, micro_batches=8, dp=8) == 64


# --- refusals ---

FINE = {"pp": 4, "micro_batches": 8, "forward_s": 1, "input_gradient_s": 1, "weight_gradient_s": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "1f1f"}, "schedule='1f1f' is not known; did you mean '1f1b'"),
        ({"schedule": "1f1b", "chunks": 2}, "chunks=2 with schedule='1f1b'"),
        ({"schedule": "interleaved"}, "chunks=1 with schedule='interleaved'"),
        ({"schedule": "interleaved", "chunks": 2, "micro_batches": 9}, "pp=4 must divide micro_batches=9"),
        ({"schedule": "zb-h2", "micro_batches": 6}, "micro_batches=6 must be at least 7"),
        ({"schedule": "zb-interleaved"}, "chunks=1 with schedule='zb-interleaved'"),
        ({"schedule": "zb-interleaved", "chunks": 2, "micro_batches": 9}, "pp=4 must divide micro_batches=9"),
        ({"schedule": "zb-v"}, "chunks=1 with schedule='zb-v': it has 2 per rank"),
        ({"schedule": "zb-v", "chunks": 2, "micro_batches": 6}, "micro_batches=6 must be at least 7"),
        (
            {"schedule": "zb-v", "chunks": 2, "weight_gradient_s": 2},
            "forward_s=1, input_gradient_s=1 and weight_gradient_s=2 must be equal",
        ),
        ({"schedule": "dualpipe"}, "overlapped_s=None with schedule='dualpipe'"),
        ({"schedule": "dualpipe", "overlapped_s": 3, "pp": 3}, "pp=3 must be even for schedule='dualpipe'"),
        ({"schedule": "1f1b", "forward_s": 0}, "forward_s=0 must be greater than 0"),
    ],
)
def test_bubbles_that_cannot_be(change: dict[str, object], message: str) -> None:
    assert pipelines.bubble(schedule="1f1b", **FINE).idle_s == 9
    with pytest.raises(ValueError, match=message):
        pipelines.bubble(**{**FINE, **change})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": "fifo"}, "schedule='fifo' is not known"),
        ({"pp": 0}, "pp=0, micro_batches=8 and chunks=1 must be at least 1"),
        ({"schedule": "interleaved", "chunks": 2, "micro_batches": 9}, "pp=4 must divide micro_batches=9"),
        ({"schedule": "dualpipe", "micro_batches": 6}, "with at least 8 micro-batches"),
        ({"schedule": "zb-interleaved"}, "chunks=1 with schedule='zb-interleaved'"),
        (
            {"schedule": "zb-v", "chunks": 3},
            "chunks=3 and micro_batches=8 with schedule='zb-v': it has 2 chunks, and at least 7",
        ),
        ({"schedule": "zb-v", "chunks": 2, "micro_batches": 6}, "it has 2 chunks, and at least 7 micro-batches"),
        ({"schedule": "dualpipe"}, "needs overlapped_s"),
        ({"work": [work(1, 1, 1)] * 3}, "there are 3 works for pp=4"),
        ({"send_s": -1}, "send_s=-1 must be at least 0"),
    ],
)
def test_runs_that_cannot_be(change: dict[str, object], message: str) -> None:
    fine = {"schedule": "1f1b", "pp": 4, "micro_batches": 8, "work": work(1, 1, 1), "send_s": 0}
    assert run(**fine).step_s == 33
    with pytest.raises(ValueError, match=message):
        run(**{**fine, **change})


def test_other_refusals() -> None:
    with pytest.raises(ValueError, match="share_of_step=0 must lie between 0 and 1"):
        pipelines.micro_batches_for(share_of_step=0, pp=4)
    with pytest.raises(ValueError, match="2 forward times and 1 backward times"):
        pipelines.uneven_step_s(forward_s=[1, 2], backward_s=[1], micro_batches=3)
    with pytest.raises(ValueError, match="pp=1 must be a whole number of at least 2"):
        pipelines.step_boundary_bytes(tensor_bytes=1, pp=1, micro_batches=3)
