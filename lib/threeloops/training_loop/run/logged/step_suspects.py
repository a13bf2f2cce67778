"""Step suspects: what a training log shows the time to have gone to, the first to look at in front.

What happens beside the typical step comes first where it takes a twentieth of the time; else the step itself, as the
part of the peak that it does not reach.
"""

from dataclasses import replace

from threeloops.inner_loop.scaling import amdahl_limit
from threeloops.training_loop.run.logged.log_suspect import LogSuspect, worst_first
from threeloops.training_loop.run.logged.step_account import LostTime, StepAccount
from threeloops.training_loop.run.logged.step_record import StepRecord
from threeloops.units import counted, fmt_percent, fmt_seconds

NAN, SKIPPED, SPIKES = "loss is no number", "skipped updates", "loss spikes"
STALLS, BETWEEN, SLOWING = "long steps", "time between steps", "steps that get longer"
RETRIES, STEP = "memory at its end", "the step itself"
FROM = 0.05  # of the time: looked at before the step itself
TRY = {
    NAN: "go back to a checkpoint before that step; look at its data, the learning rate and the gradient norms",
    SKIPPED: "a smaller loss scale or bf16: a skipped update costs a step and changes nothing",
    SPIKES: "go back and leave those batches out, clip gradients, look at the learning rate",
    STALLS: "what is done every so often: saves without waiting (async), a loader that has its batch in time",
    BETWEEN: "save and evaluate less often, or without the step waiting for it (async checkpoints)",
    SLOWING: "look at clocks and temperatures, longer samples, something that grows (a list, a cache, a memory leak)",
    RETRIES: "a smaller micro-batch or more recomputation: the allocator frees its cache and asks again, in the step",
    STEP: "take a few steps apart: exchanges, kernels below their roof, gaps",
}
WHY_LONG = "a trace of such a step; the other ranks' step times, and the time that the loader is waited for"


def step_suspects(log: StepRecord, account: StepAccount, *, mfu: float | None) -> tuple[LogSuspect, ...]:
    """Suspects, the one to look at first in front.

    Formula:  at most 1 / (1 - share) times as fast, Amdahl's limit; the step itself at most 1 / mfu
    Units:    mfu: of the typical step, 0 to 1; None where it is not known
    Assumes:  no step is faster than its FLOPs at the dense peak
    Source:   Amdahl, 1967, doi:10.1145/1465482.1465560; Chowdhery et al., 2022, arXiv:2204.02311, appendix B
    Counted:  tests.training_loop.test_step_logs.test_repaired_runs_are_as_much_faster_as_was_said
    """
    found = [*_wholes(log, account), *_beside_the_step(account)]
    if mfu is not None and 0 < mfu < 1:
        because = f"{fmt_percent(1 - mfu)} of a step's time is not FLOPs at the peak: MFU {fmt_percent(mfu)}"
        found.append(_suspect(STEP, 1 - mfu, because, "`threeloops trace` of a few steps: a log has no kernels"))
    elif mfu is None:
        because = "how far the typical step is from the peak the log does not say"
        missing = "--model, --hardware and --dtype (and --sequence, --gpus, where the log does not state them)"
        found.append(
            LogSuspect(illness=STEP, share=None, because=because, at_most=None, first_try=TRY[STEP],
                       record_next=missing)
        )  # fmt: skip
    wanted = {STALLS, BETWEEN, SLOWING, SKIPPED}
    return worst_first(
        replace(one, first=one.first or (one.illness in wanted and (one.share or 0.0) >= FROM)) for one in found
    )


def _suspect(illness: str, share: float, because: str, record_next: str = "", *, first: bool = False) -> LogSuspect:
    limit = amdahl_limit(accelerated_share=share) if 0 < share < 1 else None
    return LogSuspect(
        illness=illness, share=share, because=because, at_most=limit, first_try=TRY[illness],
        record_next=record_next, first=first,
    )  # fmt: skip


def _wholes(log: StepRecord, account: StepAccount) -> list[LogSuspect]:
    """What makes steps useless, or has no share."""
    found = []
    if account.lost_since is not None:
        because = f"from step {account.lost_since:,.0f} on, {fmt_percent(account.after_loss)} of all that are logged"
        found.append(_suspect(NAN, account.after_loss, because, "gradient norms and batches of the steps before"))
        found[-1] = replace(found[-1], first=True)
    if account.skipped:
        because = f"{account.skipped_number:,} updates were skipped, {fmt_percent(account.skipped)} of them"
        found.append(_suspect(SKIPPED, account.skipped, because))
    if account.spikes:
        steps = ", ".join(f"{step:,.0f}" for step, _ in account.spikes[:3])
        more = f" and {len(account.spikes) - 3:,} more" if len(account.spikes) > 3 else ""
        because = f"{counted(len(account.spikes), 'spike')}, from step {steps}{more}"
        because += f"; {fmt_percent(account.in_spikes)} of the entries lie in them"
        found.append(_suspect(SPIKES, account.in_spikes, because, "gradient norms and batches of those steps"))
    if log.retries:
        because = f"{counted(log.retries, 'line')} of allocation retries"
        found.append(
            LogSuspect(
                illness=RETRIES, share=None, because=because, at_most=None, first_try=TRY[RETRIES],
                record_next="how much longer those steps are: `threeloops trace` shows the allocator's calls",
                first=True,
            )
        )  # fmt: skip
    return found


def _beside_the_step(account: StepAccount) -> list[LogSuspect]:
    found = []
    for illness, lost in ((STALLS, account.stalls), (BETWEEN, account.between)):
        if lost and lost.number:
            found.append(_suspect(illness, lost.share, _because(illness, lost), _undecided(lost)))
    if account.slower:
        share = 1 - 1 / account.slower
        because = f"a step of the last quarter takes {account.slower:.2f} times as long as one of the first"
        found.append(_suspect(SLOWING, share, because, "clocks and temperatures beside it; a trace early and one late"))
    return found


def _because(illness: str, lost: LostTime) -> str:
    many = "1 entry is" if lost.number == 1 else f"{lost.number:,} entries are"
    between = f"{counted(lost.number, 'time')} something lay between two lines"
    what = f"{many} longer than 1.5 typical ones" if illness == STALLS else between
    said = f"{what}; {fmt_percent(lost.share)} of the time, beyond the steps' own"
    said += f" ({fmt_seconds(lost.seconds)})" if illness == BETWEEN else ""
    said += f", most at step {lost.longest_at:,.0f}" if lost.longest_at == lost.longest_at else ""
    return said + (f"; before most of it stands {lost.beside}" if lost.beside else "")


def _undecided(lost: LostTime) -> str:
    return "" if lost.beside else WHY_LONG
