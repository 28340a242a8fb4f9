"""The facts of a run's end: from the history, the end of its log, and the local code."""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.follow.log_follower import read_end
from lumitui.app.follow.refresh import Watcher
from lumitui.app.history.run import Run
from lumitui.app.knowledge.failure.diagnose import STOPPED_EARLY
from lumitui.app.knowledge.failure.diagnosis import RunEnd
from lumitui.remote.site.errors import RefusedError
from lumitui.remote.site.masked_text import masked
from lumitui.remote.source.manifest import Manifest

LOG_BYTES = 200_000
"""Bytes to read from the end of the log: the tracebacks of many ranks, and the text before them."""


def ending_of(watcher: Watcher, run: Run) -> RunEnd:
    """Return the facts of the end of `run`; reads the job's log on its site."""
    log, offset, node_gib = "", 0, None
    if run.job_id is not None:
        transport = watcher.connection(run.site).transport
        node_gib = watcher.sites.load(run.site).node.memory_gib
        # A job that ended before it wrote anything has no log.
        with suppress(RefusedError):
            offset, end = read_end(transport, run, None, LOG_BYTES)
            log = end.decode("utf-8", "replace")
    # torchrun loses the trainer's exit code, but the trainer's last event contains it.
    stopped = run.spec.trainer is not None and any(
        point.event == "stop" for point in watcher.history.metrics.of(run.id, last=1)
    )
    return RunEnd(
        state=run.state,
        word=run.word,
        reason=run.reason,
        rc=STOPPED_EARLY if stopped and run.rc else run.rc,
        failed_rank=run.failed_rank,
        log=log,
        before=None if offset else 0,
        spec=run.spec,
        site=run.site,
        world_size=run.layout.world_size,
        node_gib=node_gib,
        chain_end=run.attempts[-1].end if run.attempts else "",
    )


AROUND = 2
"""Lines to show before and after the one that raised the error."""
_PLACE = re.compile(r"(?P<name>[^/:]+):(?P<line>\d{1,9})(?: \(|$)")
_LARGEST = 1 << 20
"""Maximum size of a file to read, in bytes: nobody writes a larger one manually."""


@dataclass(frozen=True)
class RaisingCode:
    """Some lines of a file in the version that the run used."""

    path: str
    """Path below the project's root."""
    line: int
    """Number of the line that raised the error, from 1."""
    first: int
    """Number of the first of `lines`."""
    lines: tuple[str, ...]

    @property
    def rows(self) -> list[str]:
        """The numbered lines, with a mark before the one that raised the error."""
        return [
            f"{'>' if number == self.line else ' '} {number:>4}  {text}"
            for number, text in enumerate(self.lines, self.first)
        ]


def code_around(run: Run, place: str, sent: str | None) -> RaisingCode | None:
    """Return the code around `place`, such as `train.py:88 (forward)`, of a run, without secrets.

    `sent` lists the files that were sent last. Return None if it is uncertain what ran: the list
    belongs to another run, two files have that name, or the file has changed since.
    """
    match = _PLACE.match(place)
    if match is None or sent is None or (manifest := Manifest.parse(sent)).id != run.snapshot:
        return None
    named = [one for one in manifest.files if one.path.rpartition("/")[2] == match["name"]]
    if len(named) != 1 or named[0].size > _LARGEST:
        return None
    with suppress(OSError, UnicodeDecodeError):
        data = (Path(run.project) / named[0].path).read_bytes()
        lines, line = data.decode().splitlines(), int(match["line"])
        if hashlib.sha256(data).hexdigest() == named[0].sha256 and 1 <= line <= len(lines):
            first = max(1, line - AROUND)
            shown = tuple(map(masked, lines[first - 1 : line + AROUND]))
            return RaisingCode(named[0].path, line, first, shown)
    return None
