"""Step lines: what Megatron-LM, torchtitan and the HF Trainer write about their steps.

>>> lines = MegatronLines()
>>> lines.take(
...     " iteration 20/ 100 | consumed samples: 5120 | elapsed time per iteration (ms): 800.0 | lm loss: 2.5E+00 |"
... )
True
>>> lines.record.columns["step_s"].tolist()
[0.8]

Source: NVIDIA, Megatron-LM, megatron/training/training.py, training_log, and arguments.py, _print_args; pytorch,
        torchtitan, components/metrics.py, MetricsProcessor.log, and train.py; Hugging Face, transformers, trainer.py
        (log, speed_metrics) and trainer_callback.py (ProgressCallback)
"""

import ast
import functools
import math
import re

from threeloops.training_loop.run.logged.log_lines import LogClock
from threeloops.training_loop.run.logged.step_record import STATED, StepRecord
from threeloops.units import TFLOP, GiB, MiB, hour, minute, ms

CHECKPOINT, EVALUATION = 1, 2  # places of BESIDE
_NUMBER = r"([-+]?(?:\d[\d,]*\.?\d*(?:[eE][-+]?\d+)?|nan|inf))"


def number_after(line: str, *words: str) -> float | None:
    """The number that stands behind a word and a colon, an equals sign or spaces; of several words, the first that is
    there. None for more digits than a number has.

    >>> number_after("step:  1  loss: 12.25  tps: 3,120", "wps", "tps")
    3120.0
    """
    for word in words:
        if found := _after(word).search(line):
            value = float(found[1].replace(",", ""))
            return None if math.isinf(value) else value
    return None


@functools.cache
def _after(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-]){re.escape(word)}\s*[:=]?\s*{_NUMBER}", re.IGNORECASE)


class MegatronLines:
    """Megatron-LM, and what was made of it (DeepSpeed, NeMo): one line every --log-interval iterations."""

    def __init__(self) -> None:
        self.record = StepRecord(software="Megatron-LM", clock=STATED)
        self.taken = self._beside = 0
        self._clock = LogClock()

    def take(self, line: str) -> bool:
        """Whether the line says something of a step."""
        if "elapsed time per iteration (ms)" in line:
            self._step(line)
            self.taken += 1
            return True
        if "saving checkpoint at iteration" in line or "saved checkpoint from iteration" in line:
            self._beside = CHECKPOINT
        elif "validation loss at iteration" in line:
            self._beside = self._beside or EVALUATION
        elif "max reserved:" in line or "max allocated:" in line:
            self._memory(line)
        elif "....." in line:
            self._argument(line)
        return False

    def _step(self, line: str) -> None:
        step = re.search(r"iteration\s+(\d+)\s*/", line)
        elapsed_ms = number_after(line, "elapsed time per iteration (ms)")
        throughput = number_after(line, "throughput per GPU (TFLOP/s/GPU)", "TFLOPs", "tflops per gpu")
        losses = [float(value) for value in re.findall(r"\|\s*(?:lm )?loss: " + _NUMBER, line, re.IGNORECASE)]
        skipped = number_after(line, "number of skipped iterations")
        nans = number_after(line, "number of nan iterations")
        if batch := number_after(line, "global batch size"):
            self.record.global_batch = int(batch)
        self.record.enter(
            step=float(step[1]) if step else None,
            step_s=elapsed_ms * ms if elapsed_ms is not None else None,
            flops_per_s=throughput * TFLOP if throughput is not None else None,
            loss=losses[0] if losses else None,
            at_s=self._clock.seconds(line),
            skipped=max((value for value in (skipped, nans) if value is not None), default=None),
            beside=float(self._beside),
        )
        self._beside = 0

    def _memory(self, line: str) -> None:
        held = number_after(line, "max reserved", "max allocated")
        if held is not None and self.record.entries:  # its MB are MiB
            # after an entry of its own; several ranks tell theirs, and the largest counts
            column = self.record.columns["memory_bytes"]
            column[-1] = held * MiB if math.isnan(column[-1]) else max(column[-1], held * MiB)

    def _argument(self, line: str) -> None:
        found = re.search(r"(\w+) \.{3,} (\S+)", line)
        if not found:
            return
        name, value = found.groups()
        record, whole = self.record, int(value) if value.isdecimal() else None
        places = {
            **{f"{long}_model_parallel_size": short for long, short in (("tensor", "tp"), ("pipeline", "pp"))},
            **{"context_parallel_size": "cp", "expert_model_parallel_size": "ep", "data_parallel_size": "dp"},
        }
        if whole is not None and name in places:
            record.layout[places[name]] = whole
        elif name == "world_size" and whole:
            record.num_gpus = whole
        elif name == "seq_length" and whole:
            record.sequence = whole
        elif name == "params_dtype" and value.startswith("torch."):
            record.dtype = value.removeprefix("torch.")


