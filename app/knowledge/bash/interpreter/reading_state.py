"""What has been read of a job so far, and the scripts that it can look into."""

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from lumitui.app.knowledge.bash.words.expand import ExpandedWord
from lumitui.app.knowledge.bash.words.origins import File, ParsedSource
from lumitui.app.knowledge.script_job import Command, JobStep, Trouble, Variable
from lumitui.remote.site.source_position import NOWHERE, Position

_NO_SHELL = (".py", ".json", ".yaml", ".txt")
"""Ends of names of files that are not for a shell, also where the script writes them."""


@dataclass
class Reading:
    """What has been read of a job so far."""

    files: Mapping[str, str]
    variables: list[Variable] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    steps: list[JobStep] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    modules: list[str] = field(default_factory=list)
    written: dict[str, ParsedSource] = field(default_factory=dict)
    """Files that the script writes with a heredoc."""
    at_exit: list[ExpandedWord] = field(default_factory=list)
    """What `trap … EXIT` runs when the script ends."""
    end: Position = NOWHERE
    loops: int = 0
    """Loops within which the reader stands."""
    count: int = 0

    def script(self, text: str) -> tuple[str, ParsedSource] | None:
        """Return the text of a script that a word names, and its name."""
        wanted = _normal(text)
        for name, source in self.written.items():
            if _normal(name) == wanted and not name.endswith(_NO_SHELL):
                return name, source
        for name, held in self.files.items():
            if _normal(name) == wanted and not name.endswith(_NO_SHELL):
                return name, ParsedSource.of(File(held.replace("\r\n", "\n"), name))
        return None


def _normal(path: str) -> str:
    path = re.sub(r"^(\$PWD|\$\{PWD\}|\$\{?SLURM_SUBMIT_DIR\}?|\$\(pwd\))/", "", path)
    return posixpath.normpath(path)
