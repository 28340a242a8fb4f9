"""Saves that are cut, checkpoints that are damaged, starts that overtake each other."""

import json
import random
import resource
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.places import TRAINERS
from tests.support.trainers.ranks import (
    DIVERGED,
    OVERTAKEN,
    STOPPED_EARLY,
    Load,
    alone,
    checkpoints,
    events,
    held_at,
    losses,
    ranks,
    reported,
    train,
    train_alone,
)

# 8 steps an epoch, of 8 images each.
DDP = ("ddp.py", "--model", "cnn-gn", "--limit", "64", "--batch-size", "8", "--eval", "never",
       "--epochs", "2", "--save-every", "2")  # fmt: skip
SAVING = """
import sys, torch
sys.path.insert(0, {trainers!r})
from pathlib import Path
from saving.checkpoint import Checkpoints
from saving.files import describe
from saving.files import Position
kept = Checkpoints(Path())
kept.take_over(resumes=True)
def save(step):
    saved = kept.begin(step)
    torch.save({{"model": {{"w": torch.zeros(300_000)}}}}, saved.folder / "state.pt")
    saved.files.update(describe(saved.folder, ["state.pt"]))
    kept.commit(saved, Position("cnn", "sgd", 0, 8, 1, step))
step = 1
while True:
    save(step)
    print("saved", step, flush=True)
    step += 1
"""


def saved_by(load: Load, run_dir: Path, *steps: int) -> Any:
    """Save small checkpoints as a start of its own; return the checkpoints."""
    torch, position = load("torch"), load("saving.files").Position
    kept = load("saving.checkpoint").Checkpoints(run_dir)
    kept.take_over(resumes=True)
    for step in steps:
        saved = kept.begin(step)
        torch.save({"model": {"step": step, "w": torch.ones(40)}}, saved.folder / "state.pt")
        saved.files.update(load("saving.files").describe(saved.folder, ["state.pt"]))
        kept.commit(saved, position("cnn", "sgd", 0, 8, 1, step))
    return kept


def whole(kept: Any) -> list[int]:
    return [one.step for one in kept.newest_first() if not one.damage()]


def test_a_kill_at_any_moment_of_a_save_costs_that_save(load: Load, tmp_path: Path) -> None:
    program = tmp_path / "saver.py"
    program.write_text(SAVING.format(trainers=str(TRAINERS)))
    cut = 0
    for start in range(1, 4):
        with alone(tmp_path, str(program)) as job:
            while "saved 1" not in job.output():
                assert job.processes[0].poll() is None, job.output()
                time.sleep(0.001)
            # Sometimes in the file, sometimes in the manifest, in a rename or in a removal.
            job.signal(signal.SIGKILL)
            assert job.wait() == [-signal.SIGKILL], job.output()
        kept = load("saving.checkpoint").Checkpoints(tmp_path)
        newest = kept.newest_first()[0]
        assert (newest.start, newest.damage()) == (start, "")
        said = int(job.output().split()[-1])
        assert newest.step in (said, said + 1)
        cut += len(list(tmp_path.glob("checkpoints/start-*"))) > len(kept.newest_first())
    assert cut  # at least one was killed in the middle of a write


def test_every_flipped_bit_and_every_cut_is_seen(load: Load, tmp_path: Path) -> None:
    kept = saved_by(load, tmp_path, 1, 2)
    assert whole(kept) == [2, 1]
    chance = random.Random(5)
    for name in ("state.pt", "manifest.json"):
        path = kept.newest_first()[0].folder / name
        content = path.read_bytes()
        for _ in range(100):
            bad = bytearray(content)
            bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
            path.write_bytes(bad)
            assert whole(kept) == [1]
        for size in (0, 1, len(content) - 1):
            path.write_bytes(content[:size])
            assert whole(kept) == [1]
        path.write_bytes(content)
    assert whole(kept) == [2, 1]


