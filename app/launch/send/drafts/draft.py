"""A job file that a user is writing: where it came from, its text, and how it is saved."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from lumitui.app.history.run import Run
from lumitui.app.job import examples
from lumitui.app.job.settings import write_whole
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.reading.writer import remarked

MOST_BYTES = 100_000
"""The largest job file that is read."""


@dataclass(frozen=True)
class Draft:
    """The text of a job file as it is now, saved or not."""

    text: str
    folder: Path
    """What the paths in it are relative to."""
    origin: str
    """Where it came from, in words."""
    path: Path | None = None
    """The file that it is saved to; None: it has none yet."""
    saved: str | None = None
    """The text in that file; None: it was never saved."""
    base: str | None = None
    """job.sh to compare with: the one sent last; None: the one that it was opened with."""
    files: tuple[tuple[str, str], ...] = ()
    """Name and text of what an example has beside its job file: written with it, once."""
    imported: tuple[str, ...] = ()
    """What became of the parts of the sbatch script that it was made from, in lines."""

    @property
    def name(self) -> str:
        """What errors call it."""
        return self.path.name if self.path else "the job file"

    @property
    def unsaved(self) -> bool:
        """Whether there is something to lose."""
        return self.text != (self.saved or "")

    def edited(self, text: str) -> "Draft":
        """Return the draft with another text."""
        return replace(self, text=text)


def open_draft(path: Path) -> Draft:
    """Return the file at `path` as a draft, whether it is a right job file or not.

    Raises:
        InputError: no such file, not readable, too large or not UTF-8.
    """
    text = _read(path)
    path = path.resolve()
    return Draft(text, path.parent, path.name, path, text)


def from_example(name: str, site: Site, account: str, folder: Path) -> Draft:
    """Return an example for `site` as a draft without a file.

    Raises:
        InputError: there is no such example.
    """
    if name == examples.OWN_SCRIPT:
        beginning = examples.Beginning(account=account or None, script="train.py")
    else:
        beginning = examples.Beginning(account=account or None, example=name)
    files = examples.chosen(beginning).files
    return Draft(examples.text_for(site, beginning), folder, f"the example {name}", files=files)


def from_run(
    run: Run,
    sent: Callable[[JobSpec], JobSpec] = lambda spec: spec,
    written: Callable[[JobSpec], JobSpec] = lambda spec: spec,
) -> Draft:
    """Return the job file of `run`: with its comments, if the file is as it was when it was sent.

    It has no file of its own, so that saving it never changes the one that the run was sent from.
    `sent` returns what a job file became at the run's site, and `written` what it was.
    """
    folder = Path(run.job_file).parent if run.job_file else Path(run.project)
    text = _comments_of(run, sent)
    if text is None:
        spec = written(run.spec)
        data = spec.model_dump(mode="json", exclude_defaults=True, exclude={"venv": {"sent"}})
        if not run.job_file:
            data.pop("project", None)
        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=100)
    return Draft(text, folder, run.id, base=run.script)


def _comments_of(run: Run, sent: Callable[[JobSpec], JobSpec]) -> str | None:
    if not run.job_file:
        return None
    try:
        text = _read(Path(run.job_file))
        spec = parse_job(text, "job")
    except LumiError:
        return None
    if spec.venv and run.spec.venv:  # the run knows what the requirements said
        venv = spec.venv.model_copy(update={"sent": run.spec.venv.sent})
        spec = spec.model_copy(update={"venv": venv})
    return text if sent(spec) == run.spec else None


def _read(path: Path) -> str:
    try:
        raw = read_plain(path, MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputError(
                f"{path} is larger than {MOST_BYTES // 1000} kB.",
                "A job file has a few kB; check that it is the right file.",
            )
        return raw.decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text.", "Save it as UTF-8.") from error
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path} cannot be read: {words}.", "Check the path.") from error


def save_draft(draft: Draft, path: Path | None = None) -> Draft:
    """Write the draft to its file, or to `path`, whole or not at all; return it as it is then.

    Raises:
        InputError: it has no file, the file was changed by another program, or `path` is there.
        LumiError: it cannot be written.
    """
    target = path or draft.path
    if target is None:
        raise InputError("The job file has no name yet.", "Type a path to save it.")
    try:
        target = target.resolve()
        now = _read(target) if target.exists() else None
    except (OSError, RuntimeError) as error:
        raise InputError(f"{target} cannot be written: {error}.", "Name another.") from error
    if now is not None and target != draft.path:
        raise InputError(f"{target} is already there.", "Name another.")
    if now is not None and now not in (draft.saved, draft.text):
        raise InputError(
            f"{target} was changed by another program.",
            "Save this under another name, or read the file again (r).",
        )
    examples.refuse_there(target.parent, draft.files)
    text = remarked(draft.text)  # a user's own file gets no comment
    _write(target, text)
    for name, content in draft.files:
        examples.write_new(target.parent / name, content)
    return replace(draft, path=target, text=text, saved=text, files=())


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text, path.stat().st_mode & 0o777 if path.exists() else 0o600)
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Make it first.") from error
    except OSError as error:
        raise LumiError(f"Writing {path}: {error.strerror}.", "Check the disk.") from error
