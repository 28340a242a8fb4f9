"""The verb that says why a job failed: a run, or any log."""

import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, say, show
from lumitui.app.cli.session import GivenPath, core, json_option, runs_beginning
from lumitui.remote.site.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import BinaryIO

    from lumitui.app.knowledge.failure.diagnosis import Diagnosis

_TAIL = 4_000_000
"""How many bytes of the end of a log are explained."""
_MOST = 1_000_000_000
"""How many bytes are read to count the lines before the end: about a second."""
_CHUNK = 4_000_000
_STATES = ("failed", "timeout", "out of memory", "node failed", "cancelled", "preempted")


@dataclass(frozen=True)
class _Answer:
    """What `--json` gives."""

    why: "Sequence[Diagnosis]"
    """The likeliest cause first."""
    lines: "Sequence[str]"
    """The lines that say most, where no cause is known."""
    command: str = ""
    """The resubmission that may help; "" where the job or its code must change."""
    letter: str = ""
    """A text for the site's helpdesk; "" for a log alone."""


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=runs_beginning)
@click.option(
    "--log", "log", metavar="FILE", type=GivenPath(), help="Read this log instead; - is stdin."
)
@click.option(
    "--state",
    type=click.Choice(_STATES),
    help="With --log: how the scheduler says it ended.  [default: failed]",
)
@click.option(
    "--exit",
    "code",
    metavar="N",
    type=click.IntRange(min=0, max=255),
    help="With --log: the exit code.",
)
@click.option("--helpdesk", is_flag=True, help="Write a text for the site's helpdesk instead.")
@json_option
@click.pass_obj
def why(
    reply: Reply,
    run_id: str | None,
    log: Path | None,
    state: str | None,
    code: int | None,
    helpdesk: bool,
) -> None:
    """Say why a run failed, or any job that left a log.

    The likeliest cause comes first, with the line that shows it, its number in the log, and what
    to do; for a run, with the command that does it.
    """
    if (run_id is None) == (log is None):
        raise InputError("There is not one job to explain.", "Name a RUN, or a FILE with --log.")
    if log is None and (state is not None or code is not None):
        raise InputError("--state and --exit work only with --log.", "Leave them out.")
    if log is not None and helpdesk:
        raise InputError("--helpdesk works only with a RUN.", "Name the run instead of its log.")
    found = _of_run(run_id or "") if log is None else _of_log(log, state or "failed", code)
    if helpdesk and found.why:
        reply.give(found, found.letter)
        return
    reply.give(found, "\n\n".join(map(_text, found.why)))
    if not reply.json:
        shown = {item.line.strip() for item in found.why}
        for line in found.lines:
            if line.strip() not in shown:
                show(f"  {line}")
        if found.command:
            show(f"\nDo: {found.command}")
    if not found.why:
        say("It did not fail, as far as is known.")


def _of_run(run_id: str) -> _Answer:
    from lumitui.app.explain.actions import action_of, letter

    with core() as runs:
        found, run = runs.why(run_id), runs.history.get(run_id)
    action = action_of(found, run)
    telling = found[0].telling if found else ()
    command = action.command(run.id) if action else ""
    return _Answer(found, telling, command, letter(found, run))


def _of_log(path: Path, state: str, code: int | None) -> _Answer:
    from lumitui.app.knowledge.failure.diagnose import diagnose
    from lumitui.app.knowledge.failure.diagnosis import Ending
    from lumitui.remote.site.states import State

    text, before = _tail(path)
    if not text.strip():
        raise InputError(
            f"The log {path} is empty.", "Look for the job's other files: --error has its own log."
        )
    found = diagnose(Ending(State(state), rc=code, log=text, before=before))
    return _Answer(found, found[0].telling if found else ())


def _tail(path: Path) -> tuple[str, int | None]:
    """Return the end of a log, and how many lines stand before it; None: it is not known."""
    try:
        if str(path) == "-":
            return _last_of(sys.stdin.buffer)
        kind = path.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise InputError(
                f"{path} is no file with a log.", "Name a job's log, or `-` for stdin."
            )
        with path.open("rb") as file:
            return _last_of(file)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(
            f"The log {path} cannot be read: {reason}.", "Name a file that you may read."
        ) from error


def _last_of(file: "BinaryIO") -> tuple[str, int | None]:
    """Return the end of what a file or a pipe gives; of a pipe no more than `_MOST` is read."""
    before, left = 0, _MOST
    if file.seekable():
        size = file.seek(0, 2)
        start = max(0, size - _TAIL)
        if start > _MOST:
            file.seek(start)
            return file.read(_TAIL).decode(errors="replace"), None
        file.seek(0)
        left = size
    kept = b""
    while left > 0 and (chunk := file.read(min(_CHUNK, left))):
        left -= len(chunk)
        kept += chunk
        if len(kept) > _TAIL:
            before += kept.count(b"\n", 0, len(kept) - _TAIL)
            kept = kept[-_TAIL:]
    return kept.decode(errors="replace"), before


def _text(item: "Diagnosis") -> str:
    rows = [item.cause, f"  {item.do}"]
    number = "" if item.number is None else item.number
    return "\n".join([*rows, f"  {number}> {item.line.strip()}"] if item.line.strip() else rows)
