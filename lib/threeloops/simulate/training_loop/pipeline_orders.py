"""Count: what every rank of a pipeline is told to do, pass after pass, under eight schedules.

The rules are those of the schedules' papers and of the programs that their authors published. An order says nothing
about time: when a pass really runs comes out of simulate.pipeline_schedules, from who has to wait for whom.

>>> [slot[0].kind + str(slot[0].micro_batch) for slot in orders(schedule="1f1b", pp=3, micro_batches=4)[1]]
['F0', 'F1', 'B0', 'F2', 'B1', 'F3', 'B2', 'B3']
"""

from collections.abc import Callable
from typing import NamedTuple

FORWARD, BACKWARD, INPUT_GRADIENT, WEIGHT_GRADIENT = "F", "B", "D", "W"  # B is D and W in one
# several chunks per rank, which follow one another pp positions apart
INTERLEAVED = ("interleaved", "zb-interleaved")


class Pass(NamedTuple):
    """One micro-batch on its way through one piece of the model."""

    kind: str
    micro_batch: int
    position: int  # of the piece along the model: 0 reads the input, the last one computes the loss


Slot = tuple[Pass, ...]  # what runs as one: a pass, or under DualPipe a forward and a backward that overlap


def orders(*, schedule: str, pp: int, micro_batches: int, chunks: int = 1) -> list[list[Slot]]:
    """Per rank, its slots in the order in which the schedule runs them.

    Raises:   ValueError where the schedule does not exist: interleaving needs pp to divide the micro-batches and two
              chunks or more, DualPipe an even pp and an even number of at least 2 * pp micro-batches, ZB-V two chunks
              and at least 2 * pp - 1 micro-batches; others have one chunk per rank
    """
    if schedule not in _ORDERS:
        raise ValueError(f"schedule={schedule!r} is not known. Known: {', '.join(_ORDERS)}")
    if pp < 1 or micro_batches < 1 or chunks < 1:
        raise ValueError(f"pp={pp}, micro_batches={micro_batches} and chunks={chunks} must be at least 1")
    if schedule == "zb-v" and (chunks != 2 or micro_batches < 2 * pp - 1):
        raise ValueError(
            f"chunks={chunks} and micro_batches={micro_batches} with schedule='zb-v': it has 2 chunks, and at least"
            f" {2 * pp - 1} micro-batches"
        )
    if schedule != "zb-v" and (schedule in INTERLEAVED) != (chunks > 1):
        raise ValueError(
            f"chunks={chunks} with schedule={schedule!r}: interleaving needs 2 or more, every other schedule has 1"
        )
    if schedule in INTERLEAVED and micro_batches % pp:
        raise ValueError(
            f"pp={pp} must divide micro_batches={micro_batches}: interleaving sends groups of pp micro-batches through"
            " a chunk"
        )
    if schedule == "dualpipe" and (pp % 2 or micro_batches % 2 or micro_batches < 2 * pp):
        raise ValueError(
            f"pp={pp} and micro_batches={micro_batches} must be even, with at least {2 * pp} micro-batches: DualPipe"
            " feeds both ends"
        )
    return [_ORDERS[schedule](rank, pp, micro_batches, chunks) for rank in range(pp)]


