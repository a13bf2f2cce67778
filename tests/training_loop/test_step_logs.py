"""Training logs against the clock that made them: known truths, and what is read of each trainer's lines."""

import gzip
import io
import math
from collections.abc import Callable, Iterable

import pytest
from tests.training_loop import step_logs
from tests.training_loop.step_logs import BATCH, GPUS, SEQUENCE, megatron, titan, trainer

from threeloops.training_loop.run.logged.log_lines import LogLines
from threeloops.training_loop.run.logged.step_account import step_account
from threeloops.training_loop.run.logged.step_lines import MegatronLines, TitanLines, TrainerLines
from threeloops.training_loop.run.logged.step_record import StepRecord
from threeloops.training_loop.run.logged.step_suspects import (
    BETWEEN,
    NAN,
    RETRIES,
    SKIPPED,
    SLOWING,
    SPIKES,
    STALLS,
    STEP,
    step_suspects,
)

STEADY = [2.0 + 0.02 * (place % 3) for place in range(60)]
STARVED = [2.02 + 6.0 * (place % 6 == 5) for place in range(60)]  # every sixth entry waits for its data
HOTTER = [2.0 + 0.012 * place for place in range(60)]


def read(reader: MegatronLines | TitanLines | TrainerLines, lines: Iterable[str]) -> StepRecord:
    """By way of the bytes of a file: colours go, and empty lines."""
    for line in LogLines(io.BytesIO("\n".join(lines).encode()), name="train.log"):
        reader.take(line)
    return reader.record


def spiked() -> list[float]:
    calm = step_logs.losses(60)
    return [value + (3.0 if place in (30, 31, 47) else 0.0) for place, value in enumerate(calm)]


def lost() -> list[float]:
    return [math.nan if place >= 48 else value for place, value in enumerate(step_logs.losses(60))]


# The truth, the first suspect that has to be named, the log.
TRUTHS: dict[str, tuple[str, Callable[[], StepRecord]]] = {
    "Megatron, saves": (BETWEEN, lambda: read(MegatronLines(), megatron(STEADY, save_every=10, save_s=60))),
    "Megatron, skipped": (SKIPPED, lambda: read(MegatronLines(), megatron(STEADY, skipped=lambda place: place % 4))),
    "Megatron, spikes": (SPIKES, lambda: read(MegatronLines(), megatron(STEADY, loss=spiked()))),
    "Megatron of 2023, starved": (STALLS, lambda: read(MegatronLines(), megatron(STARVED, stamped=False))),
    "torchtitan, starved": (STALLS, lambda: read(TitanLines(), titan(STARVED))),
    "torchtitan of 2024, starved": (STALLS, lambda: read(TitanLines(), titan(STARVED, older=True, start=False))),
    "torchtitan, hotter": (SLOWING, lambda: read(TitanLines(), titan(HOTTER))),
    "torchtitan, diverged": (NAN, lambda: read(TitanLines(), titan(STEADY, loss=lost()))),
    "torchtitan, steady": (STEP, lambda: read(TitanLines(), titan(STEADY))),
    "HF, starved": (STALLS, lambda: read(TrainerLines(), trainer(STARVED))),
    "HF 5, hotter": (SLOWING, lambda: read(TrainerLines(), trainer(HOTTER, texts=True))),
    "torchtitan, full memory": (
        RETRIES,
        lambda: read(TitanLines(), [*titan(STEADY), "[titan] WARNING - 3 CUDA memory allocation retries."]),
    ),
}


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_first_suspect_is_what_the_run_suffers_from(truth: str) -> None:
    wanted, log = TRUTHS[truth][0], TRUTHS[truth][1]()
    known = log.known("mfu")
    suspects = step_suspects(log, step_account(log), mfu=known[-1] if known else None)
    assert suspects[0].illness == wanted


@pytest.mark.parametrize("reader", ["Megatron", "torchtitan", "HF"])
def test_the_time_of_stalls_is_what_was_put_in(reader: str) -> None:
    lines = {"Megatron": megatron, "torchtitan": titan, "HF": trainer}[reader](STARVED)
    log = read({"Megatron": MegatronLines, "torchtitan": TitanLines, "HF": TrainerLines}[reader](), lines)
    stalls = step_account(log).stalls
    assert stalls is not None
    assert stalls.number == 10
    assert stalls.share == pytest.approx(10 * 6.0 / sum(STARVED[1:]), rel=0.01)


def test_time_between_steps_is_what_was_put_in() -> None:
    """Six saves of a minute, the last of which no entry follows; stamps are rounded to a second."""
    log = read(MegatronLines(), megatron(STEADY, save_every=10, save_s=60))
    between = step_account(log).between
    assert between is not None
    assert (between.number, between.beside) == (5, "a checkpoint")
    assert between.seconds == pytest.approx(5 * 60, abs=5)
    assert between.share == pytest.approx(300 / (300 + 10 * sum(STEADY[1:])), rel=0.03)


def test_repaired_runs_are_as_much_faster_as_was_said() -> None:
    """The same steps without what was put in take as long as Amdahl's limit says."""
    for lines, repaired, seconds in (
        (megatron(STARVED), 59 * 2.02, sum(STARVED[1:])),
        (megatron(STEADY, save_every=10, save_s=60), 10 * sum(STEADY[1:]), 300 + 10 * sum(STEADY[1:])),
    ):
        log = read(MegatronLines(), lines)
        first = step_suspects(log, step_account(log), mfu=None)[0]
        assert first.at_most == pytest.approx(seconds / repaired, rel=0.03)
    log = read(TitanLines(), titan(STEADY))
    (step,) = step_suspects(log, step_account(log), mfu=0.4)
    assert step.at_most == pytest.approx(2.5)  # at the peak


