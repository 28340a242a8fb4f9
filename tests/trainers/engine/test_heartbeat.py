"""A rank that hangs is named, with its node and step; what only takes long is not."""

import json
import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lumitui.remote.site.states import HANGS
from tests.support.trainers.ranks import STOPPED_EARLY, Job, Load, ranks

HUNG = 88  # the exit code of a training that ended itself because a rank hung
NODES = {rank: f"n{rank // 2}" for rank in range(4)}

# Two nodes of two ranks. A rank waits for its data, or for its disk, while a file says so.
HELD = """
import os, time
rank = int(os.environ["RANK"])
os.environ["LUMITUI_NODE"] = f"n{rank // 2}"
from data.samples import InMemory
from saving.checkpoint import Checkpoints
def held(real, name):
    def wait(*given):
        while rank == 2 and os.path.exists(name) or os.path.exists(name + "-all"):
            time.sleep(0.01)
        return real(*given)
    return wait
InMemory.read = held(InMemory.read, "no-data")
Checkpoints.begin = held(Checkpoints.begin, "no-disk")
"""
DDP = ("ddp.py", "--model", "cnn-gn", "--limit", "64", "--batch-size", "4", "--eval", "never",
       "--epochs", "5000", "--save-every", "10")  # fmt: skip


@pytest.fixture
def judge(load: Load) -> Any:
    return load("monitor.watchdog")


def seen(judge: Any, rank: int, count: int = 900, **known: Any) -> Any:
    """A rank that stands still for 50 s, where 40 are usual."""
    facts = {"step": 812, "doing": "step", "still": 50.0, "limit": 40.0, "silent": False}
    return judge.Seen(rank, NODES[rank], count, **facts | known)


def sentence(judge: Any, *of: Any) -> str:
    stall = judge.judge(of, NODES, 40.0)
    # The laptop knows what hangs by how the sentence begins.
    assert stall is None or HANGS.match(stall.sentence)
    return stall.sentence if stall else ""


def test_the_rank_that_is_behind_is_named(judge: Any) -> None:
    others = [seen(judge, rank) for rank in (0, 1, 2)]
    behind = seen(judge, 3, 899, doing="data", step=811, still=62.0)
    said = "Rank 3 on n1 has not moved for 62 s while it loads data; the others wait at step 812."
    assert sentence(judge, *others, behind) == said
    assert judge.judge([*others, behind], NODES, 40.0).ranks == (3,)


@pytest.mark.parametrize("doing", ["save", "test", "start", "compile"])
def test_what_may_take_long_is_no_hang(judge: Any, doing: str) -> None:
    slow: dict[str, Any] = {"doing": doing, "limit": 600.0}
    others = [seen(judge, rank, 901, **slow) for rank in (1, 2, 3)]
    assert not sentence(judge, seen(judge, 0, **slow), *others)
    said = sentence(judge, seen(judge, 0, **slow | {"still": 601.0}), *others)
    assert said.startswith("Rank 0 on n0 has not moved for 601 s while it ")


def test_a_step_that_is_as_slow_as_before_is_no_hang(judge: Any) -> None:
    assert not sentence(judge, *(seen(judge, rank, 899 + (rank > 0), limit=90.0) for rank in NODES))


def test_a_stopped_process_is_named_even_while_the_others_save(judge: Any) -> None:
    slow: dict[str, Any] = {"doing": "save", "limit": 600.0}
    others = [seen(judge, rank, **slow) for rank in (0, 2, 3)]
    assert sentence(judge, *others, seen(judge, 1, **slow, state="T")) == (
        "Rank 1 on n0 has not moved for 50 s while it saves, its process is stopped; "
        "the others wait at step 812."
    )


def test_a_node_that_says_nothing_is_named(judge: Any) -> None:
    said = "Ranks 2 to 3 on n1 have not moved for 50 s; the others wait at step 812."
    assert sentence(judge, seen(judge, 0), seen(judge, 1)) == said
    assert not sentence(judge, seen(judge, 0, still=45.0), seen(judge, 1, still=45.0))


def test_where_nobody_is_behind_nobody_is_blamed(judge: Any) -> None:
    said = "No rank has moved for 50 s, at step 812; none is behind."
    assert sentence(judge, *(seen(judge, rank) for rank in NODES)) == said


def hung(job: Job) -> dict[str, Any]:
    """Wait until a rank is named; return what is said of it."""
    ends = time.monotonic() + 180
    path = job.run_dir / "hung.json"
    while not path.exists():
        assert time.monotonic() < ends, job.output()
        assert all(process.poll() is None for process in job.processes), job.output()
        time.sleep(0.02)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def moves_again(job: Job) -> None:
    ends = time.monotonic() + 180
    while (job.run_dir / "hung.json").exists():
        assert time.monotonic() < ends, job.output()
        time.sleep(0.02)


