"""What is wrong here? A symptom; then the loop, the cause, what to look at first and what to do, each among other
scenarios' entries. Each column is scored for itself; the loop alone makes no answer wrong, for some illnesses sit
between two.
"""

import functools
import random
from collections.abc import Callable

from threeloops.drills.engine.drill import seeded
from threeloops.room.idea import idea_of
from threeloops.room.kinds.scenario_near import NEAR
from threeloops.room.kinds.scenario_table import SCENARIOS, Scenario
from threeloops.room.letters import Column, Option, judged, wanted
from threeloops.room.question import Question, Subject

BY_KEY = {scenario.key: scenario for scenario in SCENARIOS}
LOOPS = {
    "inner": "inner: is one GPU doing useful work?",
    "training": "training: do many GPUs act like one?",
    "product": "product: is the model served on time and at a price?",
    "driving": "driving: does the car know in time?",
}
OFFERED = 4
PARTS: dict[str, Callable[[Scenario], str]] = {
    "Cause": lambda row: row.cause,
    "First look": lambda row: row.look,
    "Fix": lambda row: row.fix,
}
TITLE, TOPIC, TARGET_S = "What is wrong here?", "debugging", 120.0


def near(scenario: Scenario) -> list[Scenario]:
    """The rows that this one could be taken for, and whose entries its symptom rules out."""
    return [BY_KEY[key] for key in NEAR[scenario.key]]


def columns(scenario: Scenario, rng: random.Random) -> tuple[Column, ...]:
    """What there is to decide, with the options in the order of this seed."""
    loops = tuple(Option(key=key, text=text) for key, text in LOOPS.items())
    chosen = [Column(name="Loop", options=loops, right=scenario.loop, decides=False)]
    against = NEAR[scenario.key]
    for name, part in PARTS.items():
        rows = [scenario, *rng.sample(near(scenario), OFFERED - 1)]
        options = tuple(
            Option(key=row.key, text=part(row), against=against.get(row.key, "")) for row in rng.sample(rows, OFFERED)
        )
        chosen.append(Column(name=name, options=options, right=scenario.key))
    return tuple(chosen)


def what_is_wrong(key: str, seed: str) -> Question:
    """A scenario as a question."""
    scenario = BY_KEY[key]
    offered = columns(scenario, seeded("scenario", seed, key))
    told = "\n".join(f"  {column.name}: {column.letter}, {column.told}" for column in offered)
    return _subject(scenario).as_question(
        kind="scenario",
        seed=seed,
        text=f"{scenario.symptom}\n" + "\n".join(column.lines for column in offered) + f"\n{wanted(offered)}",
        hints=(
            f"It is the {scenario.loop} loop.",
            f"You would look first at this: {scenario.look}.",
            f"The cause: {scenario.cause}.",
        ),
        judge=lambda written: judged(written, offered),
        working=f"{told}\n  Source: {scenario.source}",
    )


def _subject(scenario: Scenario) -> Subject:
    return Subject(
        key=f"scenario-{scenario.key}",
        title=TITLE,  # the same for all: a title must not tell
        topic=TOPIC,
        loop=scenario.loop,
        section=scenario.section,
        target_s=TARGET_S,
    )


IDEAS = tuple(
    idea_of(_subject(scenario), {"scenario": functools.partial(what_is_wrong, scenario.key)}) for scenario in SCENARIOS
)
