"""Every verb that shows runs or sites works on a terminal of any width."""

import pytest

from lumitui.app.runs import Runs
from lumitui.remote.scheduler.protocol import State
from tests.support.command_line import Here
from tests.support.jobs.made_runs import a_run

REASON = "a very long reason " * 20


@pytest.mark.parametrize("width", ["0", "1", "2", "20", "80", "-5", "x", ""])
def test_every_table_is_shown_at_any_width(
    width: str, here: Here, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = a_run("long-names-" * 4 + "a1b2c3")
    runs.history.begin(run)
    runs.history.update(run.id, state=State.NOT_SENT, reason=REASON)
    monkeypatch.setenv("COLUMNS", width)
    for words in (
        ["history"],
        ["status"],
        ["show", run.id],
        ["diff", run.id, run.id],
        ["sites"],
        ["sites", "lumi"],
        ["bind", "lumi"],
        ["--help"],
        ["submit", "--help"],
    ):
        done = here(*words)
        assert done.returncode == 0, (words, done.stderr)
        assert done.stdout.strip() or words == ["status"], words
