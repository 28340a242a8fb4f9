"""The latest requests to a site, and this program's load on its login node.

Kept in memory, to show users what lumitui does. Contains no script, answer or path, which may be
secret.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Protocol

from lumitui.remote.site.errors import LinkLost, LumiError
from lumitui.remote.transport.framing import pieces
from lumitui.remote.transport.transport import Result, Transport

MOST_REQUESTS = 500
"""Maximum number of requests to keep per site; the oldest are dropped first."""

_purpose: ContextVar[str] = ContextVar("purpose", default="other")


@contextmanager
def purpose(kind: str) -> Iterator[None]:
    """Set the purpose of the requests in this block, or in the decorated function."""
    token = _purpose.set(kind)
    try:
        yield
    finally:
        _purpose.reset(token)


def current_purpose() -> str:
    """Return the purpose of a request made now."""
    return _purpose.get()


@dataclass(frozen=True)
class SiteRequest:
    """One request to a site."""

    began: float
    """Epoch seconds."""
    kind: str
    """Its purpose: `poll`, `send`, `log` …"""
    seconds: float = 0.0
    up: int = 0
    """Bytes of the script and its input."""
    down: int = 0
    """Bytes of the answer."""
    result: str = "under way"
    """`ok`, `exit 1`, `stopped`, or the kind of failure."""


class RequestLog:
    """The latest requests to one site. Thread-safe."""

    def __init__(self) -> None:
        self._requests: OrderedDict[int, SiteRequest] = OrderedDict()
        self._lock = threading.Lock()
        self._number = 0

    def latest(self) -> list[SiteRequest]:
        """Return the kept requests, newest first."""
        with self._lock:
            return list(reversed(self._requests.values()))

    def begin(self, kind: str) -> int:
        """Record the start of a request; return its number."""
        with self._lock:
            self._number += 1
            self._requests[self._number] = SiteRequest(time.time(), kind)
            while len(self._requests) > MOST_REQUESTS:
                self._requests.popitem(last=False)
            return self._number

    def note(self, number: int, seconds: float, moved: tuple[int, int], result: str) -> None:
        """Record the progress or end of a request; `moved` is the bytes sent and received."""
        with self._lock:
            if (entry := self._requests.get(number)) is not None:
                up, down = moved
                self._requests[number] = replace(
                    entry, seconds=seconds, up=up, down=down, result=result
                )


class Logged:
    """A transport that logs each request of another transport."""

    def __init__(self, transport: Transport, log: RequestLog) -> None:
        self._transport, self._log = transport, log

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        """Run `script`; see `Transport.run`."""
        number, began = self._log.begin(current_purpose()), time.monotonic()
        sent, down, outcome = [len(script.encode("utf-8", "replace"))], 0, "failed"

        def counted() -> Iterator[bytes]:
            for piece in pieces(stdin):
                sent[0] += len(piece)
                yield piece

        try:
            result = self._transport.run(script, stdin=counted(), timeout=timeout)
            down = len(result.out) + len(result.err)
            outcome = f"exit {result.code}" if result.code else "ok"
            return result
        except LumiError as error:
            outcome = _word(error)
            raise
        finally:
            self._log.note(number, time.monotonic() - began, (sent[0], down), outcome)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        """Yield the output of `script`; see `Transport.stream`."""
        # Read it now: by the time the first chunk arrives, another `purpose` block may be current.
        return self._stream(script, stop, current_purpose())

    def _stream(self, script: str, stop: Callable[[], bool], kind: str) -> Iterator[bytes]:
        number, began = self._log.begin(kind), time.monotonic()
        up, down, outcome = len(script.encode("utf-8", "replace")), 0, "stopped"
        chunks = self._transport.stream(script, stop=stop)
        try:
            for chunk in chunks:
                if chunk:
                    down += len(chunk)
                    self._log.note(number, time.monotonic() - began, (up, down), "under way")
                yield chunk
            outcome = "stopped" if stop() else "ok"
        except LumiError as error:
            outcome = _word(error)
            raise
        finally:
            if close := getattr(chunks, "close", None):
                close()
            self._log.note(number, time.monotonic() - began, (up, down), outcome)

    def close(self) -> None:
        """End the connection."""
        self._transport.close()


def _word(error: LumiError) -> str:
    """Return a request's failure in one or two words, because the message may contain a path."""
    if isinstance(error, LinkLost):
        return "link lost"
    return {"AnswerNeeded": "login needed", "LinkError": "no link", "RefusedError": "refused"}.get(
        type(error).__name__, "failed"
    )


@dataclass(frozen=True)
class Footprint:
    """Counts for one site since the program began."""

    logins: int = 0
    """TCP connections made."""
    requests: int = 0
    """Number of scripts and streams run there, each in its own channel of the connection."""
    commands: int = 0
    """Number of Slurm commands that the requests ran."""
    bytes_up: int = 0
    """Bytes sent to the site, including encryption overhead."""
    bytes_down: int = 0


class CountedLink(Protocol):
    """A transport that counts its requests."""

    connections: int
    requests: int
    bytes_up: int
    bytes_down: int


class CountedScheduler(Protocol):
    """A scheduler that counts the commands it has run."""

    commands: int


def footprint(links: Sequence[CountedLink], scheduler: CountedScheduler) -> Footprint:
    """Return the current counts over all connections to a site, including those for files."""
    return Footprint(
        logins=sum(link.connections for link in links),
        requests=sum(link.requests for link in links),
        commands=scheduler.commands,
        bytes_up=sum(link.bytes_up for link in links),
        bytes_down=sum(link.bytes_down for link in links),
    )
