"""What the terminal shows after the TUI has closed: the jobs that continue without it."""

import pytest

from lumitui.app.cli import session
from lumitui.app.runs import Runs
from lumitui.app.tui import app as tui
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run
from tests.support.program.home import Home


def test_leaving_the_tui_names_the_jobs_that_continue(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "own_settings", lambda: home.settings)
    monkeypatch.setattr(session, "refuse_without_terminal", lambda: None)
    monkeypatch.setattr(tui, "run_tui", lambda *_, **__: 0)
    assert session.open_tui(None) == 0 and capsys.readouterr().err == ""
    runs = Runs(home.settings)
    runs.history.begin(a_run("a", state=State.DONE, job_id="1"))
    for name, state in (("b", State.RUNNING), ("c", State.QUEUED)):
        runs.history.begin(a_run(name, state=state, job_id="2"))
    runs.close()
    session.open_tui(None)
    said = "Continues without lumitui: 2 jobs on somewhere.\n"
    assert capsys.readouterr().err == said
