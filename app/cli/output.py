"""Output of the command line: data on stdout, messages on stderr."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from lumitui.app.job.settings import version
from lumitui.app.runs import LumiError, State, lines_of, spell_out

if TYPE_CHECKING:
    from lumitui.app.runs import Preview, Run


class StdoutLost(Exception):
    """Stdout cannot be written to: it is full or closed, or its reader has ended."""


@dataclass
class Reply:
    """Output of one command line."""

    json: bool
    verb: str = ""
    data: Any = None
    lost: StdoutLost | None = None
    """Why the reply could not be printed."""

    def give(self, data: object, text: str = "") -> None:
        """Print `text`; with --json, keep `data` for the envelope at the end.

        If printing fails, `lost` keeps the reason until the end, because a verb that sends several
        runs must not stop between them.
        """
        self.keep(data)
        if not self.json and text and self.lost is None:
            try:
                show(text)
            except StdoutLost as lost:
                self.lost = lost

    def keep(self, data: object) -> None:
        """Keep `data` for the envelope of --json, replacing earlier data."""
        if self.json:
            self.data = as_data(data)

    def close(self, error: LumiError | None, exit_code: int) -> None:
        """Print the envelope, and the error with its hint."""
        if error is not None:
            say_error(error)
        if self.lost is not None or not self.json or (error is None and self.data is None):
            return
        envelope: dict[str, object] = {"lumitui": version(), "verb": self.verb}
        if self.data is not None:
            envelope["data"] = self.data
        if error is not None:
            envelope["error"] = {
                "message": error.message, "hint": error.hint, "exit_code": exit_code
            }  # fmt: skip
        # ASCII, so that no character of a log or a name can control the terminal.
        click.echo(json.dumps(envelope, indent=1))


def show(text: str, *, nl: bool = True) -> None:
    """Print a text for the user on stdout, with control characters spelled out."""
    click.echo(lines_of(text), nl=nl)


def put(text: str, *, nl: bool = True) -> None:
    """Print a text for another program on stdout: unchanged to a pipe, safe on a terminal."""
    # A copied script must be exact, but its arguments may contain anything.
    shown = spell_out(text, keep="\n\t") if sys.stdout.isatty() else text
    sys.stdout.write(f"{shown}\n" if nl else shown)  # click would drop escapes
    sys.stdout.flush()


def put_bytes(data: bytes) -> None:
    """Write bytes to stdout, unchanged."""
    unwritten = memoryview(data)
    while unwritten:  # with PYTHONUNBUFFERED, a write may be partial
        unwritten = unwritten[sys.stdout.buffer.write(unwritten) :]
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """Print a message for the user on stderr, with control characters spelled out.

    Later lines are indented, so that a line break in a file's name cannot fake a hint.
    """
    say_rows(re.sub(r"\n(?! )", "\n  ", text))


def say_rows(text: str) -> None:
    """Print a table for the user on stderr, with control characters spelled out.

    If stderr is full or closed, the verb continues: its data and its exit code do not need it.
    """
    with suppress(OSError):
        click.echo(lines_of(text), err=True)


def warn(text: str) -> None:
    """Print a warning on stderr."""
    say(f"warning: {text}")


def say_error(error: LumiError) -> None:
    """Print an error and its hint on stderr."""
    say(f"error: {error.message}")
    if error.hint:
        say(f"hint: {error.hint}")


def has_person() -> bool:
    """Return whether a user can answer, that is, whether stdin and stderr are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def as_data(value: object) -> Any:
    """Return `value` as JSON types: dataclasses and models become objects.

    Raises:
        TypeError: `value` contains a type that JSON cannot represent.
    """
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value, fallback=_unknown)


def _unknown(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_RUN_KEYS = (
    "id", "name", "state", "word", "reason", "rc", "failed_rank", "site", "partition", "job_id",
    "parent", "resumed_from", "nodes", "ranks", "gpus", "nodes_used", "global_batch", "price",
    "billed", "time_limit", "chain", "attempts", "created", "submitted", "started", "ended",
    "expected_start", "expected_end", "updated", "attempt", "folder", "project", "job_file",
    "snapshot", "commit", "branch", "dirty", "note", "gpu_use",
)  # fmt: skip


def run_data(run: "Run") -> dict[str, object]:
    """Return the `--json` output for a run, without its long texts and its token."""
    derived = {
        "partition": run.brief.partition,
        "nodes": run.layout.nodes,
        "ranks": run.layout.world_size,
        "gpus": 0 if run.layout.on_cpu else run.layout.nodes * run.layout.gpus_per_node,
        # Approximate; for an unfinished run, until its last update.
        "billed": round(run.billed(run.updated), 4),
        "time_limit": run.brief.time,
        "chain": run.brief.chain,
        "expected_start": run.expected_start if run.state is State.QUEUED else None,
        "expected_end": run.latest_end,
        "commit": run.provenance.commit,
        "branch": run.provenance.branch,
        "dirty": run.provenance.dirty,
    }
    return {name: derived[name] if name in derived else getattr(run, name) for name in _RUN_KEYS}


def preview_data(job: "Preview") -> dict[str, object]:
    """Return the `--json` output of `preview`."""
    launch = job.launch
    return {
        "command": job.command,
        "script": launch.script,
        "findings": job.findings,
        "code": {"files": job.files.count, "bytes": job.files.bytes},
        "kept_back": job.files.kept_back,
        "shipped_secrets": job.files.shipped,
        "links": launch.spec.links,
        "price": launch.price,
        "layout": launch.layout,
        "global_batch": launch.global_batch,
        "files": launch.files,
    }


def previews_data(previews: Sequence["Preview"]) -> dict[str, object]:
    """Return `preview --json`; for several runs, the first run and the differences of each."""
    data = preview_data(previews[0])
    if len(previews) > 1:
        data["runs"] = [
            {"name": one.name, "settings": one.cell, "price": one.launch.price}
            | ({"script": one.launch.script} if one.follows else {})
            for one in previews
        ]
    return data
