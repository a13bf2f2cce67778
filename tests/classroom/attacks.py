"""How a hostile submission is made: a notebook in which one question is answered honestly, and then changed."""

from collections.abc import Callable

from submissions import Notebook, asked, filled, released, set_source

SET, CODE = "kv_cache", "spring-26"
DESERVED = 1.0  # one honest answer stands in every attack: it must neither be lost nor multiplied
KEPT = "one-token"  # the question that is answered honestly
THROUGH = "GOT-" + "THROUGH"  # what an attack prints when the machine has let it
MARK = "STOLEN-BY"  # what leaking attacks try to get onto a page
Attack = Callable[[str], Notebook]  # the student's id -> what they hand in


def honest(student: str, right: set[str] | None = None) -> Notebook:
    """Right on some questions, untouched on the others."""
    untouched = {}
    if right is not None:
        empty = released(SET)
        cells = {cell["id"]: "".join(cell["source"]) for cell in empty["cells"]}
        untouched = {grade_id: cells[f"{grade_id}-answer"] for grade_id in asked(SET) if grade_id not in right}
    return filled(SET, student=student, course=CODE, wrong=untouched)


def attacked(change: Callable[[Notebook], object]) -> Attack:
    """A notebook with one honest answer, then changed."""

    def make(student: str) -> Notebook:
        notebook = honest(student, {KEPT})
        return change(notebook) or notebook  # type: ignore[return-value]

    return make


def running(code: str, *, where: str = "a-batch-answer") -> Attack:
    """A notebook whose student runs this code in one of the answer cells."""
    return attacked(lambda notebook: set_source(notebook, where, code))


def function(code: str) -> Attack:
    return running(code, where="paged-answer")


# what every call of the kernel's own goes through: it says so when the machine has let it
PRELUDE = """
import ctypes, errno, os, signal, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
def called(number, *given):
    result = libc.syscall(ctypes.c_long(number), *given)
    if result >= 0: print('GOT-THROUGH', number, given, result)
    return result
def tried(work, *given):
    try: result = work(*given)
    except (OSError, ValueError, AttributeError): return
    print('GOT-THROUGH', work, given, result)
"""


def machine(code: str) -> Attack:
    return running(PRELUDE + code)


# What an honest student looks for who comes next: anything that the one before has left. The port is none that a
# connection may be given as its own: one in 28,000 would be joined to itself, and look like a server.
TRACES = """
import os, socket, subprocess, sys
def trace(*what): print('LEFT-BEHIND', *what)
def look():
    for place, own in (('/tmp', {'ipython', *sys.prefix.split('/'), *sys.base_prefix.split('/')}), ('/dev/shm', set())):
        if {*os.listdir(place)} - own: trace(place, os.listdir(place))
        with open(place + '/room', 'wb') as file: file.write(bytes(2**20))
        os.remove(place + '/room')
    if len([name for name in os.listdir('/proc') if name.isdecimal()]) != 2: trace('processes')
    for name in ('shm', 'sem', 'msg'):
        listing = '/proc/sysvipc/' + name
        if os.path.exists(listing) and open(listing).read().count(chr(10)) > 1: trace(name)
    for family, address in ((socket.AF_UNIX, chr(0) + 'left-behind'), (socket.AF_INET, ('127.0.0.1', 14040))):
        with socket.socket(family) as line:
            if line.connect_ex(address) == 0: trace(address)
    with socket.create_server(('127.0.0.1', 14040)) as server: pass
    if os.umask(0o022) != 0o022: trace('umask')
    if subprocess.run(['/bin/echo', 'x'], capture_output=True).stdout != b'x' + bytes([10]): trace('no process')
try: look()
except Exception as error: trace(error)
"""
