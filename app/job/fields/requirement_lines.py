"""Requirements as pip reads them: a file's lines, and which of them cannot be shared. Pure."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from lumitui.remote.site.errors import InputError

_COMMENT = re.compile(r"(^|\s)#.*$")
_INCLUDED = re.compile(r"(?:-r|--requirement)(?:\s+|=)?(?P<name>\S.*)$")
_OPTION = re.compile(r"--(extra-)?index-url[ =]|--find-links[ =]https?:|--(pre|prefer-binary)$")
_PATHS = re.compile(
    r"\.{1,2}$|\.{0,2}/|file:|-e\b|--editable\b|.*@\s*file:|[^:]*\.(whl|tar\.gz|zip)$"
)
_PASSWORD = re.compile(r"://[^/@\s]*:[^/@\s]*@")


def lines_of(text: str) -> Iterator[str]:
    """Yield the requirements and options of a requirements file, without comments."""
    for line in text.replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        if requirement := _COMMENT.sub("", line).strip():
            yield requirement


def included(line: str) -> str | None:
    """Return the file that a line includes (`-r FILE`), if any."""
    match = _INCLUDED.match(line)
    return match["name"].strip() if match else None


def beside(name: str, other: str) -> str:
    """Return the path of `other`, which the project's file `name` includes."""
    return str(PurePosixPath(name).parent / other)


def check_requirement(line: str) -> None:
    """Raise InputError if `line` cannot be part of an environment that runs share."""
    if _PASSWORD.search(line):
        raise InputError(
            "A requirement has a password in its address, which the script would contain.",
            "Keep such packages as wheels in a folder of the project: `venv: {wheels: …}`.",
            field="venv",
        )
    if _PATHS.match(line):
        raise InputError(
            f"The requirement {line!r} is a path, which does not exist on the site.",
            "Leave out the project itself: its code is sent with each run. Put wheels of other "
            "packages into a folder, set `venv: {wheels: FOLDER}`, and list their names here.",
            field="venv",
        )
    if line.startswith("-") and not _OPTION.match(line):
        raise InputError(
            f"The option {line!r} of the requirements is unsupported.",
            "lumitui supports pip's --index-url, --extra-index-url and --pre.",
            field="venv",
        )
