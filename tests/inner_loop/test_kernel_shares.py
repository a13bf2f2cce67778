"""Registers and shared memory that blocks may have, against a scheduler that admits them; reductions and stages at
their limits.
"""

import pytest

from threeloops.facts import compute_capability, hardware
from threeloops.inner_loop.kernels import reductions, register_shares, softmax_rows, staged_copies
from threeloops.simulate.inner_loop import block_scheduler

PARTS = ("a100-sxm4-80gb", "h100-sxm5", "rtx-4090", "b200-hgx")


@pytest.mark.parametrize("part", PARTS)
def test_so_many_registers_let_the_blocks_in_and_a_unit_more_does_not(part: str) -> None:
    sm = compute_capability.multiprocessor(hardware.part(part))
    for threads in range(64, 513, 32):
        for blocks in (*range(1, 9), sm.max_blocks):
            if blocks * threads > sm.max_warps * 32:
                continue
            most = register_shares.registers_for_blocks(sm, blocks=blocks, threads_per_block=threads)

            def admitted(registers: int, threads: int = threads) -> int:
                return block_scheduler.resident_blocks(
                    sm, threads_per_block=threads, registers_per_thread=registers, shared_bytes_per_block=0
                )

            assert admitted(most) >= blocks
            assert most == sm.max_registers_per_thread or admitted(most + 1) < blocks


@pytest.mark.parametrize("part", PARTS)
def test_so_many_stages_let_the_blocks_in_and_one_more_does_not(part: str) -> None:
    sm = compute_capability.multiprocessor(hardware.part(part))
    for blocks in (1, 2, 3, 4):
        for stage_bytes in (4096, 9216, 20480):
            stages = register_shares.stages_for_blocks(sm, blocks=blocks, stage_bytes=stage_bytes)
            admitted = [
                block_scheduler.resident_blocks(
                    sm, threads_per_block=32, registers_per_thread=16, shared_bytes_per_block=number * stage_bytes
                )
                for number in (stages, stages + 1)
            ]
            assert admitted[0] >= blocks > admitted[1]


@pytest.mark.parametrize(("kept", "had"), [(40, 232), (24, 240)])
def test_the_registers_of_a_published_kernel(kept: int, had: int) -> None:
    """CUTLASS's warp-specialised kernels on Hopper: one group that copies, and two that multiply."""
    assert register_shares.consumer_registers(registers=65536, producers=1, consumers=2, producer_registers=kept) == had


def test_groups_take_no_more_than_their_block_was_launched_with() -> None:
    """Registers that no thread could be launched with are in no pool: asking for them would wait for ever."""
    for producers in (1, 2):
        for consumers in (1, 2, 3, 4):
            launched = next(each for each in range(512, 0, -8) if each * 128 * (producers + consumers) <= 65536)
            for kept in range(24, launched + 1, 8):
                each = register_shares.consumer_registers(
                    registers=65536, producers=producers, consumers=consumers, producer_registers=kept
                )
                taken = producers * kept + consumers * each
                pool = (producers + consumers) * launched
                assert taken <= pool
                assert each == 256 or taken + 8 * consumers > pool


def test_the_largest_block_and_the_smallest_tree() -> None:
    """32 warps add up in five steps each, and one warp their 32 sums in five more; two numbers are one sum."""
    assert reductions.shuffle_instructions(blocks=1, threads_per_block=1024) == 33 * 5
    assert reductions.tree_busy_share(numbers=2) == 1


def test_one_stage_hides_nothing_and_enough_stages_hide_all_but_the_first() -> None:
    given = {"latency_s": 900e-9, "compute_s": 400e-9}
    assert staged_copies.staged_loop_s(tiles=10, stages=1, **given) == pytest.approx(10 * 1300e-9)
    enough = staged_copies.stages_to_hide(**given)
    assert staged_copies.staged_loop_s(tiles=10, stages=enough, **given) == pytest.approx(900e-9 + 10 * 400e-9)
    assert staged_copies.staged_loop_s(tiles=10, stages=enough - 1, **given) > 900e-9 + 10 * 400e-9 + 1e-12


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: reductions.shuffle_instructions(blocks=1, threads_per_block=100), "multiple of 32"),
        (lambda: reductions.shuffle_instructions(blocks=1, threads_per_block=2048), "at most"),
        (lambda: reductions.tree_busy_share(numbers=100), "power of two"),
        (lambda: softmax_rows.softmax_bytes(rows=1, columns=1, bytes_per_element=2, kind="fast"), "fast"),
        (
            lambda: register_shares.consumer_registers(
                registers=65536, producers=4, consumers=1, producer_registers=128
            ),
            "give them fewer",
        ),
        (
            lambda: register_shares.consumer_registers(registers=1000, producers=1, consumers=1, producer_registers=8),
            "give them fewer",
        ),
        (
            lambda: register_shares.stages_for_blocks(
                compute_capability.multiprocessor(hardware.part("h100-sxm5")), blocks=4, stage_bytes=100_000
            ),
            "do not fit",
        ),
        (
            lambda: register_shares.registers_for_blocks(
                compute_capability.multiprocessor(hardware.part("h100-sxm5")), blocks=3, threads_per_block=1024
            ),
            "an SM takes",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(call, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
