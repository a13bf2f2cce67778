"""Messages between real processes: each way hands the picture over, fewer copies take less time, and a full queue makes
what is read as old as the formula says. A middleware's loans and queues likewise, where it is installed.
"""

import ctypes
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from threeloops import stand_in
from threeloops.driving import messages
from threeloops.measure.driving import message_ways
from threeloops.measure.processes import loaned_messages


@pytest.mark.clock
def test_a_message_is_sooner_there_by_shared_memory_than_through_a_socket() -> None:
    seen = message_ways.handed_over(message_bytes=8_000_000, messages=9)
    assert list(seen.seconds) == list(message_ways.COPIES)
    assert min(seen.seconds.values()) > 0
    assert seen.seconds["pickled"] > seen.seconds["bytes"] > seen.seconds["made in place"]
    assert seen.seconds["shared memory"] > seen.seconds["made in place"]
    told = messages.handed_over_s(
        message_bytes=8e6, copies=message_ways.COPIES["pickled"], copy_bytes_per_s=8e6 / seen.copy_s
    )
    assert seen.seconds["pickled"] > 0.5 * told  # far less would mean that copies were left out


@pytest.mark.clock
def test_a_full_queue_is_as_old_as_the_formula_says() -> None:
    for depth in (1, 4):
        seen = message_ways.queue_ages(depth=depth, period_s=0.02, busy_s=0.0274, takes=20)
        told = messages.age_from_full_queue_s(depth=depth, period_s=0.02)
        assert statistics.median(seen) == pytest.approx(told, abs=0.01)


def test_a_reader_that_keeps_up_and_no_messages_are_refused() -> None:
    with pytest.raises(ValueError, match="no queue builds up"):
        message_ways.queue_ages(depth=2, period_s=0.02, busy_s=0.02, takes=1)
    with pytest.raises(ValueError, match="messages=0"):
        message_ways.handed_over(message_bytes=8, messages=0)


@pytest.mark.clock
def test_a_loaned_message_is_sooner_there_than_a_copied_one_and_nothing_else_changes() -> None:
    iox2 = pytest.importorskip(loaned_messages.PACKAGE)
    topic = loaned_messages.named("picture")
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    pixels = node.service_builder(topic).publish_subscribe(iox2.Slice[ctypes.c_uint8]).open_or_create()
    publisher = pixels.publisher_builder().initial_max_slice_len(8_000_000).create()
    bell = node.service_builder(topic).event().open_or_create().notifier_builder().create()
    picture = np.arange(8_000_000, dtype=np.uint8)
    taken: dict[bool, list[float]] = {True: [], False: []}
    with loaned_messages.reader("picture") as there:
        for copied in 9 * (True, False):
            loan = publisher.loan_slice_uninit(picture.size)
            place = np.frombuffer(loan.payload().as_memory_view(), dtype=np.uint8)
            if not copied:
                place[:] = picture
            began = time.perf_counter()
            if copied:
                place[:] = picture
            loan.assume_init().send()
            bell.notify()
            came, last = there.came_s()
            assert last == picture[-1]
            taken[copied].append(came - began)
    assert 0 < min(taken[False]) < min(taken[True])


@pytest.mark.clock
def test_a_topic_that_keeps_the_newest_makes_them_as_old_as_the_formula_says() -> None:
    pytest.importorskip(loaned_messages.PACKAGE)
    seen = loaned_messages.kept_ages(depth=4, period_s=0.02, busy_s=0.0274, takes=20)
    told = messages.age_from_full_queue_s(depth=4, period_s=0.02)
    assert statistics.median(seen) == pytest.approx(told, abs=0.01)
    with pytest.raises(ValueError, match="no queue builds up"):
        loaned_messages.kept_ages(depth=2, period_s=0.02, busy_s=0.02, takes=1)


def test_without_the_middleware_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, loaned_messages.PACKAGE, None)
    with pytest.raises(loaned_messages.MiddlewareMissing, match=r"pip install iceoryx2==0\.10\.0") as missing:
        loaned_messages.iceoryx2()
    assert "pip install" in stand_in.reason(missing.value, after_another=False)
    stated = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    assert 'middleware = ["iceoryx2==0.10.0"]' in stated
