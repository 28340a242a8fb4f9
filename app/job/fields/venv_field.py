"""The key `venv:` of a job file in its three forms, and requirements as pip reads them."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from lumitui.app.job.fields.mapping_fields import MappingField
from lumitui.app.job.fields.text_fields import Inside, Line, ShortForm
from lumitui.remote.site.errors import InputError

_HASH = r"^[0-9a-f]{64}$"
_STAGED = re.compile(r"\$(STAGE_[A-Z0-9_]+|\{STAGE_[A-Z0-9_]+\})")
_FILE = re.compile(r"\.(txt|in)$|(^|/)(pyproject\.toml|uv\.lock)$")


def _wheels(text: str) -> str:
    if _STAGED.fullmatch(text):
        return text
    if ".." in text.split("/") or re.search(r"[\s:,\"'$`\\]", text) or not text.strip("/."):
        raise ValueError(
            f"{text!r} is neither a folder in the project, nor an absolute path on the site, nor "
            "staged, like $STAGE_WHEELS"
        )
    return text


def _forms(value: object) -> object:
    """Expand the short forms: a file's name, or a list of packages."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        one = value[0] if len(value) == 1 else None
        named = isinstance(one, str) and _FILE.search(one.strip())
        return {"requirements": one} if named else {"packages": value}
    return value


class SentRequirements(MappingField):
    """The requirements that lumitui read from the project's files for a launch."""

    lines: tuple[Line, ...] = ()
    """The requirements, without comments: `venv: {packages: [tqdm], sent: {lines: [tqdm]}}`."""
    python: Line = ""
    """The `requires-python` of a pyproject.toml or uv.lock: `venv: {requirements: uv.lock, sent:
    {python: ">=3.11"}}`."""
    wheels: dict[Line, Annotated[str, Field(pattern=_HASH)]] = Field(default={})
    """The wheels in the project and their SHA-256: `venv: {packages: [tqdm], wheels: wheels, sent:
    {wheels: {}}}`."""


class VenvChoice(MappingField):
    """Python packages that a job needs beyond its image or modules."""

    requirements: Inside | None = None
    """A requirements file in the project, its `pyproject.toml` or `uv.lock`:
    `venv: {requirements: requirements.txt}`."""
    packages: tuple[Line, ...] = ()
    """Requirements in pip's form: `venv: {packages: [einops==0.8.1, tqdm]}`."""
    wheels: Annotated[Line, AfterValidator(_wheels)] | None = None
    """A folder of wheels to use instead of a package index: in the project, an absolute path on
    the site, or staged, like `$STAGE_WHEELS`: `venv: {packages: [einops], wheels: wheels}`."""
    sent: SentRequirements | None = None
    """The files' requirements when the run was sent. lumitui writes this key; omit it:
    `venv: {packages: [tqdm], sent: {lines: [tqdm]}}`."""

    @property
    def wheels_in_project(self) -> bool:
        """Whether the wheels are part of the project."""
        return self.wheels is not None and not self.wheels.startswith(("/", "$"))

    @property
    def lines(self) -> tuple[str, ...]:
        """All known requirements, those of the file first."""
        return (*(self.sent.lines if self.sent else ()), *self.packages)


Venv = Annotated[VenvChoice, BeforeValidator(_forms), ShortForm(or_list=True)]
"""`venv:` in its forms: a file, a list, or a mapping."""


def package_of(requirement: str) -> str:
    """Return the normalized name of a requirement's package; "" if it names none."""
    match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""


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
            "The address of a requirement contains a password, which would appear in the script.",
            "Keep such packages as wheels in a folder in the project: `venv: {wheels: …}`.",
            field="venv",
        )
    if _PATHS.match(line):
        raise InputError(
            f"The requirement {line!r} is a path, which does not exist on the site.",
            "Omit the project itself: lumitui sends its code with each run. Put wheels of other "
            "packages into a folder, set `venv: {wheels: FOLDER}`, and list their names here.",
            field="venv",
        )
    if line.startswith("-") and not _OPTION.match(line):
        raise InputError(
            f"The option {line!r} of the requirements is unsupported.",
            "lumitui supports pip's --index-url, --extra-index-url and --pre.",
            field="venv",
        )
