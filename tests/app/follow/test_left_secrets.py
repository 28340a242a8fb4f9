"""The secrets of a run that did not end well are removed when its end is seen."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.follow.left_secrets import LeftSecrets
from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import LinkLost, RefusedError
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish, hello_job, hello_project, wait_until
from tests.support.program.command_line import LAPTOP
from tests.support.program.home import Home
from tests.support.servers.transports import FixedAnswer


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A script that sees the secret, and fails or waits as its argument says."""
    monkeypatch.setenv("MY_TOKEN", "planted-value")
    root = hello_project(tmp_path / "project")
    (root / "hello.py").write_text(
        "import os, sys, time\n"
        "assert os.environ['MY_TOKEN'] == 'planted-value'\n"
        "open(os.environ['RUN_DIR'] + '/began', 'w').close()\n"
        "time.sleep(60 if 'wait' in sys.argv else 0)\n"
        "sys.exit(int('fail' in sys.argv))\n"
    )
    return root


def sent(runs: Runs, project: Path, what: str) -> Run:
    spec = hello_job(**LAPTOP | {"account": "none", "secrets": ["MY_TOKEN"], "args": [what]})
    return runs.send(runs.preview(spec, project))


def left(home: Home, run: Run) -> tuple[bool, list[str]]:
    """Return whether the secrets are at the site, and the notes that are kept here."""
    folder = home.data / "secrets-left"
    return (Path(run.folder) / ".secrets").exists(), sorted(os.listdir(folder))


@pytest.mark.parametrize(("what", "state"), [("fail", State.FAILED), ("well", State.DONE)])
def test_they_are_gone_when_the_end_is_seen(
    what: str, state: State, runs: Runs, home: Home, project: Path
) -> None:
    run = sent(runs, project, what)
    assert left(home, run)[1] == [run.id]
    assert (home.data / "secrets-left" / run.id).stat().st_mode & 0o777 == 0o600
    assert finish(runs, run).state is state
    assert left(home, run) == (False, [])


def test_they_are_there_while_the_job_runs_and_gone_when_it_is_cancelled(
    runs: Runs, home: Home, project: Path
) -> None:
    run = sent(runs, project, "wait")
    wait_until((Path(run.folder) / "began").exists, 60, "the job")
    runs.refresh()
    assert left(home, run) == (True, [run.id])
    runs.cancel(run.id)
    assert finish(runs, run).state is State.CANCELLED
    assert left(home, run) == (False, [])


def test_a_lost_link_leaves_the_note_for_the_next_time(
    runs: Runs, home: Home, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = sent(runs, project, "fail")
    keep = LeftSecrets(home.data / "secrets-left")

    class Cut(Local):
        def run(self, script: str, **rest: Any) -> Result:
            raise LinkLost("The link was lost.", "Try again.")

    folder = Path(run.folder)
    secrets, ends = folder / ".secrets", "attempt-*.exit"
    wait_until(lambda: not secrets.exists() or any(folder.glob(ends)), 60, "the end")
    runs.history.update(run.id, state=State.FAILED)
    swept = keep.sweep(runs.history, "laptop", Cut())
    assert swept.requests == 1 and run.id in swept.warnings[0]
    assert left(home, run) == (True, [run.id])
    assert keep.sweep(runs.history, "elsewhere", Local()).requests == 0
    assert keep.sweep(runs.history, "laptop", Local()).warnings == ()
    assert left(home, run) == (False, [])


@pytest.mark.parametrize(
    ("out", "code", "words"),
    [(b"", 255, "255"), (b"", 0, "0"), (b"Welcome\n", 0, "Welcome"), (b"done\n", 1, "done")],
)
def test_an_answer_that_does_not_say_so_removes_no_note(
    runs: Runs, home: Home, out: bytes, code: int, words: str
) -> None:
    run = a_run("r1", site="laptop", state=State.FAILED, job_id="7")
    run = replace(run, spec=run.spec.model_copy(update={"secrets": ("MY_TOKEN",)}))
    runs.history.begin(run)
    keep = LeftSecrets(home.data / "secrets-left")
    keep.expect(run)
    for _ in range(2):
        swept = keep.sweep(runs.history, "laptop", FixedAnswer(out, code))
        assert (swept.requests, len(swept.warnings)) == (1, 1) and words in swept.warnings[0]
    assert keep.sweep(runs.history, "laptop", FixedAnswer(b"done\n")).warnings == ()
    assert keep.sweep(runs.history, "laptop", FixedAnswer(b"done\n")).requests == 0


def test_those_of_a_refused_run_are_gone_at_once(
    runs: Runs, home: Home, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lumitui.app.launch.send import submit as module

    made: list[Run] = []

    def refusing(shipment: object, *others: object) -> Run:
        run: Run = shipment.run  # type: ignore[attr-defined]
        runs.history.begin(run)
        Path(run.folder).mkdir(parents=True)
        (Path(run.folder) / ".secrets").write_text("MY_TOKEN=x")
        runs.history.update(run.id, state=State.REFUSED)
        made.append(run)
        raise RefusedError("no", "")

    monkeypatch.setattr(module, "send", refusing)
    with pytest.raises(RefusedError):
        sent(runs, project, "fail")
    assert left(home, made[0]) == (False, [])


def test_what_cannot_be_removed_is_said_once(runs: Runs, home: Home, project: Path) -> None:
    run = sent(runs, project, "fail")
    finish(runs, run)
    keep = LeftSecrets(home.data / "secrets-left")
    keep.expect(run)
    (Path(run.folder) / ".secrets").mkdir()  # `rm -f` removes no folder
    assert "yourself" in keep.sweep(runs.history, "laptop", Local()).warnings[0]
    assert keep.sweep(runs.history, "laptop", Local()).requests == 0


def test_a_run_without_secrets_leaves_no_note(runs: Runs, home: Home, tmp_path: Path) -> None:
    root = hello_project(tmp_path / "plain")
    spec = hello_job(**LAPTOP | {"account": "none"})
    runs.send(runs.preview(spec, root))
    assert not (home.data / "secrets-left").exists()
