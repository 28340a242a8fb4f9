"""A running run whose metrics are in its log shows them in lists, before it ends."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lumitui.app.follow.poll import poll_site
from lumitui.app.follow.refresh import Watcher, _keep_log_figures
from lumitui.app.history.history import History
from lumitui.app.history.metric_points import Glance
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection, connect
from lumitui.remote.scheduler.run_files import poll_files
from lumitui.remote.scheduler.scheduler_protocol import JobStatus, Poll, Scheduler, State, Watch
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.prompts import Ask
from lumitui.remote.transport.transport import Transport
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.home import Home

RUN = "own-000001"
PATTERNS = {"loss": r"loss (\S+)", "images_per_s": r"images/s (\S+)"}


class Followed:
    """A running run in a folder, polled as at a site."""

    def __init__(self, transport: Transport, folder: Path) -> None:
        self.folder, self.transport = folder / "run", transport
        self.folder.mkdir()
        self.history = History(folder / "history.db")
        spec = SPEC.model_copy(update={"metrics": PATTERNS, "trainer": None, "script": "train.py"})
        run = a_run(RUN, folder=str(self.folder), job_id="7", spec=spec, state=State.RUNNING,
                    started=1000.0)  # fmt: skip
        self.history.begin(run)

    def poll(self) -> int:
        """Poll once, and return the requests for logs."""
        seen = {RUN: JobStatus("7", State.RUNNING, "RUNNING", started=1000.0)}
        scheduler = SimpleNamespace(
            poll=lambda watches: Poll(seen, poll_files(self.transport, watches))
        )
        connection = cast(
            Connection, SimpleNamespace(transport=self.transport, scheduler=scheduler)
        )
        runs = [self.run]
        polled = poll_site(runs, connection, self.history)
        watcher = cast(Watcher, SimpleNamespace(history=self.history))
        return _keep_log_figures(watcher, connection, polled.changed, runs)

    @property
    def run(self) -> Run:
        return self.history.get(RUN)

    def glance(self) -> Glance | None:
        """Return what a row of the list shows."""
        key = (RUN, self.run.metrics_offset)
        self.history.glances.take([key])
        return self.history.glances.known(key)


@pytest.fixture
def followed(transport: Transport, tmp_path: Path) -> Followed:
    return Followed(transport, tmp_path)


def log(followed: Followed, first: int, last: int) -> None:
    with (followed.folder / "attempt-1.out").open("a") as file:
        file.writelines(f"step {n} loss {1 / n} images/s {100 + n}\n" for n in range(first, last))


def test_a_list_shows_the_last_loss_and_the_speed_in_the_log_of_a_running_run(
    followed: Followed,
) -> None:
    log(followed, 1, 21)
    assert followed.poll() == 1
    shown = followed.glance()
    assert shown and shown.last_loss == 0.05 and shown.samples_per_s == 113
    assert followed.poll() == 0, "the log has not grown"
    log(followed, 21, 41)
    assert followed.poll() == 1
    shown = followed.glance()
    assert shown and shown.last_loss == 0.025 and shown.samples_per_s == 123
    assert len(followed.history.metrics.of(RUN)) == 40


def test_the_values_stay_when_the_end_of_the_log_has_none(followed: Followed) -> None:
    log(followed, 1, 21)
    followed.poll()
    with (followed.folder / "attempt-1.out").open("a") as file:
        file.writelines("saving the optimizer's shard\n" for _ in range(10_000))
    assert followed.poll() == 1
    shown = followed.glance()
    assert shown and shown.last_loss == 0.05
    assert followed.poll() == 0, "the log has not grown"


def test_a_metrics_file_replaces_what_the_log_told(followed: Followed) -> None:
    log(followed, 1, 21)
    followed.poll()
    (followed.folder / "metrics.jsonl").write_text('{"step": 1, "loss": 7}\n')
    followed.poll()
    assert [point.loss for point in followed.history.metrics.of(RUN)] == [7]
    assert followed.run.metrics_offset == 23
    log(followed, 21, 41)
    assert followed.poll() == 0


def test_a_poll_reads_the_few_logs_that_grew_most(followed: Followed) -> None:
    log(followed, 1, 3)
    runs = []
    for number in range(6):
        name = f"other-{number:06}"
        followed.history.begin(
            replace(followed.run, id=name, token=name, log_sizes={1: 1000 + number})
        )
        runs.append(followed.history.get(name))
    watcher = cast(Watcher, SimpleNamespace(history=followed.history))
    connection = cast(Connection, SimpleNamespace(transport=followed.transport))
    read = [_keep_log_figures(watcher, connection, (), runs) for _ in range(3)]
    assert read == [4, 2, 0]


def test_a_poll_that_nobody_watches_reads_no_log(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def running(site: Site, ask: Ask) -> Connection:
        found = connect(site, ask)

        def poll(watches: Sequence[Watch]) -> Poll:
            job = JobStatus("7", State.RUNNING, "RUNNING", started=1000.0)
            return Poll({watch.run: job for watch in watches}, poll_files(found.transport, watches))

        return replace(found, scheduler=cast(Scheduler, SimpleNamespace(poll=poll)))

    runs, folder = Runs(home.settings, connect=running), tmp_path / "run"
    folder.mkdir()
    (folder / "attempt-1.out").write_text("step 1 loss 2 images/s 100\n")
    spec = SPEC.model_copy(update={"metrics": PATTERNS, "trainer": None, "script": "train.py"})
    run = a_run(RUN, site="laptop", folder=str(folder), spec=spec, job_id="7", state=State.RUNNING)
    runs.history.begin(run)
    found = [(runs.refresh("laptop", attended=attended).heard, len(runs.history.metrics.of(RUN)))
             for attended in (False, True)]  # fmt: skip
    runs.close()
    assert found == [(frozenset({"laptop"}), 0), (frozenset({"laptop"}), 1)]
