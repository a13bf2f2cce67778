"""The catalogue: every value sourced, and within what physics and arithmetic allow. A slipped digit or unit does not
get past these.
"""

import datetime
import re

import pytest
from tests.each import each

from threeloops.facts import hardware
from threeloops.facts.fact import read_fact
from threeloops.facts.hardware import Engine, Part
from threeloops.units import GB, TB, MiB

PARTS = {key: hardware.part(key) for key in hardware.part_keys()}
FAMILIES = ("nvidia", "other_accelerators", "further_cards", "socs")
ACCELERATORS = {key: part for key, part in PARTS.items() if part.family in FAMILIES}
NVIDIA = {key: part for key, part in PARTS.items() if part.family == "nvidia"}
LINKS = {key: part for key, part in PARTS.items() if part.family == "links"}
CPUS = {key: part for key, part in PARTS.items() if part.family == "cpus"}

OWED = """
    v100-sxm2-32gb a100-sxm4-40gb a100-sxm4-80gb h100-sxm5 h100-pcie h200-sxm b200-hgx gb200 l4 rtx-4090
    mi300x tpu-v5e tpu-v5p jetson-agx-orin-64gb drive-thor
    pcie-3-x16 pcie-4-x16 pcie-5-x16 pcie-6-x16 nvlink-2 nvlink-3 nvlink-4 nvlink-5
    infiniband-edr infiniband-hdr infiniband-ndr infiniband-xdr ethernet-100g ethernet-200g ethernet-400g ethernet-800g
"""


def known(part: Part, *names: str) -> bool:
    return all(name in part.facts for name in names)


def having(parts: dict[str, Part], *names: str) -> list[str]:
    """Keys of the parts that list all of these facts."""
    return [key for key, part in parts.items() if known(part, *names)]


def rates(part: Part) -> list[Engine]:
    return [
        Engine(peaks=part.peaks, sparse_peaks=part.sparse_peaks),
        *(rate for modes in part.engines.values() for rate in modes.values()),
    ]


@each("key", OWED.split())
def test_the_parts_we_owe_are_there(key: str) -> None:
    assert key in PARTS


@each("part", PARTS)
def test_every_value_can_be_checked(part: Part) -> None:
    rows = part.all_facts()
    assert rows
    for name, (fact, unit) in rows.items():
        assert len(fact.printed.split()) <= 8, f"{part.key}.{name} quotes more than a figure"
        assert 2026 <= fact.checked.year < 2036, name  # by no clock: that of a reader may be years behind
        assert re.match(r"(https?://[^ ]+\.[^ ]+|doi:10\.|arXiv:\d)", fact.url), f"{part.key}.{name}: {fact.url}"
        assert unit


@each(
    "key",
    [key for key in having(ACCELERATORS, "sms", "fp32_lanes_per_sm", "boost_clock_hz") if "fp32" in PARTS[key].peaks],
)
def test_fp32_peak_is_lanes_times_clock_times_two(key: str) -> None:
    part = ACCELERATORS[key]
    assert part.peak_flops_per_s("fp32") == pytest.approx(
        part["sms"] * part["fp32_lanes_per_sm"] * 2 * part["boost_clock_hz"], rel=0.01
    )


# Tensor cores whose peak the maker quotes below the clock that the ordinary lanes may reach.
TENSOR_CLOCKS_HZ = {"h100-sxm5": 1.83e9, "h100-pcie": 1.62e9, "h200-sxm": 1.83e9}
MATRIX = ("sms", "matrix_units_per_sm", "matrix_fmas_per_cycle_fp16", "boost_clock_hz")


