"""Diagnoses a failed job from its log file, for `lumitui why --log`; needs no run."""

import stat
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from lumitui.app.knowledge.causes.own_causes import OWN
from lumitui.app.knowledge.causes.script_words import in_script_words
from lumitui.app.knowledge.failure.diagnose import diagnose
from lumitui.app.knowledge.failure.diagnosis import Diagnosis, RunEnd
from lumitui.app.knowledge.log_lines import log_end
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.site.states import State


def why_of_log(
    log: Path | BinaryIO, state: str = "failed", rc: int | None = None
) -> list[Diagnosis]:
    """Return why a job failed, the likeliest cause first, without history and sites.

    The fixes name options of sbatch, because such a job usually has no job file.

    Args:
        log: its log's path, or an open stream.
        state: the scheduler's final state.
        rc: its exit code, if known.

    Raises:
        InputError: the log is empty, or cannot be read.
    """
    name = log if isinstance(log, Path) else "-"
    try:
        text, before = _end(log) if isinstance(log, Path) else log_end(log)
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError(
            f"Cannot read the log {name}: {reason}.", "Choose a file that you can read."
        ) from error
    if not text.strip():
        raise InputError(
            f"The log {name} is empty.", "Check the job's other files, such as the file of --error."
        )
    if text.startswith("#!"):
        raise InputError(
            f"{name} is a script, not a log.", f"`lumitui lint {quote(str(name))}` checks it."
        )
    causes = diagnose(RunEnd(State(state), rc=rc, log=text, before=before))
    own = {rule.id for rule in OWN}  # lumitui wrote these lines, so the job has a job file
    return [one if one.id in own else replace(one, do=in_script_words(one.do)) for one in causes]


def _end(path: Path) -> tuple[str, int | None]:
    kind = path.stat().st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
        raise InputError(f"{path} is not a log file.", "Pass a job's log, or `-` for stdin.")
    with path.open("rb") as file:
        return log_end(file)
