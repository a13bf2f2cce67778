"""A small training run, in a process of its own, that is killed and resumed from its checkpoint; once with everything
restored, once with a part forgotten.

The run uses what makes runs hard to resume: dropout (torch's random state), an augmentation (Python's), shuffled
batches (a position in an order), AdamW (moments) and a learning rate that changes. Losses are written down with all
their bits.
"""

import multiprocessing
import os
import random
import tempfile
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from threeloops import checks, wall_clock
from threeloops.measure.processes import ranks

PARTS = ("model", "optimiser", "schedule", "torch random state", "python random state", "data position")
SAMPLES, WIDTH, BATCH = 96, 12, 8
START_LIMIT_S, TICK_S = 180.0, 0.02
TOGETHER = 4  # processes at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedRun:
    """Losses by step: of a run that was left alone, of one that was killed, and of those that went on from its
    checkpoint.
    """

    uninterrupted: tuple[float, ...]
    killed: tuple[float, ...]  # as far as it came
    exit_code: int  # of the killed process: minus the number of the signal
    saved_at: int  # steps that the checkpoint holds
    resumed: dict[str, tuple[float, ...]]  # by what was forgotten; "nothing" has all of it

    def first_difference(self, forgotten: str) -> int | None:
        """The first step whose loss is not the uninterrupted run's, bit for bit; None if there is none."""
        pairs = zip(self.uninterrupted[self.saved_at :], self.resumed[forgotten], strict=True)
        return next((self.saved_at + at for at, (one, two) in enumerate(pairs) if one != two), None)

    def largest_difference(self, forgotten: str) -> float:
        return max(
            abs(one - two)
            for one, two in zip(self.uninterrupted[self.saved_at :], self.resumed[forgotten], strict=True)
        )


class _Run:
    """Everything that a training run consists of: the parts that a checkpoint has to hold."""

    def __init__(self) -> None:
        random.seed(7)
        torch.manual_seed(7)
        data = torch.Generator().manual_seed(1)
        self.inputs = torch.randn(SAMPLES, WIDTH, generator=data)
        self.targets = torch.sin(self.inputs.sum(dim=1, keepdim=True))
        self.model = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.02)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, lambda step: min(1.0, (step + 1) / 10))
        self.order = torch.Generator().manual_seed(3)
        self.step = 0
        self._epoch()

    def _epoch(self) -> None:
        """Shuffle: from the generator's state at its start, an epoch's order can be made again."""
        self.order_state = self.order.get_state()
        self.queue = torch.randperm(SAMPLES, generator=self.order).tolist()
        self.taken = 0

    def train_step(self) -> float:
        if self.taken + BATCH > SAMPLES:
            self._epoch()
        batch = self.queue[self.taken : self.taken + BATCH]
        self.taken += BATCH
        moved = self.inputs[batch] + random.gauss(0.0, 0.05)  # an augmentation
        loss = nn.functional.mse_loss(self.model(moved), self.targets[batch])
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        return loss.item()

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {
            "step": self.step,
            "model": self.model.state_dict(),
            "optimiser": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "torch random state": torch.get_rng_state(),
            "python random state": random.getstate(),
            "data position": {"order": self.order_state, "taken": self.taken},
        }

    def restore(self, state: dict[str, Any], forget: Collection[str]) -> None:
        """Take over all parts of a checkpoint but the forgotten ones, which stay as they are in a fresh run."""
        self.step = state["step"]
        kept = {name: state[name] for name in PARTS if name not in forget}
        if "model" in kept:
            self.model.load_state_dict(kept["model"])
        if "optimiser" in kept:
            fresh = [group["lr"] for group in self.optimizer.param_groups]
            self.optimizer.load_state_dict(kept["optimiser"])
            if "schedule" in forget:  # the learning rate lies in the optimiser's groups as well
                for group, rate in zip(self.optimizer.param_groups, fresh, strict=True):
                    group["lr"] = rate
        if "schedule" in kept:
            self.schedule.load_state_dict(kept["schedule"])
            for group, rate in zip(self.optimizer.param_groups, self.schedule.get_last_lr(), strict=True):
                group["lr"] = rate
        if "torch random state" in kept:
            torch.set_rng_state(kept["torch random state"])
        if "python random state" in kept:
            random.setstate(kept["python random state"])
        if "data position" in kept:
            self.order.set_state(kept["data position"]["order"])
            self._epoch()
            self.taken = kept["data position"]["taken"]


