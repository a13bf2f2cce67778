"""Compute capability: what one multiprocessor of an exact part can hold at a time.

Sizes that differ from part to part come from the part's own row; limits that NVIDIA states per compute capability
from catalog/compute_capabilities.toml.

>>> from threeloops.facts import hardware
>>> sm = multiprocessor(hardware.part("rtx-4090"))
>>> sm.max_warps, sm.max_blocks, sm.registers, sm.shared_bytes
(48, 24, 65536, 102400)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threeloops import checks
from threeloops.facts.fact import Fact, catalogue_files, read_fact
from threeloops.facts.hardware import Part

REGISTER_BYTES = 4
LIMITS = (
    "max_warps",
    "max_blocks",
    "max_registers_per_thread",
    "register_unit",
    "register_partitions",
    "reserved_shared_bytes_per_block",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Multiprocessor:
    """One streaming multiprocessor (SM)."""

    max_warps: int  # resident at a time
    max_blocks: int
    registers: int  # 32 bits each
    max_registers_per_thread: int
    register_unit: int  # a warp gets registers in multiples of this
    register_partitions: int  # quarters with a scheduler and registers of their own; a warp lives in one
    shared_bytes: int  # the most that resident blocks can have together
    reserved_shared_bytes_per_block: int  # taken by the system for every block

    def __post_init__(self) -> None:
        checks.count(
            max_warps=self.max_warps,
            max_blocks=self.max_blocks,
            registers=self.registers,
            register_unit=self.register_unit,
        )
        checks.count(max_registers_per_thread=self.max_registers_per_thread, shared_bytes=self.shared_bytes)
        checks.count(at_least=0, reserved_shared_bytes_per_block=self.reserved_shared_bytes_per_block)
        checks.divides(
            part="register_partitions",
            part_value=self.register_partitions,
            whole="registers",
            whole_value=self.registers,
        )


def limits(part_key: str, *, overlay: str | Path | None = None) -> Mapping[str, Fact]:
    """The facts of a part's compute capability, by name; a part whose capability is not catalogued is refused."""
    known = []
    for name, content in catalogue_files(overlay):
        for capability, row in content.get("compute_capabilities", {}).items():
            known += row["parts"]
            if part_key in row["parts"]:
                return _facts(capability, row["facts"], content.get("sources", {}), name)
    checks.one_of(known, part=part_key)
    raise AssertionError("one_of refuses what is not known")


def multiprocessor(part: Part, *, overlay: str | Path | None = None) -> Multiprocessor:
    """One SM of a part.

    Raises:   ValueError for a part whose compute capability is not catalogued
    """
    facts = limits(part.key, overlay=overlay)
    return Multiprocessor(
        registers=int(part["register_file_bytes_per_sm"]) // REGISTER_BYTES,
        shared_bytes=int(part["shared_memory_bytes_per_sm"]),
        **{name: int(fact.value) for name, fact in facts.items()},
    )


def _facts(capability: str, rows: Mapping[str, Any], sources: Mapping[str, Any], file: str) -> dict[str, Fact]:
    for name in LIMITS:
        checks.one_of(rows, **{f"a fact of compute capability {capability}": name})
    return {name: read_fact(rows[name], sources, where=f"{file}, {capability}.{name}") for name in LIMITS}
