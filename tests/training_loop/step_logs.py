"""Training logs made by a clock of our own, in the forms of three trainers, each by that trainer's own strings.

Source of the strings: Megatron-LM, megatron/training/training.py (training_log, of 2023 without a stamp and of 2025)
and arguments.py; torchtitan, components/metrics.py (of 2024 with wps, of 2025 with tps) and train.py; transformers,
trainer.py and trainer_callback.py (4, and 5 with numbers as texts), tqdm's bar.
"""

import math
from collections.abc import Callable, Iterator, Sequence

SEQUENCE, BATCH, GPUS = 4096, 256, 64


def _stamp(second: float) -> str:
    hours, rest = divmod(int(second), 3600)
    return f"{hours:02}:{rest // 60:02}:{rest % 60:02}"


def losses(number: int) -> list[float]:
    """A calm curve with a little noise of its own."""
    return [2.0 + 3.0 / math.sqrt(step + 4) + 0.004 * math.sin(7 * step) for step in range(number)]


def megatron(
    seconds: Sequence[float], *, loss: Sequence[float] = (), every: int = 10, save_every: int = 0, save_s: float = 0.0,
    skipped: Callable[[int], int] = lambda _: 0, stamped: bool = True, flops: float | None = None,
) -> Iterator[str]:  # fmt: skip
    """Entries of `every` steps; between some of them a checkpoint is written, which no step's time has in it."""
    yield "------------------------ arguments ------------------------"
    for name, value in (
        ("params_dtype", "torch.bfloat16"), ("seq_length", SEQUENCE), ("tensor_model_parallel_size", 2),
        ("world_size", GPUS),
    ):  # fmt: skip
        yield f"  {name} {'.' * (48 - len(name))} {value}"
    now = 0.0
    for place, each in enumerate(seconds):
        step, now = (place + 1) * every, now + each * every
        told = f" [2025-08-01 {_stamp(now)}]" if stamped else ""
        rate = f" throughput per GPU (TFLOP/s/GPU): {flops:.1f} |" if flops else ""
        value = loss[place] if loss else losses(len(seconds))[place]
        yield (
            f"{told} iteration {step:8d}/  100000 | consumed samples: {step * BATCH:12d} | elapsed time per iteration"
            f" (ms): {each * 1e3:.1f} |{rate} learning rate: 1.200000E-04 | global batch size: {BATCH:5d} | lm loss:"
            f" {value:.6E} | loss scale: 1.0 | grad norm: 0.231 | number of skipped iterations: {skipped(place):3d} |"
            " number of nan iterations:   0 |"
        )
        if place == 0:
            yield (
                "[Rank 0] (after 10 iterations) memory (MB) | allocated: 10770.4 | max allocated: 15754.9 | reserved:"
                " 16334.0 | max reserved: 16334.0"
            )
        if save_every and (place + 1) % save_every == 0:
            yield f"saving checkpoint at iteration {step:7d} to /checkpoints in torch_dist format"
            now += save_s


def titan(
    seconds: Sequence[float], *, loss: Sequence[float] = (), mfu: float = 0.4, older: bool = False, start: bool = True
) -> Iterator[str]:
    """An entry every ten steps; step times are in its tokens a second alone."""
    if start:
        said = "[rank0]:[titan] 2025-11-25 00:00:01,100 - root - INFO - "
        yield f"{said}CUDA capacity: NVIDIA H100 80GB HBM3 with 79.11GiB memory"
        yield (
            "[rank0]:[titan] 2025-11-25 00:00:02,100 - root - INFO - Building device mesh with parallelism: pp=1,"
            f" dp_replicate=1, dp_shard={GPUS}, cp=1, tp=1, ep=1, etp=1"
        )
        yield (f"{said}\x1b[34mModel llama3 8B \x1b[31msize: 8,030,261,248 total parameters\x1b[39m")
        yield "[rank0]:[titan] 2025-11-25 00:00:04,100 - root - INFO - Peak FLOPS used for computing MFU: 9.890e+14"
        yield (
            f"[rank0]:[titan] 2025-11-25 00:00:05,100 - root - INFO - Trainer is initialized with local batch size 4,"
            f" global batch size {BATCH}, gradient accumulation steps 1, sequence length {SEQUENCE}, total steps 1000"
        )
    now = 6.0
    for place, each in enumerate(seconds):
        now += 10 * each
        rate = BATCH * SEQUENCE / GPUS / each
        share = mfu * min(seconds) / each
        name, flops = ("wps", "") if older else ("tps", f"\x1b[36mtflops: {share * 989:,.2f}  ")
        value = loss[place] if loss else losses(len(seconds))[place]
        yield (
            f"[rank0]:[titan] 2025-11-25 {_stamp(now)},441 - root - INFO - \x1b[31mstep: {place * 10 + 1:2} "
            f" \x1b[32mloss: {value:7.4f}  \x1b[33mmemory: 61.20GiB(77.36%)  \x1b[34m{name}: {round(rate):,}"
            f"  {flops}\x1b[35mmfu: {100 * share:.2f}%\x1b[39m"
        )


def trainer(seconds: Sequence[float], *, texts: bool = False, total: int | None = None) -> Iterator[str]:
    """An entry every ten steps, a bar before each, a summary."""
    number = total or 10 * len(seconds)
    yield "[INFO|trainer.py:2414] 2025-12-18 13:23:51,171 >>   Instantaneous batch size per device = 4"
    yield f"[INFO|trainer.py:2417] >>   Total train batch size (w. parallel, distributed & accumulation) = {BATCH}"
    yield f"[INFO|trainer.py:2419] >>   Total optimization steps = {number:,}"
    now = 0.0
    for place, each in enumerate(seconds):
        step, now = (place + 1) * 10, now + 10 * each
        yield f" {100 * step // number}%|####      | {step}/{number} [{_stamp(now)}<00:10,  {each:.2f}s/it]"
        told = {"loss": round(losses(len(seconds))[place], 4), "grad_norm": 0.5, "learning_rate": 5e-05, "epoch": 0.1}
        yield str({name: str(value) for name, value in told.items()} if texts else told)
    whole = {
        "train_runtime": now, "train_samples_per_second": round(number * BATCH / now, 3),
        "train_steps_per_second": round(number / now, 3), "train_loss": 2.5, "epoch": 1.0,
    }  # fmt: skip
    yield str({name: str(value) for name, value in whole.items()} if texts else whole)