def test_a_manifest_of_another_kind_is_damage(load: Load, tmp_path: Path) -> None:
    kept = saved_by(load, tmp_path, 1, 2)
    path = kept.newest_first()[0].folder / "manifest.json"
    content = json.loads(path.read_text())["content"] | {"first_start": "the first"}
    seal = load("saving.files").seal(content)
    path.write_text(json.dumps({"content": content, "sha256": seal}))
    assert whole(kept) == [1]


def test_only_the_last_two_are_kept_and_a_damaged_one_is_none_of_them(
    load: Load, tmp_path: Path
) -> None:
    kept = saved_by(load, tmp_path, 1, 2, 3)
    assert [one.step for one in kept.newest_first()] == [3, 2]
    later = saved_by(load, tmp_path)
    later.continues(kept.newest_first()[1])
    later.distrust(kept.newest_first()[0].folder)
    position = load("saving.files").Position("cnn", "sgd", 0, 8, 1, 4)
    later.commit(later.begin(4), position)
    assert [one.step for one in kept.newest_first()] == [4, 2]


def test_a_start_that_did_not_resume_removes_nothing_of_another_training(
    load: Load, tmp_path: Path
) -> None:
    saved_by(load, tmp_path, 8, 9)
    fresh = saved_by(load, tmp_path, 1, 2, 3)
    steps = [(one.start, one.step) for one in fresh.newest_first()]
    assert steps == [(2, 3), (2, 2), (1, 9), (1, 8)]
    assert fresh.discard(2)
    assert not fresh.discard(3)  # the last of its training
    third = load("saving.checkpoint").Checkpoints(tmp_path)
    third.take_over(resumes=True)
    third.continues(third.newest_first()[0])
    position = load("saving.files").Position("cnn", "sgd", 0, 8, 1, 4)
    for step in (4, 5):
        third.commit(third.begin(step), position)
    assert [one.start for one in third.newest_first()] == [3, 3, 1, 1]  # of its own: the last two


def test_a_finished_save_without_its_manifest_is_missed_and_a_cut_one_is_not(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint = load("saving.checkpoint")
    monkeypatch.setattr(load("engine.ranks"), "gather", lambda value, group=None: [value])
    me = load("engine.ranks").Ranks(0, 0, 1, tmp_path)
    kept = saved_by(load, tmp_path)
    cut = kept.begin(1)
    (cut.folder / "state.pt").write_bytes(b"half")
    assert checkpoint.newest_whole(kept, me) is None
    saved_by(load, tmp_path, 5)
    for manifest in tmp_path.glob("checkpoints/*/manifest.json"):
        manifest.unlink()
        manifest.mkdir()  # whatever is there instead
    with pytest.raises(load("engine.exits").UsageError, match="step-00000005 has lost its"):
        checkpoint.newest_whole(kept, me)
    other = tmp_path / "other"
    other.mkdir()
    (other / "checkpoints").write_text("in the way")
    with pytest.raises(load("engine.exits").UsageError, match="is not a folder"):
        saved_by(load, other)


@pytest.mark.usefixtures("needs_torch")
def test_an_attempt_that_comes_back_overwrites_nothing(tmp_path: Path) -> None:
    with alone(tmp_path, *DDP, before=held_at(tmp_path, 3)) as old:
        old.wait_for_step(3)
        assert train_alone(tmp_path, *DDP, "--resume")[0] == 0
        newest = checkpoints(tmp_path)
        assert newest[-1] == "start-0002-step-00000016"
        old.release()
        assert old.wait() == [OVERTAKEN], old.output()
    assert "Start 2 of this training works in the same run folder" in old.output()
    assert checkpoints(tmp_path) == newest


def test_a_save_that_was_begun_before_the_next_start_does_not_count(
    load: Load, tmp_path: Path
) -> None:
    old = saved_by(load, tmp_path, 5)
    begun = old.begin(9)  # here its node was lost
    later = saved_by(load, tmp_path)
    position = load("saving.files").Position("cnn", "sgd", 0, 8, 1, 7)
    later.commit(later.begin(7), position)
    begun.folder.mkdir(exist_ok=True)  # the later start has removed it
    old.commit(begun, position)
    newest = old.newest_first()[0]
    assert (newest.start, newest.step) == (2, 7)


FULL = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))  # a disk that fills up in a save
"""


NO_ERROR_FILE = """
import errno, os
from torch.distributed.elastic.multiprocessing.errors import error_handler
def full(self, error):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
error_handler.ErrorHandler.record_exception = full
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_full_disk_costs_checkpoints_and_metrics_but_no_step(tmp_path: Path) -> None:
    assert train_alone(tmp_path, *DDP, "--steps", "2")[0] == 0
    code, output = train_alone(tmp_path, *DDP, "--resume", "--steps", "6", before=FULL)
    assert code == 1
    assert "Traceback" not in output
    assert "The checkpoint could not be written (" in output
    assert [line["step"] for line in events(tmp_path, "not-saved")] == [4, 6]
    assert list(losses(tmp_path)) == [1, 2, 3, 4, 5, 6]
    assert "(File too large" in output and "; start-0001-step-00000002 is complete." in output
    assert checkpoints(tmp_path) == ["start-0001-step-00000002"]
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == checkpoints(tmp_path)
    full = FULL + NO_ERROR_FILE
    code, output = train_alone(tmp_path / "new", *DDP, "--steps", "3", before=full)
    assert code == 1 and "Traceback" not in output
    sentence = output.splitlines()[-1]
    assert sentence.startswith("ddp.py: The checkpoint could not be written (File too large")
    assert sentence.endswith("; there is no checkpoint before it.")
    (tmp_path / "metrics.jsonl").unlink()
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    code, output = train_alone(tmp_path, *DDP, "--resume", "--steps", "4")
    assert code == 0, output
    assert output.count("metrics.jsonl can't be written (No space left on device).") == 1


