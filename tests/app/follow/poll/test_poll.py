"""One poll of a site, with real processes: all metrics before the end, answers that are late, and
of which sites it heard."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from lumitui.app.follow import poll
from lumitui.app.follow.log_follower import log_path
from lumitui.app.follow.refresh import Refreshed
from lumitui.app.job.settings import Settings
from lumitui.app.launch.send.lock import sender_lock
from lumitui.app.runs import Runs
from lumitui.remote.connect import Connection, connect
from lumitui.remote.scheduler.scheduler_protocol import (
    ExitFile,
    JobStatus,
    NewRunFiles,
    Poll,
    Scheduler,
    State,
    Watch,
)
from lumitui.remote.site.errors import LinkError
from lumitui.remote.site.profile import Site
from lumitui.remote.ssh.prompts import Ask
from tests.support.jobs.endings import send
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, wait_until
from tests.support.program.home import Home

LOCAL: dict[str, Any] = {"site": "laptop", "partition": "local"}
STEPS = 3000
# 120 kB, a line longer than an answer, 120 kB; written at once, and the job is over.
WRITER = f"""\
#!/bin/bash
line() {{ printf '{{"step": %d, "pad": "%060d"}}\\n' $(seq -f "%g 0" $1 $2); }}
exec >>"$RUN_DIR/metrics.jsonl"
line 1 {STEPS // 2}; printf '{{"step": 0, "pad": "%0200000d"}}\\n' 0
line {STEPS // 2 + 1} {STEPS}
"""


def test_a_run_ends_when_all_its_metrics_are_here(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "program").write_text(WRITER)
    (project / "program").chmod(0o755)
    run = send(runs, project, "writer", **LOCAL, gpus_per_node=1)
    wait_until(Path(run.folder, "attempt-1.exit").exists, 60)
    # As if the link were cut after the poll.
    rounds = poll.MOST_ROUNDS
    monkeypatch.setattr(poll, "MOST_ROUNDS", 0)
    wait_until(lambda: "metrics" in _reason(runs, run.id), 60)
    part = runs.history.get(run.id)
    assert (part.state, part.exits) == (State.FINISHING, 0)
    assert 0 < part.metrics_offset <= 65536
    monkeypatch.setattr(poll, "MOST_ROUNDS", rounds)
    done = finish(runs, run)
    assert (done.state, done.rc) == (State.DONE, 0)
    assert [point.step for point in runs.history.metrics.of(run.id)] == list(range(1, STEPS + 1))
    assert runs.history.metrics.broken(run.id) == 1
    assert done.metrics_offset == Path(run.folder, "metrics.jsonl").stat().st_size


def _reason(runs: Runs, run_id: str) -> str:
    assert runs.refresh("laptop").requests == 1
    return runs.history.get(run_id).reason


class Slow:
    """A scheduler whose answer to a poll is on its way until `arrive` is set."""

    def __init__(self, below: Scheduler) -> None:
        """Ask `below`."""
        self.below = below
        self.asked, self.arrive = threading.Event(), threading.Event()

    def poll(self, watches: Sequence[Watch]) -> Poll:
        """Ask at once, and answer late."""
        answer = self.below.poll(watches)
        self.asked.set()
        assert self.arrive.wait(60)
        return answer

    def __getattr__(self, name: str) -> object:
        """Everything else is as it was."""
        return getattr(self.below, name)


def test_a_late_answer_undoes_no_end(
    runs: Runs, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    late: list[Slow] = []

    def slowly(site: Site, ask: Ask) -> Connection:
        there = connect(site, ask)
        late.append(Slow(there.scheduler))
        return replace(there, scheduler=cast(Scheduler, late[0]))

    run = send(runs, tmp_path / "project", "until-told", **LOCAL)
    wait_until(lambda: "until-told" in Path(log_path(run)).read_text(), 60)
    other = Runs(home.settings, connect=slowly)
    news: list[Refreshed] = []
    looker = threading.Thread(target=lambda: news.append(other.refresh("laptop")))
    looker.start()
    try:
        wait_until(lambda: bool(late) and late[0].asked.is_set(), 60)
        Path(run.folder, "go-on").touch()
        done = finish(runs, run)
        assert done.state is State.DONE
    finally:
        late[0].arrive.set()
        looker.join()
        other.close()
    assert news[0].changed == ()
    assert runs.history.get(run.id) == done


def test_a_run_whose_end_nobody_knows_is_a_warning_once(
    runs: Runs, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise each poll of its site would count as a failure and delay the next one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    class Silent:
        def poll(self, watches: Sequence[Watch]) -> Poll:
            files = {watch.run: NewRunFiles() for watch in watches}
            return Poll(
                {},
                files,
                gone=frozenset({watch.run for watch in watches}),
                silent="accounting cannot be queried",
            )

    def silently(site: Site, ask: Ask) -> Connection:
        return replace(connect(site, ask), scheduler=cast(Scheduler, Silent()))

    runs.history.begin(a_run("lost", site="laptop", state=State.RUNNING, job_id="7"))
    other = Runs(home.settings, connect=silently)
    refreshes = [other.refresh("laptop").warnings for _ in range(3)]
    assert other.refresh("laptop", attended=False).requests == 0, "nobody wants to know just now"
    other.close()
    assert runs.history.get("lost").state is State.UNKNOWN
    assert [len(warnings) for warnings in refreshes] == [1, 0, 0]


def test_an_end_waits_for_a_folder_that_is_out_of_sight(
    runs: Runs, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    clock = 1_000_000.0
    answers = [
        (NewRunFiles(missing=True), clock + 5),
        (NewRunFiles(exits=(ExitFile(1, 7, 3, clock, "7"),)), clock + 60),
    ]

    class Failed:
        def poll(self, watches: Sequence[Watch]) -> Poll:
            files, now = answers.pop(0)
            job = JobStatus("7", State.FAILED, "FAILED", started=clock - 9, ended=clock)
            return Poll({watches[0].run: job}, {watch.run: files for watch in watches}, clock=now)

    def failing(site: Site, ask: Ask) -> Connection:
        return replace(connect(site, ask), scheduler=cast(Scheduler, Failed()))

    runs.history.begin(a_run("away", site="laptop", state=State.RUNNING, job_id="7"))
    other = Runs(home.settings, connect=failing)
    other.refresh("laptop")
    away = runs.history.get("away")
    assert (away.state, away.reason) == (
        State.FINISHING, "it has ended; its folder is not visible"
    )  # fmt: skip
    other.refresh("laptop")
    other.close()
    ended = runs.history.get("away")
    assert (ended.state, ended.rc, ended.failed_rank) == (State.FAILED, 7, 3)


def test_variables_of_a_persons_shell_do_not_change_what_arrives(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With CDPATH `cd` prints where it went, in the middle of an answer; tar reads options."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CDPATH", ".")
    monkeypatch.setenv("TAR_OPTIONS", "--exclude=program")
    monkeypatch.setenv("GREP_OPTIONS", "-v")
    project = tmp_path / "project"
    project.mkdir()
    for text in ("#!/bin/bash\nexit 0\n", "#!/bin/bash\n# edited\nexit 0\n"):
        (project / "program").write_text(text)
        (project / "program").chmod(0o755)
        run = finish(runs, send(runs, project, "plain", **LOCAL, gpus_per_node=1))
        assert (run.state, run.rc) == (State.DONE, 0)


def test_a_refresh_that_waits_for_a_send_asks_and_hears_nothing(settings: Settings) -> None:
    runs = Runs(settings)
    runs.history.begin(a_run("sends-000001", site="laptop", state=State.SENDING))
    with sender_lock(settings.data / "sending", "sends-000001") as free:
        assert free
        found = runs.refresh("laptop", attended=False)
    assert found.requests == 0
    assert found.held == {"laptop"} and not found.heard
    runs.close()


def test_a_request_that_never_left_is_not_counted(settings: Settings, tmp_path: Path) -> None:
    config = tmp_path / "ssh_config"
    config.write_text("Host *\n  Port 1\n  ConnectTimeout 2\n")
    profile = settings.profiles[0] / "far.yaml"
    hosts = f"hosts: {{login: 127.0.0.1, ssh_config: {config}}}"
    profile.write_text(f"extends: lumi\nname: far\n{hosts}\n")
    runs = Runs(settings)
    runs.history.begin(a_run("far-000001", site="far", state=State.RUNNING, job_id="7"))
    found = runs.refresh("far", attended=False)
    assert isinstance(found.failed["far"], LinkError) and found.requests == 0, found
    runs.close()
