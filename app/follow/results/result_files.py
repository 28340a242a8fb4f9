"""The files in a run's folder: listing, previewing and fetching them."""

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

from lumitui.app.explain import words
from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.job.strategies import TRAINERS
from lumitui.app.launch.send.code.code_findings import RESULT_NAMES
from lumitui.remote.site import run_folder
from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.transfer.results.fetch_files import FetchOutcome, RemoteFile, fetch
from lumitui.remote.transfer.results.site_files import list_files
from lumitui.remote.transport.transport import Transport

PREVIEW_BYTES = 32768
"""Maximum number of bytes of a file to show."""


_CODE = re.compile(
    rf"(?:{run_folder.CODE}|{run_folder.STAGE})/|{run_folder.CODE}\.tar\.gz"
    rf"|(?:{'|'.join(map(re.escape, (*run_folder.SCRIPTS, *run_folder.PREFLIGHT_SCRIPTS)))}"
    rf"|{run_folder.VENV_SCRIPT}|{run_folder.DEEPSPEED_CONFIG})$"
)
_RECORDS = re.compile(
    r"attempt-\d+\.(?!out$)|\."
    rf"|(?:{run_folder.RECORD}|{run_folder.ATTEMPTS}|{run_folder.BINDING}|{run_folder.PREFLIGHT}"
    rf"|{run_folder.GPU_USE}|{run_folder.HUNG}|{run_folder.HOSTFILE}|{run_folder.STOP}"
    rf"|{run_folder.CANCELLED})$"
)
_WRITTEN = re.compile(rf"{run_folder.CODE}/(?!(?:.*/)?(?:__pycache__/|\.))")
_BELOW = re.compile(rf"(?<!^{run_folder.CODE}/)(?<=/).*")
"""What follows the first folder, or the first one in the code's folder."""
_LOGS = re.compile(r"[^/]*\.(?:out|err|log)$")


class FileGroup(StrEnum):
    """The purpose of a file in a run's folder, in the order in which users need them."""

    RESULTS = "results"
    LOGS = "logs"
    CODE = "code"
    RECORDS = "records"
    """Files that lumitui and its job use internally."""


def group_of(name: str) -> FileGroup:
    """Return the group of the file at the path `name` below a run's folder."""
    if _CODE.match(name):
        return FileGroup.CODE
    if _RECORDS.match(name):
        return FileGroup.RECORDS
    return FileGroup.LOGS if _LOGS.match(name) else FileGroup.RESULTS


@dataclass(frozen=True)
class FileList:
    """The files in a run's folder, by name."""

    files: tuple[RemoteFile, ...]
    left: tuple[str, ...]
    """Errors of the listing, one sentence each."""


@dataclass(frozen=True)
class FilePreview:
    """The start of one file."""

    name: str
    text: str
    """Unsafe text from a site: escape it before drawing. Empty if the file is not text."""
    cut: bool
    """Whether the file is longer."""
    binary: bool


class RunFileLists:
    """Lists and previews the files of runs; each call is one request to the run's site."""

    def __init__(self, history: History, transport: Callable[[Run], Transport]) -> None:
        """Read runs from `history`; `transport` gives the connection to a run's site."""
        self._history = history
        self._transport = transport

    def list(self, run_id: str) -> FileList:
        """Return the files below the run's folder.

        Raises:
            InputError: no such run, or its folder has more than 50,000 files.
            RefusedError: the folder is missing or unreadable.
        """
        run = self._history.get(run_id)
        listing = list_files(self._transport(run), run.folder, ("*",), lambda: False)
        files = tuple(RemoteFile(name, size) for name, size in sorted(listing.files.items()))
        faults = [f"{item.name}: {item.why}" for item in listing.left.values()]
        return FileList(files, (*faults, *listing.troubles))

    def preview(self, run_id: str, name: str) -> FilePreview:
        """Return the start of the file `name` from `list`.

        Raises:
            InputError: no such run.
            RefusedError: the file is no longer readable.
        """
        run = self._history.get(run_id)
        script = f"cd {quote(run.folder)} && head -c {PREVIEW_BYTES + 1} {quote(f'./{name}')}"
        result = self._transport(run).run(script)
        if result.code:
            raise RefusedError(
                f"lumitui cannot read {name} at {run.site}.", "Press r to list the files again."
            )
        data = result.out[:PREVIEW_BYTES]
        binary = b"\0" in data
        text = "" if binary else data.decode("utf-8", "replace")
        return FilePreview(name, text, len(result.out) > PREVIEW_BYTES, binary)


def fetch_pattern(name: str) -> str:
    """Return the pattern that fetches the file `name`; special characters become wildcards."""
    return re.sub(r"[*?\[]", "?", name)


RECORDS = (
    run_folder.METRICS, run_folder.BINDING, run_folder.attempt_log("*"), run_folder.JOB_SCRIPT,
    run_folder.PROFILE, run_folder.WATCHED,
)  # fmt: skip
"""Files that each fetch without patterns also gets, if they exist."""
_MOST = 5
_NOT_CODE = """\
# lumitui fetched results into this folder, and does not send it with your code.
# To send the folder too, remove this file.
*
"""


