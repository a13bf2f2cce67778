"""Tables of parts, straight from the catalogue, with the pages that they were read on."""

from collections.abc import Sequence

from threeloops import units
from threeloops.facts import hardware
from threeloops.facts.fact import Fact
from threeloops.facts.hardware import Part
from threeloops.inner_loop import latency_hiding
from threeloops.operations import roofline
from threeloops.sheets.layout import Table
from threeloops.training_loop.network import collectives

ACCELERATORS = ("a100-sxm4-80gb", "h100-sxm5", "h200-sxm", "b200-hgx", "mi300x", "l4")
LATENCY_PARTS = ("a100-sxm4-80gb", "h100-sxm5")
LINKS = (
    "nvlink-3",
    "nvlink-4",
    "nvlink-5",
    "pcie-4-x16",
    "pcie-5-x16",
    "infiniband-hdr",
    "infiniband-ndr",
    "ethernet-400g",
)
SYSTEMS_ON_CHIP = ("drive-orin", "drive-thor", "jetson-agx-orin-64gb", "jetson-thor")
ACCELERATOR_FACTS = (
    "peaks.bf16",
    "memory_bytes_per_s",
    "usable_bytes",
    "l2_bytes",
    "sms",
    "shared_memory_bytes_per_sm",
)
LATENCIES = ("l1_latency_cycles", "l2_latency_cycles", "memory_latency_cycles", "boost_clock_hz")
RING_RANKS = 8
NOTHING = "–"  # not in the catalogue: no source prints it


def sources(keys: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """The pages that these facts of these parts were read on, each once."""
    rows = [
        fact
        for key in keys
        for name, (fact, _) in hardware.part(key).all_facts().items()
        if name in names or (".peaks." in name and "engines" in names)
    ]
    return tuple(dict.fromkeys(f"{fact.title} ({fact.checked.isoformat()})" for fact in rows))


def _shown(part: Part, fact: str, unit: str, *, binary: bool = False) -> str:
    if fact not in part.facts:
        return NOTHING
    return units.fmt_bytes(part[fact], base=2) if binary else units.fmt_si(part[fact], unit)


def _with_kind(fact: Fact, unit: str) -> str:
    return units.fmt_si(fact.value, unit) + (" (estimate)" if fact.kind == "estimate" else "")


def accelerators() -> Table:
    """What they compute, what they move, and where the roof turns flat."""
    rows = []
    for key in ACCELERATORS:
        part = hardware.part(key)
        peak, memory = part.peak_flops_per_s("bf16"), part["memory_bytes_per_s"]
        ridge = roofline.ridge_point(peak_flops_per_s=peak, memory_bytes_per_s=memory)
        row = [
            part.name,
            units.fmt_si(peak, "FLOP/s"),
            units.fmt_si(memory, "B/s"),
            units.fmt(ridge, "FLOP/B"),
            units.fmt_bytes(part.capacity_bytes(), base=2),
        ]
        row += [_shown(part, "l2_bytes", "B", binary=True), f"{part['sms']:.0f}" if "sms" in part.facts else NOTHING]
        rows.append((*row, _shown(part, "shared_memory_bytes_per_sm", "B", binary=True)))
    head = ("accelerator", "bf16, dense", "memory", "ridge point", "capacity", "L2", "SMs", "shared memory per SM")
    return Table(
        title="Accelerators",
        head=head,
        rows=tuple(rows),
        note="Capacity as a driver's log reports it where one was read, else by the datasheet.",
    )


def latencies() -> Table:
    """How long a load waits, and what must be in flight to hide it."""
    rows = []
    for key in LATENCY_PARTS:
        part = hardware.part(key)
        wait = {
            name: latency_hiding.latency_s(cycles=part[f"{name}_latency_cycles"], clock_hz=part["boost_clock_hz"])
            for name in ("l1", "l2", "memory")
        }
        flight = latency_hiding.bytes_in_flight(memory_bytes_per_s=part["memory_bytes_per_s"], latency_s=wait["memory"])
        told = [
            f"{part[f'{name}_latency_cycles']:.0f} cycles, {units.fmt_seconds(seconds)}"
            for name, seconds in wait.items()
        ]
        rows.append((part.name, *told, units.fmt_bytes(flight, base=2), units.fmt_bytes(flight / part["sms"], base=2)))
    head = ("a load from", "shared memory or L1", "L2", "memory", "in flight to hide it", "per SM")
    note = "One pointer chase each, in cycles of a clock that was not locked, at the boost clock: good to a third."
    return Table(title="Waiting", head=head, rows=tuple(rows), note=note)


def links(size_bytes: float) -> Table:
    """One direction, the printed figure, and a ring all-reduce of that size."""
    rows = []
    for key in LINKS:
        part = hardware.part(key)
        rate = part["bytes_per_s_one_way"]
        advertised = _shown(part, "advertised_bytes_per_s", "B/s")
        ring = collectives.collective_time(
            op="all_reduce",
            algorithm="ring",
            size_bytes=size_bytes,
            ranks=RING_RANKS,
            alpha_s=0.0,
            bytes_per_s_one_way=rate,
        )
        rows.append((part.name, units.fmt_si(rate, "B/s"), advertised, units.fmt_seconds(ring.bandwidth_s)))
    head = (
        "link",
        "one way",
        "as advertised",
        f"ring all-reduce of {units.fmt_bytes(size_bytes, base=10)}, {RING_RANKS} GPUs",
    )
    note = (
        "NVLink and PCIe are advertised with both directions added, networks with one. The time leaves out latency and"
        " what the ring waits for."
    )
    return Table(title="Links", head=head, rows=tuple(rows), note=note)


def systems_on_chip() -> Table:
    """Rates by engine and power mode: a TOPS figure without them says little."""
    rows = []
    for key in SYSTEMS_ON_CHIP:
        part = hardware.part(key)
        for engine, modes in part.engines.items():
            for mode, rates in modes.items():
                peaks = ", ".join(
                    f"{dtype} {_with_kind(fact, 'OP/s' if dtype.startswith('int') else 'FLOP/s')}"
                    for dtype, fact in rates.peaks.items()
                )
                shared = _with_kind(part.facts["memory_bytes_per_s"], "B/s")
                rows.append((part.name, engine, mode, peaks, shared))
    return Table(
        title="Systems on a chip, dense rates",
        head=("part", "engine", "power mode", "peak", "memory, shared by all engines"),
        rows=tuple(rows),
    )
