"""Stores the last known budgets of accounts in a file."""

import json
import math
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lumitui.app.job.settings import write_whole
from lumitui.remote.site.answer_fields import json_of
from lumitui.remote.survey.meter_rows import BudgetRow

OLDEST_SECONDS = 86_400.0
"""Older answers are not shown: other project members have run jobs since."""
_MOST_BYTES = 256 << 10


@dataclass(frozen=True)
class KeptBudget:
    """A budget, and the time of the site's answer."""

    row: BudgetRow
    at: float
    """Epoch seconds."""


class KeptBudgets:
    """The budgets of accounts at sites, in a small file; unreadable entries are ignored."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def of(self, site: str, account: str) -> KeptBudget | None:
        """Return an account's budget, if it is known and recent."""
        budget = _budget(self._read().get(_key(site, account)))
        fresh = budget and 0 <= time.time() - budget.at < OLDEST_SECONDS
        return budget if fresh else None

    def keep(self, site: str, rows: tuple[BudgetRow, ...], at: float) -> None:
        """Keep the budgets of accounts of `site` at the time `at`; ignore a full disk."""
        if not rows:
            return
        budgets = self._read()
        for row in rows:
            budgets[_key(site, row.account)] = [row.account, row.left, row.limit, at]
        with suppress(OSError):
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, json.dumps(budgets))

    def _read(self) -> dict[str, object]:
        try:
            data = json_of(self._file.read_bytes()[:_MOST_BYTES])
        except OSError:
            return {}
        return dict(data) if isinstance(data, dict) else {}


def _key(site: str, account: str) -> str:
    return f"{site} {account.lower()}"


def _budget(value: object) -> KeptBudget | None:
    match value:
        case [str(account), float() | int() as left, float() | int() | None as limit,
              float() | int() as at]:  # fmt: skip
            numbers = [number for number in (left, limit, at) if number is not None]
            if all(math.isfinite(number) for number in numbers):
                return KeptBudget(BudgetRow(account, left, limit), at)
        case _:
            pass
    return None
