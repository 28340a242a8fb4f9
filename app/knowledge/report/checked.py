"""One script with what was found in it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lumitui.remote.site.finding import Finding
from lumitui.remote.site.source_position import Position


@dataclass(frozen=True)
class CheckedScript:
    """A script, where it is, and its findings."""

    path: str
    """As the user named it; `-` is standard input."""
    site: str | None
    """None: nobody named one, and only the rules that hold everywhere were applied."""
    text: str
    findings: tuple[Finding, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    """Texts of the files that it names, by the path that it uses."""
    folder: str = ""
    """The script's folder, before the names in `files`; "" or with a slash at its end."""

    def path_of(self, at: Position) -> str:
        """Return the path of the file that a finding is in."""
        return f"{self.folder}{at.file}" if at.file else self.path

    def line_of(self, at: Position) -> str | None:
        """Return the line that a finding begins on; None: it is about the job as a whole."""
        text = self.files.get(at.file) if at.file else self.text
        lines = (text or "").split("\n")
        return lines[at.line - 1].rstrip("\r") if 0 < at.line <= len(lines) else None


def count(checked: Iterator[CheckedScript] | tuple[CheckedScript, ...]) -> dict[str, int]:
    """Return how many findings of each severity there are."""
    found = {"error": 0, "warning": 0, "note": 0}
    for one in checked:
        for item in one.findings:
            found[item.severity] += 1
    return found
