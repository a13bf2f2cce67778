"""What every idea asks, as one hash an idea: a change that should move no number is held against it.

`python -m tests.drills.digests` compares all draws with those that are committed and names what differs (`--family
kv_cache`: of one family); `--write` commits what there is now. The tests compare the first draws of each.
"""

import argparse
import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from threeloops.drills.coding.tasks import TASKS
from threeloops.drills.engine.bank import DRILLS, FAMILIES
from threeloops.drills.engine.drill import Draw, Drill, seeded
from threeloops.drills.engine.function_bank import FUNCTIONS
from threeloops.drills.engine.functions import Asked, Mistake
from threeloops.drills.engine.kernel_task import KernelTask

COMMITTED = Path(__file__).with_name("digests.json")
FIRST, ALL, SMALL = 10, 1000, 50  # draws: those a test compares, those of the script, those that are counted
SLOW = ("code-bpe", "code-thread-safe-batcher", "code-vliw-schedule", "code-grammar-mask")  # tasks
LONG = 12  # hexadecimal digits


def said(value: object) -> object:
    """As it is hashed: of a number nine digits, because the last of a sum are the machine's own."""
    if isinstance(value, float):
        return f"{value:.9g}"
    return [said(one) for one in value] if isinstance(value, tuple | list) else repr(value)


def of_drill(drill: Drill, seeds: range) -> Iterator[object]:
    """Question, working and slips of each draw."""
    for seed in seeds:
        p = drill.draw(seeded("test", str(seed), drill.key))
        derivation = drill.derive(p)
        yield [drill.ask(p), derivation.formula, derivation.in_numbers, derivation.source, said(derivation.value)]
        yield [[slip.key, said(slip.wrong(p)), slip.story] for slip in drill.slips]


def of_small(drill: Drill, seeds: range) -> Iterator[object]:
    """The answers of the draws that are counted."""
    return (said(drill.derive(drill.small(random.Random(seed))).value) for seed in seeds[:SMALL])


def of_asked(asked: Asked, seeds: range) -> Iterator[object]:
    """What a function is called with, what it should return and what each slip would."""
    for seed in seeds:
        for p in asked.draws("test", str(seed)):
            yield [{name: said(value) for name, value in asked.arguments(p).items()}, said(asked.target(p))]
            yield [[slip.key, said(_wrong(slip, p)), slip.story] for slip in asked.slips]


def few(seeds: range) -> range:
    """Of many draws a twentieth."""
    return seeds[: max(FIRST, len(seeds) // 20)]


def of_slow(asked: Asked, seeds: range) -> Iterator[object]:
    """The same for a task whose draws are sought long, or whose answer is long to run."""
    return of_asked(asked, few(seeds))


def of_kernel(asked: Asked, seeds: range) -> Iterator[object]:
    """The same for a kernel, whose answers are counted and not run, and whose mistakes are read."""
    assert isinstance(asked, KernelTask)
    seeds = few(seeds)
    yield [asked.solution, [[change.key, asked.changed(change), change.story] for change in asked.changes]]
    for seed in seeds:
        for p in asked.draws("test", str(seed)):
            yield [{name: said(value) for name, value in asked.arguments(p).items()}, said(asked.count(p))]


def of_task(one: Asked) -> Callable[[Any, range], Iterable[object]]:
    return of_kernel if isinstance(one, KernelTask) else of_slow if one.key in SLOW else of_asked


def _wrong(slip: Mistake, p: Draw) -> object:
    try:
        return slip.wrong(p)
    except (ArithmeticError, ValueError, LookupError):  # a slip may have no value in a limit case
        return "none"


def hashed() -> dict[str, tuple[Callable[[Any, range], Iterable[object]], Drill | Asked]]:
    """What is hashed, and how: every idea, its small draws, every function and every task."""
    return (
        {f"drill {key}": (of_drill, one) for key, one in DRILLS.items()}
        | {f"small {key}": (of_small, one) for key, one in DRILLS.items()}
        | {f"function {key}": (of_asked, one) for key, one in FUNCTIONS.items()}
        | {f"task {key}": (of_task(one), one) for key, one in TASKS.items()}
    )


def digest(key: str, draws: int) -> str:
    """The hash of that many draws."""
    parts, one = hashed()[key]
    made = hashlib.sha256()
    for part in parts(one, range(draws)):
        made.update(json.dumps(part, sort_keys=True).encode())
    return made.hexdigest()[:LONG]


def committed() -> dict[str, list[str]]:
    """By idea: the hash of the first draws and that of all."""
    return json.loads(COMMITTED.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare what every idea asks with what is committed.")
    parser.add_argument("--write", action="store_true", help="commit what there is now")
    parser.add_argument("--draws", type=int, default=ALL, choices=(FIRST, ALL), help="how many of each idea")
    parser.add_argument("--family", choices=FAMILIES, help="the ideas of one family alone")
    words = parser.parse_args()
    ideas = [drill.key for drill in FAMILIES[words.family]] if words.family else None
    keys = [key for key in hashed() if ideas is None or key.partition(" ")[2] in ideas]
    before = committed()
    if words.write:
        now = before | {key: [digest(key, FIRST), digest(key, ALL)] for key in keys}
        for key in keys:
            if now[key] != before.get(key):
                print(f"{'moved' if key in before else 'new'}: {key}")
        lines = ",\n".join(
            f"  {json.dumps(key)}: {json.dumps(now[key])}" for key in sorted(now.keys() & hashed().keys())
        )
        COMMITTED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
        return
    place = (FIRST, ALL).index(words.draws)
    moved = [key for key in keys if before.get(key, ["", ""])[place] != digest(key, words.draws)]
    print(*moved, f"{len(moved)} of {len(keys)} differ.", sep="\n")
    sys.exit(bool(moved))


if __name__ == "__main__":
    main()
