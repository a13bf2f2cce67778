"""A take-home with a cycle counter: schedule a small loop for a machine that begins four instructions a cycle."""

from threeloops.drills.engine.code_task import Change
from threeloops.drills.engine.drill import Draw, drawn
from threeloops.drills.engine.functions import Value
from threeloops.drills.engine.schedule_task import ScheduleTask, vectors
from threeloops.simulate.inner_loop.benches.bundles import fewest_cycles


def _count(p: Draw) -> Value:
    """By powers, number by number."""
    return tuple(p.a * number**2 + p.b * number + p.c for vector in p.x for number in vector)


SCHEDULE = ScheduleTask(
    task="code-vliw-schedule",
    name="schedule",
    title="Schedule a loop for a VLIW machine",
    loop="inner",
    section="Foundations: processors",
    target_s=3600,
    takes=("n",),
    draw=lambda rng: drawn(**vectors(rng, rng.randrange(13, 30))),
    limit=lambda rng: drawn(**vectors(rng, rng.randrange(1, 5))),
    limit_case="so few vectors that there is little to overlap",
    bound=fewest_cycles,
    par=1.25,
    head='''def schedule(n):
    """A program for y = (a x + b) x + c on n vectors of eight whole numbers.

    The machine begins one bundle a cycle: at most one load, store, mul and add.
        load v1 x 3     v1 = vector 3 of x       there after 4 cycles
        mul v2 v1 a     v2 = v1 * a              there after 3
        add v3 v2 b     v3 = v2 + b              there after 2
        store y 3 v3    vector 3 of y = v3       done after 1
    Registers are v0 to v15; a, b, c are constants that any mul and add can read.
    A result that is there after 3 cycles can be read by what begins 3 cycles
    later. Until then its register holds what it held: nothing waits by itself.

    Return a list of bundles, each a list of instructions; [] is an idle cycle.
    Counted: cycles until the last result is there. With n of 5 and more no
    program takes fewer than 2 n + 9, with fewer vectors n + 14. Right is what
    takes at most a quarter more. As given it takes 15 n.

    >>> schedule(1)[0]
    ['load v0 x 0']
    """
''',
    body="""    program = [[] for _ in range(2 * n + 20)]
    for i in range(n):
        first = max(4 + i, 2 * i)
        second = max(9 + i, min(9 + 2 * i, n + 4 + i))
        x, t, z = f"v{i % 5}", f"v{5 + i % 5}", f"v{10 + i % 3}"
        program[first - 4].append(f"load {x} x {i}")
        program[first].append(f"mul {t} {x} a")
        program[first + 3].append(f"add {t} {t} b")
        program[second].append(f"mul {z} {t} {x}")
        program[second + 3].append(f"add {z} {z} c")
        program[second + 5].append(f"store y {i} {z}")
    while not program[-1]:
        program.pop()
    return program
""",
    gap="""    program = []
    for i in range(n):
        program += [[f"load v0 x {i}"], [], [], []]
        program += [["mul v1 v0 a"], [], []]
        program += [["add v1 v1 b"], []]
        program += [["mul v1 v1 v0"], [], []]
        program += [["add v1 v1 c"], []]
        program += [[f"store y {i} v1"]]
    return program""",
    count=_count,
    changes=(
        Change(
            key="too-early",
            pairs=(("program[first + 3]", "program[first + 2]"),),
            story="Something is read before it is there. The machine does not wait.",
        ),
        Change(
            key="slot-twice",
            pairs=(("max(9 + i, min(9 + 2 * i, n + 4 + i))", "first + 5"), ("max(4 + i, 2 * i)", "4 + i")),
            story="Two instructions want the same unit in one cycle. There is one of each.",
        ),
        Change(
            key="overwritten",
            pairs=(("{i % 5}", "{i % 2}"),),
            story="A register was written again before its last reader had come.",
        ),
        Change(
            key="left-out",
            pairs=(("store y {i}", "store y {i or n - 1}"),),
            story="Not every vector of y is stored.",
        ),
        Change(
            key="waits",
            pairs=(
                ("range(2 * n + 20)", "range(8 * n + 20)"),
                ("max(4 + i, 2 * i)", "4 + 8 * i"),
                ("max(9 + i, min(9 + 2 * i, n + 4 + i))", "first + 5"),
            ),
            story="Units are idle while one vector's results are waited for; other vectors could use those cycles.",
        ),
    ),
    hint="The multiplier has two products a vector: keep it busy in every cycle. Which vectors' first products can run"
    " while the first vector's sum is not there yet?",
    source="Rau and Glaeser, Some scheduling techniques and an easily schedulable horizontal architecture for"
    " high performance scientific computing, MICRO 14, 1981, doi:10.1145/1014192.802449 (modulo scheduling)",
)

TASKS = (SCHEDULE,)
