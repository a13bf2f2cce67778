"""Log lines: the lines of a log, one at a time, so that a file may be larger than the memory; packed or not.

>>> import io
>>> lines = LogLines(io.BytesIO(b"\\x1b[31mstep:  1\\x1b[0m\\n 10/60 [00:09\\r 11/60 [00:10\\n"), name="t.log")
>>> list(lines), lines.cut
(['step:  1', ' 10/60 [00:09', ' 11/60 [00:10'], '')

A carriage return ends a line, too: a progress bar writes its states with it. Colours are taken out. What Windows'
PowerShell writes in UTF-16 is read as such.
"""

import codecs
import gzip
import io
import math
import re
import zlib
from collections.abc import Callable, Iterator
from datetime import datetime

from threeloops.units import KiB, MiB, day, hour, minute

CHUNK = MiB  # bytes that are looked at together
LONGEST = 256 * KiB  # characters of a line that are kept: an engine's list of arguments has tens of thousands
GZIP, UTF_16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_END = re.compile(r"[\r\n]+")
_STAMP = re.compile(r"(?:(\d{4})[-/])?(\d\d)[-/](\d\d)[ T](\d\d):(\d\d):(\d\d)")
_TIME = re.compile(r"\W{0,2}(?:INFO |DEBUG |WARNING )?\W?(\d\d):(\d\d):(\d\d)(?![:\d])")  # where a line begins
_NO_YEAR = 2000  # for stamps without one; a leap year, so that every day is one of its days


class LogLines:
    """Iterate once; `cut` is a sentence where a packed file ends before its end."""

    def __init__(self, file: io.BufferedIOBase, *, name: str, told: Callable[[int], object] | None = None) -> None:
        magic = file.read(2)
        file.seek(0)
        # read1: of a packed file that was cut, what came before the cut
        self._read1 = gzip.GzipFile(fileobj=file).read1 if magic == GZIP else file.read1
        self._file, self._told = file, told
        self.name, self.cut, self.num_lines = name, "", 0

    def __iter__(self) -> Iterator[str]:
        """The lines in the order of the file, without what ends them and without empty ones.

        Raises:   ValueError for a file that is empty, cannot be unpacked or is no text
        """
        rest = ""
        for text in self._texts():
            *whole, rest = _END.split(rest + text)
            for line in whole:
                yield from self._line(line)
            rest = rest[:LONGEST]
        yield from self._line(rest)
        if not self.num_lines:
            raise ValueError(f"{self.name} is empty; give what an engine or a training run wrote, or a /metrics scrape")

    def _line(self, line: str) -> Iterator[str]:
        if line.strip():
            self.num_lines += 1
            yield _COLOUR.sub("", line[:LONGEST])

    def _texts(self) -> Iterator[str]:
        decoder: codecs.IncrementalDecoder | None = None
        while piece := self._piece():
            if decoder is None:
                wide = piece.startswith(UTF_16)
                decoder = codecs.getincrementaldecoder("utf-16" if wide else "utf-8")("replace")
                if not wide and b"\0" in piece:
                    raise ValueError(f"{self.name} is no text, and so no log; it begins with {piece[:8]!r}")
            yield decoder.decode(piece)
            if self._told:
                self._told(self._file.tell())

    def _piece(self) -> bytes:
        try:
            return self._read1(CHUNK)
        except EOFError:
            self.cut = f"{self.name} ends in the middle: it was read until its line {self.num_lines:,}"
            return b""
        except (OSError, zlib.error) as error:
            raise ValueError(f"{self.name} cannot be unpacked: {error}") from error


def stamped_s(line: str) -> float | None:
    """Seconds of the first date and time in a line, counted from the beginning of some year; None where there is none.

    >>> stamped_s("INFO 10-06 11:23:41 [loggers.py:127] x") - stamped_s("INFO 10-06 11:23:31 [loggers.py:127] x")
    10.0
    >>> stamped_s("no stamp") is None
    True
    """
    found = _STAMP.search(line)
    if not found:
        return None
    year, month, day, hours, minutes, seconds = (int(one or _NO_YEAR) for one in found.groups())
    try:
        return (datetime(year, month, day, hours, minutes, seconds) - datetime(_NO_YEAR, 1, 1)).total_seconds()
    except ValueError:  # 13-45: no date after all
        return None


class LogClock:
    """Seconds of one log's lines, one after the other. Some loggers write the time of day alone; where it then falls by
    more than half a day, midnight has passed.

    >>> clock = LogClock()
    >>> [clock.seconds(f"[{time} TP0] x") for time in ("23:59:55", "00:00:05", "23:59:59", "00:00:09")]
    [86395.0, 86405.0, 86399.0, 86409.0]
    """

    def __init__(self) -> None:
        self._latest_s, self._midnight_s = -math.inf, 0.0

    def seconds(self, line: str) -> float | None:
        """Since some midnight, or since the beginning of some year; None for a line without a stamp."""
        dated = stamped_s(line)
        if dated is not None:
            return dated
        found = _TIME.match(line)
        hours, minutes, seconds = (int(one) for one in found.groups()) if found else (24, 0, 0)
        if hours > 23 or minutes > 59 or seconds > 60:
            return None
        of_day = float(hours * hour + minutes * minute + seconds)
        if self._midnight_s + of_day < self._latest_s - day / 2:
            self._midnight_s += day
        elif self._midnight_s and self._midnight_s + of_day > self._latest_s + day / 2:
            return self._midnight_s - day + of_day  # of another process, a moment before midnight
        self._latest_s = self._midnight_s + of_day
        return self._latest_s