def test_a_step_takes_as_long_by_its_rate() -> None:
    log = read(TitanLines(), titan(STEADY))
    account = step_account(log)
    assert account.typical_s == pytest.approx(2.02, rel=1e-3)
    assert account.clock == "tokens of a step, at its rate"
    assert step_account(read(TitanLines(), titan(STEADY, start=False))).clock == "rates alone"
    assert step_account(read(TrainerLines(), trainer(STEADY))).typical_s == pytest.approx(2.02, rel=0.05)


def test_a_step_that_every_rank_tells_is_one_entry() -> None:
    """Ranks that all write, one a little before another, as they do where no rank is chosen."""
    told = list(titan([0.5, 0.5, 2.0, 0.5, 0.5], start=False))
    memory = [f"{61 + rank}.00GiB(8{rank}.00%)" for rank in range(3)]
    of_ranks = [line.replace("61.20GiB(77.36%)", own) for line in told for own in memory]
    of_ranks[2], of_ranks[3] = of_ranks[3], of_ranks[2]  # the last rank's line comes after another's next
    alone, together = read(TitanLines(), told), read(TitanLines(), of_ranks)
    assert together.columns["step"].tolist() == alone.columns["step"].tolist()
    assert together.columns["memory_bytes"].tolist() == [63.0 * 2**30] * 5
    assert together.columns["memory_share"].tolist() == [0.82] * 5
    found, one = step_account(together), step_account(alone)
    assert (found.stalls.number, found.stalls.share) == (1, one.stalls.share)


def test_what_a_trainer_states_is_read() -> None:
    log = read(MegatronLines(), megatron(STEADY, flops=412.5))
    assert (log.num_gpus, log.sequence, log.global_batch, log.dtype) == (GPUS, SEQUENCE, BATCH, "bfloat16")
    assert log.layout == {"tp": 2}
    assert log.columns["flops_per_s"][0] == pytest.approx(412.5e12)
    assert log.columns["memory_bytes"][0] == pytest.approx(16334 * 2**20)
    log = read(TitanLines(), titan(STEADY))
    assert (log.hardware, log.model, log.num_parameters) == ("NVIDIA H100 80GB HBM3", "llama3 8B", 8_030_261_248)
    assert (log.num_gpus, log.sequence, log.global_batch) == (GPUS, SEQUENCE, BATCH)
    assert log.peak_flops_per_s == 9.89e14
    assert log.columns["memory_bytes"][0] == pytest.approx(61.20 * 2**30)
    log = read(TrainerLines(), trainer(STEADY, texts=True))
    assert log.global_batch == BATCH
    assert log.total_s == pytest.approx(10 * sum(STEADY))
    assert log.rates["steps"] == pytest.approx(1 / 2.02, rel=0.01)


def test_spikes_are_found_where_they_were_put_and_nowhere_else() -> None:
    account = step_account(read(MegatronLines(), megatron(STEADY, loss=spiked())))
    assert [step for step, _ in account.spikes] == [310, 480]
    assert account.in_spikes == pytest.approx(3 / 60)
    calm = step_account(read(MegatronLines(), megatron(STEADY)))
    assert not calm.spikes
    assert (calm.lost_since, calm.skipped, calm.slower) == (None, 0.0, None)
    gone = step_account(read(TitanLines(), titan(STEADY, loss=lost())))
    assert gone.lost_since == 481
    assert gone.after_loss == pytest.approx(12 / 60)


def test_an_evaluation_has_a_bar_of_its_own() -> None:
    lines = list(trainer(STEADY))
    lines.insert(40, " 50%|#####     | 200/400 [00:00:01<00:00:01, 99.0it/s]")
    lines.insert(41, "{'eval_loss': 2.0, 'eval_runtime': 1.5, 'eval_samples_per_second': 9.0}")
    log = read(TrainerLines(), lines)
    assert step_account(log).typical_s == pytest.approx(2.02, rel=0.05)
    assert not any(math.isnan(step) for step in log.columns["step"])


def test_one_entry_is_a_start_and_no_typical_step() -> None:
    account = step_account(read(MegatronLines(), megatron(STEADY[:1])))
    assert (account.entries, account.typical_s, account.first_ratio) == (1, None, None)


def test_steps_of_a_slow_machine_are_its_tokens_at_its_rate() -> None:
    log = StepRecord(software="a laptop", global_batch=1, sequence=6, num_gpus=3)
    for step in range(4):
        log.enter(step=step, tokens_per_s=0.5)  # each of three GPUs has two of six tokens
    assert step_account(log).typical_s == 4.0


def test_nothing_stands_beside_a_step_before_it_was_said() -> None:
    reader = MegatronLines()
    log = read(reader, megatron(STEADY))
    assert reader.taken == log.entries == len(STEADY)
    assert not any(log.columns["beside"])


def test_a_packed_log_is_unpacked() -> None:
    assert list(LogLines(io.BytesIO(gzip.compress(b"step 1\n\nstep 2\n")), name="log.gz")) == ["step 1", "step 2"]