def save(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint so that a kill at any moment leaves either the old one or the new one, never half of one."""
    part = path.with_suffix(".part")
    with part.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _train(
    folder: str, name: str, steps: int, save_every: int, pause_at: int, resume: bool, forget: Sequence[str]
) -> None:
    """In a process of its own: train, write each loss down, save now and then; from step `pause_at` on wait to be
    killed (0: never).
    """
    torch.set_num_threads(1)
    run, checkpoint = _Run(), Path(folder, "checkpoint")
    if resume:
        run.restore(torch.load(checkpoint, weights_only=False), forget)  # our own file: random states are no tensors
    with Path(folder, name).open("w", encoding="ascii") as losses:
        while run.step < steps:
            losses.write(run.train_step().hex() + "\n")
            losses.flush()
            if save_every and run.step % save_every == 0:
                save(run.state(), checkpoint)
            while pause_at and run.step >= pause_at:
                wall_clock.pause(1.0)


def _losses(path: Path) -> tuple[float, ...]:
    """The losses written so far; a line that is not complete does not count."""
    text = path.read_text(encoding="ascii") if path.exists() else ""
    return tuple(float.fromhex(line) for line in text.split("\n")[:-1])


def killed_and_resumed(*, steps: int, save_every: int, kill_at: int, forget: Sequence[str]) -> ResumedRun:
    """Train `steps` steps undisturbed; again, killed (SIGKILL) after `kill_at`; and from the checkpoint on, once for
    each part to forget.

    Raises:   ValueError for a part that no checkpoint has, or for a kill before the first save; RuntimeError if a
              process does not do its work in time
    """
    checks.count(steps=steps, save_every=save_every, kill_at=kill_at)
    for part in forget:
        checks.one_of(PARTS, forget=part)
    if not save_every <= kill_at < steps:
        raise ValueError(f"kill_at={kill_at} must lie between the first save, {save_every}, and the end, {steps}")
    ranks.warm_up()
    ways: dict[str, tuple[str, ...]] = {"nothing": (), **{part: (part,) for part in forget}}
    with (
        tempfile.TemporaryDirectory(prefix="threeloops-resumed-", ignore_cleanup_errors=True) as folder,
        ThreadPoolExecutor(TOGETHER) as starters,  # each waits for a process of its own
    ):
        whole = starters.submit(_outcome, folder, "uninterrupted", steps, 0, 0, False, ())
        killed, code = starters.submit(_outcome, folder, "killed", steps, save_every, kill_at, False, ()).result()
        started = {
            name: starters.submit(_outcome, folder, name, steps, 0, 0, True, parts) for name, parts in ways.items()
        }
        resumed = {name: run.result()[0] for name, run in started.items()}
        uninterrupted, _ = whole.result()
    saved_at = kill_at // save_every * save_every
    return ResumedRun(uninterrupted=uninterrupted, killed=killed, exit_code=code, saved_at=saved_at, resumed=resumed)


def _outcome(
    folder: str, name: str, steps: int, save_every: int, kill_at: int, resume: bool, forget: Sequence[str]
) -> tuple[tuple[float, ...], int]:
    """Run one process to its end, or to its kill; what it wrote down, and how it ended."""
    context: Any = multiprocessing.get_context(ranks.start_method())
    process = context.Process(
        target=_train, args=(folder, name, steps, save_every, kill_at, resume, forget), name=f"run-{name}"
    )
    process.start()
    path = Path(folder, name)

    def enough() -> bool:
        return bool(kill_at) and len(_losses(path)) >= kill_at and _saved(folder, save_every, kill_at)

    try:
        wall_clock.until(lambda: enough() or not process.is_alive(), limit_s=START_LIMIT_S, step_s=TICK_S)
        ended = not process.is_alive()
    finally:
        process.kill()
        process.join()
    losses = _losses(path)
    if len(losses) < (kill_at or 1) or ended == bool(kill_at):
        raise RuntimeError(
            f"run {name!r} wrote {len(losses)} of {steps} losses and left with exit code {process.exitcode}"
        )
    return losses, process.exitcode


def _saved(folder: str, save_every: int, kill_at: int) -> bool:
    """Whether the last save before the kill is on disk."""
    path = Path(folder, "checkpoint")
    wanted = kill_at // save_every * save_every
    return path.exists() and bool(torch.load(path, weights_only=False)["step"] == wanted)
