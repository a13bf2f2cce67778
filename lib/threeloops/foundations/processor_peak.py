"""Processor peak: what a processor could calculate and move at most, from what its maker prints.

>>> per_core = flops_per_cycle(vector_bits=256, element_bits=64, fma_units=2)
>>> per_core, peak_flops_per_s(cores=64, flops_per_cycle_per_core=per_core, clock_hz=2.25e9)
(16, 2304000000000.0)

Source: Dolbeau, "Theoretical peak FLOPS per instruction set: a tutorial", Journal of Supercomputing 74, 2018,
        doi:10.1007/s11227-017-2177-5
"""

from threeloops import checks


def flops_per_cycle(*, vector_bits: int, element_bits: int, fma_units: int) -> int:
    """FLOP that one core can finish per cycle: every lane of every unit does a multiplication and an addition.

    Formula:  2 * fma_units * vector_bits / element_bits
    Assumes:  units that fuse a multiplication with an addition and accept a new instruction in every cycle; a unit
              that works through a wide vector in two halves counts with the half
    Raises:   ValueError if the elements do not fill the vector evenly
    Counted:  simulate.foundations.instruction_pipeline.issue

    >>> flops_per_cycle(vector_bits=512, element_bits=32, fma_units=2)
    64
    """
    checks.count(vector_bits=vector_bits, element_bits=element_bits, fma_units=fma_units)
    checks.divides(part="element_bits", part_value=element_bits, whole="vector_bits", whole_value=vector_bits)
    return 2 * fma_units * (vector_bits // element_bits)


def peak_flops_per_s(*, cores: int, flops_per_cycle_per_core: float, clock_hz: float) -> float:
    """FLOP/s of all cores together.

    Formula:  cores * flops_per_cycle_per_core * clock_hz
    Assumes:  cores, not threads: two threads of a core share its units; the clock that all cores hold together while
              their widest vectors work
    Counted:  drills.roofline.levels.PEAK

    >>> peak_flops_per_s(cores=40, flops_per_cycle_per_core=32, clock_hz=2.3e9)
    2944000000000.0
    """
    checks.count(cores=cores)
    checks.positive(flops_per_cycle_per_core=flops_per_cycle_per_core, clock_hz=clock_hz)
    return cores * flops_per_cycle_per_core * clock_hz


def memory_bytes_per_s(*, channels: int, transfers_per_s: float, bytes_per_transfer: int) -> float:
    """Bytes/s between a processor and its memory modules.

    Formula:  channels * transfers_per_s * bytes_per_transfer
    Units:    transfers_per_s is the number in a module's name times a million: DDR5-4800 makes 4800e6;
              bytes_per_transfer is 8 for a channel of 64 bits
    Assumes:  one module per channel, every transfer carries data; both directions share the rate
    Counted:  tests.foundations.test_processors.test_a_channel_fills_bytes_transfer_by_transfer

    >>> memory_bytes_per_s(channels=12, transfers_per_s=4800e6, bytes_per_transfer=8)
    460800000000.0
    """
    checks.count(channels=channels, bytes_per_transfer=bytes_per_transfer)
    checks.positive(transfers_per_s=transfers_per_s)
    return channels * transfers_per_s * bytes_per_transfer