class TitanLines:
    """torchtitan: one line every metrics.log_freq steps, for one GPU."""

    def __init__(self) -> None:
        self.record = StepRecord(software="torchtitan")
        self.taken = self._beside = 0
        self._clock = LogClock()

    def take(self, line: str) -> bool:
        """Whether the line says something of a step."""
        if "step:" in line and re.search(r"\bstep:\s*\d+ +loss:.*(?:tps|wps):", line) and "validate step" not in line:
            self._step(line)
            self.taken += 1
            return True
        record = self.record
        if "validate step:" in line:
            self._beside = self._beside or EVALUATION
        elif "heckpoint" in line and re.search(
            r"Saving the checkpoint|Saving a full checkpoint|Finished saving the checkpoint", line
        ):
            self._beside = CHECKPOINT
        elif "memory allocation retries" in line:
            record.retries += 1
        elif "GiB memory" in line and (found := re.search(r"capacity: (.+?) with ([\d.]+) ?GiB memory", line)):
            record.hardware, record.memory_bytes = found[1], float(found[2]) * GiB
        elif "total parameters" in line and (
            found := re.search(r"Model (\S+) (\S+) size: ([\d,]+) total parameters", line)
        ):
            record.model, record.num_parameters = f"{found[1]} {found[2]}", float(found[3].replace(",", ""))
        elif "Peak FLOPS used for computing MFU" in line:
            record.peak_flops_per_s = number_after(line, "Peak FLOPS used for computing MFU")
        elif "Building" in line and "device mesh" in line:
            self._mesh(line)
        elif "Trainer is initialized with" in line or "Trainer initialized." in line:
            self._trainer(line)
        return False

    def _step(self, line: str) -> None:
        memory = re.search(r"memory:\s*([\d.]+)GiB\(([\d.]+)%\)", line)
        mfu, flops = number_after(line, "mfu"), number_after(line, "tflops")
        step = number_after(line, "step")
        if step in self.record.columns["step"][-2:]:  # told by every rank, if none is chosen: one step is one entry
            self._of_another_rank(step, memory)
            return
        self.record.enter(
            step=step,
            tokens_per_s=number_after(line, "tps", "wps"),
            flops_per_s=flops * TFLOP if flops is not None else None,
            mfu=mfu / 100 if mfu is not None else None,
            memory_bytes=float(memory[1]) * GiB if memory else None,
            memory_share=float(memory[2]) / 100 if memory else None,
            loss=number_after(line, "loss", "global_avg_loss"),
            at_s=self._clock.seconds(line),
            beside=float(self._beside),
        )
        self._beside = 0

    def _of_another_rank(self, step: float | None, memory: re.Match[str] | None) -> None:
        if memory:
            place = len(self.record.columns["step"]) - (1 if step == self.record.columns["step"][-1] else 2)
            for name, told in (("memory_bytes", float(memory[1]) * GiB), ("memory_share", float(memory[2]) / 100)):
                self.record.columns[name][place] = max(told, self.record.columns[name][place])

    def _mesh(self, line: str) -> None:
        degrees = {name: int(size) for name, size in re.findall(r"\b(pp|dp_replicate|dp_shard|cp|tp|ep)=(\d+)", line)}
        if degrees:
            layout = {name: degrees[name] for name in ("tp", "pp", "cp", "ep") if name in degrees}
            layout["dp"] = degrees.get("dp_replicate", 1) * degrees.get("dp_shard", 1)
            self.record.layout = layout
            self.record.num_gpus = math.prod(size for name, size in layout.items() if name != "ep")

    def _trainer(self, line: str) -> None:
        batch, sequence = number_after(line, "global batch size"), number_after(line, "sequence length")
        self.record.global_batch = int(batch) if batch else None
        self.record.sequence = int(sequence) if sequence else None


