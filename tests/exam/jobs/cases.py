"""The job descriptions of the exam: bad ones, good ones, and public scripts by their addresses."""

import hashlib
import os
import re
from functools import cache
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, TypeAdapter

_HERE = Path(__file__).parent


class Base(BaseModel, frozen=True):
    """A good script or job file."""

    model_config = ConfigDict(extra="forbid")

    site: str
    text: str
    files: dict[str, str] = {}


class Case(BaseModel, frozen=True):
    """A change of a base."""

    model_config = ConfigDict(extra="forbid")

    id: str
    base: str
    change: tuple[tuple[str, str], ...] = ()
    why: str = ""
    mistake: str = ""
    """What is wrong; "" in a good one."""
    words: str = ""
    """The regular expression by which a finding names the mistake."""
    source: str = ""

    @property
    def job_file(self) -> bool:
        """Whether it is a job file of lumitui, not a script."""
        return self.base.startswith("job-")

    @property
    def site(self) -> str:
        """The site's name."""
        return bases()[self.base].site

    @property
    def text(self) -> str:
        """The script or the job file."""
        return self._changed(bases()[self.base].text)

    @property
    def files(self) -> dict[str, str]:
        """The project's files beside it."""
        return {path: self._changed(text) for path, text in bases()[self.base].files.items()}

    def named_by(self, words: str) -> bool:
        """Return whether `words` name the mistake."""
        return bool(re.search(self.words, words, re.IGNORECASE))

    def _changed(self, text: str) -> str:
        for old, new in self.change:
            text = text.replace(old, new)
        return text


class Script(BaseModel, frozen=True):
    """A public script: where it stands, and what a person read in it."""

    model_config = ConfigDict(extra="forbid")

    repository: str
    commit: str
    path: str
    site: str = ""
    """"": no profile describes its machine."""
    says: dict[str, int | bool | str] = {}

    @property
    def key(self) -> str:
        """Its short address."""
        return f"{self.repository}/{self.path}@{self.commit[:7]}"

    @property
    def held_out(self) -> bool:
        """Whether it was put aside; a third of them are."""
        return hashlib.sha256(self.key.encode()).digest()[0] % 3 == 0

    def text(self, folder: Path) -> str:
        """Return its text from a folder of OWNER+NAME/COMMIT[:7]/PATH."""
        owner = self.repository.replace("/", "+")
        file = folder / owner / self.commit[:7] / self.path
        return file.read_text(encoding="utf-8", errors="replace")


@cache
def bases() -> dict[str, Base]:
    """Return the good descriptions that the others come from."""
    return TypeAdapter(dict[str, Base]).validate_python(_of("bases"))


@cache
def bad() -> tuple[Case, ...]:
    """Return those with one mistake each."""
    return TypeAdapter(tuple[Case, ...]).validate_python(_of("bad"))


@cache
def good() -> tuple[Case, ...]:
    """Return those without a mistake."""
    return TypeAdapter(tuple[Case, ...]).validate_python(_of("good"))


@cache
def scripts() -> tuple[Script, ...]:
    """Return the addresses of the public scripts."""
    return TypeAdapter(tuple[Script, ...]).validate_python(_of("scripts"))


def scripts_folder() -> Path | None:
    """Return the folder of the public scripts' texts that SCRIPTS names, where it does."""
    folder = os.environ.get("SCRIPTS")
    return Path(folder) if folder else None


def _of(name: str) -> object:
    text = (_HERE / f"{name}.yaml").read_text(encoding="utf-8")
    return yaml.load(text, Loader=yaml.CSafeLoader)
