"""Peaks from parts: the catalogue's counts and clocks against the rates that vendors print."""

import pytest

from threeloops.facts import hardware
from threeloops.inner_loop import peak_rates

PARTS = {key: hardware.part(key) for key in hardware.part_keys()}
COUNTED = [key for key, part in PARTS.items() if "matrix_fmas_per_cycle_fp16" in part.facts]
# The tensor cores of these run at a lower clock than the lanes when their peak is quoted.
SLOWER = {"h100-sxm5": 0.924, "h200-sxm": 0.924, "h100-pcie": 0.923, "b200-hgx": 0.938}


def lanes(part: hardware.Part) -> dict[str, int]:
    return {"sms": int(part["sms"]), "lanes_per_sm": int(part["fp32_lanes_per_sm"])}


def tensor(part: hardware.Part, clock_hz: float) -> float:
    units, fmas = int(part["matrix_units_per_sm"]), int(part["matrix_fmas_per_cycle_fp16"])
    return peak_rates.matrix_flops_per_s(
        sms=int(part["sms"]), units_per_sm=units, fmas_per_cycle=fmas, clock_hz=clock_hz
    )


def test_every_lane_multiplies_and_adds_in_every_cycle() -> None:
    """A second of 50 cycles on 3 SMs of 4 lanes, lane by lane; an operand has 2 bytes."""
    flops = read = 0
    for _lane in range(3 * 4):
        for _cycle in range(50):
            flops += len(("multiply", "add"))
            read += sum(2 for _operand in ("a", "b", "c"))
    lanes = {"sms": 3, "lanes_per_sm": 4, "clock_hz": 50}
    assert peak_rates.vector_flops_per_s(**lanes) == flops
    assert peak_rates.operand_bytes_per_s(**lanes, bytes_per_operand=2) == read
    assert peak_rates.implied_clock_hz(peak_flops_per_s=flops, sms=3, fmas_per_cycle_per_sm=4) == 50


def test_the_parts_of_the_chapter_have_their_tensor_cores_counted() -> None:
    assert {"v100-sxm2-32gb", "a100-sxm4-80gb", "h100-sxm5", "b200-hgx"} <= set(COUNTED)


@pytest.mark.parametrize("key", [key for key in COUNTED if "boost_clock_hz" in PARTS[key].facts])
def test_vector_peak_is_what_the_datasheet_prints(key: str) -> None:
    part = PARTS[key]
    assert peak_rates.vector_flops_per_s(**lanes(part), clock_hz=part["boost_clock_hz"]) == pytest.approx(
        part.peak_flops_per_s("fp32"), rel=0.005
    )


@pytest.mark.parametrize("key", COUNTED)
def test_matrix_peak_is_what_the_datasheet_prints_or_its_clock_is_lower(key: str) -> None:
    part = PARTS[key]
    clock_hz = peak_rates.implied_clock_hz(
        peak_flops_per_s=part.peak_flops_per_s("fp32"),
        sms=int(part["sms"]),
        fmas_per_cycle_per_sm=int(part["fp32_lanes_per_sm"]),
    )
    assert part.peak_flops_per_s("fp16") / tensor(part, clock_hz) == pytest.approx(SLOWER.get(key, 1.0), rel=0.01)


def test_the_published_tensor_clock_of_hopper_gives_the_published_peak() -> None:
    h100 = PARTS["h100-sxm5"]
    # 1.83 GHz: H100 whitepaper, as quoted by Lockwood
    assert tensor(h100, 1.83e9) == pytest.approx(h100.peak_flops_per_s("bf16"), rel=1e-3)


def test_clocks_and_peaks_are_two_ways_round() -> None:
    clock_hz = peak_rates.implied_clock_hz(peak_flops_per_s=312e12, sms=108, fmas_per_cycle_per_sm=1024)
    assert peak_rates.matrix_flops_per_s(
        sms=108, units_per_sm=4, fmas_per_cycle=256, clock_hz=clock_hz
    ) == pytest.approx(312e12)


