"""The verb that says why a job failed: a run, or any log."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lumitui.app.cli.output import Reply, say
from lumitui.app.cli.session import GivenPath, core, json_option, runs_beginning
from lumitui.remote.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lumitui.app.explain.failure.diagnosis import Diagnosis

_TAIL = 4_000_000
"""How many bytes of the end of a log are read."""
_STATES = ("failed", "timeout", "out of memory", "node failed", "cancelled", "preempted")


@dataclass(frozen=True)
class _Answer:
    """What `--json` gives."""

    why: "Sequence[Diagnosis]"
    """The likeliest cause first."""
    lines: "Sequence[str]"
    """The lines that say most, where no cause is known."""


@click.command()
@click.argument("run_id", metavar="[RUN]", required=False, shell_complete=runs_beginning)
@click.option("--log", "log", metavar="FILE", type=GivenPath(), help="Read this log instead.")
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
@json_option
@click.pass_obj
def why(
    reply: Reply, run_id: str | None, log: Path | None, state: str | None, code: int | None
) -> None:
    """Say why a run failed, or any job that left a log.

    The likeliest cause comes first, with the line that shows it and what to do.
    """
    if (run_id is None) == (log is None):
        raise InputError("There is not one job to explain.", "Name a RUN, or a FILE with --log.")
    if log is None and (state is not None or code is not None):
        raise InputError("--state and --exit work only with --log.", "Leave them out.")
    found = _of_run(run_id or "") if log is None else _of_log(log, state or "failed", code)
    reply.give(found, "\n\n".join(map(_text, found.why)))
    for line in found.lines:
        if not reply.json:
            click.echo(f"  {line}")
    if not found.why:
        say("It did not fail, as far as is known.")


def _of_run(run_id: str) -> _Answer:
    with core() as runs:
        found = runs.why(run_id)
        return _Answer(found, found[0].telling if found else ())


def _of_log(path: Path, state: str, code: int | None) -> _Answer:
    from lumitui.app.explain.failure.diagnose import diagnose
    from lumitui.app.explain.failure.diagnosis import Ending
    from lumitui.remote.scheduler.states import State

    text = _tail(path)
    found = diagnose(Ending(State(state), rc=code, log=text))
    return _Answer(found, found[0].telling if found else ())


def _tail(path: Path) -> str:
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _TAIL))
            return file.read().decode(errors="replace")
    except OSError as error:
        raise InputError(
            f"The log {path} cannot be read: {error.strerror}.", "Name a file that you may read."
        ) from error


def _text(item: "Diagnosis") -> str:
    rows = [item.cause, f"  {item.do}"]
    return "\n".join([*rows, f"  > {item.line.strip()}"] if item.line.strip() else rows)
