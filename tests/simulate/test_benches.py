"""The two machines that readers write for: one agrees with the machine on numpy, the other with a search."""

import functools
import random

import numpy as np
import pytest

from threeloops.simulate.inner_loop import simt, toy_kernels
from threeloops.simulate.inner_loop.benches import bundles, threads
from threeloops.simulate.inner_loop.benches.bundles import LATENCY, HazardError
from threeloops.simulate.inner_loop.benches.threads import RefusedError


def turned(t, pitch, x, y, rows, columns):
    """The transpose of toy_kernels, thread by thread: blocks of 32 by 8."""
    tile = t.shared("tile", 32 * pitch)
    top, left = t.block // (columns // 32) * 32, t.block % (columns // 32) * 32
    for down in range(t.warp, 32, 8):
        value = yield t.load(x, (top + down) * columns + left + t.lane)
        yield t.store(tile, down * pitch + t.lane, value)
    yield t.barrier()
    for down in range(t.warp, 32, 8):
        value = yield t.load(tile, t.lane * pitch + down)
        yield t.store(y, (left + down) * rows + top + t.lane, value)


@pytest.mark.parametrize("pitch", [32, 33, 34, 36, 40])
def test_thread_by_thread_is_counted_as_warp_by_warp(pitch):
    x, y = np.arange(64 * 32, dtype=np.float32).reshape(64, 32), np.zeros((32, 64), dtype=np.float32)
    wide = simt.launch(toy_kernels.transpose_through_shared, 64, 32, pitch, x, y, grid=(1, 2), block=(32, 8))
    ran = threads.run(
        turned, blocks=2, threads=256, pitch=pitch, x=x.reshape(-1).tolist(), y=[0] * y.size, rows=64, columns=32
    )
    assert ran.arrays["y"] == y.reshape(-1).tolist()
    counted = ("loads", "stores", "load_sectors", "store_sectors", "shared_requests", "barriers", "races")
    assert [ran.counts[name] for name in counted] == [getattr(wide, name) for name in counted]
    assert ran.counts["turns"] == wide.shared_passes


@pytest.mark.parametrize(("stride", "offset"), [(1, 0), (1, 3), (2, 1), (7, 5), (64, 0)])
def test_a_stride_touches_the_same_sectors(stride, offset):
    def gather(t, x, y):
        value = yield t.load(x, offset + stride * t.thread)
        yield t.store(y, t.thread, value)

    x, y = np.arange(2200, dtype=np.float32), np.zeros(32, dtype=np.float32)
    wide = simt.launch(toy_kernels.gather, 32, stride, offset, x, y, grid=(1,), block=(32,))
    ran = threads.run(gather, blocks=1, threads=32, x=x.tolist(), y=[0] * 32)
    assert (ran.counts["load_sectors"], ran.counts["most_sectors"]) == (wide.load_sectors, max(wide.load_sectors, 4))
    assert ran.arrays["y"] == y.tolist()


def test_a_tiled_product_has_its_races_where_a_barrier_is_missing():
    a = np.ones((16, 32), dtype=np.float32)
    for barriers in (True, False):
        c = np.zeros((16, 16), dtype=np.float32)
        wide = simt.launch(
            toy_kernels.matmul_tiled, 16, 32, 16, barriers, a, a.T.copy(), c, grid=(1, 1), block=(16, 16)
        )

        def product(t, a, b, c, barriers=barriers):
            left, right = t.shared("left", 256), t.shared("right", 256)
            y, x = divmod(t.thread, 16)
            total = 0.0
            for start in (0, 16):
                one = yield t.load(a, y * 32 + start + x)
                yield t.store(left, t.thread, one)
                other = yield t.load(b, (start + y) * 16 + x)
                yield t.store(right, t.thread, other)
                yield t.barrier()
                for p in range(16):
                    total += (yield t.load(left, y * 16 + p)) * (yield t.load(right, p * 16 + x))
                if barriers:
                    yield t.barrier()
            yield t.store(c, t.thread, total)

        flat = a.reshape(-1).tolist()
        ran = threads.run(product, blocks=1, threads=256, a=flat, b=[1.0] * 512, c=[0.0] * 256)
        assert (ran.counts["races"] > 0, wide.races > 0) == (not barriers, not barriers)
        assert (ran.counts["turns"], ran.counts["load_sectors"]) == (wide.shared_passes, wide.load_sectors)


def test_lanes_that_part_meet_again():
    def halves(t, x):
        if t.lane % 2:
            yield t.store(x, t.thread, 1)
        else:
            yield t.store(x, t.thread, 2)
        value = yield t.load(x, t.thread)
        for _ in range(t.lane % 3):
            value += yield t.load(x, t.thread)
        yield t.store(x, t.thread, value)

    ran = threads.run(halves, blocks=1, threads=32, x=[0] * 32)
    # a store for each half and one together; a load together and two for those who go round once or twice
    assert (ran.counts["stores"], ran.counts["loads"]) == (3, 3)
    assert ran.arrays["x"] == [(1 if lane % 2 else 2) * (1 + lane % 3) for lane in range(32)]


def test_atomics_lose_nothing_and_wait_for_one_another():
    def counted(t, x, own_too):
        own = t.shared("own", 1)
        yield t.add(x, 0, 1)
        if own_too:
            if t.thread == 0:
                yield t.store(own, 0, 0)
            yield t.barrier()
            yield t.add(own, 0, 1)
            yield t.barrier()
            if t.thread == 0:
                yield t.store(x, 1, (yield t.load(own, 0)))

    ran = threads.run(counted, blocks=2, threads=64, x=[0, 0], own_too=True)
    assert ran.arrays["x"] == [128, 64]
    assert (ran.counts["atomics"], ran.counts["most_turns"], ran.counts["races"]) == (4, 32, 0)


