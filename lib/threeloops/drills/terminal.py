"""Drills in a terminal: plain lines that also work through ssh, a pipe and a screen reader."""

import secrets

from threeloops import checks, units
from threeloops.drills.bank import DRILLS, FAMILIES
from threeloops.drills.drill import Drill, seeded
from threeloops.drills.judge import judge

HELP = "Type a number with its unit; `show` for the working, `skip` for the next question, `quit` to stop."


def chosen(topic: str | None) -> list[Drill]:
    """The drills of a family, one drill by key, or all of them."""
    if topic is None:
        return list(DRILLS.values())
    checks.one_of([*FAMILIES, *DRILLS], topic=topic)
    return list(FAMILIES[topic]) if topic in FAMILIES else [DRILLS[topic]]


def practise(topic: str | None, *, seed: str | None) -> None:
    """Ask until the reader stops; every round draws new numbers, and a seed brings the same ones back."""
    drills, seed = chosen(topic), seed or secrets.token_hex(3)
    print(f"{units.counted(len(drills), 'question')}, fresh numbers; `--seed {seed}` brings these back. {HELP}")
    right = asked = 0
    order = seeded(seed, "order")
    for round_number in range(1, 1000):
        for drill in order.sample(drills, len(drills)):
            result = _ask(drill, seed, round_number)
            if result is None:
                print(f"{right} right of {asked}.")
                return
            right, asked = right + result, asked + 1
        print(f"\nThat was round {round_number}: {right} right of {asked}. Again, with other numbers.")


def _ask(drill: Drill, seed: str, round_number: int) -> bool | None:
    """Ask one question until it is right, skipped or shown: right at the first try? None when the reader stops."""
    p = drill.draw(seeded(seed, str(round_number), drill.key))
    print(f"\n{drill.title} (about {drill.target_s} s)\n{drill.ask(p)}")
    first_try = True
    while True:
        try:
            written = input("> ").strip()
        except EOFError:
            print()
            return None
        if written in ("quit", "q", "exit"):
            return None
        if written in ("skip", "s"):
            return False
        if written in ("help", "h", "?"):
            print(HELP)
            continue
        if written == "show":
            print(working(drill, p))
            return False
        verdict = judge(drill, p, written)
        print(verdict.message)
        if verdict.right:
            print(working(drill, p))
            return first_try
        first_try = first_try and verdict.status == "unreadable"  # a missing unit is asked again, not held against anyone


def working(drill: Drill, p: object) -> str:
    """The derivation with this draw's numbers put in."""
    derivation = drill.derive(p)
    return f"  {derivation.formula}\n  = {derivation.substitution}\n  = {drill.shown(derivation.value)}\n  Source: {derivation.source}"
