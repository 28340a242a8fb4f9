"""What lumitui does with each option of the ssh configuration: the rows, applied to values."""

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from lumitui.remote.site.errors import LinkError
from lumitui.remote.ssh.options.option_row import Row
from lumitui.remote.ssh.options.rows import ROWS


@dataclass(frozen=True)
class Table:
    """The options of one host, as `ssh -G` prints them: lower-case name -> its values in order."""

    values: Mapping[str, Sequence[str]]
    expanded: frozenset[str] = frozenset()
    """Options whose tokens are filled in already."""
    defaults: Callable[[], Mapping[str, Sequence[str]]] = dict
    """Returns the values without any configuration, as far as they are known."""
    hash: str | None = None
    """The token `%C`, which OpenSSH computes in its own way in each version."""
    lacking: frozenset[str] = frozenset()
    """Letters of tokens that the OpenSSH of this machine does not have."""

    def written(self, name: str) -> str | None:
        """Return a list or a name as it is written, `none` too. None: it is not set."""
        found = self.values.get(name)
        return found[0] if found else None

    def one(self, name: str, default: str = "") -> str:
        """Return the value of an option that counts once; `none` is like no value."""
        value = (self.values.get(name) or [default])[0]
        return default if value.lower() in ("none", "") else value


@cache
def rows_by_name() -> Mapping[str, tuple[str, Row]]:
    """Return the table by lower-case name, older names included: -> keyword and row."""
    return {
        name.lower(): (keyword, row)
        for keyword, row in ROWS.items()
        for name in (keyword, *row.also)
    }


def judge(host: str, table: Table) -> tuple[str, ...]:
    """Return what a person should know of how the options of `host` are read.

    Raises:
        LinkError: an option cannot be honoured; the message has its name and value.
    """
    notes = []
    for name, values in table.values.items():
        keyword, row = rows_by_name().get(name, (name, None))
        if row is None:
            if table.defaults().get(name) != values:
                raise _refusal(host, keyword, values, "lumitui does not know it", "")
            continue
        if all(_fits(value, row.unless) for value in values):
            continue
        if row.verdict == "refused":
            raise _refusal(host, keyword, values, row.why, row.fix)
        if row.note:
            notes.append(f"{keyword} {', '.join(values)}: {row.note}")
    return tuple(notes)


def _fits(value: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(value.strip().lower(), pattern) for pattern in patterns)


def _refusal(host: str, keyword: str, values: Sequence[str], why: str, fix: str) -> LinkError:
    value = ", ".join(values)
    return LinkError(
        f"The ssh configuration sets {keyword} to {value} for {host}, which lumitui cannot "
        f"honour: {why}.",
        fix or f"Remove {keyword} for this host (see man ssh_config), or use another host entry.",
    )