class TrainerLines:
    """The HF Trainer: a dictionary every logging_steps, a progress bar, a summary at the end."""

    def __init__(self) -> None:
        self.record = StepRecord(software="HF Trainer")
        self.taken = self._beside = self._total = 0
        self._bar: tuple[int, float] | None = None  # the newest step of the bar, and its seconds since the start
        self._entered: tuple[int, float] | None = None  # the same at the newest entry

    def take(self, line: str) -> bool:
        """Whether the line says something of a step."""
        if "%|" in line and (found := re.search(r"\b(\d+)/(\d+) \[((?:\d+:)?\d+:\d\d)<", line)):
            self._progress(int(found[1]), int(found[2]), found[3])
        told = _dictionary(line)
        if told is None:
            self._stated(line)
            return False
        if "train_runtime" in told and "train_loss" in told:
            self._summary(told)
        elif "loss" in told:
            self._entry(told)
        elif "eval_loss" in told or "eval_runtime" in told:
            self._beside = self._beside or EVALUATION
            return False
        else:
            return False
        self.taken += 1
        return True

    def _progress(self, step: int, total: int, clock: str) -> None:
        self._total = self._total or total
        if total == self._total:  # an evaluation has a bar of its own
            hours, minutes, seconds = [0, *map(int, clock.split(":"))][-3:]
            self._bar = step, float(hours * hour + minutes * minute + seconds)

    def _entry(self, told: dict[str, float]) -> None:
        step = step_s = None
        if self._bar:
            step, elapsed_s = self._bar
            before, then_s = self._entered or (0, 0.0)
            if step > before:
                step_s = (elapsed_s - then_s) / (step - before)
                self.record.clock = "a progress bar"
            self._entered = self._bar
        self.record.enter(
            step=step, step_s=step_s, loss=told["loss"], skipped=None, beside=float(self._beside), at_s=None
        )
        self._beside = 0

    def _summary(self, told: dict[str, float]) -> None:
        self.record.total_s = told["train_runtime"]
        for name, rate in (("train_samples_per_second", "samples"), ("train_steps_per_second", "steps")):
            if name in told:
                self.record.rates[rate] = told[name]

    def _stated(self, line: str) -> None:
        record = self.record
        if "Total train batch size" in line and (batch := re.search(r"=\s*([\d,]+)", line)):
            record.global_batch = int(batch[1].replace(",", ""))
        elif "Number of trainable parameters" in line and (number := re.search(r"=\s*([\d,]+)", line)):
            record.num_parameters = float(number[1].replace(",", ""))
        elif "Total optimization steps" in line and (total := re.search(r"=\s*([\d,]+)", line)):
            self._total = int(total[1].replace(",", ""))
        elif "Saving model checkpoint to" in line:
            self._beside = CHECKPOINT


def _dictionary(line: str) -> dict[str, float] | None:
    """The dictionary of numbers at a line's end: as numbers, or as texts of numbers (transformers from 5.0 on)."""
    begin, end = line.find("{'"), line.rfind("}")
    if begin < 0 or end < begin or ("loss'" not in line and "runtime'" not in line):
        return None
    try:
        told = ast.literal_eval(re.sub(r": (nan|inf|-inf)(?=[,}])", r": '\1'", line[begin : end + 1]))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    numbers = {}
    for name, value in told.items() if isinstance(told, dict) else ():
        try:
            numbers[str(name)] = float(value)
        except (TypeError, ValueError):
            continue
    return numbers
