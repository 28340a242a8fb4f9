"""Finds quotas and budgets in the output of a site's commands, by the profile's patterns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from lumitui.remote.site.answer_fields import lines
from lumitui.remote.site.meters import Budget, Quota

_MOST_LINES = 500
_LONGEST = 300
"""Maximum characters of a line: a pattern must not search for long."""
_NUMBER = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([kKMGTPE]?)i?B?")
_STEPS = " KMGTPE"


@dataclass(frozen=True)
class QuotaRow:
    """A folder's use and its quota."""

    folder: str
    used: float
    """Bytes, in the units that the site prints."""
    limit: float
    files: float | None = None
    file_limit: float | None = None

    @property
    def full(self) -> float:
        """Return the part of the bytes that is used, 1 when all are."""
        return self.used / self.limit if self.limit else 0.0

    @property
    def files_full(self) -> float:
        """Return the part of the files that is used; 0 where they are not counted."""
        return (self.files or 0.0) / self.file_limit if self.file_limit else 0.0


@dataclass(frozen=True)
class BudgetRow:
    """An account's budget and its remaining amount, in the site's billing unit."""

    account: str
    left: float
    limit: float | None = None


def quota_rows(text: str, quota: Quota) -> tuple[QuotaRow, ...]:
    """Return the rows of a site's own list of quotas."""
    return tuple(row for groups in _matches(text, quota.pattern) if (row := _quota_row(groups)))


def budget_rows(text: str, budget: Budget) -> tuple[BudgetRow, ...]:
    """Return the accounts in the output of a site's budget command."""
    return tuple(row for groups in _matches(text, budget.pattern) if (row := _budget_row(groups)))


def amount(text: str | None, step: int) -> float | None:
    """Return the number in `55T` or `8.2K`, with `step` 1000 or 1024, if it is one."""
    match = _NUMBER.fullmatch((text or "").strip().replace(",", "."))
    if not match:
        return None
    return float(match[1]) * float(step) ** _STEPS.index((match[2] or " ").upper())


def _matches(text: str, pattern: str) -> Iterator[dict[str, str | None]]:
    expression = re.compile(pattern)
    for number, line in enumerate(lines(text[: _MOST_LINES * _LONGEST])):
        if number >= _MOST_LINES:
            return
        if match := expression.fullmatch(line.strip()[:_LONGEST]):
            yield match.groupdict()


def _quota_row(groups: dict[str, str | None]) -> QuotaRow | None:
    used, limit = amount(groups.get("used"), 1024), amount(groups.get("limit"), 1024)
    if used is None or limit is None or not groups.get("folder"):
        return None
    files, file_limit = amount(groups.get("files"), 1000), amount(groups.get("file_limit"), 1000)
    return QuotaRow(str(groups["folder"]), used, limit, files, file_limit)


def _budget_row(groups: dict[str, str | None]) -> BudgetRow | None:
    used, limit = amount(groups.get("used"), 1000), amount(groups.get("limit"), 1000)
    left = amount(groups.get("left"), 1000)
    if left is None and used is not None and limit is not None:
        left = limit - used
    account = groups.get("account")
    return BudgetRow(account, left, limit) if account and left is not None else None
