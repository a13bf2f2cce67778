"""Messages from one process to another on this machine: pickled, as bytes, through shared memory, and made there; and
what a queue that keeps the newest messages adds to their age. The processes share the monotonic clock.

>>> [way for way, copies in COPIES.items() if copies < 2]
['shared memory', 'made in place']
"""

import multiprocessing
import pickle
import socket
import struct
import threading
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import numpy.typing as npt

from threeloops import checks, wall_clock
from threeloops.measure.processes.loaned_messages import ProcessSilent

# way -> copies of the message until the reader can compute with it
COPIES = {"pickled": 4, "bytes": 2, "shared memory": 1, "made in place": 0}
STAMP = struct.Struct("d")
Bytes = npt.NDArray[np.uint8]
FIRST = 2  # messages that only touch pages
STARTED_LIMIT_S = 30.0  # for the sender to start on a crowded machine, beyond twice the periods of a full queue


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOver:
    """What a message took at least, by way; and what a copy of as many bytes takes here."""

    seconds: dict[str, float]
    copy_s: float


def handed_over(*, message_bytes: int, messages: int) -> HandedOver:
    """From a picture in this process until another process has it, each way; the ways take turns.

    Raises:   ProcessSilent if the other process ends before it had every message
    """
    checks.count(message_bytes=message_bytes, messages=messages)
    picture = np.full(message_bytes, 7, dtype=np.uint8)
    target = np.zeros_like(picture)
    here, there = socket.socketpair()
    shared = SharedMemory(create=True, size=message_bytes)
    slot: Bytes = np.ndarray(message_bytes, dtype=np.uint8, buffer=shared.buf)
    arguments = (there, shared.name, message_bytes, FIRST + messages)
    reader = multiprocessing.get_context("spawn").Process(target=_read, args=arguments, daemon=True)
    taken: dict[str, list[float]] = {way: [] for way in ("copy", *COPIES)}
    try:
        with there:  # the reader has its own: when it ends, this side hears it
            reader.start()
        _whole(here, bytearray(1))  # the reader is there
        for _ in range(FIRST + messages):
            taken["copy"].append(_timed_copy(target, picture))
            for way in COPIES:
                began = _send(way, here, picture, slot)
                (came,) = STAMP.unpack(_whole(here, bytearray(STAMP.size)))
                taken[way].append(came - began)
        reader.join()
    except ConnectionError as ended:
        raise ProcessSilent("the reader's process ended before it had every message") from ended
    finally:
        del slot
        shared.close()
        shared.unlink()
        here.close()
    least = {way: min(each[FIRST:]) for way, each in taken.items()}
    return HandedOver(copy_s=least.pop("copy"), seconds=least)


def _timed_copy(target: Bytes, source: Bytes) -> float:
    began = time.perf_counter()
    target[:] = source
    return time.perf_counter() - began


def _send(way: str, here: socket.socket, picture: Bytes, slot: Bytes) -> float:
    """Hand the picture over, and say when that began."""
    if way == "made in place":
        slot[:] = picture  # stands for the camera's driver, which writes there anyway
    began = time.perf_counter()
    if way == "pickled":
        packed = pickle.dumps(picture, protocol=5)
        here.sendall(struct.pack("Q", len(packed)))
        here.sendall(packed)
    elif way == "bytes":
        here.sendall(picture.data)
    else:
        if way == "shared memory":
            slot[:] = picture
        here.sendall(b"!")
    return began


def _read(there: socket.socket, name: str, message_bytes: int, messages: int) -> None:
    """The other process: takes each message as its way asks, and answers when it has it."""
    shared = SharedMemory(name=name)
    own = bytearray(message_bytes)
    there.sendall(b"!")
    for _ in range(messages):
        for way in COPIES:
            if way == "pickled":
                (size,) = struct.unpack("Q", _whole(there, bytearray(8)))
                pickle.loads(_whole(there, bytearray(size)))
            elif way == "bytes":
                _whole(there, own)
            else:
                _whole(there, bytearray(1))
            there.sendall(STAMP.pack(time.perf_counter()))
    shared.close()


def _whole(source: socket.socket, into: bytearray) -> bytearray:
    """Fill the buffer."""
    view, filled = memoryview(into), 0
    while filled < len(into):
        came = source.recv_into(view[filled:])
        if came == 0:
            raise ConnectionError("the other process ended before the message was whole")
        filled += came
    return into


def queue_ages(*, depth: int, period_s: float, busy_s: float, takes: int) -> list[float]:
    """Age of each message when it is taken: another process sends a stamp every period, a queue here keeps the newest
    `depth`, the reader takes the oldest and then is busy with it. It begins when the queue is full.

    Raises:   ValueError for a reader as fast as the sender, whose queue is never full; ProcessSilent if no message
              comes
    """
    checks.count(depth=depth, takes=takes)
    checks.positive(period_s=period_s)
    if busy_s <= period_s:
        raise ValueError(f"busy_s={busy_s} must be more than period_s={period_s}: else no queue builds up")
    held: deque[float] = deque(maxlen=depth)
    here, there = socket.socketpair()
    sender = multiprocessing.get_context("spawn").Process(target=_stamp_every, args=(there, period_s), daemon=True)
    receiver = threading.Thread(target=_keep, args=(here, held), daemon=True)

    def wait_for(least: int, limit_s: float) -> None:
        def settled() -> bool:
            return len(held) >= least or not receiver.is_alive()

        wall_clock.until(settled, limit_s=limit_s, step_s=period_s / 4)
        if len(held) < least:
            late = f"no message came within {limit_s:g} s"
            raise ProcessSilent(late if receiver.is_alive() else "the sender's process ended")

    with there:  # the sender has its own: when it ends, the receiver does
        sender.start()
    try:
        receiver.start()
        wait_for(depth, STARTED_LIMIT_S + 2 * depth * period_s)
        found: list[float] = []
        for _ in range(takes):
            wait_for(1, STARTED_LIMIT_S)  # a sender that other processes slow down may have sent nothing meanwhile
            found.append(time.perf_counter() - held.popleft())
            wall_clock.pause(busy_s)
        return found
    finally:
        sender.terminate()
        sender.join()
        if receiver.is_alive():
            receiver.join()
        here.close()


def _keep(here: socket.socket, held: deque[float]) -> None:
    try:
        while True:
            held.append(*STAMP.unpack(_whole(here, bytearray(STAMP.size))))
    except OSError:  # the sender has ended
        return


def _stamp_every(there: socket.socket, period_s: float) -> None:
    due = time.perf_counter()
    while True:
        there.sendall(STAMP.pack(time.perf_counter()))
        due += period_s
        wall_clock.pause(due - time.perf_counter())
