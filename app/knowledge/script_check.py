"""A script checked with the files that it names, and fixed as far as its findings say how."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from lumitui.app.knowledge.any_site import is_known
from lumitui.app.knowledge.bash import read_script
from lumitui.app.knowledge.bash.referenced_files import referenced_files
from lumitui.app.knowledge.report.edits import fixed
from lumitui.app.knowledge.report.finding_text import CheckedScript
from lumitui.app.knowledge.report.silence import heard
from lumitui.app.knowledge.rule_table import findings
from lumitui.app.knowledge.script_job import ScriptJob
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.profile import Site

_MOST_FILES = 60
_DEPTH = 3
"""Files that name files are followed as often."""
_ROUNDS = 10
"""Times that a fixed script is inspected again, as one change can make way for another."""
Ask = Callable[[ScriptJob, Site], Sequence[Finding]]
"""Returns what the cluster says of a job."""
ReadFile = Callable[[str], str | None]
"""Returns the text of a file that a script names; None: it is not there, or is not to be read."""


@dataclass(frozen=True)
class Checking:
    """How a script is checked."""

    site: Site
    read: ReadFile
    known: Callable[[], Iterable[str]]
    """Returns the names of all rules, to which a comment `# lumitui: ignore=` is held."""
    ask: Ask = lambda job, site: ()
    select: Collection[str] = ()
    """Only these rules; none: all."""
    ignore: Collection[str] = ()

    def check(self, path: str, text: str, folder: str = "") -> CheckedScript:
        """Return the script `text` with what is wrong with it."""
        files: dict[str, str] = {}
        job = read_script(text, site=self.site)
        for _ in range(_DEPTH):
            more = self._beside(job, files)
            if not more:
                break
            files |= more
            job = read_script(text, site=self.site, files=files)
        every = [*findings(job, self.site), *self.ask(job, self.site)]
        chosen = tuple(item for item in heard(every, text, self.known) if self._is_chosen(item))
        name = self.site.name if is_known(self.site) else None
        return CheckedScript(path, name, text, chosen, files, folder)

    def fix(self, one: CheckedScript) -> CheckedScript:
        """Return the script with the mechanical changes of its findings, checked again."""
        for _ in range(_ROUNDS):
            text, count = fixed(one.text, one.findings)
            if not count or text == one.text:
                break
            one = self.check(one.path, text, one.folder)
        return one

    def _beside(self, job: ScriptJob, held: Collection[str]) -> dict[str, str]:
        texts: dict[str, str] = {}
        for name in referenced_files(job):
            if name in held or len(held) + len(texts) >= _MOST_FILES:
                continue
            text = self.read(name)
            if text is not None:
                texts[name] = text
        return texts

    def _is_chosen(self, item: Finding) -> bool:
        return (not self.select or item.rule in self.select) and item.rule not in self.ignore