ONE = (((0,), "Rank 0 on n0 has"),)
NODE = (((2, 3), "Ranks 2 to 3 on n1 have"), ((0, 1), "Ranks 0 to 1 on n0 have"))


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.parametrize("stops", [ONE, pytest.param(NODE, marks=pytest.mark.slow)])
def test_ranks_that_hang_in_a_training_are_named_until_they_move(
    tmp_path: Path, stops: tuple[tuple[tuple[int, ...], str], ...]
) -> None:
    words = {"before": HELD, "TRAINER_STILL_SECONDS": "1"}
    mapped = list(Path("/dev/shm").glob("heartbeat-*"))
    with ranks(tmp_path, 4, *DDP, **words) as job:
        job.wait_for_step(5)
        assert list(Path("/dev/shm").glob("heartbeat-*")) == mapped  # no name, so nothing is left
        # A save that takes longer than a step may is no hang.
        (tmp_path / "no-disk-all").touch()
        time.sleep(1.5)
        assert not (tmp_path / "hung.json").exists()
        (tmp_path / "no-disk-all").unlink()
        # Only its data keeps rank 2 waiting: its process runs.
        (tmp_path / "no-data").touch()
        found = hung(job)
        assert found["sentence"].startswith("Rank 2 on n1 has not moved for "), found
        assert "while it loads data; the others wait at step " in found["sentence"]
        (tmp_path / "no-data").unlink()
        moves_again(job)
        # Those that would speak are stopped themselves.
        for stopped, said in stops:
            for rank in stopped:
                job.processes[rank].send_signal(signal.SIGSTOP)
            assert hung(job)["sentence"].startswith(f"{said} not moved for ")
            for rank in stopped:
                job.processes[rank].send_signal(signal.SIGCONT)
            moves_again(job)
        job.signal(signal.SIGUSR1)
        assert job.wait() == [STOPPED_EARLY] * 4, job.output()
        assert "Rank 2 on n1 moves again." in job.output()
    assert not (tmp_path / ".hung").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch")
def test_a_hang_ends_the_training_where_that_is_asked_for(tmp_path: Path) -> None:
    limits = {"TRAINER_STILL_SECONDS": "1", "TRAINER_HANG_SECONDS": "2"}
    with ranks(tmp_path, 2, *DDP, **limits) as job:
        job.wait_for_step(5)
        job.processes[1].send_signal(signal.SIGSTOP)
        assert job.processes[0].wait(timeout=60) == HUNG
        node = os.uname().nodename.partition(".")[0]
        assert f"Rank 1 on {node} has not moved for " in job.output()
        assert "The training ends, because `hang:` is set." in job.output()


@pytest.mark.parametrize(("version", "old"), [("2.2.0", "2000"), ("2.11.0+rocm7.2", None)])
def test_the_flight_recorder_has_the_names_that_this_pytorch_reads(
    load: Load, version: str, old: str | None
) -> None:
    environ = {"TORCH_FR_BUFFER_SIZE": "2000"}
    load("engine.ranks").name_flight_recorder(version, environ)
    assert environ.get("TORCH_NCCL_TRACE_BUFFER_SIZE") == old


def test_a_node_takes_back_what_it_said_as_soon_as_it_moves(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old report, read 20 s later, would make a hang of a step that was only slow."""
    watch = load("monitor.watchdog")
    now = 0.0
    clock = SimpleNamespace(monotonic=lambda: now, time=time.time)
    monkeypatch.setattr(watch, "time", clock)
    records = watch.Records(tmp_path / "memory", 1)
    watching = watch.Watch(records, watch.Place(1, 0, {0: "a", 1: "b"}, tmp_path))
    assert records.read(0).pid == os.getpid()  # a rank that stops at once is known, too
    said = tmp_path / ".hung" / "1"
    seen = []
    for tick in range(12):
        now = tick * 5.0
        if tick == 8:
            records.move(0, 7, 3, 1, 0.1)
        watching._look()
        seen.append(said.exists())
    # From half of the 40 s on, until it moves.
    assert seen == [False] * 4 + [True] * 4 + [False] * 4


def test_what_another_node_said_ages_by_the_readers_clock(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own clock may be a minute ahead: then a healthy rank was blamed for a minute."""
    watch = load("monitor.watchdog")
    now = 100.0
    clock = SimpleNamespace(monotonic=lambda: now, time=lambda: 0.0)
    monkeypatch.setattr(watch, "time", clock)
    place = watch.Place(0, 0, {0: "a", 1: "b"}, tmp_path)
    watching = watch.Watch(watch.Records(tmp_path / "memory", 1), place)
    said = tmp_path / ".hung" / "1"
    said.parent.mkdir()

    def still(number: int) -> float:
        one = {"rank": 1, "node": "b", "count": 9, "step": 3, "doing": "step", "still": 21.0,
               "limit": 40.0, "silent": False, "state": ""}  # fmt: skip
        said.write_text(json.dumps({"number": number, "seen": [one]}))
        (other,) = watching._others()
        seconds: float = other.still
        return seconds

    assert still(1) == 21.0
    now += 10.0
    assert still(1) == 31.0
    assert still(2) == 21.0


UNSHARED = """
import os
from monitor import heartbeat
real = heartbeat.shared_path
heartbeat.shared_path = lambda token, node: real(token + os.environ["RANK"], node)
"""


@pytest.mark.usefixtures("needs_torch")
def test_ranks_that_share_no_memory_watch_nobody(tmp_path: Path) -> None:
    """As below `srun --contain`, where each rank has a /dev/shm of its own."""
    words = (*DDP, "--epochs", "1")
    with ranks(tmp_path, 2, *words, before=UNSHARED, TRAINER_HANG_SECONDS="2") as job:
        assert job.wait() == [0, 0]
    assert "do not share memory in" in job.output()
