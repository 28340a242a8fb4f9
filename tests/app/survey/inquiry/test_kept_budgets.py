"""What an account has left is kept from one call to the next, and a broken file is no error."""

import json
import time
from pathlib import Path

import pytest

from lumitui.app.survey.inquiry.kept_budgets import OLDEST_SECONDS, KeptBudgets
from lumitui.remote.survey.meter_rows import BudgetRow


def test_a_budget_is_known_to_the_next_call_and_for_a_day(tmp_path: Path) -> None:
    file = tmp_path / "data" / "budgets.json"
    now = time.time()
    KeptBudgets(file).keep("lumi", (BudgetRow("project_1", 812.0, 1000.0),), now)
    KeptBudgets(file).keep("mahti", (BudgetRow("project_1", 1.0),), now - OLDEST_SECONDS)
    KeptBudgets(file).keep("lumi", (), now)
    found = KeptBudgets(file).of("lumi", "PROJECT_1")
    assert found is not None and (found.row.left, found.at) == (812.0, now)
    assert KeptBudgets(file).of("mahti", "project_1") is None
    assert KeptBudgets(file).of("lumi", "project_2") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"lumi a": 3}', '{"lumi a": ["a", "x", 1, 2]}'])
def test_a_broken_file_is_as_if_nobody_had_asked(tmp_path: Path, text: str) -> None:
    file = tmp_path / "budgets.json"
    file.write_text(text)
    assert KeptBudgets(file).of("lumi", "a") is None
    KeptBudgets(file).keep("lumi", (BudgetRow("a", 1.0),), time.time())
    assert KeptBudgets(file).of("lumi", "a") is not None
    assert list(json.loads(file.read_text()))[-1] == "lumi a"
