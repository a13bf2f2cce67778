"""`threeloops drills`: which there are, and what the author of one wants to see of it."""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threeloops.drills.engine.drill import Drill
    from threeloops.drills.engine.trial import Trial


def add_drills(commands: Any) -> None:
    """Add the command."""
    drills = commands.add_parser("drills", help="for authors: all ideas, and one of them drawn a thousand times")
    verbs = drills.add_subparsers(required=True, metavar="VERB")
    listed = verbs.add_parser("list", help="every idea's key and title")
    listed.add_argument("family", nargs="?", help="of one family alone, like kv_cache")
    listed.set_defaults(run=_list)
    trial = verbs.add_parser(
        "try", help="the question, its working, how its numbers spread, and what the tests would refuse"
    )
    trial.add_argument("key", metavar="KEY", help="the idea's key, like kv-sliding-window")
    trial.set_defaults(run=_try)


def _list(given: argparse.Namespace) -> None:
    from threeloops import checks
    from threeloops.drills.engine import bank

    if given.family:
        checks.one_of(bank.FAMILIES, family=given.family)
    width = max(map(len, bank.DRILLS))
    for family in [given.family] if given.family else bank.FAMILIES:
        print(f"{family}:")
        print(*(f"  {drill.key:{width}}  {drill.title}" for drill in bank.FAMILIES[family]), sep="\n")


def _try(given: argparse.Namespace) -> int:
    from threeloops.drills.engine import bank, trial

    drill = bank.defined(given.key)
    found = trial.tried(drill)
    print(report(drill, found))
    return bool(found.faults)


def report(drill: "Drill", found: "Trial") -> str:
    """The trial in words, the faults last."""
    from threeloops.drills.engine.student_draws import wrapped
    from threeloops.drills.engine.trial import COUNTED, DRAWS

    answers = [drill.shown(found.answers[place]) for place in (0, -1)]
    spans = [f"{name} {low:g}" + (f" to {high:g}" if high > low else "") for name, (low, high) in found.numbers.items()]
    rows = [
        f"{drill.key}: {drill.title} ({drill.family}, {drill.loop} loop)",
        "",
        wrapped(found.question),
        "",
        found.working,
        "",
        "The slips answer:",
        *(f"  {key:<{max(map(len, found.slips))}}  {answer}" for key, answer in found.slips.items()),
        "",
        f"{DRAWS:,} draws in {found.draws_s:.2f} s of processor time:",
        f"  - {len(found.answers)} different answers, from {answers[0]} to {answers[1]}",
        *([wrapped(f"  - numbers: {'; '.join(spans)}")] if spans else []),
        f"  - drawn again {sum(found.again.values()):,} times"
        + (", which is often: narrow `draw`" if sum(found.again.values()) > DRAWS else ""),
        *(f"    - {times} times: {why}" for why, times in found.again.items()),
        f"{COUNTED} small draws counted in {found.counted_s:.2f} s; {len(drill.slips)} slips made {COUNTED} times each",
        "",
        *([f"FAULT: {fault}" for fault in found.faults] or ["Nothing that the tests would refuse."]),
    ]
    return "\n".join(rows)
