"""Any sbatch script, checked and fixed: what `lumitui lint` prints. Neither history nor network."""

from collections.abc import Collection, Iterator
from datetime import date
from pathlib import Path

from lumitui.app.knowledge.any_site import any_site
from lumitui.app.knowledge.guess import Guess, guess_site
from lumitui.app.knowledge.report.finding_text import CheckedScript
from lumitui.app.knowledge.rule_catalogue import UNUSED_IGNORE
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.knowledge.rules.phrases import nearest
from lumitui.app.knowledge.script_check import Ask, Checking
from lumitui.app.survey.inquiry.topics import TOPICS
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import Sites

_LARGEST = 1_000_000
"""Bytes of a file beside the script that is read."""


class Scripts:
    """Checks scripts at the sites of a user."""

    def __init__(self, sites: Sites, ask: Ask = lambda job, site: ()) -> None:
        """Take the profiles, and what asks a cluster about a job where a user wants that."""
        self.sites, self._ask = sites, ask

    def rules(self) -> Iterator[str]:
        """Yield the name of each rule that a script can break, those of the sites at the end."""
        yield UNUSED_IGNORE.id
        yield from (topic.id for topic in TOPICS)
        yield from (rule.id for rule in SCRIPT_RULES)
        for name in self.sites.names():
            yield from (rule.id for rule in self.sites.load(name).rules)

    def refuse_unknown(self, names: Collection[str]) -> None:
        """Raise where one of `names` is not a rule.

        Raises:
            InputError: its hint names the rule that was probably meant.
        """
        known = list(self.rules()) if names else []
        for name in names:
            if name not in known:
                meant = nearest(name, known)
                hint = f"Did you mean {meant}?" if meant else "`lumitui rules` lists them."
                raise InputError(f"There is no rule {name!r}.", hint)

    def guess(self, text: str) -> Guess:
        """Return the site that a script's own words tell; its `site` is None where none is told."""
        every = [self.sites.load(name) for name in self.sites.names()]
        return guess_site(text, every, date.today(), self.sites.added())

    def check(
        self,
        path: str,
        text: str,
        site: Site | None,
        *,
        select: Collection[str] = (),
        ignore: Collection[str] = (),
        fix: bool = False,
        ask: bool = False,
    ) -> tuple[CheckedScript, CheckedScript]:
        """Return a script as it is, and as it would be with its mechanical changes made.

        Args:
            path: as the user named it; files that the script names are read in its folder. `-`:
                it has none.
            text: what it holds.
            site: where it runs; None: only the rules that hold everywhere are applied.
            select: only these rules.
            ignore: all rules but these.
            fix: make the changes; without it, the second is the first.
            ask: ask the cluster, too.

        Raises:
            LinkError: the cluster was to be asked, and cannot be reached.
        """
        where = None if path == "-" else Path(path).parent
        prefix = "" if where is None or where == Path() else f"{where}/"
        checking = Checking(
            any_site() if site is None else site,
            lambda name: None if where is None else _text_in(where, name),
            self.rules,
            self._ask if ask else lambda job, site: (),
            frozenset(select),
            frozenset(ignore),
        )
        one = checking.check(path, text, prefix)
        return one, checking.fix(one) if fix else one

    @staticmethod
    def write(script: CheckedScript) -> None:
        """Write a fixed script over the file it came from.

        Raises:
            InputError: it cannot be written.
        """
        try:
            with Path(script.path).open("r+b") as file:
                file.write(script.text.encode(errors="surrogateescape"))
                file.truncate()
        except OSError as error:
            raise InputError(
                f"{script.path} cannot be written: {error.strerror}.", "Use --diff instead."
            ) from error


def _text_in(folder: Path, name: str) -> str | None:
    """Return the text of a file inside a folder; None: it has none, or too large a one."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return None
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_bytes().decode(errors="replace")
    except (OSError, ValueError):
        return None
