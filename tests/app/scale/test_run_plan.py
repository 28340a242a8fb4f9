"""A run that is planned again: its spec is derived once, and without a file."""

from pathlib import Path
from typing import Any

import pytest

from lumitui.app.job.setting import set_in
from lumitui.app.runs import Runs
from lumitui.app.scale import rescale
from lumitui.app.scale.run_plan import Basis, CodeChoice, ResubmissionRequest, plan, wanted_spec
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.sites.rescaled_jobs import DDP, LUMI, launched


@pytest.mark.parametrize(
    ("code", "keys"), [("same", ["time"]), ("current", ["time", "venv.requirements"])]
)
def test_each_setting_is_applied_once(
    runs: Runs, tmp_path: Path, code: CodeChoice, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "requirements.txt").write_text("einops==0.8.0\n")
    runs.history.begin(a_run("a-1", site="lumi", spec=DDP, project=str(tmp_path), snapshot="s"))
    applied = list[str]()

    def spied(data: dict[str, Any], key: str, value: object) -> None:
        applied.append(key)
        set_in(data, key, value)

    monkeypatch.setattr(rescale, "set_in", spied)
    values = {"time": "02:00:00", "venv.requirements": "requirements.txt"}
    settings = [f"{key}={values[key]}" for key in keys]
    made = runs.plan_resubmission("a-1", nodes=2, settings=settings, code=code)
    assert applied == keys
    spec = made.plan.launch.spec
    assert (spec.time, spec.nodes) == ("02:00:00", 2)
    assert [spec.venv.lines if spec.venv else ()] == [("einops==0.8.0",) if keys[1:] else ()]
    assert list(made.plan.request.settings) == settings, "what the files say is read again"


def test_a_plan_needs_neither_files_nor_a_site() -> None:
    parent = a_run(
        "a-1", site="lumi", spec=DDP, project="/nowhere", snapshot="s", layout=launched(DDP).layout
    )
    request = ResubmissionRequest(4, ("--lr=0.5",), slowest_save=60.0)
    made = plan(Basis(parent, wanted_spec(parent, request)), [], LUMI, request)
    rows = {row.what: row.after for row in made.changes if row.differs}
    assert rows["nodes"] == "4"
    assert rows["stop signal"] == "USR1, 210 s before the limit"
    assert "0.5" in rows["learning rate"], "a rate that a person sets is not rescaled"
