"""The warm process in the sandbox: it has loaded what a notebook needs, runs no code of students, and forks a child for
each submission.

The child has everything of its own that a student could leave something in: processes, network, messages, host's name,
/proc, /tmp and /dev/shm, keyring, session. It ends with all that it has started when its first process does; the grader
holds that one by a handle of its own (a pidfd) and waits for its end. This file runs as a script beside
student_side.py and imports nothing of the book.
"""

import contextlib
import ctypes
import fcntl
import gc
import json
import os
import socket
import struct
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(__file__))  # `python -I` leaves the script's own folder out
import student_side  # type: ignore[import-not-found]

sys.path.pop(0)

LONGEST_WORD = 65_536  # bytes of one message
# From the kernel's headers: linux/sched.h, sys/mount.h, linux/prctl.h, linux/keyctl.h, linux/capability.h, net/if.h
NEW_NAMESPACES = 0x00020000 | 0x20000000 | 0x08000000 | 0x40000000 | 0x04000000  # mounts, processes, IPC, network, UTS
NEW_USER = 0x10000000
NO_SET_UID, NO_DEVICES, NO_PROGRAMS, BIND, ALL_BELOW, PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
SET_DUMPABLE, SET_SECCOMP, FILTER, NO_NEW_PRIVILEGES = 4, 22, 2, 38
JOIN_SESSION_KEYRING = 1
CAPABILITIES_VERSION = 0x20080522
SET_INTERFACE_FLAGS, UP = 0x8914, 1
WARM_UP = (
    "import math\nx = math.pi\nprint(x)",
    "%time x",
    "x",
    "1 / 0",
    "x +",
    "import asyncio",  # and no loop: it holds a line to itself open, which all would share
    "def f(*, n):\n    return 2 * n",
)
libc = ctypes.CDLL(None, use_errno=True)


def demand(result: int, what: str) -> None:
    """Raise when the kernel has refused something that a wall is made of."""
    if result:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, place: str, kind: str, flags: int, options: str = "") -> None:
    words = (ctypes.c_char_p(word.encode() or None) for word in (source, place, kind))
    demand(libc.mount(*words, ctypes.c_ulong(flags), ctypes.c_char_p(options.encode() or None)), f"mount of {place}")


def warm_shell() -> Any:
    """A shell that no notebook has used, in a process that has seen each kind of cell."""
    used = student_side.start_shell()
    for source in WARM_UP:
        student_side.run(used, source, 60.0, 1000)
    type(used).clear_instance()
    return student_side.start_shell()


def folders(top: str) -> list[str]:
    """This folder and those below it, the upper ones first."""
    return [place for place, _, _ in os.walk(top)]


def in_common(line: socket.socket) -> str:
    """What all that is forked from here would share, so that one student's code could reach another's; empty if
    nothing.
    """
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:  # a fork takes one of them along, and the locks that the others hold
        return f"{threads} threads, and only a process with one may be forked"
    files = [int(name) for name in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{name}")]
    if set(files) != {0, 1, 2, line.fileno()}:
        return f"open files that each child would have, among {sorted(files)}"
    with open("/proc/self/maps") as maps:
        rights = [span.split()[1] for span in maps]
    return "memory that each child could write to" if "rw-s" in rights or "rwxs" in rights else ""


def apart(walls: dict[str, Any]) -> None:
    """Leave what other submissions have in common. Needs the power to: as root in the sandbox, else in a user
    namespace.
    """
    os.setsid()
    if walls["keyctl"]:
        libc.syscall(walls["keyctl"], JOIN_SESSION_KEYRING, None)  # refused to us, it is refused to the student as well
    if walls["become"] is None:
        own_users()
    demand(libc.unshare(NEW_NAMESPACES), "namespaces")


def own_users() -> None:
    """A user namespace of one's own, in which one is who one was. What a user may start is counted in each of them, so
    that one student's bomb takes nothing from another's share.
    """
    user, group = os.geteuid(), os.getegid()
    demand(libc.unshare(NEW_USER), "users")
    for file, line in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{file}", "w") as map_:
            map_.write(line)


def furnish(walls: dict[str, Any]) -> None:
    """In the new namespaces: empty places with a size, the processes that are there, the way to oneself."""
    mount("", "/", "", ALL_BELOW | PRIVATE)
    mount("proc", "/proc", "proc", NO_SET_UID | NO_DEVICES | NO_PROGRAMS)
    for listing in ("/proc/keys", "/proc/key-users"):
        if os.path.exists(listing):
            mount("/dev/null", listing, "", BIND)
    shown = {place: os.open(place, os.O_PATH) for place in walls["shown"]}
    for place in walls["places"]:
        mount("tmpfs", place, "tmpfs", NO_SET_UID | NO_DEVICES, walls["room"])
    for place, handle in shown.items():  # this Python, where it lies in one of those
        os.makedirs(place, exist_ok=True)
        mount(f"/proc/self/fd/{handle}", place, "", BIND | ALL_BELOW)
        os.close(handle)
    os.chdir("/tmp")
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SET_INTERFACE_FLAGS, struct.pack("16sH14x", b"lo", UP))


