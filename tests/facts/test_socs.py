"""Systems on a chip: what belongs to one entry fits together, and no measurement beats the peak that it ran on."""

import pytest

from threeloops.driving import datasheet_tops
from threeloops.facts import frame_rates, hardware
from threeloops.inner_loop import peak_rates
from threeloops.models import catalogue

SOCS = {part.key: part for part in map(hardware.part, hardware.part_keys()) if part.family == "socs"}
# Which format the brochure's total is in; else int8.
WIDEST = dict.fromkeys(("jetson-thor", "jetson-t4000", "drive-thor"), "fp4")
ROUNDED = {"jetson-orin-nano-8gb", "jetson-orin-nano-4gb", "ti-tda4vm"}  # 40.96, 20.48 and 8.192, sold as 40, 20 and 8
every = pytest.mark.parametrize


def total(pieces: tuple[datasheet_tops.Piece, ...]) -> float:
    """Every engine, with sparsity where it is claimed."""
    return sum(piece.dense_ops_per_s + piece.sparse_extra_ops_per_s for piece in pieces)


def top_mode(key: str) -> str:
    return next(iter(next(iter(SOCS[key].engines.values()))))


@every("key", [key for key, part in SOCS.items() if "advertised_ops_per_s" in part.facts])
def test_the_brochures_total_is_the_sum_of_its_pieces(key: str) -> None:
    pieces = datasheet_tops.taken_apart(SOCS[key], dtype=WIDEST.get(key, "int8"), power_mode=top_mode(key))
    rounding = 0.025 if key in ROUNDED else 0.005
    assert total(pieces) == pytest.approx(SOCS[key]["advertised_ops_per_s"], rel=rounding)


@every(("mode", "printed"), [("maxn", 275e12), ("50w", 200e12), ("30w", 131e12), ("15w", 54e12)])
def test_orins_power_modes_add_up_to_nvidias_totals(mode: str, printed: float) -> None:
    pieces = datasheet_tops.taken_apart(SOCS["jetson-agx-orin-64gb"], dtype="int8", power_mode=mode)
    assert total(pieces) == pytest.approx(printed, rel=0.006)


def test_the_super_mode_adds_up_to_what_jetpack_says_and_only_its_gpu_is_faster() -> None:
    small = SOCS["jetson-agx-orin-32gb"]
    pieces = {mode: datasheet_tops.taken_apart(small, dtype="int8", power_mode=mode) for mode in ("maxn", "maxn_super")}
    assert total(pieces["maxn_super"]) == pytest.approx(241e12, rel=0.002)
    dense = {mode: {one.engine: one.dense_ops_per_s for one in each} for mode, each in pieces.items()}
    assert dense["maxn_super"]["gpu"] == pytest.approx(
        dense["maxn"]["gpu"] * 1.3e9 / small["boost_clock_hz"], rel=0.005
    )
    assert dense["maxn_super"]["dla"] == dense["maxn"]["dla"]


@every("key", [key for key, part in SOCS.items() if "capped_memory_bytes_per_s" in part.facts])
def test_a_capped_memory_is_as_much_slower_as_its_clock(key: str) -> None:
    part = SOCS[key]
    clock_hz = float(part.facts["capped_memory_bytes_per_s"].printed.split()[-1])
    slower = clock_hz / (part["memory_bits_per_s_per_pin"] / 2)  # two transfers per clock
    assert part["capped_memory_bytes_per_s"] == pytest.approx(part["memory_bytes_per_s"] * slower)
    assert slower < 1


@every("key", [key for key, part in SOCS.items() if "matrix_fmas_per_cycle_int8" in part.facts])
def test_the_int8_peak_is_units_times_multiply_adds_times_clock(key: str) -> None:
    part = SOCS[key]
    engine, modes = next(iter(part.engines.items()))
    assert part.peak_flops_per_s("int8", engine=engine, power_mode=next(iter(modes))) == pytest.approx(
        peak_rates.matrix_flops_per_s(
            sms=int(part["sms"]),
            units_per_sm=int(part["matrix_units_per_sm"]),
            fmas_per_cycle=int(part["matrix_fmas_per_cycle_int8"]),
            clock_hz=part["boost_clock_hz"],
        ),
        rel=0.005,
    )


@every("key", [key for key, part in SOCS.items() if len(next(iter(part.engines.values()))) > 1])
def test_less_power_never_gives_more(key: str) -> None:
    for engine, modes in SOCS[key].engines.items():
        # Every module lists INT8 in all its modes; of Xavier only the ordinary units' rate is known.
        dtype = "fp32" if key.startswith("jetson-agx-xavier") else "int8"
        peaks = {mode: rate.peaks[dtype].value for mode, rate in modes.items()}
        if "maxn_super" in peaks:
            assert peaks.pop("maxn_super") >= peaks["maxn"]
        if (key, engine) == ("jetson-agx-orin-32gb", "dla"):  # at 30W NVIDIA clocks the DLAs higher than at 40W
            assert peaks.pop("30w") > peaks["40w"]
        assert list(peaks.values()) == sorted(peaks.values(), reverse=True)


@every("key", frame_rates.frame_rate_keys())
def test_no_frame_rate_beats_the_peak_it_ran_on(key: str) -> None:
    found = frame_rates.frame_rate(key)
    net = catalogue.convnet(found.convnet, height=found.height, width=found.width)
    part = SOCS[found.part]
    for mode, frames in found.frames_per_s.items():
        where = {"engine": found.engine, "power_mode": top_mode(found.part) if mode == "not_stated" else mode}
        of = part.sparse_peak_flops_per_s if "sparse" in key else part.peak_flops_per_s
        share = datasheet_tops.share_of_peak(
            frames_per_s=frames.value, ops_per_frame=found.images * net.flops, peak_ops_per_s=of(found.dtype, **where)
        )
        assert 0.02 < share < 0.9


def test_sparse_weights_beat_the_dense_peak_and_are_far_from_twice_as_fast() -> None:
    """So the halved figure is what dense weights can reach at most, and the doubled one is not what pruning gives."""
    dense, sparse = (frame_rates.frame_rate(f"orin-dla-resnet-34{kind}").frames_per_s for kind in ("", "-sparse"))
    for mode in dense:
        assert 1.3 < sparse[mode].value / dense[mode].value < 1.5


def test_an_unknown_frame_rate_and_an_unlisted_format_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'orin-dla-resnet-34'"):
        frame_rates.frame_rate("orin-dla-resnet34")
    with pytest.raises(ValueError, match="lists no fp4 in power mode 'maxn'"):
        datasheet_tops.taken_apart(SOCS["jetson-agx-orin-64gb"], dtype="fp4", power_mode="maxn")
