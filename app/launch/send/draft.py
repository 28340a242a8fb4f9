"""A job file that a user is editing: its origin, its text, and how to save it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from lumitui.app.history.run import Run
from lumitui.app.job.settings import write_whole
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.remote.site.errors import InputError, LumiError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.plain_file import read_plain
from lumitui.remote.site.reading.writer import remarked

MOST_BYTES = 100_000
"""The size of the largest job file that lumitui reads."""


@dataclass(frozen=True)
class Draft:
    """The current text of a job file, saved or not."""

    text: str
    folder: Path
    """The folder for relative paths."""
    origin: str
    path: Path | None = None
    """The file to save it to; None if it is unsaved."""
    saved: str | None = None
    """The text of that file; None if it was never saved."""
    base: str | None = None
    """The job.sh to compare with: the last one sent; None: the one at opening."""
    files: tuple[tuple[str, str], ...] = ()
    """Names and texts of an example's other files, written once, together with the job file."""
    imported: tuple[tuple[str, str], ...] = ()
    """The sentences of the report on an import from an sbatch script, each after its outcome."""

    @property
    def name(self) -> str:
        """Its name in errors."""
        return self.path.name if self.path else "the job file"

    @property
    def unsaved(self) -> bool:
        """Whether it has unsaved changes."""
        return self.text != (self.saved or "")

    @property
    def differs(self) -> str:
        """The note on a run whose text is not in the file."""
        return f"differs from {self.name}"

    def changed_on_disk(self) -> bool:
        """Return whether another program changed the file since it was read or saved."""
        try:
            return self.path is not None and self._is_foreign(_read(self.path))
        except InputError:
            return False  # some editors remove the file for a moment

    def _is_foreign(self, text: str) -> bool:
        """Return whether another program wrote `text`."""
        return text not in (self.saved, self.text)

    def edited(self, text: str) -> "Draft":
        """Return the draft with a new text."""
        return replace(self, text=text)


def open_draft(path: Path) -> Draft:
    """Return the file at `path` as a draft, valid or not; InputError if it cannot be read."""
    text = _read(path)
    path = path.resolve()
    return Draft(text, path.parent, path.name, path, text)


def from_example(name: str, site: Site, account: str, folder: Path) -> Draft:
    """Return an example for `site` as a draft without a file; InputError if there is none."""
    from lumitui.app.job import examples

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
    """Return the job file of `run`, with its comments if the file has not changed since.

    The draft has no file, so saving it never overwrites the run's job file. `sent` expands a job
    file as at the run's site, and `written` reverses that.
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
    if spec.venv and run.spec.venv:  # the run has the text of its requirements
        venv = spec.venv.model_copy(update={"sent": run.spec.venv.sent})
        spec = spec.model_copy(update={"venv": venv})
    return text if sent(spec) == run.spec else None


def _read(path: Path) -> str:
    try:
        raw = read_plain(path, MOST_BYTES + 1)
        if len(raw) > MOST_BYTES:
            raise InputError(
                f"{path} is larger than {MOST_BYTES // 1000} kB.",
                "A job file has a few kB: check the path.",
            )
        return raw.decode("utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist.", "Check the path.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8.", "Save it as UTF-8.") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"Cannot read {path}: {reason}.", "Check the path.") from error


def save_draft(draft: Draft, path: Path | None = None) -> Draft:
    """Write the draft atomically to its file, or to `path`; return the saved draft.

    Raises:
        InputError: it has no file, another program changed the file, or `path` exists.
        LumiError: it cannot be written.
    """
    from lumitui.app.job import examples

    target = path or draft.path
    if target is None:
        raise InputError("The job file has no name yet.", "Enter a path.")
    try:
        target = target.resolve()
        now = _read(target) if target.exists() else None
    except (OSError, RuntimeError) as error:
        raise InputError(f"Cannot write {target}: {error}.", "Choose another file.") from error
    if now is not None and target != draft.path:
        raise InputError(f"{target} already exists.", "Choose another file.")
    if now is not None and draft._is_foreign(now):
        raise InputError(
            f"Another program changed {target}.",
            "Save again to choose another name, or reload the file.",
        )
    examples.refuse_there(target.parent, draft.files)
    text = remarked(draft.text)  # only files that lumitui wrote have its comment
    _write(target, text)
    for name, content in draft.files:
        examples.write_new(target.parent / name, content)
    return replace(draft, path=target, text=text, saved=text, files=())


def _write(path: Path, text: str) -> None:
    try:
        write_whole(path, text, path.stat().st_mode & 0o777 if path.exists() else 0o600)
    except FileNotFoundError as error:
        raise InputError(f"There is no folder {path.parent}.", "Create it first.") from error
    except OSError as error:
        raise LumiError(f"Cannot write {path}: {error.strerror}.", "Check the disk.") from error
