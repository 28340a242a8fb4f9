"""The content of files, as one stream: for each file one line, then exactly the bytes asked for.

    MARK 0 0
    ...bytes of the first file...MARK 1 4096
    ...bytes of the second file, from its 4,097th...MARK end

MARK is random, so no content has it. The laptop knows how many bytes each file has, so the stream
needs no format of its own: nothing in it is believed but the order of the files and where each
begins, and a file is kept only when its hash is right. Where a file ends too early the next line
shows it, and the other files are not harmed.
"""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from lumitui.remote.errors import AnswerUnusable, LinkError
from lumitui.remote.snapshots.results.asking import ended
from lumitui.remote.snapshots.results.digests import HASHED_PER_SECOND
from lumitui.remote.snapshots.results.parts import Part
from lumitui.remote.snapshots.results.places import why
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.records import new_marker
from lumitui.remote.transport.shell import SHA, fill, quote

STALL_SECONDS = 300.0
"""Seconds in which LEAST_BYTES must come. A file system that is failing over is silent for minutes;
the connection itself is watched by the transport."""
LEAST_BYTES = 32_768
"""About 100 bytes a second: a modem is faster, and a site that drips is given up."""
MOST_SURPLUS = 1 << 20
"""Most bytes beyond what was asked for that are skipped before the stream is given up."""
MOST_AT_ONCE = 64
"""Most parts that are opened ahead to be continued; a laptop allows 256 open files."""

_LINE = re.compile(rb" (?:(end)|([0-9]{1,6}) ([0-9]{1,15}))\n")
_LONGEST_LINE = 32

# A file whose beginning is here already goes on where it was, when its beginning is still the same.
_SCRIPT = """\
{sha}
cd {folder} || exit 66
m={mark}
give() {  # NUMBER COUNT FILE [SKIP FROM REST HASH]
  if [ $# -gt 3 ] && h=$(head -c "$4" <"$3" | sha) && [ "${h%% *}" = "$7" ]; then
    printf '%s %d %s\\n' $m "$1" "$4"
    [ "$6" -eq 0 ] || tail -c "+$5" "$3" | head -c "$6"
  else
    printf '%s %d 0\\n' $m "$1"
    [ "$2" -eq 0 ] || head -c "$2" <"$3"
  fi
}
{
{files}
} 2>/dev/null
printf '%s end\\n' $m
"""


@dataclass(frozen=True)
class Wanted:
    """One file whose content is asked for."""

    name: str
    size: int
    """Bytes; what the site has beyond them is not asked for."""
    digest: str
    """SHA-256 of these bytes."""


@dataclass
class _File:
    wanted: Wanted
    part: Part | None = None
    skip: int = 0
    """Bytes that are here already."""
    left: int = 0
    """Bytes that must still come."""
    fault: str = ""
    """Why it cannot be written here."""


def transfer(
    transport: Transport,
    folder: str,
    files: Sequence[Wanted],
    open_part: Callable[[str, bool], Part | None],
    stop: Callable[[], bool],
) -> Iterator[tuple[Wanted, Part | str | None]]:
    """Yield each file as it ends: its part, whole and of the right hash, which the caller closes.

    In place of the part stands None when the file came otherwise than it was listed, or a text that
    says why it cannot be written here. Files that did not come are not yielded. Parts of a cut
    stream stay.

    Args:
        transport: the site.
        folder: the folder there.
        files: what is asked for.
        open_part: returns the part of a name; for True only one that has bytes already, else None.
        stop: ends the stream when it returns true.

    Raises:
        AnswerUnusable: the site sent what was not asked for.
        LumiError: the disk here is full.
        LinkError: the site sends nothing, or too slowly; LinkLost as `Transport.stream`.
    """
    rows = [_File(item) for item in files]
    try:
        for row in rows[:MOST_AT_ONCE]:
            _continue(row, open_part)
        yield from _Stream(transport, folder, rows, open_part, stop).files()
    finally:
        for row in rows:
            if row.part is not None:
                row.part.keep()


def _continue(row: _File, open_part: Callable[[str, bool], Part | None]) -> None:
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
        rows: list[_File],
        open_part: Callable[[str, bool], Part | None],
        stop: Callable[[], bool],
    ) -> None:
        self._rows, self._open_part, self._stop = rows, open_part, stop
        self._mark = new_marker()
        script = fill(
            _SCRIPT,
            sha=SHA,
            folder=quote(folder),
            mark=self._mark,
            files="\n".join(_command(number, row) for number, row in enumerate(rows)),
        )
        self._chunks = transport.stream(script, stop=stop)
        hashing = sum(row.skip for row in rows) / HASHED_PER_SECOND
        self._patience = STALL_SECONDS + hashing
        self._surplus, self._at = 0, -1

    def files(self) -> Iterator[tuple[Wanted, Part | str | None]]:
        """Yield the files as they end."""
        with ended(self._chunks):
            current: _File | None = None
            for event in self._events():
                if isinstance(event, bytes):
                    self._write(current, event)
                    continue
                if current is not None:
                    yield current.wanted, _ended(current)
                if event is None:
                    return
                current = self._begun(*event)
        if not self._stop():
            raise _wrong("it ends in the middle")

    def _events(self) -> Iterator[bytes | tuple[int, int] | None]:
        """Yield bytes of files, number and offset of a file that begins, and None at the end."""
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
                        "Fetch again later: what is here stays, and a cut file goes on.",
                    )
                begun, came = now, 0
            yield chunk

    def _begun(self, number: int, offset: int) -> _File:
        """Return the file that begins; AnswerUnusable when it is not the next one."""
        self._at += 1
        if number != self._at or number >= len(self._rows):
            raise _wrong("its files have another order")
        row = self._rows[number]
        if offset not in (0, row.skip):
            raise _wrong("a file in it begins elsewhere")
        try:
            if row.part is None:
                row.part = self._open_part(row.wanted.name, False)
            if row.part is not None and offset == 0:
                row.part.restart()
        except OSError as error:
            row.fault = why(error)
        row.left = row.wanted.size - offset
        return row

    def _write(self, row: _File | None, data: bytes) -> None:
        if row is None:
            raise _wrong("it begins with something else")
        piece = data[: row.left]
        self._surplus += len(data) - len(piece)
        if self._surplus > MOST_SURPLUS:
            raise _wrong("it is longer")
        row.left -= len(data)  # below 0: more came than the file has
        if row.part is not None:
            try:
                row.part.write(piece)
            except OSError as error:
                row.part.discard()
                row.part, row.fault = None, why(error)


def _command(number: int, row: _File) -> str:
    size, name = row.wanted.size, quote(f"./{row.wanted.name}")
    if not row.skip or row.part is None:
        return f"give {number} {size} {name}"
    rest = f"{row.skip} {row.skip + 1} {size - row.skip} {row.part.digest}"
    return f"give {number} {size} {name} {rest}"


def _ended(row: _File) -> Part | str | None:
    """Return what `transfer` yields of a file of which no more comes."""
    part, row.part = row.part, None
    if part is None:
        return row.fault
    if row.left == 0 and part.digest == row.wanted.digest:
        return part
    part.discard()
    return None


def _wrong(how: str) -> AnswerUnusable:
    return AnswerUnusable(
        f"The site's files came otherwise than they were asked for: {how}.",
        "Fetch again: whole files stay, and a cut file goes on where it was.",
    )