@pytest.mark.usefixtures("needs_torch")
def test_losses_that_are_no_numbers_end_the_training_and_spoil_no_checkpoint(
    load: Load, tmp_path: Path
) -> None:
    assert train_alone(tmp_path / "good", *DDP, "--steps", "6")[0] == 0
    assert train_alone(tmp_path, *DDP, "--steps", "4")[0] == 0
    assert checkpoints(tmp_path) == ["start-0001-step-00000002", "start-0001-step-00000004"]
    ruin = (*DDP, "--resume", "--lr", "1e30", "--save-every", "1", "--max-skipped", "2")
    code, output = train_alone(tmp_path, *ruin)
    assert code == DIVERGED, output
    assert "Changed since the checkpoint: lr from 0.02 to 1e+30.\n" in output
    told = [line.get("changed") for line in events(tmp_path, "start")]
    assert told == [None, "lr from 0.02 to 1e+30"]
    assert "not a finite number in the last 3 steps" in output
    assert reported(tmp_path)[-1]["skipped"] == 3
    newest = load("saving.checkpoint").Checkpoints(tmp_path).newest_first()[0]
    tree = load("saving.files").load(newest.folder / "state.pt", load("torch").device("cpu"))
    assert max(float(weight.abs().max()) for weight in tree["model"].values()) < 100
    # From there it goes on as if nothing had been.
    assert train_alone(tmp_path, *DDP, "--resume", "--steps", "6")[0] == 0
    again = losses(tmp_path)
    assert {step: again[step] for step in range(1, 7)} == losses(tmp_path / "good")