def test_shared_memory_is_published_and_registers_must_outrun_it() -> None:
    a100 = PARTS["a100-sxm4-80gb"]
    shared = peak_rates.shared_bytes_per_s(sms=108, clock_hz=a100["boost_clock_hz"])
    # "19 TB/s": Dao et al., FlashAttention, 2022, arXiv:2205.14135, figure 1, of an A100
    assert shared == pytest.approx(19e12, rel=0.03)
    operands = peak_rates.operand_bytes_per_s(**lanes(a100), bytes_per_operand=4, clock_hz=a100["boost_clock_hz"])
    assert operands == pytest.approx(6 * shared)  # 64 lanes × 12 bytes against 128


# A pin rate that the catalogue derived from the bandwidth would only come back: those parts are left out.
PINNED = [
    key
    for key, part in PARTS.items()
    if "memory_bits_per_s_per_pin" in part.facts and part.facts["memory_bits_per_s_per_pin"].kind != "derived"
]


def test_enough_parts_have_their_pin_rate_printed() -> None:
    assert {"v100-sxm2-32gb", "a100-sxm4-40gb", "a100-sxm4-80gb", "h200-sxm", "b200-hgx"} <= set(PINNED)


@pytest.mark.parametrize("key", PINNED)
def test_memory_bandwidth_is_what_the_datasheet_prints(key: str) -> None:
    part = PARTS[key]
    rate = peak_rates.bus_bytes_per_s(
        bus_bits=int(part["memory_bus_bits"]), bits_per_s_per_pin=part["memory_bits_per_s_per_pin"]
    )
    # printed with two digits at the least; an H200 is sold at 4.8 TB/s, and its pins turn for 4.92
    sold = 4.8 / 4.917 if key == "h200-sxm" else 1.0
    assert sold * rate == pytest.approx(part["memory_bytes_per_s"], rel=0.01)


def test_a_stack_of_hbm3_as_its_standard_prints_it() -> None:
    # JEDEC, JESD238 (HBM3), 2022: up to 6.4 Gb/s per pin, "equivalent to 819 GB/s per device" of 1,024 pins
    assert peak_rates.bus_bytes_per_s(bus_bits=1024, bits_per_s_per_pin=6.4e9) == pytest.approx(819e9, rel=1e-3)


def test_memory_bandwidth_is_the_bits_of_all_pins_in_a_second() -> None:
    """Turn by turn: a narrow bus of 24 pins, 1,000 turns a second, bytes filled bit by bit."""
    bits = sum(1 for _ in range(1000) for _ in range(24))
    assert peak_rates.bus_bytes_per_s(bus_bits=24, bits_per_s_per_pin=1000) == len(bytearray(bits // 8))


@pytest.mark.parametrize("key", [key for key, part in PARTS.items() if "memory_latency_cycles" in part.facts])
def test_latencies_grow_outwards(key: str) -> None:
    part = PARTS[key]
    assert 20 < part["l1_latency_cycles"] < part["l2_latency_cycles"] / 3
    assert part["l2_latency_cycles"] < part["memory_latency_cycles"] < 1500


@pytest.mark.parametrize("key", [key for key, part in PARTS.items() if "l2_bytes_per_cycle" in part.facts])
def test_l2_stands_between_shared_and_device_memory(key: str) -> None:
    part = PARTS[key]
    l2 = part["l2_bytes_per_cycle"] * part["boost_clock_hz"]
    assert (
        part["memory_bytes_per_s"]
        < l2
        < peak_rates.shared_bytes_per_s(sms=int(part["sms"]), clock_hz=part["boost_clock_hz"])
    )


def test_refusals() -> None:
    with pytest.raises(ValueError, match="sms=0"):
        peak_rates.vector_flops_per_s(sms=0, lanes_per_sm=128, clock_hz=1e9)
    with pytest.raises(ValueError, match="clock_hz=-1"):
        peak_rates.matrix_flops_per_s(sms=1, units_per_sm=4, fmas_per_cycle=64, clock_hz=-1)
    assert peak_rates.bus_bytes_per_s(bus_bits=1, bits_per_s_per_pin=8) == 1
    with pytest.raises(ValueError, match="bus_bits=0.5 must be a whole number"):
        peak_rates.bus_bytes_per_s(bus_bits=0.5, bits_per_s_per_pin=8)
    with pytest.raises(ValueError, match="bits_per_s_per_pin=0 must be greater than 0"):
        peak_rates.bus_bytes_per_s(bus_bits=1, bits_per_s_per_pin=0)
