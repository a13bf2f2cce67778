"""A step of FSDP on a clock: one network that gathers weights and scatters gradients, one device that computes, a layer
after another.

Nothing here knows how long the step will take, or how many layers' weights are whole at once.

>>> run = play(layers=3, forward_s=1, backward_s=2, gather_s=1, scatter_s=1, ahead=1, keep=False)
>>> run.finished_s, run.waits_s, run.most_whole
(11.0, 2.0, 2)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work of a layer, counted from 1: gather, forward, backward or scatter, from when to when."""

    what: str
    layer: int
    start_s: float
    end_s: float

    @property
    def on_network(self) -> bool:
        return self.what in ("gather", "scatter")


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    """From when to when a layer's weights take their whole place: from the start of the gather on."""

    layer: int
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedStep:
    """Everything that happened."""

    work: tuple[Work, ...]
    whole: tuple[Whole, ...]

    @property
    def finished_s(self) -> float:
        return max(one.end_s for one in self.work)

    @property
    def waits_s(self) -> float:
        """Seconds in which the device did nothing before the end."""
        return self.finished_s - sum(one.end_s - one.start_s for one in self.work if not one.on_network)

    @property
    def most_whole(self) -> int:
        """Layers whose weights are whole at once, at the worst moment."""
        return max(self.whole_at(one.start_s) for one in self.whole)

    def whole_at(self, time_s: float) -> int:
        """Layers whose weights are whole at a moment."""
        return sum(one.start_s <= time_s < one.end_s for one in self.whole)


def play(
    *,
    layers: int,
    forward_s: float,
    backward_s: float,
    gather_s: float,
    scatter_s: float,
    ahead: int,
    keep: bool,
) -> PlayedStep:
    """Play one step. A layer's gather is asked for when the layer `ahead` of it in the order of the pass begins to
    compute (with 0: when the one before it has ended), and the network does what it is asked for in that order.

    keep: weights stay whole from the forward pass to the backward pass; else they are freed, but for the last layer's,
    which is needed again at once.

    Assumes:  no update and no other traffic; a layer's computing needs its weights whole and the layer before it
    Raises:   ValueError for fewer than one layer, times that are not positive, a negative `ahead`
    Source:   Zhao et al., PyTorch FSDP, 2023, arXiv:2304.11277, section 3.3 (forward and backward prefetch)
    """
    checks.count(layers=layers)
    checks.count(at_least=0, ahead=ahead)
    checks.positive(forward_s=forward_s, backward_s=backward_s, gather_s=gather_s, scatter_s=scatter_s)
    order = [("forward", layer) for layer in range(1, layers + 1)]
    order += [("backward", layer) for layer in range(layers, 0, -1)]
    work: list[Work] = []
    began: dict[int, float] = {}  # layer -> when its place was taken
    whole: list[Whole] = []
    arrived: dict[int, float] = {}  # place in the order -> when its weights are there
    network_s = device_s = 0.0

    def gather(place: int, asked_s: float) -> None:
        nonlocal network_s
        layer = order[place][1]
        if layer in began:
            arrived[place] = 0.0
            return
        began[layer] = start_s = max(network_s, asked_s)
        network_s = arrived[place] = start_s + gather_s
        work.append(Work(what="gather", layer=layer, start_s=start_s, end_s=network_s))

    for place, (what, layer) in enumerate(order):
        if place not in arrived:
            gather(place, device_s)
        start_s = max(device_s, arrived[place])
        for following in range(place + 1, min(place + ahead, len(order) - 1) + 1):
            if following not in arrived and not _comes_back(order, place, following, keep):
                gather(following, start_s)
        device_s = start_s + (forward_s if what == "forward" else backward_s)
        work.append(Work(what=what, layer=layer, start_s=start_s, end_s=device_s))
        if what == "backward" or not (keep or layer == layers):
            whole.append(Whole(layer=layer, start_s=began.pop(layer), end_s=device_s))
        if what == "backward":
            scattered_s = max(network_s, device_s)
            network_s = scattered_s + scatter_s
            work.append(Work(what="scatter", layer=layer, start_s=scattered_s, end_s=network_s))
    return PlayedStep(work=tuple(work), whole=tuple(whole))


def _comes_back(order: list[tuple[str, int]], place: int, following: int, keep: bool) -> bool:
    """Whether a layer is still whole, and will be freed, before it is needed again: too early to ask for it."""
    layer = order[following][1]
    last = max(one for _, one in order)
    return not keep and layer != last and any(one == layer for _, one in order[place:following])