@each("key", [key for key in having(ACCELERATORS, *MATRIX) if "fp16" in PARTS[key].peaks])
def test_the_16_bit_peak_is_units_times_products_times_clock_times_two(key: str) -> None:
    part = ACCELERATORS[key]
    clock_hz = TENSOR_CLOCKS_HZ.get(key, part["boost_clock_hz"])
    assert part.peak_flops_per_s("fp16") == pytest.approx(
        part["sms"] * part["matrix_units_per_sm"] * part["matrix_fmas_per_cycle_fp16"] * 2 * clock_hz, rel=0.01
    )
    assert (clock_hz < 0.95 * part["boost_clock_hz"]) == (key in TENSOR_CLOCKS_HZ)


@each(
    ("key", "dtype"),
    [
        (key, dtype)
        for dtype in ("fp32", "fp64")
        for key in having(CPUS, "cores", f"flops_per_cycle_per_core_{dtype}", "base_clock_hz")
        if dtype in PARTS[key].peaks
    ],
)
def test_a_processors_peak_is_cores_times_operations_times_clock(key: str, dtype: str) -> None:
    part = CPUS[key]
    assert part.peak_flops_per_s(dtype) == pytest.approx(
        part["cores"] * part[f"flops_per_cycle_per_core_{dtype}"] * part["base_clock_hz"]
    )


# Sold below what the bus could carry.
SLOWER_THAN_ITS_PINS = {"h200-sxm": "3,201 MHz would be 4.92 TB/s; NVIDIA prints 4.8"}


@each("key", having(ACCELERATORS, "memory_bus_bits", "memory_bits_per_s_per_pin", "memory_bytes_per_s"))
def test_bandwidth_is_bus_width_times_pin_rate(key: str) -> None:
    part = ACCELERATORS[key]
    of_its_pins = part["memory_bus_bits"] * part["memory_bits_per_s_per_pin"] / 8
    agrees = part["memory_bytes_per_s"] == pytest.approx(of_its_pins, rel=0.01)
    assert agrees != (key in SLOWER_THAN_ITS_PINS), part["memory_bytes_per_s"] / of_its_pins
    assert 0.97 * of_its_pins <= part["memory_bytes_per_s"] <= 1.01 * of_its_pins


# Each step down in width doubles the rate on tensor cores. Parts that break the rule were built to, and are named.
DOUBLINGS = [("tf32", "bf16"), ("bf16", "fp8"), ("bf16", "int8"), ("fp8", "fp4"), ("int8", "int4")]
EXCEPTIONS = {
    ("b300-hgx", "fp8", "fp4"): "Blackwell Ultra spends area on fp4: 1.5 times more",
    ("b300-hgx", "bf16", "int8"): "Blackwell Ultra cut its integer rate",
    ("gb300", "fp8", "fp4"): "the same silicon",
    ("gb300", "bf16", "int8"): "the same silicon",
    ("rubin", "bf16", "fp8"): "NVIDIA prints 4.4 times",
    ("rubin", "bf16", "int8"): "integers are cut, as on Blackwell Ultra",
    ("gaudi-3", "bf16", "fp8"): "one rate for both in its matrix engines",
    ("mi250x", "bf16", "int8"): "CDNA 2 has one rate for both",
    ("mi455x", "bf16", "int8"): "AMD prints one rate for both",
    ("rtx-4090", "bf16", "int8"): "GeForce halves what accumulates in fp32; integers run at full rate",
    ("rtx-5090", "fp8", "fp4"): "the same: fp4 at full rate against fp8 at half",
    ("tpu-v4", "bf16", "int8"): "Google prints one rate for both",
    ("trainium1", "tf32", "bf16"): "AWS lists one rate for tf32 and bf16",
    ("trainium1", "bf16", "fp8"): "and for its own 8-bit float",
    ("trainium2", "tf32", "bf16"): "AWS lists one rate for tf32 and bf16",
    ("trainium3", "tf32", "bf16"): "AWS lists one rate for tf32 and bf16",
    ("trainium3", "bf16", "fp8"): "Trainium3 spends area on fp8: 3.75 times",
    ("trainium3", "fp8", "fp4"): "fp4 saves bytes here, not time",
    ("trainium2", "bf16", "fp8"): "AWS lists 1.95 times",
    ("tpu-v5p", "bf16", "fp8"): "Google: fp8 saves bytes here, not time in the MXU",
}


