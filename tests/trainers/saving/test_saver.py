"""A save in the background: its copy of the state, its order on the disk, its errors."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.trainers.ranks import Load
from tests.support.trainers.synced import recorded


@pytest.fixture
def group(load: Load) -> Iterator[None]:
    """A process group of this process alone."""
    dist = load("torch.distributed")
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.fixture
def saver(load: Load, group: None, tmp_path: Path) -> Any:
    kept = load("saving.checkpoint").Checkpoints(tmp_path)
    kept.take_over(resumes=True)
    me = load("engine.ranks").Ranks(0, 0, 1, tmp_path)
    return load("saving.saver").Saver(me, kept, background=True)


def at(load: Load, step: int) -> Any:
    return load("saving.files").Position("cnn", "sgd", 0, 8, 1, step)


def test_what_is_copied_does_not_change_when_the_training_goes_on(load: Load, group: None) -> None:
    torch, tensor = load("torch"), load("torch.distributed.tensor")
    mesh = load("torch.distributed.device_mesh").init_device_mesh("cpu", (1,))
    whole, counter = torch.zeros(3), torch.zeros(())
    split = tensor.distribute_tensor(torch.zeros(4), mesh, [tensor.Shard(0)])
    state = {"tied": [whole, whole], "of": {"moment": (counter, 7)}, "split": split,
             "none": [torch.zeros(0), torch.zeros(0, 2)]}  # fmt: skip
    staging = load("saving.saver").Staging()
    copy: Any = staging.copied(state)
    where = copy["tied"][0].data_ptr()
    with torch.no_grad():
        for one in (whole, counter, split.to_local()):
            one.fill_(5)
    assert copy["tied"][0].tolist() == [0, 0, 0] and copy["tied"][1] is copy["tied"][0]
    assert copy["of"]["moment"][0].item() == 0 and copy["of"]["moment"][1] == 7
    assert copy["split"].to_local().tolist() == [0] * 4
    assert copy["split"].placements == split.placements
    assert [tuple(one.shape) for one in copy["none"]] == [(0,), (0, 2)]
    again: Any = staging.copied(state)
    assert again["tied"][0].tolist() == [5, 5, 5] and again["tied"][0].data_ptr() == where
    assert again["split"].to_local().tolist() == [5] * 4


def test_an_error_that_is_no_failed_save_ends_the_training(load: Load, saver: Any) -> None:
    def broken() -> list[str]:
        raise TypeError("cannot pickle this")

    saver.begin(at(load, 1), lambda folder, copy: broken)
    with pytest.raises(TypeError, match="cannot pickle this"):
        saver.wait()
    assert saver.last is None and saver.ended() == []


def test_a_save_waits_for_the_one_before_it(load: Load, saver: Any, tmp_path: Path) -> None:
    going, order = threading.Event(), []

    def stage(name: str, *, hold: bool) -> Callable[[Path, bool], Callable[[], list[str]]]:
        def staged(folder: Path, copy: bool) -> Callable[[], list[str]]:
            assert copy
            order.append(f"copy {name}")

            def write() -> list[str]:
                assert not hold or going.wait(30)
                (folder / "state.pt").write_text(name)
                order.append(f"write {name}")
                return ["state.pt"]

            return write

        return staged

    saver.begin(at(load, 1), stage("a", hold=True))
    assert order == ["copy a"] and not saver.ended()
    threading.Timer(0.05, going.set).start()
    saver.begin(at(load, 2), stage("b", hold=False))
    saver.wait()
    assert order == ["copy a", "write a", "copy b", "write b"]
    assert [one.step for one in saver.ended()] == [1, 2] and saver.last.step == 2


def test_a_checkpoint_counts_when_all_of_it_is_on_the_disk(
    load: Load, saver: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was not forced there may be gone after a power cut, whatever its name says."""
    done = recorded(monkeypatch)

    def stage(folder: Path, copy: bool) -> Callable[[], list[str]]:
        def write() -> list[str]:
            (folder / "state.pt").write_bytes(bytes(100))
            return ["state.pt"]

        return write

    saver.begin(at(load, 1), stage)
    saver.wait()
    place = tmp_path / "checkpoints" / "start-0001-step-00000001"
    counts = done.index(("name", str(place / "manifest.json")))
    assert ("sync", str(place / "state.pt")) in done[:counts]
    assert ("sync", str(place / ".manifest.json.part")) in done[:counts]
    assert ("sync", str(place)) in done[counts:]
    assert ("sync", str(place.parent)) in done[counts:]
