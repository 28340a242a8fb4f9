"""A site that once told the truth: its answers are recorded, and played back with lies in them."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from lumitui.remote.site.errors import LinkLost
from lumitui.remote.transport.framing import check_stream
from lumitui.remote.transport.transport import Result, Transport

_MARKER = re.compile(r"lumitui-[0-9a-f]{16}")
_HELD = b"MARKER"
SILENT = 20
"""Empty chunks of a stream that has played everything, before its link is cut."""
MOST_REQUESTS = 60
"""More requests of one verb are too many."""

Answer = Result | bytes
"""Of a request, or of a stream."""


def _marker(script: str) -> bytes:
    found = _MARKER.search(script)
    return found[0].encode() if found else _HELD


class Recorder:
    """Passes requests on, and keeps the answers; the marker of each is MARKER there."""

    def __init__(self, below: Transport) -> None:
        self.below = below
        self.answers: list[Answer] = []
        self.requests = self.connections = self.bytes_up = self.bytes_down = 0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        result = self.below.run(script, stdin=stdin, timeout=timeout)
        held = result.out.replace(_marker(script), _HELD)
        self.answers.append(Result(result.code, held, result.err))
        return result

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        came: list[bytes] = []
        try:
            for chunk in self.below.stream(script, stop=stop):
                came.append(chunk)
                yield chunk
        finally:
            self.answers.append(b"".join(came))

    def close(self) -> None:
        self.below.close()


@dataclass
class Lie:
    """What becomes of the answers: one of them is told with `words` and `code` instead."""

    answers: list[Answer]
    number: int
    words: bytes
    code: int = 0
    errors: bytes = b""
    ends: bool = False
    """Whether the link is cut for good after MOST_REQUESTS: following a job that runs on may ask
    for ever, no other verb may."""
    asked: int = field(default=0)

    requests = connections = bytes_up = bytes_down = 0

    def _next(self, script: str) -> Answer:
        number, self.asked = self.asked, self.asked + 1
        if self.asked > MOST_REQUESTS:
            assert self.ends, "the site is asked again and again"
            raise LinkLost("The link was cut for good.")
        if number == self.number:
            words = self.words.replace(_HELD, _marker(script))
            return Result(self.code, words, self.errors)
        told = self.answers[number] if number < len(self.answers) else Result(0, self.words, b"")
        if isinstance(told, bytes):
            return told
        return Result(told.code, told.out.replace(_HELD, _marker(script)), told.err)

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        if not isinstance(stdin, bytes):
            for _ in stdin:
                pass
        told = self._next(script)
        return told if isinstance(told, Result) else Result(0, told, b"")

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        told = self._next(script)
        out = told.out if isinstance(told, Result) else told
        for start in range(0, len(out), 4000):
            yield out[start : start + 4000]
        if isinstance(told, Result):
            check_stream(told.code, told.err)
        for _ in range(SILENT):
            if stop():
                return
            yield b""
        raise LinkLost("The link was cut.")

    def close(self) -> None:
        """Nothing is open."""
