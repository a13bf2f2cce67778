"""Peak rates from the parts of a chip: what a datasheet prints, put together again from counts and a clock.

A peak is nothing but units times work per cycle times cycles per second. Whoever can rebuild a printed one knows
which units it speaks of, at which clock, and whether half of it is sparsity. `operations/roofline.py` takes these
peaks, arithmetic and memory, as its roof.

>>> from threeloops.units import TFLOP
>>> vector_flops_per_s(sms=132, lanes_per_sm=128, clock_hz=1.98e9) / TFLOP  # H100 SXM5; NVIDIA prints 67
66.90816
>>> matrix_flops_per_s(sms=108, units_per_sm=4, fmas_per_cycle=256, clock_hz=1.41e9) / TFLOP  # A100; NVIDIA prints 312
311.86944

Source: NVIDIA Ampere Architecture In-Depth, 2020 (units per SM, multiply-adds per unit and clock)
"""

from threeloops import checks
from threeloops.units import BITS_PER_BYTE

FLOPS_PER_FMA = 2  # one multiplication and one addition
OPERANDS_PER_FMA = 3  # a, b and c of a * b + c
SHARED_BYTES_PER_CYCLE = 128  # 32 banks of 4 bytes, the same on every NVIDIA part in the catalogue


def vector_flops_per_s(*, sms: int, lanes_per_sm: int, clock_hz: float) -> float:
    """Peak of the ordinary lanes ("CUDA cores"), FLOP/s.

    Formula:  sms * lanes_per_sm * 2 * clock_hz
    Assumes:  every lane finishes one fused multiply-add per cycle, which counts as 2 FLOPs
    Source:   NVIDIA Ampere Architecture In-Depth, 2020
    Counted:  tests.inner_loop.test_peak_rates.test_every_lane_multiplies_and_adds_in_every_cycle
    """
    checks.count(sms=sms, lanes_per_sm=lanes_per_sm)
    checks.positive(clock_hz=clock_hz)
    return sms * lanes_per_sm * FLOPS_PER_FMA * clock_hz


def matrix_flops_per_s(*, sms: int, units_per_sm: int, fmas_per_cycle: int, clock_hz: float) -> float:
    """Dense peak of the matrix units ("tensor cores"), FLOP/s.

    Formula:  sms * units_per_sm * fmas_per_cycle * 2 * clock_hz
    Assumes:  fmas_per_cycle is of one unit, dense, in the number format that is asked about
    Source:   NVIDIA Ampere Architecture In-Depth, 2020
    Counted:  drills.gpu_kernels.anatomy.PEAK
    """
    checks.count(sms=sms, units_per_sm=units_per_sm, fmas_per_cycle=fmas_per_cycle)
    checks.positive(clock_hz=clock_hz)
    return sms * units_per_sm * fmas_per_cycle * FLOPS_PER_FMA * clock_hz


def implied_clock_hz(*, peak_flops_per_s: float, sms: int, fmas_per_cycle_per_sm: int) -> float:
    """The clock at which these units would reach a printed peak, Hz.

    Formula:  peak_flops_per_s / (sms * fmas_per_cycle_per_sm * 2)
    Counted:  tests.inner_loop.test_peak_rates.test_every_lane_multiplies_and_adds_in_every_cycle

    >>> implied_clock_hz(peak_flops_per_s=989.4e12, sms=132, fmas_per_cycle_per_sm=4 * 512) / 1e9  # H100 SXM5
    1.829944957386...
    """
    checks.positive(peak_flops_per_s=peak_flops_per_s)
    checks.count(sms=sms, fmas_per_cycle_per_sm=fmas_per_cycle_per_sm)
    return peak_flops_per_s / (sms * fmas_per_cycle_per_sm * FLOPS_PER_FMA)


def bus_bytes_per_s(*, bus_bits: int, bits_per_s_per_pin: float) -> float:
    """Peak of the device memory, B/s.

    Formula:  bus_bits * bits_per_s_per_pin / 8
    Units:    bits_per_s_per_pin is the data rate ("5.2 Gbit/s"): twice the memory clock where both edges of it carry
              a bit (DDR, HBM); bus_bits of the whole part: 1,024 for each stack of HBM up to HBM3e
    Assumes:  every pin carries a bit at every turn; refresh, changes between reading and writing, and error
              correction cost nothing
    Raises:   ValueError unless bus_bits is a whole number of at least 1 and the rate is positive
    Source:   NVIDIA Ampere Architecture In-Depth, 2020 (bus width, memory clock and bandwidth of V100 and A100 side
              by side)
    Counted:  tests.inner_loop.test_peak_rates.test_memory_bandwidth_is_the_bits_of_all_pins_in_a_second

    >>> bus_bytes_per_s(
    ...     bus_bits=5120, bits_per_s_per_pin=5.2e9
    ... ) / 1e12  # five stacks of HBM3, as on an H100 SXM5; printed 3.35
    3.328
    """
    checks.count(bus_bits=bus_bits)
    checks.positive(bits_per_s_per_pin=bits_per_s_per_pin)
    return bus_bits * bits_per_s_per_pin / BITS_PER_BYTE


def shared_bytes_per_s(*, sms: int, clock_hz: float) -> float:
    """Peak of all shared memories together, B/s.

    Formula:  sms * 128 * clock_hz
    Assumes:  32 banks of 4 bytes each, one word per bank and cycle, no two lanes in one bank
    Source:   NVIDIA, CUDA C++ Best Practices Guide 12.9, 10.2.3.1 (32 banks, 32 bits per clock cycle each)
    Counted:  drills.gpu_kernels.anatomy.BANKS

    >>> shared_bytes_per_s(sms=108, clock_hz=1.41e9) / 1e12  # A100
    19.49184
    """
    checks.count(sms=sms)
    checks.positive(clock_hz=clock_hz)
    return sms * SHARED_BYTES_PER_CYCLE * clock_hz


def operand_bytes_per_s(*, sms: int, lanes_per_sm: int, bytes_per_operand: float, clock_hz: float) -> float:
    """What the registers must deliver so that every lane can do a multiply-add in every cycle, B/s.

    Formula:  sms * lanes_per_sm * 3 * bytes_per_operand * clock_hz
    Assumes:  three operands read per multiply-add; the result that is written back is not counted
    Counted:  tests.inner_loop.test_peak_rates.test_every_lane_multiplies_and_adds_in_every_cycle

    >>> operand_bytes_per_s(sms=108, lanes_per_sm=64, bytes_per_operand=4, clock_hz=1.41e9) / 1e12  # A100
    116.95104
    """
    checks.count(sms=sms, lanes_per_sm=lanes_per_sm)
    checks.positive(bytes_per_operand=bytes_per_operand, clock_hz=clock_hz)
    return sms * lanes_per_sm * OPERANDS_PER_FMA * bytes_per_operand * clock_hz
