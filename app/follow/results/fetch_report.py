"""What a fetch brings from a run's folder, and what it reports of the rest."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from lumitui.app.history.run import Run
from lumitui.app.job.strategies import TRAINERS
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.run_folder import (
    BINDING,
    JOB_SCRIPT,
    METRICS,
    PROFILE,
    WATCHED,
    attempt_log,
)
from lumitui.remote.transfer.results.fetch_files import FetchOutcome, fetch
from lumitui.remote.transport.transport import Transport

RECORDS = (METRICS, BINDING, attempt_log("*"), JOB_SCRIPT, PROFILE, WATCHED)
"""What every fetch without patterns also brings, as far as it is there."""
_MOST = 5
_NOT_CODE = """\
# lumitui fetched results into this folder, and sends your code without it.
# To send the folder too, remove this file.
*
"""


def bring(run: Run, transport: Transport, target: Path, patterns: Sequence[str]) -> FetchOutcome:
    """Fetch what fits `patterns`; without any, what the job file or its trainer names and RECORDS.

    Records that are not there yet are not in `unmatched`.

    Raises:
        InputError, RefusedError, LinkError, LumiError: as `fetch`.
    """
    _keep_out_of_code(target)
    if patterns:
        return fetch(transport, run.folder, patterns, target)
    bundled = TRAINERS.get(run.spec.trainer or "")
    chosen = run.spec.fetch or (bundled.fetch if bundled else ())
    brought = fetch(transport, run.folder, (*chosen, *RECORDS), target)
    return replace(brought, unmatched=tuple(item for item in brought.unmatched if item in chosen))


def _keep_out_of_code(target: Path) -> None:
    """Make the folder one that no send takes for code, unless it already exists.

    It often lies in the project: with a checkpoint of 300 MB the next run was sent 300 MB more.
    """
    with suppress(OSError):  # a folder that is there, or one of which the fetch says why
        target.mkdir(mode=0o700, parents=True)
        (target / ".lumituiignore").write_text(_NOT_CODE)


def notes(brought: FetchOutcome, *, named: bool) -> list[str]:
    """Return sentences about a fetch that are worth knowing and no error.

    `named`: the user typed the patterns.
    """
    sentences = []
    if brought.links:
        sentences.append(f"links that were not followed: {_some(brought.links)}.")
    if brought.unmatched and not named:
        sentences.append(f"no file matches {_some(brought.unmatched)}, which `fetch:` names.")
    return sentences


def check_fetch(brought: FetchOutcome, *, named: bool) -> None:
    """Raise when something that was requested was not fetched.

    Raises:
        RefusedError: files changed, vanished, could not be read, or have no place here.
        InputError: no file matches a pattern that the user typed.
    """
    missed = [f"{item.name} ({item.why})" for item in brought.left] + list(brought.troubles)
    unmatched = f"No file matches {_some(brought.unmatched)}." if brought.unmatched else ""
    if missed:
        more = f" {unmatched}" if named and unmatched else ""
        raise RefusedError(
            f"Not everything was fetched: {_some(missed)}.{more}",
            "The other files are here and whole. Fetch again for those that changed meanwhile.",
        )
    if named and unmatched:
        raise InputError(
            unmatched, "Patterns are relative to the run's folder; `checkpoints` brings all of it."
        )


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MOST} more" if len(items) > _MOST else ""
    return ", ".join(items[:_MOST]) + more
