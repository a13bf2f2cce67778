"""Attacks by code on the line to the judge and on the process that speaks on it."""

from attacks import Attack, attacked, running
from submissions import Notebook, set_source

FORGER = """
import json, os
for fd in os.listdir('/proc/self/fd'):
    for reply in ({"kind": "number", "text": "1.0"}, {"right": True, "status": "right", "points": 99}, [1], "x"):
        try: os.write(int(fd), (json.dumps(reply) + chr(10)).encode())
        except OSError: pass
"""

STALLER = """
import json, os, signal
line = (json.dumps({"printed": "", "kind": "number", "text": "1.0"}) + chr(10)).encode()
for fd in os.listdir('/proc/self/fd'):
    try: [os.write(int(fd), line) for _ in range(40)]
    except OSError: pass
signal.signal(signal.SIGALRM, signal.SIG_IGN)
while True: pass
"""

FLOOD = """
import os
for fd in range(3, 20):
    for _ in range(300):
        try: os.write(fd, b'x' * 10**6)
        except OSError: break
"""

# what a process says that was told to say something else: on whatever file it finds open
FORGED = """
import os
for fd in range(3, 30):
    try: os.write(fd, {line!r})
    except OSError: pass
"""

LINES = {
    "not-a-number": b'{"kind": "number", "text": NaN, "printed": Infinity, "failed": -Infinity}\n',
    "deep-reply": b"[" * 90_000 + b"\n",
    "half-character": b'{"kind": "text", "text": "\\ud800", "printed": "\\udfff", "failed": false}\n',
    "no-unicode": b"\xff\xfe\x00\xd8\n",
    "giant-number": b'{"kind": "number", "text": ' + b"9" * 6_000 + b"}\n",
    "other-kinds": b'{"kind": {}, "text": [], "printed": {"a": [1]}, "timed_out": "yes", "line": {}}\n',
    "another-type": b'"right"\n',
    "said-twice": b'{"kind": "other", "kind": "number", "text": "1", "text": "24.5 GB", "right": true}\n',
    "long-line": b'{"printed": "' + b"x" * 150_000 + b'"}\n',
    "no-end": b'{"kind": "number", "text": "1',
    "empty-lines": b"\n\n\n\n",
    "a-problem": b'{"ready": true, "problem": "the grader is wrong"}\n',
}

CHANNEL_PATCHED = """
import json, sys
json.dumps = lambda *a, **k: '{"kind": "text", "text": "24.5 GB", "printed": "", "failed": false}'
json.JSONEncoder.encode = lambda self, o: json.dumps(o)
"""

INSIDE_PATCHED = """
import sys
frame = sys._getframe()
while frame:
    for name in ('plain', 'call', 'items'):
        if name in frame.f_globals and '__file__' in frame.f_globals:
            frame.f_globals[name] = lambda *a, **k: {'kind': 'number', 'text': '1.0', 'right': True}
    frame = frame.f_back
"""

LOCALS_PATCHED = """
import ctypes, sys
frame = sys._getframe()
while frame:
    for name, value in list(frame.f_locals.items()):
        if isinstance(value, dict) and 'do' in value: value['do'] = 'run'
        if isinstance(value, dict) and 'grade_id' in value: print('GOT-THROUGH', value)
    frame = frame.f_back
"""

SPLIT_NAMES = """
class Names(dict):
    def __contains__(self, name): return True
    def __getitem__(self, name): return '24.5 GB' if name != 'one_token' else dict.__getitem__(self, name)
    def get(self, name, other=None): return (lambda **k: 1.0)
ip = get_ipython()
ip.user_ns = Names(ip.user_ns)
"""

EXCEPTION_STORM = """
import ctypes, threading, time
main = threading.main_thread().ident
def storm():
    while True:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(SystemExit))
        time.sleep(0.001)
threading.Thread(target=storm, daemon=True).start()
"""

ALARM_STORM = """
import signal
def ring(*_): raise ValueError('storm')
signal.signal(signal.SIGALRM, ring)
signal.signal = lambda *a: None
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
signal.setitimer = lambda *a: None
while True: pass
"""

LATE_FORGER = """
import os, threading, time
line = b'{"kind": "text", "text": "24.5 GB", "printed": "", "failed": false}' + bytes([10])
def later():
    while True:
        for fd in range(3, 30):
            try: os.write(fd, line)
            except OSError: pass
        time.sleep(0.002)
threading.Thread(target=later, daemon=True).start()
"""

