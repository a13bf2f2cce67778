"""Drills on an optimiser's state beyond the GPU: updated by the host, and fetched from drives and written back."""

import random

from threeloops.drills.engine.drill import Derivation, Draw, Drill, Slip, Taught, drawn
from threeloops.drills.engine.phrasing import billions, giga
from threeloops.training_loop.memory import offload
from threeloops.units import GB, fmt_si

TAUGHT = Taught("training", "ZeRO and FSDP")

PAPER = "Rajbhandari et al., ZeRO-Infinity, 2021, arXiv:2104.07857, section"
SOURCE_HOST = "Ren et al., ZeRO-Offload, 2021, arXiv:2101.06840, sections 3 and 4"

# --- an update on the host -----------------------------------------------------------------------


def _draw_host(rng: random.Random) -> Draw:
    links, link, memory = rng.choice(
        ((4, 25, 400), (4, 25, 350), (8, 20, 400), (8, 25, 300), (8, 25, 450), (6, 25, 350))
    )
    return drawn(
        parameters=rng.randrange(6_000_000_000, 35_000_000_000, 1_000_000_000),
        links=links,
        link=link * GB,
        memory=memory * GB,
        gradient=2,
        state=12,
        weight=2,
    )


def _small_host(rng: random.Random) -> Draw:
    links = rng.choice((4, 6))
    return drawn(
        parameters=links * rng.choice((6, 7)), links=links, link=3.0, memory=40.0, gradient=2, state=12, weight=2
    )


def _update(p: Draw) -> offload.HostUpdate:
    return offload.host_update(
        num_parameters=p.parameters,
        gradient_bytes=p.gradient,
        state_bytes=p.state,
        weight_bytes=p.weight,
        links=p.links,
        link_bytes_per_s_one_way=p.link,
        memory_bytes_per_s=p.memory,
    )


def _derive_host(p: Draw) -> Derivation:
    road = f"({p.links} × {giga(p.link)})"
    return Derivation(
        value=_update(p).total_s,
        formula="gradients / links + (gradients + state read + state written + weights) / memory + weights / links",
        substitution=(
            f"{giga(p.parameters)} × 2 / {road} + {giga(p.parameters)} × (2 + 12 + 12 + 2) / {giga(p.memory)} +"
            f" {giga(p.parameters)} × 2 / {road}"
        ),
        source=SOURCE_HOST,
    )


def _count_host(p: Draw) -> float:
    """Value by value: its gradient down the link of its GPU, its arrays through the host's memory one after another,
    its weight up again.
    """
    down, up, memory_s = [0.0] * p.links, [0.0] * p.links, 0.0
    for value in range(p.parameters):
        down[value % p.links] += p.gradient / p.link
        for array in (p.gradient, 4, 4, 4):  # read: gradient, master copy, momentum, variance
            memory_s += array / p.memory
        for array in (4, 4, 4, p.weight):  # written: the same three, and the 16-bit weight
            memory_s += array / p.memory
        up[value % p.links] += p.weight / p.link
    return max(down) + memory_s + max(up)


HOST = Drill(
    key="zero-host-update",
    taught=TAUGHT,
    title="Adam on the host",
    unit="s",
    target_s=180,
    draw=_draw_host,
    small=_small_host,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters trains on {p.links} GPUs of one host, with the fp32 state of"
        " Adam (master copy and two moments) in host memory. After the backward pass, each GPU sends its shard of the"
        f" 16-bit gradients down its own link, {fmt_si(p.link, 'B/s')} one way. Then the CPU updates everything, as"
        f" fast as its memory lets it read and write: {fmt_si(p.memory, 'B/s')} for both together. Then the new 16-bit"
        " weights, written to host memory by the update, go up the same way. Nothing overlaps. How long does all that"
        " take?"
    ),
    derive=_derive_host,
    count=_count_host,
    slips=(
        Slip("state-read-only", lambda p: _update(p).total_s - p.parameters * 12 / p.memory)
        | "You let the state through memory once. An update reads it and writes it.",
        Slip("links-only", lambda p: _update(p).down_s + _update(p).up_s)
        | "You counted the way down and up. What the CPU does between takes longer than both.",
        Slip("memory-only", lambda p: _update(p).update_s)
        | "You counted the update. Gradients have to get there, and weights back.",
        Slip("one-link", lambda p: _update(p).update_s + p.links * (_update(p).down_s + _update(p).up_s))
        | "You sent everything over one link. Each GPU has its own, for its own shard.",
        Slip("never-returned", lambda p: _update(p).down_s + _update(p).update_s)
        | "You left the new weights on the host.",
    ),
)

