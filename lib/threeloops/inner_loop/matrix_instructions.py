"""Matrix instructions: what one instruction multiplies, what it reads from registers, and how many of them a product
takes.

An ordinary multiply-add is the smallest of them, 1 by 1 by 1 in each of 32 lanes.

>>> INSTRUCTIONS["mma.m16n8k8"].flops, INSTRUCTIONS["fma"].flops
(2048, 64)
>>> INSTRUCTIONS["mma.m16n8k16"].count(m=4096, n=4096, k=4096)
33554432

Source: NVIDIA, PTX ISA 9.2, section 9.7.14.5 (mma), 9.7.15 (wgmma), 9.7.16 (tcgen05)
"""

from dataclasses import dataclass

from threeloops import checks


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixInstruction:
    """a [m, k] times b [k, n] added to c [m, n], `copies` of them side by side, done by `threads` threads
    together.
    """

    m: int
    n: int
    k: int
    threads: int  # whose registers hold the result, or which take part in issuing it
    copies: int = 1  # independent products in one instruction

    def __post_init__(self) -> None:
        checks.count(m=self.m, n=self.n, k=self.k, threads=self.threads, copies=self.copies)

    @property
    def multiply_adds(self) -> int:
        return self.copies * self.m * self.n * self.k

    @property
    def flops(self) -> int:
        """FLOPs of one instruction: 2 for each multiply-add."""
        return 2 * self.multiply_adds

    def count(self, *, m: int, n: int, k: int) -> int:
        """Instructions that a product of [m, k] by [k, n] takes.

        Formula:  ceil(m / m_instruction) * ceil(n / n_instruction) * ceil(k / k_instruction) / copies, rounded up
        Assumes:  edges are filled up with zeros
        """
        checks.count(m=m, n=n, k=k)
        boxes = -(-m // self.m) * -(-n // self.n) * -(-k // self.k)
        return -(-boxes // self.copies)

    def operand_bytes(self, *, bytes_per_element: float, accumulator_bytes_per_element: float) -> float:
        """Bytes of a, b and c that the instruction reads.

        Formula:  copies * ((m*k + k*n) * bytes_per_element + m*n * accumulator_bytes_per_element)
        Units:    accumulator_bytes_per_element is 0 where only the memory of a and b is asked about: the shared memory
                  from Hopper on, with the sums in registers or in tensor memory

        >>> INSTRUCTIONS["wgmma.m64n256k16"].operand_bytes(bytes_per_element=2, accumulator_bytes_per_element=0)
        10240
        """
        checks.positive(bytes_per_element=bytes_per_element)
        checks.non_negative(accumulator_bytes_per_element=accumulator_bytes_per_element)
        return self.copies * (
            (self.m * self.k + self.k * self.n) * bytes_per_element + self.m * self.n * accumulator_bytes_per_element
        )

    def cycles(self, *, multiply_adds_per_cycle: float) -> float:
        """Cycles for which the instruction occupies a unit of that rate.

        Formula:  m * n * k * copies / multiply_adds_per_cycle

        >>> INSTRUCTIONS["mma.m16n8k16"].cycles(
        ...     multiply_adds_per_cycle=256
        ... )  # one of the four units of an A100's multiprocessor
        8.0
        """
        checks.positive(multiply_adds_per_cycle=multiply_adds_per_cycle)
        return self.multiply_adds / multiply_adds_per_cycle


# By the name that PTX gives the shape, for 16-bit operands (fma: for 32-bit ones).
INSTRUCTIONS = {
    "fma": MatrixInstruction(m=1, n=1, k=1, threads=32, copies=32),
    # Volta: four groups of eight threads, a product each
    "mma.m8n8k4": MatrixInstruction(m=8, n=8, k=4, threads=32, copies=4),
    "mma.m16n8k8": MatrixInstruction(m=16, n=8, k=8, threads=32),  # from Turing on
    "mma.m16n8k16": MatrixInstruction(m=16, n=8, k=16, threads=32),  # from Ampere on
    # Hopper; the largest of its shapes, operands in shared memory
    "wgmma.m64n256k16": MatrixInstruction(m=64, n=256, k=16, threads=128),
    # Blackwell; issued by one thread, sums in tensor memory
    "tcgen05.m128n256k16": MatrixInstruction(m=128, n=256, k=16, threads=1),
    # the same on a pair of multiprocessors, which hold a half of each operand each
    "tcgen05.m256n256k16": MatrixInstruction(m=256, n=256, k=16, threads=1),
}