@each(("key", "wide", "narrow"), [(key, *pair) for key in ACCELERATORS for pair in DOUBLINGS])
def test_half_the_bits_give_twice_the_rate(key: str, wide: str, narrow: str) -> None:
    found = [
        rate.peaks[narrow].value / rate.peaks[wide].value
        for rate in rates(ACCELERATORS[key])
        if wide in rate.peaks and narrow in rate.peaks
    ]
    doubles = all(ratio == pytest.approx(2, rel=0.03) for ratio in found)
    assert doubles or (key, wide, narrow) in EXCEPTIONS, f"{key}: {narrow} is {found} times {wide}"


@each(("key", "wide", "narrow"), list(EXCEPTIONS))
def test_every_exception_is_still_one(key: str, wide: str, narrow: str) -> None:
    (ratio,) = [
        rate.peaks[narrow].value / rate.peaks[wide].value
        for rate in rates(PARTS[key])
        if wide in rate.peaks and narrow in rate.peaks
    ]
    assert ratio != pytest.approx(2, rel=0.005)


RECKONED = {
    key: fact
    for key, part in ACCELERATORS.items()
    if (fact := part.facts.get("usable_bytes")) and fact.kind == "estimate"
}
OF_A_SIBLING = re.compile(r"([\d.]+) ?(MiB|MB|) of (\d+) GB")  # Metal's MB are MiB


@each("key", [key for key, fact in RECKONED.items() if OF_A_SIBLING.fullmatch(fact.printed)])
def test_a_reckoned_memory_is_a_siblings_share_of_it(key: str) -> None:
    printed, own = OF_A_SIBLING.fullmatch(RECKONED[key].printed), re.search(r"(\d+) ?GB", PARTS[key].name)
    assert printed
    assert own
    reported, unit, sold = printed.groups()
    share, own_gib = float(reported) * (MiB if unit else 1) / (int(sold) * 1024 * MiB), int(own[1])
    assert PARTS[key].capacity_bytes() == pytest.approx(share * own_gib * 1024 * MiB, rel=1e-3)


def test_a_reckoned_memory_says_whose_it_is() -> None:
    assert len(RECKONED) > 30
    for key, fact in RECKONED.items():
        assert re.search(r"report|Metal recommends", fact.note), key


def test_no_card_of_a_desk_or_a_server_falls_back_to_decimal_gigabytes() -> None:
    without = {
        key
        for key, part in ACCELERATORS.items()
        if part.vendor in ("NVIDIA", "AMD", "Apple") and part.family != "socs" and not known(part, "usable_bytes")
    }
    # no log was found, or published points are judged by the printed figure: see FORMAT.md
    assert without == {"rubin", "gb10", "gb200", "gb300"}


BLACKWELL_ULTRA = ("b300-hgx", "gb300")  # dense fp4 was raised over Blackwell's, sparse fp4 was not


@each("key", sorted(set(ACCELERATORS) - {"trainium2", "trainium3"}))  # their sparsity keeps 4 of 16, not 2 of 4
def test_sparsity_doubles_and_is_never_taken_for_dense(key: str) -> None:
    for rate in rates(ACCELERATORS[key]):
        for dtype in set(rate.peaks) & set(rate.sparse_peaks):
            ratio = rate.sparse_peaks[dtype].value / rate.peaks[dtype].value
            assert ratio == pytest.approx(2, rel=0.03) or (key in BLACKWELL_ULTRA and dtype == "fp4"), (
                f"{key} {dtype}: {ratio}"
            )


