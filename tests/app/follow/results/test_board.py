"""What TensorBoard is given of a run, and what is said where it is missing."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.follow.results.event_files import Board, Boards, tensorboard_command, watched
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError
from lumitui.remote.transport.local import Local
from tests.support.jobs.trained_runs import train, trained
from tests.support.program.command_line import Here


def test_the_kept_metrics_become_event_files(runs: Runs, tmp_path: Path) -> None:
    run = train(runs.history, {1: 1000.0})[0]
    board = runs.boards.prepare(run.id, tmp_path)
    assert board.folder == tmp_path / run.id and "lines of its metrics" in board.source
    (events,) = board.folder.glob("events.out.tfevents.*")
    data = events.read_bytes()
    assert data.count(b"samples_per_s") == 20 and data.count(b"loss") == 20
    runs.history.begin(trained("waits", 1))
    with pytest.raises(InputError, match="has reported no numbers yet"):
        runs.boards.prepare("waits", tmp_path)


def test_event_files_of_the_site_come_first(runs: Runs, tmp_path: Path) -> None:
    made, folder = trained("seen", 1), tmp_path / "there"
    args = (*made.spec.args, "--watch=mlflow,tensorboard")
    run = replace(
        made, spec=made.spec.model_copy(update={"args": args}), folder=str(folder), site="laptop"
    )
    runs.history.begin(run)
    assert watched(run) and not watched(made)
    boards = Boards(runs.history, lambda run: Local())
    runs.history.metrics.add(run.id, [b'{"step": 1, "loss": 0.5}'])
    early = boards.prepare(run.id, tmp_path / "early")  # the folder is not there
    assert "could not be fetched: The site could not read" in early.source
    events = folder / "watch" / "tensorboard" / "events.out.tfevents.1.2"
    events.parent.mkdir(parents=True)
    events.write_bytes(b"numbers")
    board = boards.prepare(run.id, tmp_path / "here")
    assert [path.read_bytes() for path in board.folder.rglob("events*")] == [b"numbers"]
    assert board.source == "the event files that laptop has"


def test_tensorboard_listens_on_this_machine_alone() -> None:
    words = tensorboard_command(Board(Path("/x"), ""), 0)
    assert words[words.index("--host") + 1] == "127.0.0.1" and "--bind_all" not in words


def test_a_machine_without_tensorboard_says_what_to_install(
    here: Here, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = train(runs.history, {1: 1000.0})[0]
    find = importlib.util.find_spec
    monkeypatch.setattr(
        "lumitui.app.follow.results.event_files.find_spec",
        lambda name: None if name == "tensorboard" else find(name),
    )
    refused = here("show", run.id, "--tensorboard")
    assert refused.returncode == 1 and "TensorBoard is not installed" in refused.stderr
    assert "-m pip install tensorboard" in refused.stderr
