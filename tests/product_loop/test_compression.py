"""Compression: formulas against weights that are really packed, pruned, factorised and rounded."""

import math
import random
import statistics
import struct
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from threeloops.foundations import dense_networks
from threeloops.product_loop import compression, serving
from threeloops.product_loop.compression import Groups
from threeloops.simulate.product_loop import narrow_weights


def drawn_weights(number: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [rng.gauss(0, 0.02) for _ in range(number)]


# What was written, read again.


def taken(reading: Iterator[str], number: int) -> str:
    return "".join(next(reading) for _ in range(number))


def unpacked_groups(written: str, *, weights: int, bits: int, group: int, symmetric: bool) -> list[float]:
    """The values that those bits stand for."""
    reading, found = iter(written), list[float]()
    while len(found) < weights:
        (scale,) = struct.unpack(">e", int(taken(reading, 16), 2).to_bytes(2, "big"))
        zero = 2 ** (bits - 1) if symmetric else int(taken(reading, bits), 2)
        found += [(int(taken(reading, bits), 2) - zero) * scale for _ in range(min(group, weights - len(found)))]
    return found


def unmasked(written: str, *, weights: int, bits: int) -> list[int]:
    """Walk the mask, and take the next pattern at every one."""
    mask, patterns = written[:weights], iter(written[weights:])
    return [int(taken(patterns, bits), 2) if mark == "1" else 0 for mark in mask]


def unindexed(written: str, *, weights: int, bits: int, index_bits: int) -> list[int]:
    """Put every pattern where its number says."""
    values = [0] * weights
    for start in range(0, len(written), index_bits + bits):
        place, pattern = written[start : start + index_bits], written[start + index_bits : start + index_bits + bits]
        values[int(place, 2)] = int(pattern, 2)
    return values


@given(
    weights=st.integers(1, 200),
    bits=st.integers(2, 8),
    group=st.sampled_from((8, 16, 32, 128)),
    symmetric=st.booleans(),
    seed=st.integers(0, 99),
)
def test_the_size_of_a_quantised_tensor_is_that_of_its_packed_bits(
    weights: int, bits: int, group: int, symmetric: bool, seed: int
) -> None:
    written = narrow_weights.packed_groups(drawn_weights(weights, seed), bits=bits, group=group, symmetric=symmetric)
    form = Groups(element_bits=bits, group=group, scale_bits=16, zero_bits=0 if symmetric else bits)
    assert compression.quantised_bytes(weights, form) == len(written) / 8
    if weights % group == 0:
        assert form.bits_per_weight == pytest.approx(len(written) / weights)


@given(bits=st.integers(3, 8), symmetric=st.booleans(), seed=st.integers(0, 99))
def test_packed_weights_can_be_read_back_to_within_a_step(bits: int, symmetric: bool, seed: int) -> None:
    weights = drawn_weights(96, seed)
    written = narrow_weights.packed_groups(weights, bits=bits, group=32, symmetric=symmetric)
    read = unpacked_groups(written, weights=96, bits=bits, group=32, symmetric=symmetric)
    for start in range(0, 96, 32):
        group = weights[start : start + 32]
        step = (2 * max(map(abs, group)) if symmetric else max(group) - min(group)) / (2**bits - 1)
        assert max(abs(one - other) for one, other in zip(group, read[start : start + 32], strict=True)) <= 1.1 * step


@given(places=st.lists(st.sampled_from((0, 0, 1, 3, 14)), min_size=1, max_size=200), bits=st.sampled_from((4, 8, 16)))
def test_pruned_weights_walked_by_their_mask_and_by_their_indices(places: list[int], bits: int) -> None:
    kept = sum(value > 0 for value in places)
    mask, indices = narrow_weights.masked(places, bits=bits), narrow_weights.indexed(places, bits=bits, index_bits=8)
    assert unmasked(mask, weights=len(places), bits=bits) == places
    assert unindexed(indices, weights=len(places), bits=bits, index_bits=8) == places
    assert compression.bitmask_bytes(len(places), kept=kept, element_bits=bits) == len(mask) / 8
    assert compression.index_bytes(len(places), kept=kept, element_bits=bits, index_bits=8) == len(indices) / 8


@given(kept=st.integers(0, 160), bits=st.sampled_from((4, 8, 16)))
def test_a_mask_pays_below_its_break_even_and_only_there(kept: int, bits: int) -> None:
    places = [1] * kept + [0] * (160 - kept)
    smaller = len(narrow_weights.masked(places, bits=bits)) < 160 * bits
    assert smaller == (kept / 160 < compression.bitmask_break_even_density(element_bits=bits))


@given(rows=st.integers(1, 40), columns=st.integers(1, 40), rank=st.integers(1, 40))
def test_two_thin_matrices_counted_entry_by_entry(rows: int, columns: int, rank: int) -> None:
    entries = sum(
        len(row) for factor in narrow_weights.factors(rows=rows, columns=columns, rank=rank) for row in factor
    )
    assert dense_networks.low_rank_parameters(rows=rows, columns=columns, rank=rank) == entries
    whole = sum(1 for _row in range(rows) for _column in range(columns))
    assert (entries < whole) == (rank < dense_networks.break_even_rank(rows=rows, columns=columns))


@pytest.mark.parametrize("bits", [4, 6, 8, 10])
@pytest.mark.parametrize("shape", ["sine", "even", "outlier"])
def test_the_noise_of_really_rounding_a_signal(bits: int, shape: str) -> None:
    """40,000 values. A sine lingers at its peaks, where its errors are not evenly spread: at 4 bits it loses half a
    decibel of the 6 that a bit brings.
    """
    rng = random.Random(7)
    signals = {
        "sine": lambda place: math.sin(0.7390851 * place),
        "even": lambda place: rng.uniform(-1, 1),
        "outlier": lambda place: rng.gauss(0, 0.1),  # and the grid reaches to 1: a crest of ten
    }
    values = [signals[shape](place) for place in range(40_000)]
    values = [value for value in values if abs(value) < 1]
    noise = narrow_weights.noise_power(values, bits=bits, peak=1)
    signal = statistics.fmean(value * value for value in values)
    tolerance = 0.6 if shape == "sine" else 0.1
    assert 10 * math.log10(noise / compression.noise_power(2 / 2**bits)) == pytest.approx(0, abs=tolerance)
    assert 10 * math.log10(signal / noise) == pytest.approx(
        compression.sqnr_db(bits, crest=1 / math.sqrt(signal)), abs=tolerance
    )


@pytest.mark.parametrize(("bits", "printed"), [(8, 49.93), (12, 74.0), (16, 98.1)])
def test_the_decibels_of_converters_as_data_sheets_print_them(bits: int, printed: float) -> None:
    """6.02 N + 1.76 dB, Analog Devices MT-001 (2008)."""
    assert compression.sqnr_db(bits, crest=math.sqrt(2)) == pytest.approx(printed, abs=0.05)


@given(student=st.integers(1, 30), extra=st.integers(1, 30), tokens=st.integers(1, 50))
def test_a_student_pays_for_itself_after_as_many_tokens(student: int, extra: int, tokens: int) -> None:
    """Serve token after token, with the teacher and with the student whose training comes first, until the second is
    ahead.
    """
    teacher = student + extra
    # forward and twice as much backward; the teacher reads along
    with_student = sum(3 * 2 * student + 2 * teacher for _ in range(tokens))
    with_teacher = served = 0
    while with_teacher < with_student:
        with_teacher, with_student, served = with_teacher + 2 * teacher, with_student + 2 * student, served + 1
    predicted = compression.break_even_tokens(
        teacher_parameters=teacher, student_parameters=student, training_tokens=tokens
    )
    assert served == math.ceil(predicted - 1e-9)


@given(batch=st.integers(1, 4000))
def test_narrow_weights_help_as_long_as_the_step_waits_for_memory(batch: int) -> None:
    """An 8B model on an H100: never less than nothing, never more than the ratio of the weights, and nothing where
    arithmetic takes longest.
    """
    h100 = {"flops_per_token": 16e9, "memory_bytes_per_s": 3.35e12, "cache_bytes": batch * 0.1e9}
    faster = compression.step_speedup(
        weights_bytes=16e9, narrow_bytes=4.2e9, tokens=batch, peak_flops_per_s=989.4e12, **h100
    )
    assert 1 <= faster <= 16 / 4.2 + 1e-12
    arithmetic = batch * 16e9 / 989.4e12
    if serving.decode_step_s(weights_bytes=16e9, batch=batch, peak_flops_per_s=989.4e12, **h100) == arithmetic:
        assert faster == 1


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: compression.bitmask_bytes(10, kept=11, element_bits=4), "only takes away"),
        (lambda: compression.index_bytes(300, kept=11, element_bits=4, index_bits=8), "tells 256 places apart"),
        (
            lambda: compression.break_even_tokens(teacher_parameters=1e9, student_parameters=2e9, training_tokens=1),
            "save nothing",
        ),
        (lambda: compression.sqnr_db(8, crest=0.5), "below 1"),
        (lambda: Groups(element_bits=4, group=0, scale_bits=16, zero_bits=4), "group=0"),
        (lambda: dense_networks.low_rank_parameters(rows=3, columns=4, rank=0), "rank=0"),
    ],
)
def test_nonsense_is_refused(call: object, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()  # type: ignore[operator]