def bring(
    run: Run, transport: Transport, target: Path, patterns: Sequence[str], sent: str | None = None
) -> FetchOutcome:
    """Fetch files that match `patterns` [default: the job file's or trainer's, and RECORDS].

    A pattern without a slash that matches nothing is searched for in all folders, but not among the
    files of `sent`, the list of the code sent last. Missing RECORDS are not in `unmatched`.

    Raises:
        InputError, RefusedError, LinkError, LumiError: as `fetch`.
    """
    _keep_out_of_code(target)
    bundled = TRAINERS.get(run.spec.trainer or "")
    chosen = patterns or run.spec.fetch or (bundled.fetch if bundled else ())
    brought = fetch(transport, run.folder, patterns or (*chosen, *RECORDS), target)
    absent = [item for item in brought.unmatched if item in chosen]
    bare = [item for item in absent if "/" not in item]
    code = Manifest.parse(sent) if sent else Manifest(())
    known = code.id == run.snapshot
    others: dict[str, int] = {}
    if bare or not patterns:
        with suppress(InputError):  # too many files
            others = {**list_files(transport, run.folder, ("*",), lambda: False).files}
    for one in code.entries:
        others.pop(f"{run_folder.CODE}/{one.path}", None)
    found = {name: item for name in sorted(others) for item in bare
             if fnmatchcase(name.rpartition("/")[2], item)}  # fmt: skip
    if found:
        deep = fetch(transport, run.folder, [*map(fetch_pattern, found)], target)
        files, left = (*brought.files, *deep.files), (*brought.left, *deep.left)
        brought = replace(brought, files=files, left=left)
        absent = [item for item in absent if item not in found.values()]
    handled = {*(one.name for one in brought.files), *(one.name for one in brought.left)}
    remaining = [RemoteFile(name, size) for name, size in sorted(others.items())
                 if not patterns and name not in handled and _is_result(name, known)]  # fmt: skip
    return replace(brought, unmatched=tuple(absent), remaining=tuple(remaining))


def _is_result(name: str, known: bool) -> bool:
    """Return whether the job wrote the file `name`; `known`: it is not a file of the code."""
    if not _WRITTEN.match(name):
        return group_of(name) is FileGroup.RESULTS
    usual = any(fnmatchcase(name.rpartition("/")[2], each) for each in RESULT_NAMES)
    return known or usual  # if other code was sent since, only the name shows a result


def _keep_out_of_code(target: Path) -> None:
    """Create the folder unless it exists, marked so that no send treats it as code.

    The folder is often in the project: after fetching a 300 MB checkpoint, the next run sent 300 MB
    more.
    """
    with suppress(OSError):  # exists already, or the fetch reports why it cannot be created
        target.mkdir(mode=0o700, parents=True)
        (target / ".lumituiignore").write_text(_NOT_CODE)


def notes(run_id: str, brought: FetchOutcome, *, named: bool) -> list[str]:
    """Return notes on a fetch of a run that are not errors.

    `named`: whether the user typed the patterns.
    """
    sentences = []
    if brought.links:
        sentences.append(f"lumitui did not follow these links: {_some(brought.links)}.")
    if brought.remaining:
        sentences.append(_stay(run_id, brought.remaining))
    if brought.unmatched and not named:
        sentences.append(f"No file matches {_some(brought.unmatched)} of `fetch:`.")
    return sentences


def _stay(run_id: str, files: Sequence[RemoteFile]) -> str:
    """Return the sentences on results that stay on the site: their sizes, and how to get them."""
    sizes: dict[str, list[int]] = {}
    for file in files:
        sizes.setdefault(_BELOW.sub("", file.name), []).append(file.size)
    listed = [
        f"{name} ({words.count(len(each), 'file')}, {words.size(sum(each))})"
        for name, each in sizes.items()
    ]
    patterns = [fetch_pattern(name.rstrip("/")) for name in sizes][:_MOST]
    return (
        f"These results stay on the site: {_some(listed)}. To fetch them, run "
        f"`{shlex.join(('lumitui', 'fetch', run_id, *patterns))}`, or open the run in the TUI and "
        f"press F. With `fetch: [{', '.join(patterns)}]` in the job file, each fetch copies them."
    )


def check_fetch(brought: FetchOutcome, *, named: bool) -> None:
    """Raise an error unless everything requested was fetched.

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
            "The other files are complete. Fetch again to get the files that changed meanwhile.",
        )
    if named and unmatched:
        raise InputError(
            unmatched,
            "Patterns are relative to the run's folder; `checkpoints` fetches the whole folder.",
        )


def _some(items: Sequence[str]) -> str:
    more = f" and {len(items) - _MOST} more" if len(items) > _MOST else ""
    return ", ".join(items[:_MOST]) + more
