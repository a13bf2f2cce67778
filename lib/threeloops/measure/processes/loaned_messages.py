"""Messages through a middleware of cars and robots, iceoryx2: they lie in memory that all processes of a topic share,
and a writer borrows ("loans") a place there.

The package has builds for Linux on x86-64 (glibc 2.34 or newer), Windows on x86-64 and Apple silicon. Where it is
missing, MiddlewareMissing is raised, and a chapter shows its recorded run. Processes share the monotonic clock.
"""

import contextlib
import ctypes
import importlib
import multiprocessing
import os
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from threeloops import checks, wall_clock

PACKAGE = "iceoryx2"
STAMP = struct.Struct("d")
LIMIT_S = 30.0  # for another process to start, or to answer
LOOK_S = 0.1  # how often a reader that hears nothing looks whether it is still wanted


class MiddlewareMissing(ImportError):
    """iceoryx2 is not installed here; a chapter then shows its recorded run (stand_in)."""


class ProcessSilent(RuntimeError):
    """A process that was started to send or read messages ended, or was not heard in time; a chapter then shows its
    recorded run (stand_in).
    """


def iceoryx2() -> Any:
    """The package, told to be silent but for errors.

    Raises:   MiddlewareMissing where it is not installed
    """
    try:
        package = importlib.import_module(PACKAGE)
    except ImportError as missing:
        raise MiddlewareMissing(
            "iceoryx2 is not installed; where it has a build (Linux with glibc 2.34 and Windows on x86-64, Apple"
            " silicon), `pip install iceoryx2==0.10.0` adds it"
        ) from missing
    package.set_log_level(package.LogLevel.Error)
    return package


def named(topic: str) -> Any:
    """A topic's name of this process's own, so that two notebooks do not meet in one."""
    return iceoryx2().ServiceName.new(f"{topic} of process {os.getpid()}")


@dataclass(frozen=True, slots=True)
class Reader:
    """Another process that reads a topic."""

    line: Connection

    def came_s(self) -> tuple[float, int]:
        """By the monotonic clock, when the next message was in its hands; and the message's last byte.

        Raises:   ProcessSilent if no message came in half a minute, or the reader ended
        """
        late = f"the reader had no message within {LIMIT_S:g} s; is the topic's bell rung after it?"
        came, last = _heard(self.line, "reader", limit_s=LIMIT_S, late=late)
        return float(came), int(last)


def _heard(line: Connection, who: str, *, limit_s: float, late: str) -> Any:
    """What another process says next on a line whose far end is open there only."""
    try:
        if line.poll(limit_s):
            return line.recv()
    except (EOFError, OSError) as ended:
        raise ProcessSilent(f"the {who}'s process ended") from ended
    raise ProcessSilent(late)


@contextlib.contextmanager
def reader(topic: str) -> Iterator[Reader]:
    """A process that takes each message of a topic (`named`) when its bell, an event of the same name, is rung; both
    must have been made. It looks at a message where it lies and copies nothing.

    Raises:   ProcessSilent if it ends or does not start in half a minute; MiddlewareMissing without iceoryx2
    """
    iceoryx2()
    here, there = multiprocessing.Pipe()
    name = f"{topic} of process {os.getpid()}"
    process = multiprocessing.get_context("spawn").Process(target=_take, args=(there, name), daemon=True)
    with there:  # the reader has its own: when it ends, this side hears it
        process.start()
    try:
        late = f"the reader's process did not start within {LIMIT_S:g} s"
        _heard(here, "reader", limit_s=LIMIT_S, late=late)
        yield Reader(here)
    finally:
        here.close()
        process.terminate()
        process.join()


def _wanted() -> bool:
    """Whether the process that started this one is still there: one that was killed ends nobody."""
    parent = multiprocessing.parent_process()
    return parent is not None and parent.is_alive()


def _take(line: Connection, name: str) -> None:
    iox2 = iceoryx2()
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    topic = iox2.ServiceName.new(name)
    pixels = node.service_builder(topic).publish_subscribe(iox2.Slice[ctypes.c_uint8]).open()
    messages = pixels.subscriber_builder().create()
    bell = node.service_builder(topic).event().open().listener_builder().create()
    with contextlib.suppress(BrokenPipeError):  # nobody listens any more
        line.send("there")
        while _wanted() and not line.poll():  # nothing is ever said to it: what it could read is the line's end
            bell.timed_wait(iox2.Duration.from_secs_f64(LOOK_S))
            while (message := messages.receive()) is not None:
                seen = np.frombuffer(message.payload().as_memory_view(), dtype=np.uint8)
                line.send((time.perf_counter(), int(seen[-1])))
                message.delete()


def kept_ages(*, depth: int, period_s: float, busy_s: float, takes: int) -> list[float]:
    """Age of each message when this process takes it: another process publishes a stamp every period, the topic keeps
    the newest `depth` for its subscriber, which takes the oldest and then is busy with it. It begins when `depth` were
    published.

    Raises:   ValueError for a reader as fast as the sender, whose queue is never full; ProcessSilent if no message
              comes; MiddlewareMissing without iceoryx2
    """
    checks.count(depth=depth, takes=takes)
    checks.positive(period_s=period_s)
    if busy_s <= period_s:
        raise ValueError(f"busy_s={busy_s} must be more than period_s={period_s}: else no queue builds up")
    iox2 = iceoryx2()
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    stamps = node.service_builder(named(f"stamps, {depth} kept")).publish_subscribe(iox2.Slice[ctypes.c_uint8])
    topic = stamps.subscriber_max_buffer_size(depth).enable_safe_overflow(True).open_or_create()
    messages = topic.subscriber_builder().buffer_size(depth).create()
    here, there = multiprocessing.Pipe()
    arguments = (there, f"stamps, {depth} kept of process {os.getpid()}", depth, period_s)
    sender = multiprocessing.get_context("spawn").Process(target=_stamp_every, args=arguments, daemon=True)
    with there:
        sender.start()
    try:
        limit_s = LIMIT_S + 2 * depth * period_s
        _heard(here, "sender", limit_s=limit_s, late=f"{depth} messages did not come within {limit_s:g} s")
        found: list[float] = []
        for _ in range(takes):
            # a sender that other processes slow down may have sent nothing meanwhile
            if not wall_clock.until(messages.has_samples, limit_s=LIMIT_S, step_s=period_s / 4):
                raise ProcessSilent(f"no message came within {LIMIT_S:g} s")
            message = messages.receive()
            (sent,) = STAMP.unpack(bytes(message.payload().as_memory_view()))
            found.append(time.perf_counter() - sent)
            message.delete()
            wall_clock.pause(busy_s)
        return found
    finally:
        here.close()
        sender.terminate()
        sender.join()


def _stamp_every(line: Connection, name: str, depth: int, period_s: float) -> None:
    """The other process: publishes stamps, and says on the line when `depth` are out."""
    iox2 = iceoryx2()
    node = iox2.NodeBuilder.new().create(iox2.ServiceType.Ipc)
    stamps = node.service_builder(iox2.ServiceName.new(name)).publish_subscribe(iox2.Slice[ctypes.c_uint8]).open()
    publisher = stamps.publisher_builder().initial_max_slice_len(STAMP.size).create()
    due = time.perf_counter()
    sent = 0
    while _wanted():
        loan = publisher.loan_slice_uninit(STAMP.size)
        STAMP.pack_into(loan.payload().as_memory_view(), 0, time.perf_counter())
        loan.assume_init().send()
        sent += 1
        if sent == depth:
            line.send("full")
        due += period_s
        wall_clock.pause(due - time.perf_counter())
