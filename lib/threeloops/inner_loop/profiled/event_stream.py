"""Event stream: the events of a Chrome trace, one at a time, so that a file may be larger than the memory.

>>> import io
>>> stream = EventStream(
...     io.BytesIO(b'{"a": {"b": 1}, "traceEvents": [{"ph": "X"}, {"ph": "i"}], "c": 2}'), name="t.json"
... )
>>> list(stream), stream.head, stream.cut
([{'ph': 'X'}, {'ph': 'i'}], {'a': {'b': 1}, 'c': 2}, '')

A file that was cut off is read as far as it goes, and says so:

>>> stream = EventStream(io.BytesIO(b'{"traceEvents": [{"ph": "X"}, {"ph": "i'), name="t.json")
>>> len(list(stream)), stream.cut
(1, 't.json ends in the middle: it was read until its event 1')

Source: Google, Trace Event Format (an array of events, or an object with it under traceEvents); torch's profiler writes
        the second, Kineto's libkineto/src/output_json.cpp
"""

import codecs
import gzip
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from threeloops.units import MiB

CHUNK = 2 * MiB  # characters that are looked at together
LONGEST = 64 * MiB  # characters of one event; torch's have hundreds
LONGEST_SAID = 40  # characters of a file that a sentence repeats
LONGEST_WORD = 8  # characters: an error nearer to the end may be a number or an escape that goes on
GZIP = b"\x1f\x8b"
EVENTS = "traceEvents"
_BETWEEN = re.compile(r"[\s,]*")
_KEY = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*')


class EventStream:
    """Iterate once; `head` holds what stands beside the events, complete when the iteration is over."""

    def __init__(self, file: io.BufferedIOBase, *, name: str, told: Callable[[int], object] | None = None) -> None:
        magic = file.read(2)
        file.seek(0)
        # read1: of a compressed file that was cut, what came before the cut
        self._read1 = gzip.GzipFile(fileobj=file).read1 if magic == GZIP else file.read1
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._file, self._told = file, told
        self._decode = json.JSONDecoder(strict=False).raw_decode
        self._buffer, self._at, self._over = "", 0, False
        self.name, self.head, self.num_events = name, dict[str, Any](), 0
        self.cut = ""  # a sentence, where the file ends before its end

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The events in the order of the file.

        Raises:   ValueError for what is no JSON, or holds no events
        """
        first = self._sign()
        if first == "[":
            self._at += 1
            yield from self._array()
        elif first == "{":
            self._at += 1
            yield from self._object()
        else:
            begins = f"it begins with {self._buffer[:20]!r}" if first else "it is empty, or was cut in its first bytes"
            raise ValueError(f"{self.name} is no trace: {begins}; a trace is an object or an array of events in JSON")
        if self.cut and not self.num_events:
            raise ValueError(f"{self.name} ends before its first event, so that nothing of it can be read")

    def _object(self) -> Iterator[dict[str, Any]]:
        found = False
        while (sign := self._sign()) not in ("}", ""):
            key = _KEY.match(self._buffer, self._at)
            if sign != '"':
                self._refuse()
            while key is None or key.end() == len(self._buffer):  # the value's first sign has to be there, too
                if not self._more():
                    self._cut()
                    return
                key = _KEY.match(self._buffer, self._at)
            self._at = key.end()
            if key[1] == EVENTS and self._buffer[self._at] == "[":
                found = True
                self._at += 1
                yield from self._array()
            elif (value := self._value()) is not None:
                self.head[key[1]] = value
            if self.cut:
                return
        if sign == "":
            self._cut()
        elif not found:
            raise ValueError(f"{self.name} has no {EVENTS}; give what torch.profiler's export_chrome_trace wrote")

    def _array(self) -> Iterator[dict[str, Any]]:
        while (sign := self._sign()) not in ("]", ""):
            event = self._value()
            if event is None:
                return
            if not isinstance(event, dict):
                what = f"its event {self.num_events + 1:,} is {str(event)[:LONGEST_SAID]!r}, and no object"
                raise ValueError(f"{self.name} is no trace: {what}")
            self.num_events += 1
            yield event
        if sign == "":
            self._cut()
        self._at += 1

    def _sign(self) -> str:
        """The next sign that is neither space nor comma; empty at the end of the file."""
        while True:
            self._at = _BETWEEN.match(self._buffer, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more():
                return ""

    def _value(self) -> Any:
        """One whole value; None where the file ends in it."""
        while True:
            try:
                value, end = self._decode(self._buffer, self._at)
                if end < len(self._buffer) or isinstance(value, dict | list | str) or not self._more():
                    self._at = end
                    return value
            except RecursionError:
                self._refuse("it nests too deeply")
            except json.JSONDecodeError as error:
                inside = len(self._buffer) - error.pos > LONGEST_WORD and not error.msg.startswith("Unterminated")
                if inside or len(self._buffer) - self._at > LONGEST:
                    self._refuse(error.msg)
                if not self._more():
                    self._cut()
                    return None
            except ValueError:  # Python's own limit of digits
                self._refuse("a number of thousands of digits")

    def _more(self) -> bool:
        """Read on, and forget what was read before; whether there was more."""
        if self._over:
            return False
        chunk = ""
        while len(chunk) < CHUNK and not self._over:
            try:
                piece = self._read1(CHUNK)
            except EOFError:  # a compressed file that was cut
                piece = b""
            except (OSError, zlib.error) as error:
                raise ValueError(f"{self.name} cannot be unpacked: {error}") from error
            self._over = not piece
            chunk += self._utf8.decode(piece)
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0
        if self._told:
            self._told(self._file.tell())
        return bool(chunk)

    def _cut(self) -> None:
        self.cut = f"{self.name} ends in the middle: it was read until its event {self.num_events:,}"

    def _refuse(self, because: str = "") -> NoReturn:
        why = f" ({because})" if because else ""
        near = self._buffer[self._at : self._at + LONGEST_SAID]
        raise ValueError(f"{self.name} is no JSON after its event {self.num_events:,}{why}: {near!r}")