@each("key", list(ACCELERATORS))
def test_magnitudes_are_those_of_real_machines(key: str) -> None:
    part = ACCELERATORS[key]
    for name, low, high in (
        ("memory_bytes", 4 * GB, 450 * GB),
        ("memory_bytes_per_s", 0.03 * TB, 25 * TB),
        ("tdp_w", 10, 1500),
        ("sms", 1, 400),
        ("boost_clock_hz", 0.5e9, 3.2e9),
        ("l2_bytes", 1 * MiB, 300 * MiB),
        ("shared_memory_bytes_per_sm", 48 * 1024, 32 * MiB),  # Trainium's core has 24 MiB and more
        ("register_file_bytes_per_sm", 128 * 1024, 1024 * 1024),
        ("link_bytes_per_s_one_way", 10 * GB, 2 * TB),
        ("host_link_bytes_per_s_one_way", 5 * GB, 500 * GB),
        ("year", 2017, 2026),
    ):
        if name in part.facts:
            assert low <= part[name] <= high, f"{key}.{name} = {part[name]}"
    for rate in rates(part):
        for dtype, fact in rate.peaks.items():
            assert 1e11 <= fact.value <= 4e16, f"{key}.{dtype}"


@each("key", having(ACCELERATORS, "best_gemm_flops_per_s_bf16"))
def test_no_product_was_measured_above_the_dense_peak(key: str) -> None:
    for dtype in ("bf16", "fp8"):
        if f"best_gemm_flops_per_s_{dtype}" in ACCELERATORS[key].facts:
            assert (
                0.4
                < ACCELERATORS[key][f"best_gemm_flops_per_s_{dtype}"] / ACCELERATORS[key].peak_flops_per_s(dtype)
                < 1
            )


@each("key", having(ACCELERATORS, "usable_bytes", "memory_bytes"))
def test_usable_memory_is_near_what_the_datasheet_promises(key: str) -> None:
    part = ACCELERATORS[key]
    # The datasheet's GB may be meant as GiB (7.4 % more), and drivers keep a little back; Metal a third or a quarter.
    least = 0.66 if part.vendor == "Apple" else 0.93
    assert least <= part["usable_bytes"] / part["memory_bytes"] <= (1.0738 if least > 0.9 else 0.75)
    assert part.capacity_bytes() == part["usable_bytes"]


@each("key", having(LINKS, "bytes_per_s_one_way", "advertised_bytes_per_s"))
def test_a_link_is_one_way_and_its_brochure_is_not(key: str) -> None:
    part = LINKS[key]
    ratio = part["advertised_bytes_per_s"] / part["bytes_per_s_one_way"]
    both_ways = key.startswith(
        ("pcie", "nvlink", "dgx", "nvl", "gb200", "gb300", "infinity-fabric", "neuronlink", "ici")
    )
    assert ratio == pytest.approx(2 if both_ways else 1, rel=0.05)


@each("key", [key for key in LINKS if key.startswith("pcie")])
def test_pcie_is_lanes_times_transfers_less_coding(key: str) -> None:
    part = LINKS[key]
    raw = part["lanes"] * part["bits_per_s_per_lane"] / 8
    assert 0.97 * raw <= part["bytes_per_s_one_way"] <= raw  # 128b/130b takes 1.5 %


@each("key", [key for key in LINKS if key.startswith(("infiniband", "ethernet"))])
def test_a_network_port_carries_the_bits_of_its_name(key: str) -> None:
    part = LINKS[key]
    gbit = {"edr": 100, "hdr": 200, "ndr": 400, "xdr": 800}.get(key.split("-")[1]) or int(key.split("-")[1].rstrip("g"))
    assert part["bytes_per_s_one_way"] == gbit * 1e9 / 8


@each("key", [key for key in LINKS if key.startswith("nvlink") and key != "nvlink-c2c"])  # its lanes: not printed
def test_nvlink_is_links_times_the_rate_of_one(key: str) -> None:
    part = LINKS[key]
    assert part["bytes_per_s_one_way"] == pytest.approx(part["links_per_gpu"] * part["bytes_per_s_per_link_one_way"])


