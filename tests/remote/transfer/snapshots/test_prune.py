"""prune: frees what nobody uses, and nothing of a run that lives, is sent, or is not settled."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from lumitui.app.cli import confirmation
from lumitui.app.follow.refresh import Refreshed
from lumitui.app.history.run import Run
from lumitui.app.job.settings import settings
from lumitui.app.launch.send import submit
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import AnswerUnusable, RefusedError
from lumitui.remote.source.scan import scan
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.snapshots.snapshot_store import Pruned, prune, sync
from tests.support.jobs.small_jobs import finish, hello_job, hello_project
from tests.support.program.command_line import Here, lt
from tests.support.program.home import Home
from tests.support.servers.transports import FixedAnswer

JOB = hello_job(site="laptop", partition="local", account="none", gpus_per_node=1)


@pytest.fixture
def send(runs: Runs, tmp_path: Path) -> Callable[..., Run]:
    """Sends the project with another text in it each time."""
    project = hello_project(tmp_path / "project")

    def now(text: str, *, core: Runs = runs, report: submit.Report = lambda *_: None) -> Run:
        (project / "text").write_text(text)
        return core.send(core.preview(JOB, project), report=report)

    return now


def standing(run: Run) -> set[str]:
    return {name for name in os.listdir(f"{run.root}/code") if len(name) == 24}


def used(run: Run) -> tuple[int, int]:
    """Files, links and folders below the project's snapshots, and what they take."""
    count = subprocess.check_output(["find", f"{run.root}/code"], text=True).count("\n")
    size = subprocess.check_output(["du", "-sk", f"{run.root}/code"], text=True).split()[0]
    return count, int(size) * 1024


def test_what_is_said_is_what_is_freed(
    runs: Runs, here: Here, send: Callable[..., Run], tmp_path: Path
) -> None:
    old, new = finish(runs, send("one")), finish(runs, send("two" * 5000))
    before = used(new)
    dry = here("site", "prune", "laptop", "--dry-run", "--json")
    assert dry.returncode == 0 and used(new) == before
    assert "each run's own copy" in here("site", "prune", "laptop", "--dry-run").stderr
    asked = here("site", "prune", "laptop")
    assert (asked.returncode, used(new)) == (2, before) and "Add --yes." in asked.stderr
    assert "would remove 1 snapshot" in asked.stderr and "Remove this code?" in asked.stderr
    done = json.loads(here("site", "prune", "laptop", "--yes", "--json").stdout)["data"]
    assert done == json.loads(dry.stdout)["data"]
    freed = done[new.root]
    assert freed["snapshots"] == [old.snapshot] and standing(new) == {new.snapshot}
    after = used(new)
    assert (freed["files"], freed["bytes"]) == (before[0] - after[0], before[1] - after[1])
    assert f"{freed['files']} files" not in here("site", "prune", "laptop", "--yes").stdout