# --- drives --------------------------------------------------------------------------------------


def _draw_drives(rng: random.Random) -> Draw:
    read, write = rng.choice(((14, 9), (28, 18), (42, 26), (50, 30), (56, 36)))
    nodes = rng.choice((3, 4, 5, 6))
    return drawn(
        parameters=nodes * rng.randrange(7_000_000_000, 30_000_000_000, 1_000_000_000),
        nodes=nodes,
        state_bytes=12,
        read=read * GB,
        write=write * GB,
    )


def _small_drives(rng: random.Random) -> Draw:
    nodes = rng.choice((3, 4, 5))
    return drawn(parameters=nodes * rng.choice((6, 7)), nodes=nodes, state_bytes=12, read=5.0, write=3.0)


def _derive_drives(p: Draw) -> Derivation:
    own = p.parameters / p.nodes
    return Derivation(
        value=offload.drive_pass_s(
            num_parameters=own, state_bytes=p.state_bytes, read_bytes_per_s=p.read, write_bytes_per_s=p.write
        ),
        formula="parameters / nodes × 12 / read rate + parameters / nodes × 12 / write rate",
        substitution=(
            f"{giga(p.parameters)} / {p.nodes} × 12 / {giga(p.read)} + {giga(p.parameters)} / {p.nodes} × 12 /"
            f" {giga(p.write)}"
        ),
        source=f"{PAPER} 4.1 (optimiser states are read once and written once)",
    )


def _count_drives(p: Draw) -> float:
    """Deal the values out; then each node reads and writes its own, one after the other."""
    clocks = [0.0] * p.nodes
    for value in range(p.parameters):
        clocks[value % p.nodes] += p.state_bytes / p.read
        clocks[value % p.nodes] += p.state_bytes / p.write
    return max(clocks)


def _drives(p: Draw, *, each: float = 12, read: float = 1, write: float = 1) -> float:
    """Seconds with that many bytes per parameter, read and written so many times."""
    return float(p.parameters / p.nodes * each * (read / p.read + write / p.write))


DRIVES = Drill(
    key="zero-drive-pass",
    taught=TAUGHT,
    title="An optimiser that lives on drives",
    unit="s",
    target_s=120,
    draw=_draw_drives,
    small=_small_drives,
    prompt=lambda p: (
        f"A model of {billions(p.parameters)} parameters trains on {p.nodes} nodes. Its fp32 Adam state (master copy,"
        " momentum, variance) is sharded over the nodes and lies on their NVMe drives. Each node's drives together"
        f" read {fmt_si(p.read, 'B/s')} and write {fmt_si(p.write, 'B/s')}, not both at the same time. In every step"
        " the whole state is read, updated and written back. How long do the drives take?"
    ),
    derive=_derive_drives,
    count=_count_drives,
    slips=(
        Slip("read-only", lambda p: _drives(p, write=0))
        | "You read the state. An update that is not written back did not happen.",
        Slip("written-only", lambda p: _drives(p, read=0))
        | "You wrote the new state. It was made from the old one, which had to come from somewhere.",
        Slip("whole-model-each", lambda p: p.nodes * _drives(p))
        | "You gave each node the state of the whole model. It is sharded.",
        Slip("moments-only", lambda p: _drives(p, each=8))
        | "You moved Adam's two moments. A third array is updated with them.",
        Slip("all-sixteen", lambda p: _drives(p, each=16))
        | "You moved the 16-bit weights and gradients as well. The question puts the optimiser's state on the"
        " drives.",
    ),
)

DRILLS = (HOST, DRIVES)
