"""Attacks by code on what there is for all: time, memory, room, processes; and on whoever comes next."""

from attacks import Attack, machine, running

LEFT_BEHIND = """
import subprocess, sys, threading
threading.Thread(target=lambda: [None for _ in iter(int, 1)]).start()
subprocess.Popen([sys.executable, '-c', 'while True: pass'])
"""

# what is left lying: a process that stays, with a socket, a file, a lock
STAYS = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for number in range(1, 65):
            try: signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError): pass
        held = socket.socket(socket.AF_UNIX); held.bind(chr(0) + 'left-behind'); held.listen()
        port = socket.create_server(('127.0.0.1', 14040))
        open('/tmp/left-behind', 'w').write('x'); open('/dev/shm/left-behind', 'w').write('x')
        os.closerange(0, 3)
        time.sleep(600)
    os._exit(0)
time.sleep(0.2)
"""

STAYS_ON_THE_LINE = """
for _ in range(5):
    if os.fork() == 0:
        os.setsid()
        time.sleep(600)
        os._exit(0)
os._exit(0)
"""

RETURNS = """
for _ in range(3): os.fork()
"""

BREEDS = """
import threading
def breed():
    while True:
        try:
            if os.fork() == 0: os.setsid(); breed()
        except OSError: time.sleep(0.05)
threading.Thread(target=breed, daemon=True).start()
os._exit(0)
"""

FORK_BOMB = """
for _ in range(500):
    try:
        if os.fork() == 0: time.sleep(60)
    except OSError: break
"""

THREADS = """
import threading
threads = []
try:
    while len(threads) < 5_000:
        threads.append(threading.Thread(target=time.sleep, args=(600,), daemon=True)); threads[-1].start()
except RuntimeError: pass
"""

FIRST_THREAD_GONE = """
import threading
if os.fork() == 0:
    def hoard():
        time.sleep(0.3)
        hoards = [bytearray(10**8) for _ in range(20)]
        for hoard in hoards: hoard[::4096] = bytes([1]) * len(range(0, 10**8, 4096))
        time.sleep(600)
    threading.Thread(target=hoard).start()
    libc.syscall(60 if sys.maxsize and os.uname().machine == 'x86_64' else 93, 0)
time.sleep(1)
"""

HOARDERS = """
for _ in range(20):
    if os.fork() == 0:
        hoard = bytearray(2 * 10**9)
        hoard[::4096] = bytes([1]) * len(range(0, 2 * 10**9, 4096))
        time.sleep(600)
time.sleep(2)
"""

SHARED_HOARD = """
import mmap
for _ in range(10):
    if os.fork() == 0:
        shared = mmap.mmap(-1, 10**9)
        shared[::4096] = bytes(len(range(0, 10**9, 4096)))
        time.sleep(600)
time.sleep(2)
"""

PIPES = """
import fcntl
pipes = []
try:
    while len(pipes) < 500:
        pair = os.pipe(); pipes.append(pair)
        try: fcntl.fcntl(pair[1], 1031, 2**20)
        except OSError: pass
        os.set_blocking(pair[1], False); os.write(pair[1], bytes(2**20))
except OSError: pass
"""

SOCKETS = """
pairs = []
for _ in range(8): os.fork() if _ < 3 else None
try:
    while True:
        pair = socket.socketpair(); pairs.append(pair)
        for end in pair:
            end.setblocking(False); end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**24)
            try:
                while end.send(bytes(2**16)): pass
            except BlockingIOError: pass
except OSError: pass
"""

FILLED = """
for place in ('/tmp', '/dev/shm'):
    for number in range(50):
        try:
            with open(f'{place}/{number}', 'wb') as file: file.write(bytes(10**8))
        except OSError: break
"""

FILLED_WITH_NAMES = """
for place in ('/tmp', '/dev/shm'):
    made = 0
    try:
        while made < 300_000: os.symlink('x' * 200, f'{place}/{made}'); made += 1
    except OSError: pass
    if made > 200_000: print('GOT-THROUGH', made)
"""

DEEP_FOLDERS = """
os.chdir('/tmp')
try:
    for _ in range(3_000): os.mkdir('x' * 200); os.chdir('x' * 200)
except OSError: pass
"""

PINNED = """
try: os.sched_setaffinity(0, {0})
except OSError: pass
try: os.nice(19)
except OSError: pass
for which in (0, 1, 2):
    try: os.setpriority(which, 0, 19)
    except OSError: pass
os.umask(0o777)
"""

RECURSES = """
import sys
sys.setrecursionlimit(10**9)
class Deep:
    def __repr__(self): return repr(self)
def deep(n): return deep(n + 1)
deep(0)
"""

GROWS = """
x = 'x'
while True: x += x
"""

REDOS = """
import re
re.match('(a+)+$', 'a' * 60 + 'b')
"""


LIMITS: dict[str, Attack] = {
    "endless-loop": running("while True: pass"),
    "endless-and-deaf": running("while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
    "alarm-switched-off": running("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass"),
    "endless-in-c": running("10 ** 10 ** 9"),
    "endless-match": running(REDOS),
    "system-exit": running("import sys\nsys.exit(0)"),
    "raise-system-exit": running("raise SystemExit"),
    "exit-call": running("exit()"),
    "os-exit": running("import os\nos._exit(0)"),
    "crash": running("import ctypes\nctypes.string_at(0)"),
    "recursion": running(RECURSES),
    "kill-itself": running("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "stop-itself": running("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    "kill-its-group": running("import os, signal\nos.killpg(0, signal.SIGKILL)"),
    "six-gigabytes": running("hoard = bytearray(6 * 10**9)"),
    "ever-longer-text": running(GROWS),
    "hoarders": machine(HOARDERS),
    "hoarders-together": machine(SHARED_HOARD),
    "first-thread-gone": machine(FIRST_THREAD_GONE),
    "fork-bomb": machine(FORK_BOMB),
    "breeds": machine(BREEDS),
    "forks-return": machine(RETURNS),
    "threads": machine(THREADS),
    "pipes-filled": machine(PIPES),
    "sockets-filled": machine(SOCKETS),
    "disk-filled": machine(FILLED),
    "names-filled": machine(FILLED_WITH_NAMES),
    "deep-folders": machine(DEEP_FOLDERS),
    "left-behind": running(LEFT_BEHIND),
    "stays": machine(STAYS),
    "stays-on-the-line": machine(STAYS_ON_THE_LINE),
    "pinned": machine(PINNED),
}
LIMIT_ENDS: dict[str, str | tuple[str, ...]] = (
    dict.fromkeys(
        ("endless-loop", "endless-and-deaf", "alarm-switched-off", "endless-in-c", "endless-match", "stop-itself"),
        "timed out",
    )
    | dict.fromkeys(
        ("os-exit", "crash", "kill-itself", "kill-its-group", "stays-on-the-line", "breeds", "hoarders-together"),
        "died",
    )
    | dict.fromkeys(
        ("recursion", "hoarders", "sockets-filled", "ever-longer-text"),
        ("graded", "timed out", "died"),
    )
)  # the others are graded