def test_a_yes_removes_the_code_and_nothing_to_remove_is_not_asked_about(
    runs: Runs, here: Here, send: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, new = finish(runs, send("one")), finish(runs, send("two"))
    asked: list[str] = []

    def agree(text: str, **_options: object) -> bool:
        asked.append(text)
        return len(asked) > 1

    monkeypatch.setattr(confirmation, "has_person", lambda: True)
    monkeypatch.setattr(click, "confirm", agree)
    refused = here("site", "prune", "laptop")
    assert "Nothing was removed." in refused.stderr and len(standing(new)) == 2
    done = here("site", "prune", "laptop")
    assert ": removed 1 snapshot" in done.stdout and standing(new) == {new.snapshot}
    again = here("site", "prune", "laptop")
    assert again.returncode == 0 and asked == ["Remove this code?"] * 2
    left = Path(new.root, "code", ".left-1")  # by a connection that broke
    left.mkdir()
    os.utime(left, (1, 1))
    swept = here("site", "prune", "laptop")
    assert "removed 0 snapshots, 1 file" in swept.stdout
    assert not left.exists() and len(asked) == 3


def test_no_unfinished_run_loses_its_code(
    runs: Runs, send: Callable[..., Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Waiting, running, requeued, unknown, not settled: whatever a refresh cannot tell.
    run, _ = finish(runs, send("one")), finish(runs, send("two"))
    monkeypatch.setattr(runs, "refresh", lambda site=None: Refreshed((), (), 0))
    for state in (state for state in State if not state.is_final):
        runs.history.update(run.id, state=state)
        freed = [name for item in runs.prune("laptop").values() for name in item.snapshots]
        assert freed == [] and run.snapshot in standing(run), state
    runs.history.update(run.id, state=State.DONE)
    assert [item.snapshots for item in runs.prune("laptop").values()] == [(run.snapshot,)]


def test_a_prune_during_a_send_in_another_process_takes_nothing_of_it(
    runs: Runs, home: Home, send: Callable[..., Run]
) -> None:
    first = finish(runs, send("one"))
    finish(runs, send("two"))
    pruned: dict[str, str] = {}

    def meanwhile(name: str, words: str) -> None:
        if name in ("sync", "prepare"):  # a step may say several things
            pruned[name] = lt(home, "site", "prune", "laptop", "--yes").stdout

    # The first code again: no unfinished run but the one on its way has it.
    run = finish(runs, send("one", report=meanwhile))
    assert len(pruned) == 2 and first.snapshot in standing(run)
    assert (run.state, run.snapshot) == (State.DONE, first.snapshot)


def test_a_prune_from_another_machine_during_a_send_only_makes_it_send_again(
    runs: Runs, home: Home, send: Callable[..., Run], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    finish(runs, send("one"))
    elsewhere = Runs(settings(home.environ | {"LUMITUI_DATA_DIR": str(tmp_path / "data")}))
    finish(elsewhere, send("two", core=elsewhere))
    sent: list[Shipped] = []

    def counted(*words: Any) -> Shipped:
        sent.append(sync(*words))
        return sent[-1]

    monkeypatch.setattr(submit, "sync", counted)
    taken: list[int] = []

    def meanwhile(name: str, words: str) -> None:
        if name == "prepare" and not taken:
            taken.append(sum(len(item.snapshots) for item in elsewhere.prune("laptop").values()))

    run = finish(runs, send("one", report=meanwhile))
    elsewhere.close()
    # The other snapshot has one of the two contents still.
    assert taken == [1] and [item.files_sent for item in sent] == [0, 1]
    assert run.state is State.DONE
    assert scan(Path(run.folder) / "code").id == run.snapshot


def test_a_run_goes_on_when_its_snapshot_is_gone(runs: Runs, send: Callable[..., Run]) -> None:
    run = finish(runs, send("one"))
    for path in Path(run.root, "code").glob(f"{run.snapshot}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert scan(Path(run.folder) / "code").id == run.snapshot


NAME = "0123456789abcdef01234567"


@pytest.mark.parametrize(
    "line",
    [
        "\x1b[31mWelcome\x1b[0m",
        f"{NAME} 1",
        f"{NAME} many 12",
        f"{NAME} -1 12",
        f"{NAME} 1 {'9' * 5000}",
        f"{NAME} 1e3 12",
        f"{NAME} \u0663 12",
        "\x1b]0;title\x07 1 2",
        "../../etc 1 2",
        "- 1 2 3",
        "",
    ],
)
def test_an_answer_that_does_not_say_what_was_removed_is_said(line: str) -> None:
    whole = f"{NAME} 3 12\n{line}\n- 1 4\n".encode()
    with pytest.raises(AnswerUnusable, match="instead of a list of the items") as raised:
        prune(FixedAnswer(whole), "/code", ())
    assert "--dry-run" in raised.value.hint and len(raised.value.message) < 500


def test_what_was_removed_is_added_up() -> None:
    answer = f"{NAME} 3 12\n{NAME} 1 4\n- 2 8".encode()
    assert prune(FixedAnswer(answer), "/code", ()) == Pruned((NAME, NAME), 6, 24 * 1024)
    assert prune(FixedAnswer(b""), "/code", ()) == Pruned((), 0, 0)
    with pytest.raises(RefusedError, match="exit status 255"):
        prune(FixedAnswer(b"", 255), "/code", ())