FORGER_FROM_A_CHILD = """
import os, subprocess, sys
fds = [fd for fd in range(3, 30) if os.path.exists(f'/dev/fd/{fd}') or True]
for fd in fds:
    try: os.set_inheritable(fd, True)
    except OSError: pass
code = "import os,time\\nwhile True:\\n for fd in range(3,30):\\n  try: os.write(fd,b'{\\"kind\\": \\"number\\", \\"text\\": \\"1\\"}\\\\n')\\n  except OSError: pass\\n time.sleep(0.01)"
subprocess.Popen([sys.executable, '-c', code], close_fds=False, start_new_session=True)
"""  # noqa: E501

READS_AHEAD = """
import os, select
for fd in range(3, 30):
    try:
        if select.select([fd], [], [], 0)[0] and (text := os.read(fd, 100_000)): print('GOT-THROUGH', text)
    except (OSError, ValueError): pass
"""

TAKES_THE_LINE = """
import os, time
for fd in range(3, 30):
    try: os.dup2(os.open('/dev/null', os.O_RDWR), fd)
    except OSError: pass
"""

AUDITED = """
import sys
def hook(event, args):
    if event in ('open', 'compile', 'exec', 'object.__getattr__'): raise RuntimeError('no')
sys.addaudithook(hook)
"""

TRACED = """
import sys, threading
def trace(frame, event, arg):
    if 'request' in frame.f_locals: frame.f_locals['request'] = {}
    return trace
sys.settrace(trace); threading.settrace(trace)
sys.setprofile(lambda *a: None)
"""

HOOKED = """
import builtins, sys
builtins.callable = lambda x: True
builtins.isinstance = lambda a, b: True
builtins.repr = builtins.str = lambda *a: '24.5 GB'
builtins.float = lambda *a: 1.0
sys.excepthook = sys.displayhook = lambda *a: None
"""

SHELL_PATCHED = """
shell = get_ipython()
shell.run_cell = lambda *a, **k: None
shell.user_ns.clear()
"""


def stalled(notebook: Notebook) -> None:
    """Forged replies to everything that is still to come, then silence, with more to read than a pipe holds."""
    set_source(notebook, "a-batch-answer", STALLER)
    where = [cell["id"] for cell in notebook["cells"]].index("a-batch-answer") + 1
    notebook["cells"].insert(
        where, {"cell_type": "code", "source": "#" * 99_000, "metadata": {}, "id": "long", "outputs": []}
    )


LINE_ATTACKS: dict[str, Attack] = {
    "shell-patched": running(SHELL_PATCHED),
    "transformed-cells": running("get_ipython().input_transformers_post.append(lambda lines: ['pass'])"),
    "forged-replies": running(FORGER),
    "forged-and-stalled": attacked(stalled),
    "forged-later": running(LATE_FORGER),
    "forged-by-a-child": running(FORGER_FROM_A_CHILD),
    "flooded-line": running(FLOOD),
    "close-the-line": running("import os\nos.closerange(0, 300)"),
    "take-the-line": running(TAKES_THE_LINE),
    "read-ahead": running(READS_AHEAD),
    "channel-patched": running(CHANNEL_PATCHED),
    "inside-patched": running(INSIDE_PATCHED),
    "locals-patched": running(LOCALS_PATCHED),
    "names-split": running(SPLIT_NAMES),
    "exception-storm": running(EXCEPTION_STORM),
    "alarm-storm": running(ALARM_STORM),
    "audited": running(AUDITED),
    "traced": running(TRACED),
    "builtins-hooked": running(HOOKED),
    "asks-for-input": running("input('your password? ')"),
    "three-hundred-megabytes": running("for _ in range(300): print('x' * 10**6)"),
} | {f"line-{name}": running(FORGED.replace("{line!r}", repr(line))) for name, line in LINES.items()}
LINE_ENDS: dict[str, str | tuple[str, ...]] = {
    "forged-replies": "died",
    "close-the-line": "died",
    "flooded-line": "died",
    "take-the-line": ("timed out", "died"),
    "alarm-storm": ("graded", "timed out", "died"),
    "exception-storm": ("graded", "timed out", "died"),
    "forged-later": ("graded", "died"),
    "forged-by-a-child": ("graded", "died"),
    "forged-and-stalled": ("graded", "timed out", "died"),
    "audited": ("graded", "died"),
    "channel-patched": ("graded", "died"),
    "builtins-hooked": ("graded", "timed out", "died"),
    "names-split": ("graded", "died"),
    "traced": ("graded", "died"),
} | dict.fromkeys((f"line-{name}" for name in LINES), ("graded", "timed out", "died"))
