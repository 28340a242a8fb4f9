"""The contents of files as one stream: a line per file, then exactly the requested bytes.

    MARK 0 0
    ...bytes of the first file...MARK 1 4096
    ...bytes of the second file, from its 4,097th...MARK end

MARK is random, so it is in no content. The laptop knows each file's size, so the stream needs no
further format: it trusts only the order of the files and their offsets, and keeps a file only if
its hash is right. If a file ends early, the next line shows it, without affecting other files.
Small files that nothing writes to share one line, which saves the site a process per file.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lumitui.remote.site.errors import AnswerUnusable, LinkError
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.transfer.results.laptop_files import PartialFile, why
from lumitui.remote.transfer.results.site_files import HASHED_PER_SECOND, ended
from lumitui.remote.transport.records import new_marker
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

STALL_SECONDS = 300.0
"""Seconds for LEAST_BYTES to arrive. A file system during failover is silent for minutes; the
transport watches the connection itself."""
LEAST_BYTES = 32_768
"""About 100 bytes a second: a modem is faster, and lumitui gives up on a slower site."""
MOST_SURPLUS = 1 << 20
"""Maximum extra bytes to skip before ending the stream."""
SMALL = 1 << 16
"""Maximum bytes of a file sent together with others: one process then sends a hundred of them."""
TOGETHER = 100
"""Maximum number of files sent together: if one changes, all are requested one by one."""
MOST_TOGETHER = 1 << 20
"""Maximum bytes of files sent together."""
MOST_AT_ONCE = 64
"""Maximum number of parts to open ahead; a laptop allows 256 open files."""

_LINE = re.compile(rb" (?:(end)|([0-9]{1,6}) ([0-9]{1,15}))\n")
_LONGEST_LINE = 32

# A partly fetched file resumes if its start is still the same.
_SCRIPT = """\
{sha}
cd {folder} || exit 66
m={mark}
give() {  # NUMBER COUNT FILE [SKIP FROM REST HASH]
  if [ $# -gt 3 ] && h=$(head -c "$4" <"$3" | sha | head -c 100) && [ "${h%% *}" = "$7" ]; then
    printf '%s %d %s\\n' $m "$1" "$4"
    [ "$6" -eq 0 ] || tail -c "+$5" "$3" | head -c "$6"
  else
    printf '%s %d 0\\n' $m "$1"
    [ "$2" -eq 0 ] || head -c "$2" <"$3"
  fi
}
together() {  # NUMBER COUNT FILE...
  printf '%s %d 0\\n' $m "$1"; c=$2; shift 2
  [ "$c" -eq 0 ] || cat "$@" | head -c "$c"
}
{
{files}
} 2>/dev/null
printf '%s end\\n' $m
"""


Open = Callable[[str, bool], PartialFile | None]
"""Returns the part of a name; with True, only a part that already has bytes, else None."""


@dataclass
class WantedFile:
    """One file to receive, and its state."""

    name: str
    size: int
    """Number of bytes to request; the site may have more."""
    digest: str
    """SHA-256 of these bytes."""
    steady: bool
    """Whether no known program writes to it, so that it may be sent together with others; if one of
    them still changes, they are requested one by one."""
    part: PartialFile | None = None
    """Its local part; once ended: complete with the right hash, or None."""
    fault: str = ""
    """Why it cannot be written here."""
    skip: int = 0
    """Number of bytes already here."""
    left: int = 0
    """Remaining bytes."""

    def resume(self, open_part: Open) -> None:
        """Use the part of an earlier fetch."""
        with suppress(OSError):  # the file is requested from its start, which reports this error
            self.part = open_part(self.name, True)
        if self.part is not None:
            if self.part.size > self.size:
                self.part.restart()
            self.skip = self.part.size

    def begin(self, offset: int, open_part: Open) -> None:
        """Expect the bytes from `offset` on."""
        self.left = self.size - offset
        try:
            if self.part is None:
                self.part = open_part(self.name, False)
            if self.part is not None and offset == 0:
                self.part.restart()
        except OSError as error:
            self.fault = why(error)

    def write(self, data: bytes) -> int:
        """Accept `data`; return the number of its bytes beyond the file."""
        piece = data[: max(0, self.left)]
        self.left -= len(data)  # below 0: more bytes than the file has
        if self.part is not None and piece:
            try:
                self.part.write(piece)
            except OSError as error:
                self.part.discard()
                self.part, self.fault = None, why(error)
        return len(data) - len(piece)

    def end(self) -> "WantedFile":
        """Drop the part if it differs from the list."""
        if self.part is not None and (self.left or self.part.digest != self.digest):
            self.part.discard()
            self.part = None
        return self


@dataclass
class _Unit:
    """The files after one line: one file, or several small ones without separators."""

    files: list[WantedFile]
    at: int = 0

    @property
    def file(self) -> WantedFile:
        return self.files[self.at]

    @property
    def is_last(self) -> bool:
        return self.at == len(self.files) - 1


def transfer(
    transport: Transport,
    folder: str,
    files: Sequence[WantedFile],
    open_part: Open,
    stop: Callable[[], bool],
) -> Iterator[WantedFile]:
    """Yield each file as it ends; the caller puts its part in place or closes it.

    A file without a part differed from the list or has a fault. Files that did not arrive are not
    yielded. Parts of a cut stream stay. `stop` ends the stream when it returns true.

    Raises:
        AnswerUnusable: the stream does not match the request.
        LumiError: the local disk is full.
        LinkError: the site sends nothing or too slowly. LinkLost: see `Transport.stream`.
    """
    try:
        opened = 0
        for file in files:
            if opened < MOST_AT_ONCE:
                file.resume(open_part)
                opened += file.part is not None
        yield from _Stream(transport, folder, _units(files), open_part, stop).files()
    finally:
        for file in files:
            if file.part is not None:
                file.part.keep()


class _Stream:
    def __init__(
        self,
        transport: Transport,
        folder: str,
        units: list[_Unit],
        open_part: Open,
        stop: Callable[[], bool],
    ) -> None:
        self._units, self._open_part, self._stop = units, open_part, stop
        self._mark = new_marker()
        script = fill(
            _SCRIPT,
            sha=SHA,
            folder=quote(folder),
            mark=self._mark,
            files="\n".join(_command(number, unit) for number, unit in enumerate(units)),
        )
        with purpose("fetch"):
            self._chunks = transport.stream(script, stop=stop)
        hashing = sum(file.skip for unit in units for file in unit.files) / HASHED_PER_SECOND
        self._patience = STALL_SECONDS + hashing
        self._surplus, self._at = 0, -1

    def files(self) -> Iterator[WantedFile]:
        with ended(self._chunks):
            unit: _Unit | None = None
            for event in self._events():
                if isinstance(event, bytes):
                    if unit is None:
                        raise _wrong("it begins with unexpected data")
                    yield from self._filled(unit, event)
                    continue
                if unit is not None:
                    yield unit.file.end()
                if event is None:
                    return
                unit = self._next(*event)
                yield from self._filled(unit, b"")
        if not self._stop():
            raise _wrong("it is truncated")

    def _events(self) -> Iterator[bytes | tuple[int, int] | None]:
        """Yield bytes of files, number and offset of each new unit, and None at the end."""
        mark, held = self._mark.encode(), b""
        for chunk in self._paced():
            held += chunk
            while (at := held.find(mark)) >= 0:
                line = _LINE.match(held, at + len(mark))
                if line is None and len(held) - at - len(mark) < _LONGEST_LINE:
                    break  # the rest of the line has not arrived
                if line is None:
                    raise _wrong("a line in it has an unexpected form")
                if at:
                    yield held[:at]
                held = held[line.end() :]
                if line[1]:
                    yield None
                    return
                yield int(line[2]), int(line[3])
            if at < 0 and len(held) > len(mark):
                yield held[: -len(mark)]
                held = held[-len(mark) :]

    def _paced(self) -> Iterator[bytes]:
        begun, came = time.monotonic(), 0
        for chunk in self._chunks:
            came += len(chunk)
            now = time.monotonic()
            if now - begun > self._patience:
                if came < LEAST_BYTES:
                    raise LinkError(
                        f"The site sent {came:,} bytes in {now - begun:.0f} s.",
                        "Fetch again later: lumitui keeps complete files and resumes a partial "
                        "one.",
                    )
                begun, came = now, 0
            yield chunk

    def _next(self, number: int, offset: int) -> _Unit:
        """Return the unit that begins; raises AnswerUnusable if it is not the next one."""
        self._at += 1
        if number != self._at or number >= len(self._units):
            raise _wrong("its files are in a different order")
        unit = self._units[number]
        if offset not in (0, unit.file.skip):
            raise _wrong("a file in it begins elsewhere")
        unit.file.begin(offset, self._open_part)
        return unit

    def _filled(self, unit: _Unit, data: bytes) -> Iterator[WantedFile]:
        """Write `data` to the files of `unit`; yield those that are complete."""
        while True:
            piece = data if unit.is_last else data[: unit.file.left]
            self._surplus += unit.file.write(piece)
            if self._surplus > MOST_SURPLUS:
                raise _wrong("it is longer")
            data = data[len(piece) :]
            if unit.is_last or unit.file.left:
                return
            yield unit.file.end()
            unit.at += 1
            unit.file.begin(0, self._open_part)


def _units(files: Sequence[WantedFile]) -> list[_Unit]:
    """Return `files` in order, with consecutive small ones together."""
    units: list[_Unit] = []
    room = -1
    for file in files:
        small = file.steady and not file.skip and file.size <= SMALL
        if small and file.size <= room and len(units[-1].files) < TOGETHER:
            units[-1].files.append(file)
            room -= file.size
        else:
            units.append(_Unit([file]))
            room = MOST_TOGETHER - file.size if small else -1
    return units


def _command(number: int, unit: _Unit) -> str:
    names = " ".join(quote(f"./{file.name}") for file in unit.files)
    size = sum(file.size for file in unit.files)
    if len(unit.files) > 1:
        return f"together {number} {size} {names}"
    file = unit.file
    if not file.skip or file.part is None:
        return f"give {number} {size} {names}"
    rest = f"{file.skip} {file.skip + 1} {size - file.skip} {file.part.digest}"
    return f"give {number} {size} {names} {rest}"


def _wrong(how: str) -> AnswerUnusable:
    return AnswerUnusable(
        f"The site's stream of files differs from the request: {how}.",
        "Fetch again: lumitui keeps complete files and resumes a partial one.",
    )
