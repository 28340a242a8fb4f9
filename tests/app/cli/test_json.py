"""What --json prints: objects, and never the repr of one."""

from pathlib import Path

import pytest

from lumitui.app.cli import output
from tests.support.places import ROOT
from tests.support.program.command_line import HELLO, Here, envelope


def test_a_series_is_objects_as_one_run_is(here: Here, job: Path) -> None:
    job.write_text(HELLO.replace("args: [one]", "grid: {--lr: [1, 2]}"))
    data = envelope(here("submit", str(job), "--yes", "--json"))["data"]
    assert [run["price"]["amount"] for run in data["runs"]] == [0, 0]
    assert [member["run"] for member in data["members"]] == [run["id"] for run in data["runs"]]
    again = ["resubmit", data["runs"][0]["id"], "--ladder", "1,2", "--yes", "--force", "--json"]
    done = here(*again, "--set", "launcher=torchrun", "--set", "strategy=ddp")
    ladder = envelope(done)["data"]
    assert [run["nodes"] for run in ladder["runs"]] == [1, 2], done.stderr
    assert all(run["price"]["amount"] == 0 for run in ladder["runs"])


def test_an_unknown_type_is_a_mistake_and_not_its_repr() -> None:
    class Unknown:
        pass

    with pytest.raises(TypeError, match="Unknown"):
        output.as_data({"a": [Unknown()]})
    for path in (ROOT / "app/cli").rglob("*.py"):
        assert "default=str" not in path.read_text(), path