@each(
    ("gpu", "link"),
    [
        ("v100-sxm2-32gb", "nvlink-2"),
        ("a100-sxm4-80gb", "nvlink-3"),
        ("h100-sxm5", "nvlink-4"),
        ("b200-hgx", "nvlink-5"),
    ],
)
def test_a_gpu_and_its_link_agree(gpu: str, link: str) -> None:
    assert PARTS[gpu]["link_bytes_per_s_one_way"] == PARTS[link]["bytes_per_s_one_way"]


@each("key", having(CPUS, "memory_channels"))
def test_a_processor_has_the_bandwidth_of_its_channels(key: str) -> None:
    part = CPUS[key]
    assert part["memory_bytes_per_s"] == pytest.approx(
        part["memory_channels"] * part["memory_transfers_per_s"] * 8, rel=0.01
    )


# --- refusals -----------------------------------------------------------------------------------


def test_a_missing_format_is_refused_and_the_known_ones_listed() -> None:
    v100 = PARTS["v100-sxm2-32gb"]
    assert v100.peak_flops_per_s("fp16") == 125e12
    with pytest.raises(ValueError, match="v100-sxm2-32gb has no dense bf16 peak in the catalogue; known: .*fp16"):
        v100.peak_flops_per_s("bf16")
    with pytest.raises(ValueError, match="dtype='bf61' is not known; did you mean 'bf16'"):
        v100.peak_flops_per_s("bf61")


def test_a_missing_fact_is_refused_and_the_known_ones_listed() -> None:
    with pytest.raises(ValueError, match="nvlink-4 has no tdp_w; known: .*bytes_per_s_one_way"):
        PARTS["nvlink-4"]["tdp_w"]
    with pytest.raises(ValueError, match="fact='tdp' is not known; did you mean 'tdp_w'"):
        PARTS["nvlink-4"]["tdp"]


def test_a_system_on_a_chip_wants_its_engine_and_power_mode_named() -> None:
    orin = PARTS["jetson-agx-orin-64gb"]
    engine, modes = next(iter(orin.engines.items()))
    mode, rate = next((mode, rate) for mode, rate in modes.items() if rate.peaks)
    dtype = next(iter(rate.peaks))
    assert orin.peak_flops_per_s(dtype, engine=engine, power_mode=mode) > 0
    with pytest.raises(ValueError, match="needs engine in"):
        orin.peak_flops_per_s(dtype)
    with pytest.raises(ValueError, match="needs power_mode in"):
        orin.peak_flops_per_s(dtype, engine=engine)
    with pytest.raises(ValueError, match="has one engine"):
        PARTS["h100-sxm5"].peak_flops_per_s("bf16", engine="gpu")


def test_a_name_that_fits_several_parts_is_refused_with_all_of_them() -> None:
    with pytest.raises(
        ValueError, match="part='a100' may be 'dgx-a100', 'a100-sxm4-40gb', 'a100-sxm4-80gb' or 'a100-p"
    ):
        hardware.part("a100")
    with pytest.raises(ValueError, match="^hardware='h100' may be 'h100-nvl-94gb', 'h100-sxm5' or"):
        hardware.part_key("h100", kind="hardware")
    with pytest.raises(ValueError, match="kind='hardwear' is not known"):
        hardware.part_key("h100", kind="hardwear")


def test_a_sparse_figure_is_asked_for_by_name() -> None:
    h100 = PARTS["h100-sxm5"]
    assert h100.sparse_peak_flops_per_s("bf16") == pytest.approx(2 * h100.peak_flops_per_s("bf16"), rel=1e-3)


def test_estimates_and_derivations_say_why() -> None:
    source = {"me": {"title": "t", "url": "https://example.org", "checked": datetime.date(2026, 11, 21)}}
    row = {"value": 1.0, "printed": "1", "kind": "estimate", "source": "me"}
    assert read_fact(row | {"note": "because"}, source, where="x").note == "because"
    with pytest.raises(ValueError, match="x: kind='estimate' needs a note"):
        read_fact(row, source, where="x")
