"""Reads the project's files in `venv:` when lumitui prepares a launch."""

import errno
import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lumitui.app.job.fields.uv_lock import lock_requirements, project_requirements, python_bound
from lumitui.app.job.fields.venv_field import (
    SentRequirements,
    VenvChoice,
    beside,
    check_requirement,
    included,
    lines_of,
)
from lumitui.app.job.spec import JobSpec
from lumitui.app.launch.send.code.code_findings import refuse_secret
from lumitui.remote.site.container import VenvRecipe
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.plain_file import read_plain

_MOST_BYTES = 1_000_000
_MOST_LOCKED = 20_000_000
"""Maximum size of a uv.lock, in bytes: it lists each wheel of each platform."""
_DEEPEST = 5
"""Maximum depth of nested includes."""


def with_requirements(spec: JobSpec, root: Path) -> JobSpec:
    """Return `spec` with the project's requirements and wheels; InputError if one is invalid."""
    venv = spec.venv
    if venv is None:
        return spec
    files = _RequirementFiles(root, spec.ship_secrets)
    lines, python = files.read(venv.requirements) if venv.requirements else ((), "")
    if venv.packages and any(" --hash=" in line for line in lines):
        raise InputError(
            f"{venv.requirements} has hashes, so pip refuses packages without one.",
            f"Omit `packages:`, and add {', '.join(venv.packages)} to {venv.requirements}.",
            field="venv",
        )
    for line in (*lines, *venv.packages):
        check_requirement(line)
    sent = SentRequirements(lines=lines, python=python, wheels=_wheels(root, venv))
    return spec.model_copy(update={"venv": venv.model_copy(update={"sent": sent})})


_READERS = {"pyproject.toml": project_requirements, "uv.lock": lock_requirements}


@dataclass(frozen=True)
class _RequirementFiles:
    """Reads the files in a project that list requirements."""

    root: Path
    ship: Sequence[str]
    """Patterns of files that are sent although they look like secrets."""

    def read(self, name: str) -> tuple[tuple[str, ...], str]:
        """Return the requirements of a file, and the Python versions that the file is for."""
        reader = _READERS.get(Path(name).name)
        if reader is None:
            return tuple(self._lines(name, 1)), ""
        text = self._text(name, _MOST_LOCKED)
        try:
            return reader(text, VenvRecipe().keeps), python_bound(text)
        except (TypeError, ValueError, RecursionError) as error:  # TOML of another shape
            raise _unreadable(name, str(error)) from error

    def _lines(self, name: str, depth: int) -> Iterator[str]:
        if depth > _DEEPEST:
            raise _unreadable(name, "it includes itself")
        for line in lines_of(self._text(name, _MOST_BYTES)):
            if other := included(line):
                yield from self._lines(beside(name, other), depth + 1)
            else:
                yield line

    def _text(self, name: str, most: int) -> str:
        path = Path(os.path.realpath(self.root / name))
        if not path.is_relative_to(os.path.realpath(self.root)):
            raise _unreadable(name, "it is outside the project")
        try:
            text = read_plain(path, most + 1)
            if len(text) > most:
                raise _unreadable(name, f"it is larger than {most // 1000} kB")
            refuse_secret(self.root / name, name, text, self.ship, "`venv:` names it")
            return text.decode("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise _unreadable(name, str(reason)) from error


def _unreadable(name: str, reason: str) -> InputError:
    absent = reason == os.strerror(errno.ENOENT)
    return InputError(
        f"Cannot read the requirements {name}: {reason}.",
        "Write the packages into it, or remove `venv:`." if absent else "Check `venv:`.",
        field="venv",
    )


def _wheels(root: Path, venv: VenvChoice) -> dict[str, str]:
    if not venv.wheels_in_project or venv.wheels is None:
        return {}
    try:
        files = sorted((root / venv.wheels).glob("*.whl"))
        wheels = {path.name: _hash(path, path.stat().st_mtime_ns) for path in files}
    except OSError as error:
        raise InputError(
            f"Cannot read the wheels in {venv.wheels}: {error.strerror}.",
            "Check `venv.wheels`.",
            field="venv",
        ) from error
    if not wheels:
        raise InputError(
            f"The folder {venv.wheels} contains no wheels.",
            f"Download them: `pip download --dest {venv.wheels} PACKAGE`.",
            field="venv",
        )
    return wheels


@lru_cache(maxsize=1000)
def _hash(path: Path, modified: int) -> str:
    """Return the SHA-256 of a file; `modified` is its time of change, for the cache."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
