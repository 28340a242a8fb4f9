"""What is gathered about a run's end for the diagnosis."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lumitui.app.follow.ending import ending_of
from lumitui.app.follow.refresh import Watcher
from lumitui.app.history.history import History
from lumitui.app.knowledge.failure.diagnose import STOPPED_EARLY
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.transport.local import Local
from tests.support.jobs.made_runs import a_run


@pytest.mark.parametrize(("event", "rc"), [("stop", STOPPED_EARLY), ("step", 1)])
def test_a_log_and_a_last_event_add_to_what_history_knows(
    tmp_path: Path, event: str, rc: int
) -> None:
    history, local = History(tmp_path / "history.db"), Local()
    there = SimpleNamespace(transport=local)
    watcher = cast(Watcher, SimpleNamespace(history=history, connection=lambda name: there))
    run = a_run(folder=str(tmp_path), state=State.FAILED, job_id="7", rc=1, failed_rank=3)
    history.begin(run)
    history.metrics.add(run.id, [b'{"event": "step"}', f'{{"event": "{event}"}}'.encode()])
    try:
        assert ending_of(watcher, run).log == "", "no log yet is no error"
        (tmp_path / "attempt-1.out").write_bytes(b"boom \xff\n")
        ending = ending_of(watcher, run)
    finally:
        local.close()
        history.close()
    assert (ending.log, ending.rc, ending.failed_rank) == ("boom \ufffd\n", rc, 3)
    assert ending.world_size == run.layout.world_size


def test_no_site_is_asked_about_a_run_that_never_had_a_job(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db")
    watcher = cast(Watcher, SimpleNamespace(history=history))
    assert ending_of(watcher, a_run(state=State.NOT_SENT, job_id=None)).log == ""
    history.close()