def nothing(t, x):
    return x


def unasked(t, x):
    t.store(x, 0, 1)
    yield t.load(x, 0)


def alone(t, x):
    if t.thread:
        yield t.barrier()


def outside(t, x):
    yield t.load(x, -1)


def no_array(t, x):
    yield t.load([1], 0)


def word(t, x):
    yield "x"


def missing_lane(t, x):
    if t.lane:
        yield t.shuffle(1, 0)


def too_much(t, x):
    t.shared("a", 20_000)
    yield t.load(x, 0)


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (nothing, "yields nothing"),
        (unasked, "not yielded"),
        (alone, "31 of a block's 32 threads wait"),
        (outside, "index -1 of x, which has 1 elements"),
        (no_array, "takes an array first"),
        (word, "not yielded"),
        (missing_lane, "asks for lane 0"),
        (too_much, "shared arrays hold more"),
    ],
)
def test_what_the_machine_cannot_do_is_one_sentence(kernel, told):
    with pytest.raises(RefusedError, match=told):
        threads.run(kernel, blocks=1, threads=32, x=[1])
    assert threads.tried(kernel, "x")(blocks=1, threads=32, x=[1])[0] == "refused"


def test_a_block_has_its_size():
    with pytest.raises(RefusedError, match="1 to 1024"):
        threads.run(outside, blocks=1, threads=2000, x=[1])


# --- bundles --------------------------------------------------------------------------------------

CHAIN = ("load", "mul", "add", "mul", "add", "store")


def feasible(vectors: int, cycles: int) -> bool:
    """Is there a schedule of so many cycles? Every start of every instruction is tried, vector by vector."""
    behind = [sum(LATENCY[kind] for kind in CHAIN[place:]) for place in range(len(CHAIN))]

    @functools.cache
    def placed(vector: int, place: int, earliest: int, taken: frozenset[tuple[str, int]]) -> bool:
        if place == len(CHAIN):
            return vector + 1 == vectors or placed(vector + 1, 0, 0, taken)
        kind = CHAIN[place]
        return any(
            placed(vector, place + 1, start + LATENCY[kind], taken | {(kind, start)})
            for start in range(earliest, cycles - behind[place] + 1)
            if (kind, start) not in taken
        )

    return placed(0, 0, 0, frozenset())


def fewest_by_search(vectors: int) -> int:
    """The fewest cycles of any schedule of so many vectors."""
    return next(cycles for cycles in range(1, 100) if feasible(vectors, cycles))


@pytest.mark.parametrize("vectors", [1, 2, 3, 4, 5])
def test_the_bound_is_what_a_search_finds(vectors):
    assert fewest_by_search(vectors) == bundles.fewest_cycles(vectors)


def test_with_many_vectors_the_multiplier_is_the_bound():
    """A product begins in every cycle from the first that can be to the last that may be."""
    for vectors in range(5, 60):
        first, last = LATENCY["load"], bundles.fewest_cycles(vectors) - 6
        assert last - first + 1 == 2 * vectors


KINDS = ("slot-twice", "too-early", "no-register", "no-instruction", "overwritten")


def hazard(program):
    """The kind of mistake that the machine names; empty where it names none."""
    try:
        bundles.run(program, x=[[1] * 8], constants={"a": 2, "b": 3})
    except HazardError as found:
        return found.key
    return ""


@pytest.mark.parametrize(
    ("program", "key"),
    [
        ([["load v0 x 0", "load v1 x 0"]], "slot-twice"),
        ([["mul v0 v1 a"]], "too-early"),
        ([["load v0 x 0"], ["add v1 v0 a"]], "too-early"),
        ([["load v16 x 0"]], "no-register"),
        ([["load v0 x 7"]], "no-instruction"),
        ([["jump v0 x 0"]], "no-instruction"),
        ([["load v0 x"]], "no-instruction"),
        ([["add v0 a b"], [], ["add v1 a b"], [], []], ""),
        ([["mul v0 a b"], ["add v0 a b"], [], []], "overwritten"),
        ([[]] * 20_000, "no-instruction"),
    ],
)
def test_a_hazard_is_named(program, key):
    assert hazard(program) == key


def test_a_register_holds_its_old_value_until_the_new_one_is_there():
    program = [["add v0 a a"], [], ["mul v0 v0 a"], ["store y 0 v0"], [], ["store y 1 v0"]]
    ran = bundles.run(program, x=[[0] * 8] * 2, constants={"a": 3})
    assert (ran.y[0][0], ran.y[1][0], ran.cycles) == (6, 18, 6)
    assert ran.early == ("Cycle 3 reads v0 as it was; its new value is there from cycle 5 on.",)
    assert bundles.run(program, x=[[0] * 8] * 2, constants={"a": 3}, at_once=True).y[0][0] == 18


def test_draws_of_programs_that_are_noise_end_in_a_sentence():
    rng = random.Random(3)
    for _ in range(300):
        program = [
            [f"{rng.choice(('load', 'mul', 'add', 'store', 'x'))} v{rng.randrange(20)} {rng.choice('xyva')} 0"]
            for _ in range(rng.randrange(6))
        ]
        assert hazard(program) in ("", *KINDS)
