"""Messages between real processes: each way hands the picture over, fewer copies take less time, and a full queue makes
what is read as old as the formula says. A middleware's loans and queues likewise, where it is installed.
"""

import ctypes
import multiprocessing.process
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from multiprocessing.connection import Connection
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


def refuse(_: object) -> None:
    raise PermissionError("processes are not allowed here")


def test_a_system_that_starts_no_process_is_named_as_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.process.BaseProcess, "start", refuse)
    with pytest.raises(PermissionError) as refused:
        message_ways.queue_ages(depth=1, period_s=0.01, busy_s=0.02, takes=1)
    assert "not allowed here" in stand_in.reason(refused.value, after_another=False)
    with pytest.raises(PermissionError):
        message_ways.handed_over(message_bytes=8, messages=1)


def ends(*_: object) -> None:
    """A process that does nothing."""


def hushed(there: socket.socket, _: float) -> None:
    """A sender that sends nothing while anybody listens."""
    there.recv(1)


def hushed_on_a_line(line: Connection, *_: object) -> None:
    line.poll(None)


def test_a_process_that_ends_or_says_nothing_leads_to_the_recorded_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_ways, "_stamp_every", ends)
    monkeypatch.setattr(message_ways, "_read", ends)
    with pytest.raises(loaned_messages.ProcessSilent, match="sender's process ended") as ended:
        message_ways.queue_ages(depth=1, period_s=0.01, busy_s=0.02, takes=1)
    assert "did not do their work here (the sender's process ended)" in stand_in.reason(
        ended.value, after_another=False
    )
    with pytest.raises(loaned_messages.ProcessSilent, match="reader's process ended"):
        message_ways.handed_over(message_bytes=8, messages=1)
    monkeypatch.setattr(message_ways, "_stamp_every", hushed)
    monkeypatch.setattr(message_ways, "STARTED_LIMIT_S", 0.01)
    with pytest.raises(loaned_messages.ProcessSilent, match=r"no message came within 0\.03 s"):
        message_ways.queue_ages(depth=1, period_s=0.01, busy_s=0.02, takes=1)


def test_a_process_at_the_middleware_that_ends_or_says_nothing_does_so_too(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(loaned_messages.PACKAGE)
    monkeypatch.setattr(loaned_messages, "_stamp_every", ends)
    monkeypatch.setattr(loaned_messages, "_take", ends)
    with (
        pytest.raises(loaned_messages.ProcessSilent, match="reader's process ended"),
        loaned_messages.reader("nobody"),
    ):
        pass
    with pytest.raises(loaned_messages.ProcessSilent, match="sender's process ended"):
        loaned_messages.kept_ages(depth=2, period_s=0.01, busy_s=0.02, takes=1)
    monkeypatch.setattr(loaned_messages, "_stamp_every", hushed_on_a_line)
    monkeypatch.setattr(loaned_messages, "_take", hushed_on_a_line)
    monkeypatch.setattr(loaned_messages, "LIMIT_S", 0.01)
    with pytest.raises(loaned_messages.ProcessSilent, match=r"2 messages did not come within 0\.05 s"):
        loaned_messages.kept_ages(depth=2, period_s=0.01, busy_s=0.02, takes=1)
    with pytest.raises(loaned_messages.ProcessSilent, match="did not start"), loaned_messages.reader("nobody"):
        pass


def test_a_reader_that_ends_later_is_told_too() -> None:
    here, there = multiprocessing.Pipe()
    there.send((1.5, 7))
    there.close()
    reader = loaned_messages.Reader(here)
    assert reader.came_s() == (1.5, 7)
    with pytest.raises(loaned_messages.ProcessSilent, match="reader's process ended"):
        reader.came_s()


READS = """
node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
topic = loaned_messages.named("left behind")
pixels = node.service_builder(topic).publish_subscribe(iox2.Slice[ctypes.c_uint8]).open_or_create()
bell = node.service_builder(topic).event().open_or_create()
with loaned_messages.reader("left behind"):
    told()
    sys.stdin.read()
"""
SENDS = """
wall_clock.pause = lambda _: told()
loaned_messages.kept_ages(depth=1, period_s=0.01, busy_s=0.02, takes=10**9)
"""


@pytest.mark.parametrize("does", [READS, SENDS])
def test_no_process_outlives_a_kernel_that_was_killed(does: str) -> None:
    pytest.importorskip(loaned_messages.PACKAGE)
    head = (
        "import ctypes, sys",
        "from threeloops import wall_clock",
        "from threeloops.measure.processes import loaned_messages",
        "iox2 = loaned_messages.iceoryx2()",
        "def told():",
        "    print('there', flush=True)",
        "    sys.stdin.read()",
    )
    kernel = subprocess.Popen(
        [sys.executable, "-c", "\n".join(head) + does], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert kernel.stdout.readline() == "there\n"
    kernel.kill()
    # its children have its output too: it ends when the last of them does
    assert kernel.communicate(timeout=300)[0] == ""


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


@pytest.mark.parametrize(("sent", "says"), [(2, False), (3, True), (5, True)])
def test_the_sender_says_when_the_queue_is_full(monkeypatch: pytest.MonkeyPatch, sent: int, says: bool) -> None:
    iox2 = pytest.importorskip(loaned_messages.PACKAGE)
    name = f"full after {sent} of process {os.getpid()}"
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    stamps = node.service_builder(iox2.ServiceName.new(name)).publish_subscribe(iox2.Slice[ctypes.c_uint8])
    topic = stamps.subscriber_max_buffer_size(3).enable_safe_overflow(True).open_or_create()
    messages = topic.subscriber_builder().buffer_size(3).create()
    rounds = iter(range(sent))
    kept: list[int] = []

    def wanted() -> bool:
        if next(rounds, None) is not None:
            return True
        kept.append(sum(1 for _ in iter(messages.receive, None)))  # before the sender takes its memory with it
        return False

    monkeypatch.setattr(loaned_messages, "_wanted", wanted)
    here, there = multiprocessing.Pipe()
    loaned_messages._stamp_every(there, name, 3, 1e-6)
    assert here.poll() == says
    assert kept == [min(sent, 3)]


def test_without_the_middleware_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(__file__).parents[2]
    stated = (root / "pyproject.toml").read_text(encoding="utf-8")
    (pinned,) = re.findall(r'^middleware = \["(iceoryx2==[0-9.]+)"\]$', stated, re.M)
    monkeypatch.setitem(sys.modules, loaned_messages.PACKAGE, None)
    with pytest.raises(loaned_messages.MiddlewareMissing, match=re.escape(f"`pip install {pinned}`")) as missing:
        loaned_messages.iceoryx2()
    assert "pip install" in stand_in.reason(missing.value, after_another=False)
    assert f"`pip install {pinned}`" in (root / "environment.yml").read_text(encoding="utf-8")


def test_what_the_middleware_raises_for_want_of_room_has_the_names_that_stand_in_looks_for() -> None:
    iox2 = pytest.importorskip(loaned_messages.PACKAGE)
    for name in stand_in._NO_ROOM:
        said = stand_in.reason(getattr(iox2, name)("no space left"), after_another=False)
        assert said == "iceoryx2 cannot set up its shared memory here (no space left)"
    assert not stand_in.reason(iox2.SemanticStringError("a name"), after_another=False)
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    topic = node.service_builder(loaned_messages.named("never made")).publish_subscribe(iox2.Slice[ctypes.c_uint8])
    with pytest.raises(iox2.PublishSubscribeOpenError) as refused:
        topic.open()
    assert "shared memory" in stand_in.reason(refused.value, after_another=False)
