"""The content of files, as one stream: a line, then exactly the bytes asked for.

    MARK 0 0
    ...bytes of the first file...MARK 1 4096
    ...bytes of the second file, from its 4,097th...MARK end

MARK is random, so no content has it. The laptop knows how many bytes each file has, so the stream
needs no format of its own: nothing in it is believed but the order of the files and where each
begins, and a file is kept only when its hash is right. Where a file ends too early the next line
shows it, and the other files are not harmed. Small files that nothing writes to follow one another
after one line, which saves the site a process for each.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lumitui.remote.site.errors import AnswerUnusable, LinkError
from lumitui.remote.site.shell_text import SHA, fill, quote
from lumitui.remote.transfer.results.digests import HASHED_PER_SECOND
from lumitui.remote.transfer.results.fetch_targets import why
from lumitui.remote.transfer.results.file_queries import ended
from lumitui.remote.transfer.results.partial_files import PartialFile
from lumitui.remote.transport.records import new_marker
from lumitui.remote.transport.request_log import purpose
from lumitui.remote.transport.transport import Transport

STALL_SECONDS = 300.0
"""Seconds in which LEAST_BYTES must come. A file system that is failing over is silent for minutes;
the connection itself is watched by the transport."""
LEAST_BYTES = 32_768
"""About 100 bytes a second: a modem is faster, and a site that drips is given up."""
MOST_SURPLUS = 1 << 20
"""Most bytes beyond what was asked for that are skipped before the stream is given up."""
SMALL = 1 << 16
"""Bytes of a file that comes together with others: one process then sends a hundred of them."""
TOGETHER = 100
"""Most files that come together: so many are requested one by one when one of them changed."""
MOST_TOGETHER = 1 << 20
"""Most bytes of files that come together."""
MOST_AT_ONCE = 64
"""Most parts that are opened ahead to be continued; a laptop allows 256 open files."""

_LINE = re.compile(rb" (?:(end)|([0-9]{1,6}) ([0-9]{1,15}))\n")
_LONGEST_LINE = 32

# A file whose beginning is here continues where it was, if its beginning is still the same.
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


@dataclass(frozen=True)
class WantedFile:
    """One file whose content is requested."""

    name: str
    size: int
    """Bytes; what the site has beyond them is not asked for."""
    digest: str
    """SHA-256 of these bytes."""
    steady: bool
    """Whether nothing is known to write to it: it may come together with others, and when one of
    them changes after all, they are requested one by one."""


@dataclass
class _File:
    wanted: WantedFile
    part: PartialFile | None = None
    skip: int = 0
    """Bytes that are here already."""
    left: int = 0
    """Bytes that must still come."""
    fault: str = ""
    """Why it cannot be written here."""


@dataclass
class _Unit:
    """Files that come after one line: one, or small ones without anything between them."""

    rows: list[_File]
    at: int = 0

    @property
    def row(self) -> _File:
        return self.rows[self.at]

    @property
    def is_last(self) -> bool:
        return self.at == len(self.rows) - 1


def transfer(
    transport: Transport,
    folder: str,
    files: Sequence[WantedFile],
    open_part: Callable[[str, bool], PartialFile | None],
    stop: Callable[[], bool],
) -> Iterator[tuple[WantedFile, PartialFile | str | None]]:
    """Yield each file as it ends: its part, whole and of the right hash, which the caller closes.

    In place of the part stands None when the file came otherwise than it was listed, or a text that
    says why it cannot be written here. Files that did not come are not yielded. Parts of a cut
    stream stay.

    Args:
        transport: the site.
        folder: the folder there.
        files: what is requested.
        open_part: returns the part of a name; for True only one that has bytes already, else None.
        stop: ends the stream when it returns true.

    Raises:
        AnswerUnusable: the site sent what was not asked for.
        LumiError: the disk here is full.
        LinkError: the site sends nothing, or too slowly; LinkLost as `Transport.stream`.
    """
    rows = [_File(item) for item in files]
    try:
        opened = 0
        for row in rows:
            if opened < MOST_AT_ONCE:
                _continue(row, open_part)
                opened += row.part is not None
        yield from _Stream(transport, folder, _units(rows), open_part, stop).files()
    finally:
        for row in rows:
            if row.part is not None:
                row.part.keep()


def _continue(row: _File, open_part: Callable[[str, bool], PartialFile | None]) -> None:
    with suppress(OSError):  # it comes from its beginning, where this error is reported
        row.part = open_part(row.wanted.name, True)
    if row.part is not None:
        if row.part.size > row.wanted.size:
            row.part.restart()
        row.skip = row.part.size


class _Stream:
    def __init__(
        self,
        transport: Transport,
        folder: str,
        units: list[_Unit],
        open_part: Callable[[str, bool], PartialFile | None],
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
        hashing = sum(row.skip for unit in units for row in unit.rows) / HASHED_PER_SECOND
        self._patience = STALL_SECONDS + hashing
        self._surplus, self._at = 0, -1

    def files(self) -> Iterator[tuple[WantedFile, PartialFile | str | None]]:
        """Yield the files as they end."""
        with ended(self._chunks):
            unit: _Unit | None = None
            for event in self._events():
                if isinstance(event, bytes):
                    if unit is None:
                        raise _wrong("it begins with something else")
                    yield from self._filled(unit, event)
                    continue
                if unit is not None:
                    yield unit.row.wanted, _ended(unit.row)
                if event is None:
                    return
                unit = self._next(*event)
                yield from self._filled(unit, b"")
        if not self._stop():
            raise _wrong("it ends in the middle")

    def _events(self) -> Iterator[bytes | tuple[int, int] | None]:
        """Yield bytes of files, number and offset of a unit that begins, and None at the end."""
        mark, held = self._mark.encode(), b""
        for chunk in self._paced():
            held += chunk
            while (at := held.find(mark)) >= 0:
                line = _LINE.match(held, at + len(mark))
                if line is None and len(held) - at - len(mark) < _LONGEST_LINE:
                    break  # the rest of the line is still to come
                if line is None:
                    raise _wrong("a line in it has another form")
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
                        "Fetch again later: what is here stays, and a partial file continues.",
                    )
                begun, came = now, 0
            yield chunk

    def _next(self, number: int, offset: int) -> _Unit:
        """Return the unit that begins; AnswerUnusable when it is not the next one."""
        self._at += 1
        if number != self._at or number >= len(self._units):
            raise _wrong("its files have another order")
        unit = self._units[number]
        if offset not in (0, unit.row.skip):
            raise _wrong("a file in it begins elsewhere")
        self._begin(unit.row, offset)
        return unit

    def _begin(self, row: _File, offset: int) -> None:
        row.left = row.wanted.size - offset
        try:
            if row.part is None:
                row.part = self._open_part(row.wanted.name, False)
            if row.part is not None and offset == 0:
                row.part.restart()
        except OSError as error:
            row.fault = why(error)

    def _filled(
        self, unit: _Unit, data: bytes
    ) -> Iterator[tuple[WantedFile, PartialFile | str | None]]:
        """Write `data` to the files of `unit`, and yield those that are followed by another."""
        while True:
            piece = data if unit.is_last else data[: unit.row.left]
            self._write(unit.row, piece)
            data = data[len(piece) :]
            if unit.is_last or unit.row.left:
                return
            yield unit.row.wanted, _ended(unit.row)
            unit.at += 1
            self._begin(unit.row, 0)

    def _write(self, row: _File, data: bytes) -> None:
        piece = data[: max(0, row.left)]
        self._surplus += len(data) - len(piece)
        if self._surplus > MOST_SURPLUS:
            raise _wrong("it is longer")
        row.left -= len(data)  # below 0: more came than the file has
        if row.part is not None and piece:
            try:
                row.part.write(piece)
            except OSError as error:
                row.part.discard()
                row.part, row.fault = None, why(error)


def _units(rows: Sequence[_File]) -> list[_Unit]:
    """Return `rows` in order; small files that follow one another come together."""
    units: list[_Unit] = []
    room = -1
    for row in rows:
        small = row.wanted.steady and not row.skip and row.wanted.size <= SMALL
        if small and row.wanted.size <= room and len(units[-1].rows) < TOGETHER:
            units[-1].rows.append(row)
            room -= row.wanted.size
        else:
            units.append(_Unit([row]))
            room = MOST_TOGETHER - row.wanted.size if small else -1
    return units


def _command(number: int, unit: _Unit) -> str:
    names = " ".join(quote(f"./{row.wanted.name}") for row in unit.rows)
    size = sum(row.wanted.size for row in unit.rows)
    row = unit.row
    if len(unit.rows) > 1:
        return f"together {number} {size} {names}"
    if not row.skip or row.part is None:
        return f"give {number} {size} {names}"
    rest = f"{row.skip} {row.skip + 1} {size - row.skip} {row.part.digest}"
    return f"give {number} {size} {names} {rest}"


def _ended(row: _File) -> PartialFile | str | None:
    """Return what `transfer` yields of a file of which no more comes."""
    part, row.part = row.part, None
    if part is None:
        return row.fault or None
    if row.left == 0 and part.digest == row.wanted.digest:
        return part
    part.discard()
    return None


def _wrong(how: str) -> AnswerUnusable:
    return AnswerUnusable(
        f"The site's stream of files is not what was requested: {how}.",
        "Fetch again: whole files stay, and a partial file continues where it stopped.",
    )