@pytest.mark.parametrize(
    ("saved", "words"), [(True, "Resume from the last checkpoint"), (False, "is no checkpoint: st")]
)
def test_a_lost_training_names_a_checkpoint_only_where_there_is_one(
    load: Load, tmp_path: Path, saved: bool, words: str
) -> None:
    loop, me = load("engine.training"), load("engine.ranks").Ranks(0, 0, 1, tmp_path)
    guard = loop.LossGuard(0)
    guard.note(float("nan"))
    saver = SimpleNamespace(last=object() if saved else None, wait=lambda: None)
    checkpoints = load("saving.checkpoint").Checkpoints(tmp_path)
    training = SimpleNamespace(me=me, guard=guard, saver=saver, checkpoints=checkpoints)
    with pytest.raises(loop.Diverged, match=words):
        loop.Training.give_up(training, 1)


def test_pytorchs_words_for_a_full_disk_are_the_systems(load: Load, tmp_path: Path) -> None:
    cause = load("saving.files").cause
    for error in (RuntimeError("iostream error\nat 0x7f"), OSError("rank 1: iostream error")):
        assert cause(error, tmp_path).endswith("iostream error")  # the disk has room
        assert not list(tmp_path.iterdir())
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            assert cause(error, tmp_path).startswith("File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert cause(OSError(28, "No space left on device", "/a/b"), tmp_path).endswith("device: /a/b")


TOLD_IN_TEST = """
import os, signal, torch
real = torch.nn.Module.eval
def stopped(model):
    if next(model.parameters()).device.type != "meta":  # that one is only counted
        os.kill(os.getpid(), signal.SIGTERM)
    return real(model)
torch.nn.Module.eval = stopped
"""


@pytest.mark.usefixtures("needs_torch")
def test_a_test_stops_when_it_is_asked_to(tmp_path: Path) -> None:
    code, output = train_alone(tmp_path, *DDP, "--eval", "epoch", before=TOLD_IN_TEST)
    assert code == STOPPED_EARLY, output
    assert not events(tmp_path, "eval")
    assert [line["step"] for line in events(tmp_path, "stop")] == [8]
    manifest = tmp_path / "checkpoints" / checkpoints(tmp_path)[-1] / "manifest.json"
    position = json.loads(manifest.read_text())["content"]["position"]
    assert (position["epoch"], position["samples"]) == (1, 0)


POSITION = {
    "model": "cnn", "optimizer": "sgd", "seed": -5, "train_samples": 8, "world_size": 1,
    "step": 0, "epoch": 0, "samples": 0,
}  # fmt: skip


@pytest.mark.parametrize(("name", "other"), [("optimizer", "adam"), ("model", "vit"), ("seed", 1)])
def test_another_training_is_not_continued(load: Load, name: str, other: object) -> None:
    position = load("saving.files").Position
    here = position(**POSITION)
    with pytest.raises(
        load("engine.exits").UsageError, match=f"made with {name} {other}, but this run"
    ):
        here.check_continues(position(**POSITION | {name: other}))


# The training's group waits for 4 seconds, and rank 0 writes for 7.
SLOW = """
import datetime, os, time
import torch
from engine import ranks
ranks.timedelta = lambda **limit: datetime.timedelta(seconds=4)
real = torch.save
def slow(*given, **more):
    time.sleep(7)
    return real(*given, **more)
torch.save = slow
"""


def test_a_save_may_take_longer_than_the_ranks_wait_for_each_other(tmp_path: Path) -> None:
    words = ("ddp.py", "--limit", "64", "--batch-size", "16", "--epochs", "1", "--eval", "never")
    train(tmp_path, 2, *words, before=SLOW)
    assert len(checkpoints(tmp_path)) == 1


# No save can be written any more.
NO_SAVE = """
from saving import checkpoint, saver
def full(self, at, stage):
    raise checkpoint.SaveFailed("The checkpoint could not be written (No space left on device).")
saver.Saver.save = full
"""


def test_a_stop_on_a_full_disk_takes_its_file_away(tmp_path: Path) -> None:
    (tmp_path / "stop").touch()
    with ranks(tmp_path, 1, *DDP, before=NO_SAVE) as job:
        assert job.wait() == [1]
    assert "No space left on device" in job.output()
    assert not (tmp_path / "stop").exists()
