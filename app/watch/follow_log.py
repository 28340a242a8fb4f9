"""A run's log by byte offset: its end at once, or as it grows, across cut links."""

import time
from collections.abc import Callable, Iterator

from lumitui.app.history.run import Run
from lumitui.remote.errors import AnswerNeeded, LinkError, RefusedError
from lumitui.remote.run_folder import attempt_log
from lumitui.remote.ssh.prompts import attendance, is_attended
from lumitui.remote.transport.protocol import Transport
from lumitui.remote.transport.shell import quote

TRIES = 8
"""Cuts in a row without a byte between them before following is given up."""
LAST_WORDS = 1.5
"""Seconds of silence after the run's end before its log counts as whole."""

# A log grows while it is read: its size is asked for once, and the bytes are those up to it.
_END = """\
[ -f {path} ] || exit 44
size=$(wc -c <{path}); start=$((size > {last} ? size - {last} : 0))
echo $start; tail -c +$((start + 1)) {path} | head -c $((size - start))"""


def log_path(run: Run, attempt: int | None = None) -> str:
    """Return the path of an attempt's log on the site; None is the newest."""
    return f"{run.folder}/{attempt_log(attempt or run.attempt)}"


def read_end(transport: Transport, run: Run, attempt: int | None, last: int) -> tuple[int, bytes]:
    """Return at most the `last` bytes of a log, and the offset where they start.

    Raises:
        RefusedError: there is no such log.
    """
    path = quote(log_path(run, attempt))
    result = transport.run(_END.format(path=path, last=last))
    if result.code == 44:
        raise RefusedError(f"{run.id} has no log yet.", "It appears when the job starts.")
    start, _, rest = result.out.partition(b"\n")
    return int(start.strip() or b"0"), rest


def follow(
    transport: Transport,
    run: Run,
    *,
    offset: int,
    stop: Callable[[], bool],
    look: Callable[[], Run],
    over: Callable[[Run], bool],
    pause: float,
) -> Iterator[bytes]:
    """Yield the log from byte `offset` until the run is `over`; b"" in between.

    `look` returns the run as it is now and is called every `pause` seconds. A requeued run goes
    on with the log of its next attempt.

    Raises:
        AnswerNeeded: the link was lost, and a new one needs a person.
        LinkError: the link was cut again and again.
    """
    failures, next_look, first = 0, 0.0, True
    quiet_since: float | None = None
    while not stop():
        path = quote(log_path(run))
        script = f"until [ -f {path} ]; do sleep 1; done; exec tail -c +{offset + 1} -f {path}"
        try:
            for chunk in _opened(transport.stream(script, stop=stop), attended=first):
                first = False
                failures = 0
                offset += len(chunk)
                yield chunk
                now = time.monotonic()
                if chunk and quiet_since is not None:
                    quiet_since = now
                if now >= next_look and quiet_since is None:
                    next_look = now + pause
                    later = look()
                    if later.attempt != run.attempt:
                        run, offset = later, 0
                        break
                    run = later
                    quiet_since = now if over(run) else None
                if quiet_since is not None and now - quiet_since > LAST_WORDS:
                    return
            else:
                rest(1.0, stop)  # it ended by itself: not again at once
        except LinkError as error:
            failures, first = failures + 1, False
            if failures > TRIES or isinstance(error, AnswerNeeded):
                raise
            yield b""
            rest(min(2.0**failures, 60.0), stop)


def _opened(chunks: Iterator[bytes], *, attended: bool) -> Iterator[bytes]:
    """Yield `chunks`; a connection that the first one needs is made now, `attended` or not."""
    with attendance(attended and is_attended()):
        first = next(chunks, None)
    if first is not None:
        yield first
        yield from chunks


def rest(seconds: float, stop: Callable[[], bool]) -> None:
    """Sleep, but wake when `stop()` is true."""
    deadline = time.monotonic() + seconds
    while not stop() and (left := deadline - time.monotonic()) > 0:
        time.sleep(min(left, 0.2))
