"""Attacks by code on the walls: on other processes, on files and the kernel, and through the network."""

import socket

from attacks import PRELUDE, Attack, machine, running
from submissions import ROOT

from threeloops.sandbox import seccomp

LISTENER = socket.create_server(("127.0.0.1", 0))  # what a student's code must not reach

SEARCHER = """
import os, gc, sys
found = []
for folder, below, files in os.walk('/'):
    if folder in ('/proc', '/usr', sys.prefix, sys.base_prefix): below.clear(); continue
    found += [os.path.join(folder, file) for file in files if file in ('grading.key', 'gradebook.db', 'bank.py', 'kv_paging.py') or file.endswith('.ipynb')]
print('FOUND', len(found), found[:3])
frames, frame = [], sys._getframe()
while frame: frames.append(str(frame.f_locals)[:100000]); frame = frame.f_back
print('ANSWER' if any('derive' in text or 'slip' in text for text in frames) else 'NOTHING', 'in the frames')
"""  # noqa: E501

PATIENT_KILLER = """
import os, signal
for pid in (-1, 1, os.getppid()):
    try: os.kill(pid, signal.SIGKILL)
    except OSError: pass
"""

GRADEBOOK = f"""
import os, sqlite3
for place in ({str(ROOT)!r}, {str(ROOT / "build")!r}, '/root', '/home', '/tmp', os.getcwd()):
    path = os.path.join(place, 'gradebook.db')
    if os.path.exists(path):
        sqlite3.connect(path).execute('update grade set manual_score = 99')
        print('GRADEBOOK', path)
"""

CLONED = f"""
pid = libc.syscall({seccomp.CLONE[seccomp.column() or 0]}, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
if pid == 0: os._exit(0)
if pid > 0: print('GOT-THROUGH', pid)
given = struct.pack('11Q', 0x10000000, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, 0)
pid = libc.syscall({seccomp.CLONE3[0]}, given, 88)
if pid == 0: os._exit(0)
if pid > 0: print('GOT-THROUGH', pid)
"""

FAMILIES = """
for family in range(100):
    if family not in (1, 2, 10):
        for kind in (1, 2, 3, 5): tried(socket.socket, family, kind, 0)
"""

SIGNALS = """
for pid in (0, -1, 1, *range(3, 400)):
    for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
        if pid == 0: continue
        try: os.kill(pid, number)
        except OSError: continue
        if pid not in (-1, 1): print('GOT-THROUGH', pid)
"""

SIBLINGS = """
own = os.getpid()
for name in os.listdir('/proc'):
    if not name.isdecimal() or int(name) == own: continue
    if int(name) != 1: print('GOT-THROUGH', name)
    for file in ('environ', 'maps', 'cmdline'):
        try: text = open(f'/proc/{name}/{file}', 'rb').read()
        except OSError: continue
        if any(word in text for word in (b'submitted', b'gradebook')): print('GOT-THROUGH', text)
"""

FIRST_PROCESS = """
import re
for pid in (1, os.getppid(), os.getpid()):
    try: spans = [line.split() for line in open(f'/proc/{pid}/maps') if line.split()[1].startswith('rw')]
    except OSError: continue
    try: memory = open(f'/proc/{pid}/mem', 'rb', 0)
    except OSError: continue
    for span, *_ in spans[:400]:
        first, last = (int(at, 16) for at in span.split('-'))
        try: memory.seek(first); text = memory.read(min(last - first, 2**22))
        except (OSError, ValueError, OverflowError): continue
        if re.search(rb'grading[.]key|hidden[ ]draws', text): print('GOT-THROUGH', pid, span)
"""