def powerless(walls: dict[str, Any]) -> None:
    """Give up, for good, every power and the calls that the filter names."""
    if walls["become"] is not None:
        os.setgroups([])
        os.setgid(walls["become"])
        os.setuid(walls["become"])
        demand(libc.prctl(SET_DUMPABLE, 1, 0, 0, 0), "users")  # or one's own files in /proc are root's
        own_users()
    header = struct.pack("Ii", CAPABILITIES_VERSION, 0)
    demand(libc.capset(header, bytes(24)), "powers")
    demand(libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), "powers")
    program = bytes.fromhex(walls["filter"])
    if program:
        steps = ctypes.create_string_buffer(program, len(program))
        filter_ = struct.pack("HP", len(program) // 8, ctypes.addressof(steps))
        demand(libc.prctl(SET_SECCOMP, FILTER, ctypes.c_char_p(filter_), 0, 0), "the filter of calls")


def first_process(walls: dict[str, Any], shell: Any, requests: int, replies: int) -> None:
    """The first process of the child's own namespace: what is left when it ends, ends with it."""
    try:
        os.setsid()
        furnish(walls)
        powerless(walls)
    except OSError as error:
        os.write(replies, json.dumps({"problem": str(error)}).encode() + b"\n")
        os._exit(1)
    student = os.fork()
    if student == 0:
        try:
            for folder in walls["folders"]:
                os.mkdir(folder)
            student_side.serve(requests, replies, shell)
        finally:
            os._exit(1)
    os.close(requests)
    os.close(replies)
    while os.waitpid(-1, 0)[0] != student:
        """Others that have lost their parents."""
    os._exit(0)


def child(line: socket.socket, walls: dict[str, Any], shell: Any, pipes: list[int]) -> None:
    """Fork the first process behind walls of its own, hand its handle to the grader, and be gone."""
    try:
        for pipe in pipes:
            os.set_inheritable(pipe, False)
        apart(walls)
        first = os.fork()
        if first == 0:
            line.close()
            first_process(walls, shell, *pipes)
        socket.send_fds(line, [b"{}"], [os.pidfd_open(first)])
    except Exception as error:
        with contextlib.suppress(OSError):
            line.send(json.dumps({"problem": str(error)}).encode())


def main() -> None:
    os.umask(0o022)  # the way to this Python, made anew for each child, is walked by another user
    line = socket.socket(fileno=os.dup(0))
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    walls = json.loads(line.recv(LONGEST_WORD))
    os.environ.update(walls["environment"])
    shell = warm_shell()
    walls["folders"] = folders(os.environ["IPYTHONDIR"])
    shared = in_common(line)
    if shared:
        line.send(json.dumps({"problem": shared}).encode())
        return
    gc.collect()
    gc.freeze()
    line.send(b"{}")
    while True:
        word, pipes, _, _ = socket.recv_fds(line, LONGEST_WORD, 2)
        if not word:
            os._exit(0)
        between = os.fork()
        if between == 0:
            child(line, walls, shell, pipes)
            os._exit(0)
        for pipe in pipes:
            os.close(pipe)
        os.waitpid(between, 0)


if __name__ == "__main__":
    main()
