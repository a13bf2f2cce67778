"""Drawn wait explorer: draw how long requests wait for a server that is busier and busier, then see it.

In a notebook:

    from threeloops.widgets.product_loop import drawn_wait
    drawn_wait.explorer()
"""

from threeloops.figures.curves import Axis
from threeloops.product_loop.queueing import mg1_wait_s, mm1_wait_s
from threeloops.widgets.drawn_curve import Question, State, drawing
from threeloops.widgets.explorer import Explorer

AT = (0.1, 0.3, 0.5, 0.7, 0.9, 0.95)


def wait(load: float) -> float:
    """Mean wait, in service times."""
    return mm1_wait_s(requests_per_s=load, service_s=1)


QUESTION = Question(
    asked="Draw the mean wait, in service times",
    about="One server; requests come when they like and take as long as they need (M/M/1). Before service begins.",
    answer=f"From {AT[2]:.0%} busy to {AT[4]:.0%}, the wait grows {wait(AT[4]) / wait(AT[2]):.0f} times",
    at=AT,
    x=Axis(title="share of the time that the server is busy", ticks=AT[:-1], format=".0%", low=0, high=1),
    y=Axis(title="wait (service times)", log=True, ticks=(0.1, 1, 10), low=0.05, high=50),
    unit=lambda times: f"{times:.2g}",
    truth=wait,
    slips={
        "You let the wait grow in proportion to the load. What makes it grow is what is left: it is divided by the"
        " server's free time, 1 - load.": lambda load: load,
        "You counted the request's own service. That is the time in the system, one service time more than the"
        " wait.": lambda load: wait(load) + 1,
        "That is the curve of requests that all take equally long (M/D/1): they wait half as long.": lambda load: (
            mg1_wait_s(requests_per_s=load, service_s=1, service_cv=0)
        ),
    },
)


def explorer() -> Explorer[State]:
    """The explorer, with nothing drawn; as the last line of a cell, it shows itself."""
    return drawing(QUESTION)