WRITES = """
import glob
for path in ('/run/student_side.py', '/run/forking.py', os.__file__, sys.executable, '/etc/passwd', '/usr/bin/env',
             '/proc/sysrq-trigger', '/proc/sys/kernel/core_pattern', '/proc/sys/kernel/hostname',
             '/proc/sys/vm/overcommit_memory', '/proc/sys/net/ipv4/ip_forward', '/proc/1/mem'):
    try:
        with open(path, 'r+b', 0) as file: file.write(b'0')
    except OSError: continue
    print('GOT-THROUGH', path)
for place in ('/', '/run', '/usr', '/dev', '/etc', '/proc', os.path.dirname(os.__file__), sys.prefix):
    tried(os.mkdir, os.path.join(place, 'mine'))
    tried(os.mknod, os.path.join(place, 'device'), 0o60666, os.makedev(8, 0))
    tried(os.link, '/run/student_side.py', os.path.join(place, 'linked'))
tried(os.link, '/run/student_side.py', '/tmp/linked')
tried(os.mknod, '/tmp/disk', 0o60666, os.makedev(254, 0))
tried(os.mknod, '/tmp/memory', 0o20666, os.makedev(1, 1))
tried(os.chmod, '/run/student_side.py', 0o777)
tried(os.unlink, '/run/student_side.py')
tried(os.rename, '/tmp', '/temporary')
os.symlink('/run/student_side.py', '/tmp/points-there')
tried(open, '/tmp/points-there', 'r+')
"""

POWERS = """
tried(os.setuid, 0); tried(os.setresuid, 0, 0, 0); tried(os.setgroups, [0]); tried(os.setresgid, 0, 0, 0)
if os.getuid() != 0 and 0 in (os.geteuid(), os.getegid()): print('GOT-THROUGH')
import resource
for name in ('AS', 'NPROC', 'FSIZE', 'NOFILE', 'CORE'):
    tried(resource.setrlimit, getattr(resource, 'RLIMIT_' + name), (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
tried(os.nice, -5); tried(os.sched_setscheduler, 0, 1, os.sched_param(10)); tried(socket.sethostname, 'mine')
tried(os.chroot, '/tmp')
held = [line for line in open('/proc/self/status') if line.startswith(('CapEff', 'CapPrm', 'CapAmb', 'CapInh'))]
if any(int(line.split()[1], 16) for line in held): print('GOT-THROUGH', held)
import subprocess
for program in ('su', 'mount', 'passwd', 'newgrp', 'ping', 'chsh'):
    try: done = subprocess.run([program, '-c', 'id -u'], capture_output=True, text=True, timeout=1, stdin=-3)
    except (OSError, subprocess.TimeoutExpired): continue
    if done.stdout.strip() == '0': print('GOT-THROUGH', program)
"""

TERMINAL = """
import fcntl, termios
for fd in range(30):
    try: fcntl.ioctl(fd, termios.TIOCSTI, b'x'); print('GOT-THROUGH', fd)
    except OSError: pass
tried(os.open, '/dev/tty', os.O_RDWR)
for path in ('/dev/mem', '/dev/kmsg', '/dev/vda', '/dev/sda', '/dev/fuse', '/dev/kvm', '/dev/net/tun', '/dev/vsock'):
    tried(os.open, path, os.O_RDWR)
"""

OWN_FILTER = """
import struct
program = struct.pack('HBBI', 0x06, 0, 0, 0x00050000 | 38)  # every call: no such call
steps = ctypes.create_string_buffer(program)
libc.prctl(38, 1, 0, 0, 0)
libc.prctl(22, 2, struct.pack('HP', 1, ctypes.addressof(steps)), 0, 0)
"""

LOCKS = """
import fcntl
for path in (os.__file__, '/run/student_side.py', '/run/forking.py', sys.executable, '/usr/bin/env'):
    file = open(path, 'rb')
    try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: pass
    globals()['held' + str(hash(path) % 10**6)] = file
"""

EXECUTED = """
import shutil
shutil.copy('/bin/sh', '/tmp/sh')
os.execv('/tmp/sh', ['sh', '-c', 'while :; do echo "{}" >&3; echo "{}" >&4; echo "{}" >&5; done'])
"""

