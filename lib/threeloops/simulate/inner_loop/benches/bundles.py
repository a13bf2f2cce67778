"""A small processor to schedule for: a bundle of instructions a cycle, eight lanes a register, and nothing that waits.

    load v1 x 3     v1 = vector 3 of x          there after 4 cycles
    mul v2 v1 a     v2 = v1 × a, lane by lane   there after 3
    add v3 v2 b     v3 = v2 + b, lane by lane   there after 2
    store y 3 v3    vector 3 of y = v3          done after 1

Registers are v0 to v15. An operand is a register or one of the constants a, b, c. A bundle holds at most one load, one
store, one mul and one add, which all begin in its cycle; an empty bundle is a cycle in which nothing begins. A result
that is there after 3 cycles can be read by what begins 3 cycles later or after. Before that its register holds what it
held.

>>> program = [["load v0 x 0"], [], [], [], ["add v1 v0 a"], [], ["store y 0 v1"]]
>>> ran = run(program, x=[[5] * 8], constants={"a": 2})
>>> ran.y[0], ran.cycles, ran.early
([7, 7, 7, 7, 7, 7, 7, 7], 7, ())

Assumes:  no caches, no branches: programs are written out. Reading a register before anything was there is refused,
          and so are two results that arrive in one register at once.
Source:   by definition; Fisher, Very long instruction word architectures and the ELI-512, ISCA 1983,
          doi:10.1145/800046.801649 (the kind of machine)
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

LATENCY = {"load": 4, "mul": 3, "add": 2, "store": 1}
REGISTERS, LONGEST = 16, 10_000
Vector: TypeAlias = list[int]


class HazardError(Exception):
    """What the machine cannot do: the kind of mistake, and where, in a sentence."""

    def __init__(self, key: str, told: str) -> None:
        super().__init__(told)
        self.key = key


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What a program left, and how long it took."""

    y: dict[int, Vector]
    cycles: int
    early: tuple[str, ...]  # reads of a register while a newer value was on its way to it


@dataclass(slots=True)
class _Registers:
    held: dict[str, Vector]
    coming: list[tuple[int, str, Vector]]  # the cycle from which it is there, where, what

    def arrive(self, cycle: int) -> None:
        landed = [one for one in self.coming if one[0] == cycle]
        twice = [name for name, times in Counter(name for _, name, _ in landed).items() if times > 1]
        if twice:
            raise HazardError("overwritten", f"Two results arrive in {twice[0]} in cycle {cycle}.")
        self.held.update({name: value for _, name, value in landed})
        self.coming = [one for one in self.coming if one[0] > cycle]


def fewest_cycles(vectors: int) -> int:
    """No schedule of y = (a x + b) x + c takes fewer.

    The multiplier begins one of its 2 n products a cycle, the first after a load; behind the last are its own time, an
    addition and a store. And n loads begin one a cycle, with the whole chain behind the last.

    >>> fewest_cycles(24), fewest_cycles(1)
    (57, 15)

    Source:   by definition
    Counted:  tests.simulate.test_benches.fewest_by_search
    """
    chain = LATENCY["load"] + 2 * (LATENCY["mul"] + LATENCY["add"]) + LATENCY["store"]
    behind = LATENCY["mul"] + LATENCY["add"] + LATENCY["store"]
    return max(LATENCY["load"] + 2 * vectors - 1 + behind, vectors - 1 + chain)


def run(
    program: Sequence[Sequence[str]], *, x: Sequence[Vector], constants: Mapping[str, int], at_once: bool = False
) -> Ran:
    """Run a program to its last result; `at_once`: as if every result were there in the next cycle, which shows whether
    a wrong one is a matter of time.

    Raises:   HazardError, which says in which cycle
    """
    if len(program) > LONGEST:
        raise HazardError("no-instruction", f"The program has {len(program):,} bundles; at most {LONGEST:,} are run.")
    registers, y, early, end = _Registers({}, []), dict[int, Vector](), list[str](), 0
    for cycle, bundle in enumerate(program):
        registers.arrive(cycle)
        begun = Counter[str]()
        for instruction in bundle:
            kind, *words = instruction.split()
            if kind not in LATENCY or len(words) != 3:
                raise HazardError(
                    "no-instruction",
                    f"Cycle {cycle}: {instruction[:40]!r} is no instruction; write 'load v1 x 3', 'mul v2 v1 a',"
                    " 'add v3 v2 b', 'store y 3 v3'.",
                )
            begun[kind] += 1
            if begun[kind] > 1:
                raise HazardError("slot-twice", f"Cycle {cycle} begins two of `{kind}`.")
            end = max(end, cycle + LATENCY[kind])
            if kind == "store":
                y[_place(words[1], cycle, len(x))] = _read(words[2], cycle, registers, constants, early)
                continue
            if kind == "load":
                value = list(x[_place(words[2], cycle, len(x))])
            else:
                one, other = (_read(word, cycle, registers, constants, early) for word in words[1:])
                value = [p * q if kind == "mul" else p + q for p, q in zip(one, other, strict=True)]
            registers.coming.append((cycle + (1 if at_once else LATENCY[kind]), _register(words[0], cycle), value))
    return Ran(y=y, cycles=end, early=tuple(early))


def _place(word: str, cycle: int, vectors: int) -> int:
    if not word.isdecimal() or int(word) >= vectors:
        raise HazardError(
            "no-instruction", f"Cycle {cycle}: there is no vector {word[:20]!r}; they are 0 to {vectors - 1}."
        )
    return int(word)


def _register(word: str, cycle: int) -> str:
    if word not in {f"v{number}" for number in range(REGISTERS)}:
        raise HazardError(
            "no-register", f"Cycle {cycle}: there is no register {word[:20]!r}; they are v0 to v{REGISTERS - 1}."
        )
    return word


def _read(word: str, cycle: int, registers: _Registers, constants: Mapping[str, int], early: list[str]) -> Vector:
    if word in constants:
        return [constants[word]] * 8
    name = _register(word, cycle)
    coming = [there for there, other, _ in registers.coming if other == name]
    if name not in registers.held:
        why = f"the result on its way is there from cycle {min(coming)} on" if coming else "nothing was written to it"
        raise HazardError("too-early", f"Cycle {cycle} reads {name}: {why}.")
    if coming:
        early.append(f"Cycle {cycle} reads {name} as it was; its new value is there from cycle {min(coming)} on.")
    return registers.held[name]