def _gpipe(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """All forward passes, then all backward passes."""
    return [(Pass(kind, n, rank),) for kind in (FORWARD, BACKWARD) for n in range(micro_batches)]


def _one_forward_one_backward(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """Enough forwards to reach the last rank; then one backward, one forward, by turns."""
    ahead = min(pp - rank, micro_batches)
    slots: list[Slot] = [(Pass(FORWARD, n, rank),) for n in range(ahead)]
    for n in range(micro_batches):
        slots.append((Pass(BACKWARD, n, rank),))
        if n + ahead < micro_batches:
            slots.append((Pass(FORWARD, n + ahead, rank),))
    return slots


def _through_chunks(
    rank: int, pp: int, micro_batches: int, chunks: int, *, backward: str
) -> tuple[list[Slot], list[Slot]]:
    """Groups of pp micro-batches go through a rank's chunks in turn: all of its forwards in order, and all of its
    backwards.
    """
    groups = [range(start, start + pp) for start in range(0, micro_batches, pp)]
    forwards: list[Slot] = [
        (Pass(FORWARD, n, chunk * pp + rank),) for group in groups for chunk in range(chunks) for n in group
    ]
    backwards: list[Slot] = [
        (Pass(backward, n, chunk * pp + rank),) for group in groups for chunk in reversed(range(chunks)) for n in group
    ]
    return forwards, backwards


def _interleaved(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """Every rank warms up two chunk passes longer than the next one."""
    forwards, backwards = _through_chunks(rank, pp, micro_batches, chunks, backward=BACKWARD)
    ahead = min((chunks - 1) * pp + 2 * (pp - 1 - rank), len(forwards))
    slots: list[Slot] = [*forwards[:ahead]]
    for forward, backward in zip(forwards[ahead:], backwards, strict=False):
        slots += [forward, backward]
    return slots + backwards[len(forwards) - ahead :]


def _zero_bubble_interleaved(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """ZB-H1 in chunk passes: every rank warms up one longer than the next one, and the next one puts its weight
    gradients off by one more.
    """
    forwards, backwards = _through_chunks(rank, pp, micro_batches, chunks, backward=INPUT_GRADIENT)
    ahead = (chunks - 1) * pp + pp - 1 - rank
    slots: list[Slot] = [*forwards[:ahead]]
    owed: list[Slot] = []
    for place, (gradient,) in enumerate(backwards):
        slots += [*forwards[ahead + place : ahead + place + 1], (gradient,)]
        owed.append((gradient._replace(kind=WEIGHT_GRADIENT),))
        if len(owed) > rank:
            slots.append(owed.pop(0))
    return slots + owed


class _Vee:
    """One rank of ZB-V: a piece on the way down the ranks and a piece on the way back up; it takes the next
    micro-batch of a piece when told.
    """

    def __init__(self, rank: int, pp: int, micro_batches: int) -> None:
        self.positions, self.micro_batches = (rank, 2 * pp - 1 - rank), micro_batches
        self.next = {(kind, piece): 0 for kind in (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT) for piece in (0, 1)}
        self.slots: list[Slot] = []

    def do(self, kind: str, piece: int) -> None:
        """Nothing, where no micro-batch is left."""
        if self.next[kind, piece] < self.micro_batches:
            self.slots.append((Pass(kind, self.next[kind, piece], self.positions[piece]),))
            self.next[kind, piece] += 1

    def turn(self, piece: int) -> None:
        """One forward, and one whole backward in its two parts."""
        for kind in (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT):
            self.do(kind, piece)


def _zero_bubble_v(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """The model goes down the ranks and up again: the last piece lies on rank 0, so its gradient is home when it is
    made.
    """
    r = _Vee(rank, pp, micro_batches)
    for _ in range(2 * (pp - rank) - 1):
        r.do(FORWARD, 0)
    for _ in range(rank):
        r.do(FORWARD, 1)
        r.do(FORWARD, 0)
    for _ in range(pp - rank):
        r.turn(1)
    while r.next[FORWARD, 1] < micro_batches:
        r.turn(0)
        r.turn(1)
    # nothing else comes in: weight gradients are put off, so that the ranks above can start theirs
    for _ in range(rank):
        r.do(INPUT_GRADIENT, 0)
        r.do(INPUT_GRADIENT, 1)
    for _ in range(pp - rank):
        r.do(INPUT_GRADIENT, 0)
        r.do(WEIGHT_GRADIENT, 0)
    for piece in (1, 0):
        for _ in range(micro_batches):
            r.do(WEIGHT_GRADIENT, piece)
    return r.slots


def _split_backward(rank: int, micro_batches: int, ahead: int, delay: int) -> list[Slot]:
    """Input gradients as early as they can be had; weight gradients, which nobody waits for, `delay` micro-batches
    later.
    """
    ahead = min(ahead, micro_batches)
    slots: list[Slot] = [(Pass(FORWARD, n, rank),) for n in range(ahead)]
    for n in range(micro_batches):
        slots.append((Pass(INPUT_GRADIENT, n, rank),))
        if n >= delay:
            slots.append((Pass(WEIGHT_GRADIENT, n - delay, rank),))
        if n + ahead < micro_batches:
            slots.append((Pass(FORWARD, n + ahead, rank),))
    return slots + [(Pass(WEIGHT_GRADIENT, n, rank),) for n in range(max(0, micro_batches - delay), micro_batches)]


def _zero_bubble_1(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """ZB-H1: warms up like 1F1B; every rank keeps as many micro-batches as the first, in the form of weight gradients
    still to be computed.
    """
    return _split_backward(rank, micro_batches, ahead=pp - rank, delay=rank)


def _zero_bubble_2(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """ZB-H2: as many forwards more as fill the wait for the first gradient."""
    return _split_backward(rank, micro_batches, ahead=2 * (pp - rank) - 1, delay=2 * rank)


class _Dual:
    """One rank of DualPipe: it holds a piece for each direction, takes the next micro-batch of a direction when told,
    and owes weight gradients.
    """

    def __init__(self, rank: int, pp: int, micro_batches: int) -> None:
        far = rank >= pp // 2  # its own first direction comes from the other end
        self.positions = (pp - 1 - rank, rank) if far else (rank, pp - 1 - rank)
        half = micro_batches // 2
        self.first = (half, 0) if far else (0, half)  # the first half enters at rank 0, the second at the last rank
        self.forwards, self.backwards = [0, 0], [0, 0]
        self.owed: list[Pass] = []
        self.slots: list[Slot] = []

    def forward(self, way: int) -> Pass:
        self.forwards[way] += 1
        return Pass(FORWARD, self.first[way] + self.forwards[way] - 1, self.positions[way])

    def backward(self, way: int, *, split: bool = False) -> Pass:
        self.backwards[way] += 1
        made = Pass(
            INPUT_GRADIENT if split else BACKWARD, self.first[way] + self.backwards[way] - 1, self.positions[way]
        )
        if split:
            self.owed.append(made._replace(kind=WEIGHT_GRADIENT))
        return made

    def do(self, *passes: Pass) -> None:
        self.slots.append(passes)


def _dualpipe(rank: int, pp: int, micro_batches: int, chunks: int) -> list[Slot]:
    """Micro-batches enter at both ends. In the steady state a forward of one direction overlaps a backward of the
    other.
    """
    r = _Dual(rank, pp, micro_batches)
    depth = min(rank, pp - 1 - rank)  # 0 at either end
    inner = pp // 2 - 1 - depth
    for _ in range(2 * inner):
        r.do(r.forward(0))
    for _ in range(depth + 1):
        r.do(r.forward(0))
        r.do(r.forward(1))
    for _ in range(inner):
        r.do(r.backward(1, split=True))
        r.do(r.owed.pop(0))
        r.do(r.forward(1))
    for n in range(micro_batches // 2 - pp + depth + 1):
        if n == 0 and inner == 0:  # in the middle, waiting for both would cost more than the overlap saves
            r.do(r.forward(0))
            r.do(r.backward(1))
        else:
            r.do(r.forward(0), r.backward(1))
        r.do(r.forward(1), r.backward(0))
    for _ in range(inner):
        r.do(r.backward(1))
        r.do(r.forward(1), r.backward(0))
    for n in range(depth + 1):  # in the second half, weight gradients are put off
        middle = (depth + 1) // 2
        r.do(r.backward(1, split=n > middle or (n == middle and depth % 2 == 1)))
        r.do(r.backward(0, split=n >= middle))
    for _ in range(inner):
        r.do(r.owed.pop(0))
        r.do(r.backward(0, split=True))
    r.slots += [(owed,) for owed in r.owed]
    return r.slots


_ORDERS: dict[str, Callable[[int, int, int, int], list[Slot]]] = {
    "gpipe": _gpipe,
    "1f1b": _one_forward_one_backward,
    "interleaved": _interleaved,
    "zb-h1": _zero_bubble_1,
    "zb-h2": _zero_bubble_2,
    "zb-interleaved": _zero_bubble_interleaved,
    "zb-v": _zero_bubble_v,
    "dualpipe": _dualpipe,
}
SCHEDULES = tuple(_ORDERS)
