"""What a job file says of its virtual environment: `venv:`, in its three forms."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from lumitui.app.job.fields.mapping_fields import MappingField
from lumitui.app.job.fields.text_fields import Inside, Line, ShortForm

_HASH = r"^[0-9a-f]{64}$"
_STAGED = re.compile(r"\$(STAGE_[A-Z0-9_]+|\{STAGE_[A-Z0-9_]+\})")
_FILE = re.compile(r"\.(txt|in)$")


def _wheels(text: str) -> str:
    if _STAGED.fullmatch(text):
        return text
    if ".." in text.split("/") or re.search(r"[\s:,\"'$`\\]", text) or not text.strip("/."):
        raise ValueError(
            f"{text!r} is neither a folder of the project, nor a whole path on the site, nor what "
            "is staged, like $STAGE_WHEELS"
        )
    return text


def _forms(value: object) -> object:
    """Read the short forms: a file's name, or a list of packages."""
    if isinstance(value, str):
        value = [value]
    if isinstance(value, list):
        one = value[0] if len(value) == 1 else None
        named = isinstance(one, str) and _FILE.search(one.strip())
        return {"requirements": one} if named else {"packages": value}
    return value


class SentRequirements(MappingField):
    """What the project's files said when they were read for a launch."""

    lines: tuple[Line, ...] = ()
    """The requirements, without comments: `venv: {packages: [tqdm], sent: {lines: [tqdm]}}`."""
    wheels: dict[Line, Annotated[str, Field(pattern=_HASH)]] = Field(default={})
    """The wheels of the project and their SHA-256: `venv: {packages: [tqdm], wheels: wheels, sent:
    {wheels: {}}}`."""


class VenvChoice(MappingField):
    """Python packages that a job needs besides those of its image or modules."""

    requirements: Inside | None = None
    """A requirements file of the project: `venv: {requirements: requirements.txt}`."""
    packages: tuple[Line, ...] = ()
    """Requirements as pip reads them: `venv: {packages: [einops==0.8.1, tqdm]}`."""
    wheels: Annotated[Line, AfterValidator(_wheels)] | None = None
    """A folder of wheels: of the project, a whole path on the site, or what `stage:` names, as
    `$STAGE_WHEELS`. No index is asked then: `venv: {packages: [einops], wheels: wheels}`."""
    sent: SentRequirements | None = None
    """What the files said when the run was sent. lumitui writes it; a job file does not need it:
    `venv: {packages: [tqdm], sent: {lines: [tqdm]}}`."""

    @property
    def wheels_in_project(self) -> bool:
        """Whether the wheels are sent with the code."""
        return self.wheels is not None and not self.wheels.startswith(("/", "$"))

    @property
    def lines(self) -> tuple[str, ...]:
        """All requirements that are known, those of the file first."""
        return (*(self.sent.lines if self.sent else ()), *self.packages)


Venv = Annotated[VenvChoice, BeforeValidator(_forms), ShortForm(or_list=True)]
"""`venv:` as a user writes it: a file, a list, or keys."""


def package_of(requirement: str) -> str:
    """Return the name of the package that a requirement is about, as pip compares names; or ""."""
    match = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", requirement)
    return re.sub(r"[-_.]+", "-", match[1]).lower() if match else ""