TO_CALL: dict[str, tuple[tuple[str, str], ...]] = {
    "keyrings": (("keyctl", "0, -3, 1"), ("keyctl", "1, 0"), ("add_key", "b'user', b'left', b'word', 4, -3")),
    "keys-asked-for": (("request_key", "b'user', b'left', b'', -3"),),
    "attach": (("ptrace", "16, 1, 0, 0"), ("ptrace", "0x4206, 1, 0, 0"), ("kcmp", "1, os.getpid(), 0, 0, 0")),
    "read-the-first": (("process_vm_readv", "1, buf, 1, buf, 1, 0"), ("process_vm_writev", "1, buf, 1, buf, 1, 0")),
    "shared-memory": (("shmget", "4711, 1 << 20, 0o1666"),),
    "semaphores": (("semget", "4711, 32_000, 0o1666"),),
    "messages": (("msgget", "4711, 0o1666"), ("mq_open", "b'left', 0o102, 0o666, 0")),
    "watching": (("inotify_init1", "0"), ("fanotify_init", "0, 0"), ("perf_event_open", "buf, 0, -1, -1, 0")),
    "rings": (("io_uring_setup", "8, buf"), ("io_uring_enter", "3, 1, 0, 0, 0"), ("io_uring_register", "3, 0, 0, 0")),
    "faults": (("userfaultfd", "1"), ("bpf", "0, buf, 120")),
    "nameless-file": (("memfd_create", "b'x', 0"), ("memfd_secret", "0")),
    "namespaces": (("unshare", "0x10000000"), ("unshare", "0x20000"), ("setns", "0, 0")),
    "mounts": (("mount", "b'x', b'/tmp', b'tmpfs', 0, 0"), ("umount2", "b'/tmp', 2"), ("umount2", "b'/proc/keys', 2")),
    "new-mounts": (("fsopen", "b'tmpfs', 0"), ("open_tree", "-100, b'/', 1"), ("move_mount", "0, b'', 0, b'', 4")),
    "other-root": (("chroot", "b'/tmp'"), ("pivot_root", "b'/tmp', b'/tmp'")),
    "modules": (("init_module", "buf, 8, b''"), ("kexec_load", "0, 0, 0, 0")),
    "clock": (("clock_settime", "0, buf"), ("settimeofday", "buf, 0"), ("clock_adjtime", "0, buf")),
    "last-in-line": (("setpriority", "0, 0, 19"), ("sched_setscheduler", "0, 5, buf"), ("sched_setattr", "0, buf, 0")),
    "one-core": (("sched_setaffinity", "0, 8, buf"), ("sched_setparam", "0, buf"), ("ioprio_set", "1, 0, 24577")),
    "log": (("syslog", "3, buf, 100"), ("quotactl", "0, 0, 0, 0")),
}


def system_calls(*calls: tuple[str, str]) -> Attack:
    """A notebook whose student calls the kernel by numbers."""
    place = seccomp.column() or 0
    lines = (f"called({seccomp.REFUSED[name][place]}, {given})" for name, given in calls)
    return running(PRELUDE + "buf = ctypes.create_string_buffer(4096)\n" + "\n".join(lines))


WALLS: dict[str, Attack] = {name: system_calls(*calls) for name, calls in TO_CALL.items()} | {
    "kill-the-others": running(PATIENT_KILLER),
    "signals": machine(SIGNALS),
    "own-filter": machine(OWN_FILTER),
    "locks": machine(LOCKS),
    "another-program": machine(EXECUTED),
    "network": running(
        f"import socket\nprint('GOT' + '-THROUGH', socket.create_connection(('127.0.0.1', {LISTENER.getsockname()[1]}),"
        " 1))"
    ),
    "search-the-disk": running(SEARCHER),
    "gradebook": running(GRADEBOOK),
    "cloned": machine(CLONED),
    "socket-families": machine(FAMILIES),
    "siblings": machine(SIBLINGS),
    "first-process": machine(FIRST_PROCESS),
    "writes": machine(WRITES),
    "powers": machine(POWERS),
    "terminal": machine(TERMINAL),
}
WALL_ENDS: dict[str, str | tuple[str, ...]] = dict.fromkeys(
    ("own-filter", "another-program"), ("graded", "timed out", "died")
)
