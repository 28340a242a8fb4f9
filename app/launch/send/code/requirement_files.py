"""Reads the project's files that `venv:` names, when lumitui prepares a launch."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from lumitui.app.job.fields.requirement_lines import beside, check_requirement, included, lines_of
from lumitui.app.job.fields.venv_field import SentRequirements, VenvChoice
from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.reading.plain_file import read_plain

_MOST_BYTES = 1_000_000
_DEEPEST = 5
"""How deep files may include others."""


def with_requirements(spec: JobSpec, root: Path) -> JobSpec:
    """Return `spec` with the requirements and wheels of the project at `root`.

    Raises:
        InputError: a file cannot be read, or a requirement is not valid in an environment.
    """
    venv = spec.venv
    if venv is None:
        return spec
    lines = tuple(_lines(root, venv.requirements, 1)) if venv.requirements else ()
    for line in (*lines, *venv.packages):
        check_requirement(line)
    sent = SentRequirements(lines=lines, wheels=_wheels(root, venv))
    return spec.model_copy(update={"venv": venv.model_copy(update={"sent": sent})})


def _lines(root: Path, name: str, depth: int) -> Iterator[str]:
    path = (root / name).resolve()
    if not path.is_relative_to(root.resolve()) or depth > _DEEPEST:
        raise _unreadable(name, "it is outside the project, or includes itself")
    try:
        text = read_plain(path, _MOST_BYTES + 1)
        if len(text) > _MOST_BYTES:
            raise _unreadable(name, f"it is larger than {_MOST_BYTES // 1000} kB")
        lines = list(lines_of(text.decode("utf-8-sig")))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _unreadable(name, str(reason)) from error
    for line in lines:
        if other := included(line):
            yield from _lines(root, beside(name, other), depth + 1)
        else:
            yield line


def _unreadable(name: str, reason: str) -> InputError:
    return InputError(
        f"Cannot read the requirements {name}: {reason}.", "Check `venv:`.", field="venv"
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
