"""Task Gantt: periodic tasks on one core, who runs when, who waits, and who is late.

>>> from threeloops.simulate.driving.task_schedule import Periodic, play
>>> played = play([Periodic(name="brake", cost=1, period=4), Periodic(name="plan", cost=3, period=10)], until=10)
>>> print(task_gantt(played, unit="ms", title="Plan is preempted", caption="Two tasks.").alt)
In order of priority. brake: released at 0, 4, 8; responses 1, 1, 1 ms. plan: released at 0; responses 4 ms.
"""

from threeloops.figures.driving.lanes import Bar, Mark, lanes
from threeloops.figures.figure import Figure
from threeloops.simulate.driving.task_schedule import Played

SPOKEN = 6  # jobs of a task that the words name one by one


def task_gantt(played: Played, *, unit: str, title: str, caption: str) -> Figure:
    """A band a task, the highest priority on top: thin where a released job waits, full where it runs."""
    names = [task.name for task in played.tasks]
    late = {(one.task, one.job) for one in played.finished if one.late}
    bars = [Bar(lane=names.index(one.task), start=one.release, end=one.finish, kind="waits") for one in played.finished]
    for one in played.slices:
        kind = "holds the lock" if one.locked else "runs, late" if (one.task, one.job) in late else "runs"
        bars.append(Bar(lane=names.index(one.task), start=one.start, end=one.end, kind=kind))
    marks = [Mark(lane=names.index(job.task), at=job.release, kind="released") for job in played.finished]
    for job in played.finished:
        if job.late:
            due = job.finish - job.response + played.tasks[names.index(job.task)].relative_deadline
            marks.append(Mark(lane=names.index(job.task), at=due, kind="deadline missed"))
    return lanes(
        names,
        bars,
        span=float(played.until),
        unit=unit,
        title=title,
        caption=caption,
        alt=_words(played, unit),
        marks=marks,
    )


def _words(played: Played, unit: str) -> str:
    said = ["In order of priority."]
    for task in played.tasks:
        jobs = sorted((one for one in played.finished if one.task == task.name), key=lambda one: one.release)
        releases = ", ".join(f"{float(one.release):.4g}" for one in jobs[:SPOKEN])
        responses = ", ".join(f"{float(one.response):.4g}" for one in jobs[:SPOKEN])
        more = f" and {len(jobs) - SPOKEN} more" if len(jobs) > SPOKEN else ""
        late = sum(one.late for one in jobs)
        missed = f"; {late} late" if late else ""
        said.append(f"{task.name}: released at {releases}{more}; responses {responses} {unit}{missed}.")
    return " ".join(said)
