"""Checks and fixes any sbatch script, for `lumitui lint`, without history and network."""

from collections.abc import Collection, Iterator
from datetime import date
from pathlib import Path

from lumitui.app.knowledge.any_site import any_site
from lumitui.app.knowledge.finding_text import CheckedScript
from lumitui.app.knowledge.guess import Guess, guess_site
from lumitui.app.knowledge.rule import UNUSED_IGNORE
from lumitui.app.knowledge.rule_table import SCRIPT_RULES
from lumitui.app.knowledge.rules.phrases import nearest
from lumitui.app.knowledge.script_check import Ask, Checking
from lumitui.app.survey.inquiry.topics import TOPICS
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import Sites

_LARGEST = 1_000_000
"""The largest neighbouring file to read, in bytes."""


class Scripts:
    """Checks scripts at the sites of a user."""

    def __init__(self, sites: Sites, ask: Ask = lambda job, site: ()) -> None:
        """Use the profiles of `sites`; `ask` queries a cluster about a job."""
        self.sites, self._ask = sites, ask

    def with_profile(self, path: Path) -> "Scripts":
        """Return these checks with the profile in a file added; its site is called `path.stem`."""
        return Scripts(self.sites.with_file(path), self._ask)

    def rules(self) -> Iterator[str]:
        """Yield the ids of all rules about scripts, those of the sites last."""
        yield UNUSED_IGNORE.id
        yield from (topic.id for topic in TOPICS)
        yield from (rule.id for rule in SCRIPT_RULES)
        for site in self.sites.valid():
            yield from (rule.id for rule in site.rules)

    def refuse_unknown(self, names: Collection[str]) -> None:
        """Refuse `names` that are not rules.

        Raises:
            InputError: a name is not a rule; the hint names the nearest one.
        """
        ids = list(self.rules()) if names else []
        for name in names:
            if name not in ids:
                guess = nearest(name, ids)
                hint = f"Did you mean {guess}?" if guess else "`lumitui rules` lists them."
                raise InputError(f"{name!r} is not a rule.", hint)

    def guess(self, text: str) -> Guess:
        """Return a guess at a script's site; its `site` is None if nothing identifies it."""
        return guess_site(text, self.sites.valid(), date.today(), self.sites.added())

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
        """Return the check of a script, and the check of the script with mechanical fixes.

        Args:
            path: the path as the user wrote it, used to find files beside the script; `-` for
                standard input.
            text: the script's text.
            site: the script's site; None: apply only site-independent rules.
            select: the only rules to apply.
            ignore: rules to skip.
            fix: apply the fixes; otherwise, both checks are the same.
            ask: also query the cluster.

        Raises:
            LinkError: the cluster cannot be reached.
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
        """Overwrite a script's file with its fixed text.

        Raises:
            InputError: it cannot be written.
        """
        try:
            with Path(script.path).open("r+b") as file:
                file.write(script.text.encode(errors="surrogateescape"))
                file.truncate()
        except OSError as error:
            raise InputError(
                f"Cannot write {script.path}: {error.strerror}.", "Use --diff instead."
            ) from error


def _text_in(folder: Path, name: str) -> str | None:
    """Return the text of a file inside a folder; None if it is missing or too large."""
    try:
        path = (folder / name).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return None
        if path.stat().st_size > _LARGEST:
            return None
        return path.read_bytes().decode(errors="replace")
    except (OSError, ValueError):
        return None
