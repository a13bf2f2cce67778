"""Calling a learner's function at home: whatever it does, the notebook goes on.

>>> called(lambda n: 2 * n, {"n": 21}).value
42.0
>>> called(lambda n: 1 / 0, {"n": 21}).problem
'raised ZeroDivisionError: division by zero'
"""

import ctypes
import inspect
import math
import threading
from collections.abc import Callable, Mapping
from numbers import Real

from threeloops.drills.engine.functions import TIME_LIMIT_S, Returned

STOP_TRIES = 20  # a loop may swallow the first interruption


def signature_problem(function: Callable[..., object], arguments: Mapping[str, object]) -> str:
    """Why the function cannot take these arguments by name, or an empty string."""
    try:
        inspect.signature(function).bind(**arguments)
    except TypeError:
        return f"It must take these arguments by name: {', '.join(arguments)}."
    except ValueError:  # built-ins have no signature to read; calling them will tell
        return ""
    return ""


def as_returned(value: object) -> Returned:
    """A returned value as a plain float; arrays and tensors of one number count as that number."""
    if value is None or value is ...:
        return Returned(unwritten=True)
    try:
        item = getattr(value, "item", None)
        number = item() if callable(item) and not isinstance(value, Real) else value
        if isinstance(number, bool) or not isinstance(number, Real):
            return Returned(problem=f"returned a {type(value).__name__}, not a number")
        plain = float(number)
    except Exception:  # a tensor of many numbers, an int too large for a float, an object that lies about itself
        return Returned(problem=f"returned a {type(value).__name__} that is not one finite number")
    return Returned(value=plain) if math.isfinite(plain) else Returned(problem="returned a number that is not finite")


def called(
    function: Callable[..., object], arguments: Mapping[str, object], *, limit_s: float = TIME_LIMIT_S
) -> Returned:
    """What one call returns, within the time limit."""
    outcome: list[Returned] = []

    def call() -> None:
        try:
            outcome.append(as_returned(function(**arguments)))
        except NotImplementedError:
            outcome.append(Returned(unwritten=True))
        # SystemExit and KeyboardInterrupt too: a learner's exit must not end the notebook
        except BaseException as error:
            outcome.append(Returned(problem=f"raised {type(error).__name__}: {str(error)[:120]}".rstrip(": ")))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(limit_s)
    for _ in range(STOP_TRIES):
        if not thread.is_alive():
            break
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(TimeoutError))
        thread.join(0.01)
    if not outcome or "raised TimeoutError" in outcome[0].problem:
        return Returned(problem=f"took longer than {limit_s:g} s")
    return outcome[0]
