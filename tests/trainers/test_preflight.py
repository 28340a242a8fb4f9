"""The preflight: what its figures mean, and real ranks: one slow, one held, or without torch."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.places import TRAINERS
from tests.support.servers.sshd import free_port
from tests.support.trainers.forked import PYTHON, Forked
from tests.support.trainers.ranks import Job, clean_environ, none_left

FOLDER = TRAINERS / "preflight"
CPU = Path("/sys/fs/cgroup/cpu")


@pytest.fixture(scope="module")
def decide() -> Iterator[ModuleType]:
    sys.path.insert(0, str(FOLDER))
    import preflight_verdict  # type: ignore[import-not-found, unused-ignore]

    yield preflight_verdict
    sys.path.remove(str(FOLDER))
    del sys.modules["preflight_verdict"]


Change = Mapping[str, object] | None
"""What a rank reports otherwise; None: nothing."""


@dataclass(frozen=True)
class Eight:
    """Two nodes of four GPUs, all well, with what a test changes."""

    decide: Any
    wanted: Any

    def conclude(self, *changes: tuple[int, Change]) -> Any:
        reports: list[Any] = [
            self.decide.Report(
                f"nid{rank // 4}", (rank % 4,), 4, f"0000:c{rank % 4}:00.0", (rank % 4,),
                100.0, 80.0, 40.0, done=True,
            )
            for rank in range(8)
        ]  # fmt: skip
        for rank, change in changes:
            reports[rank] = None
            if change is not None:
                reports[rank] = self.decide.Report(host=f"nid{rank // 4}", done=True)
                vars(reports[rank]).update({"devices": 4, "gemm": 100.0, "node": 80.0, "all": 40.0})
                vars(reports[rank]).update(change)
        return self.decide.conclude(reports, self.wanted, 7.0, now=100.0)


@pytest.fixture
def eight(decide: Any) -> Eight:
    return Eight(decide, decide.Wanted(8, 4, 4, ("c0", "c1", "c2", "c3"), node=70.0, all=50.0))


def texts(result: Any) -> list[str]:
    return [item.text for item in result.findings]


def test_ranks_that_are_all_well_are_good(eight: Eight) -> None:
    found = eight.conclude()
    assert (found.state, found.why, found.findings) == ("good", "", ())
    assert found.figures == {"gemm": 100.0, "node": 80.0, "all": 40.0}


@pytest.mark.parametrize(
    ("rank", "change", "says"),
    [
        (5, {"gemm": 79.0}, "rank 5 on nid1: its GEMM reached 79 TFLOP/s, the median is 100"),
        (2, None, "rank 2 on nid0: did not answer"),
        (2, {"done": False}, "rank 2 on nid0: did not end in time"),
        (7, {"error": "HIP error"}, "rank 7 on nid1: HIP error"),
        (1, {"devices": 3}, "rank 1 on nid0: PyTorch finds 3 GPUs, planned 4"),
        (
            1,
            {"address": "0000:c2:00.0"},
            "rank 1 on nid0: its GPU is 0000:c2:00.0, planned c1",
        ),
        (
            3,
            {"address": "0000:c3:00.0", "near": (8, 9), "cores": (1, 2)},
            "rank 3 on nid0: none of its cores is beside its GPU 0000:c3:00.0",
        ),
    ],
)
def test_what_is_wrong_is_named(eight: Eight, rank: int, change: Change, says: str) -> None:
    found = eight.conclude((rank, change))
    assert (found.state, texts(found)) == ("bad", [says])
    assert found.why == says


def test_a_slow_node_is_named_once(eight: Eight) -> None:
    found = eight.conclude(*((rank, {"gemm": 50.0}) for rank in (4, 5, 6, 7)))
    assert texts(found) == [
        "nid1 with ranks 4 to 7: its GEMM reached 50 TFLOP/s, the median is 100"
    ]
    found = eight.conclude(*((rank, {"node": 30.0}) for rank in (4, 5, 6, 7)))
    assert texts(found) == [
        "nid1 with ranks 4 to 7: its all-reduce within the node reached 30 GB/s, the median is 80"
    ]


def test_what_the_profile_expects_counts_where_all_are_slow_alike(eight: Eight) -> None:
    found = eight.conclude(*((rank, {"node": 40.0, "all": 20.0}) for rank in range(8)))
    assert texts(found) == [
        "nid0 with ranks 0 to 3: its all-reduce within the node reached 40 GB/s, "
        "the profile has 70",
        "nid1 with ranks 4 to 7: its all-reduce within the node reached 40 GB/s, "
        "the profile has 70",
        "the all-reduce over all nodes reached 20 GB/s, the profile has 50",
    ]


def test_an_all_reduce_that_found_no_time_is_told_and_is_no_fault(eight: Eight) -> None:
    found = eight.conclude(*((rank, {"node": 0.0, "all": 0.0}) for rank in range(8)))
    assert (found.state, found.findings) == ("good", ())
    assert found.why == "the all-reduce was not measured, because the time was up"


def test_those_that_wait_for_a_rank_are_not_to_blame(eight: Eight) -> None:
    hung = {"done": False, "all": 0.0, "told": 90.0}
    found = eight.conclude(*((rank, hung) for rank in range(8)))
    assert (found.state, found.why) == (
        "good",
        "the all-reduce was not measured, because the time was up",
    )
    behind = [(rank, hung | {"node": 0.0}) for rank in (4, 5, 6, 7)]
    found = eight.conclude(*((rank, hung) for rank in range(4)), *behind)
    assert [item.ranks for item in found.findings] == [(4,), (5,), (6,), (7,)]
    # They may be about to arrive.
    just = hung | {"told": 99.0}
    assert eight.conclude(*((rank, just) for rank in range(4)), *behind).state == "good"
    found = eight.conclude(*((rank, hung) for rank in range(8)), (6, None))
    assert texts(found) == ["rank 6 on nid1: did not answer"]


@contextmanager
def preflight(run_dir: Path, world: int, *words: str, before: str = "") -> Iterator[Job]:
    """Start it as ranks of nodes with two each, forked from a warm process."""
    shared = clean_environ(run_dir) | {
        "WORLD_SIZE": str(world),
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    processes, outs = [], [run_dir / f"{rank}.out" for rank in range(world)]
    for rank, out in enumerate(outs):
        out.write_text("")
        own = {"RANK": str(rank), "LOCAL_RANK": str(rank % 2), "LUMITUI_NODE": f"nid{rank // 2}"}
        command = [str(FOLDER / "preflight.py"), *words]
        processes.append(Forked(command, shared | own, out, before.format(rank=rank)))
    with none_left(Job(run_dir, processes, outs)) as job:
        yield job


def result(run_dir: Path) -> Any:
    return json.loads((run_dir / "preflight.json").read_text())


SLOW = """
import os, torch
real = torch.randn
def randn(*size, **more):
    torch.randn = real
    if {rank} == 3:
        with open("{folder}/cgroup.procs", "w") as file:
            file.write(str(os.getpid()))
    return real(*size, **more)
torch.randn = randn
"""
"""Rank 3 becomes slow when it makes its matrices; its imports alone would take long."""


@pytest.fixture
def throttled() -> Iterator[Path]:
    """A group of the kernel's whose processes get a 100th of a core, on a busy machine, too."""
    folder = CPU / f"lumitui-test-{os.getpid()}"
    if not (CPU / "cpu.cfs_quota_us").exists() or os.geteuid() != 0:
        pytest.skip("only root with cgroup v1 may slow one process")
    folder.mkdir()
    (folder / "cpu.cfs_period_us").write_text("100000")
    (folder / "cpu.cfs_quota_us").write_text("1000")
    yield folder
    for pid in (folder / "cgroup.procs").read_text().split():
        with suppress(OSError):
            (CPU / "cgroup.procs").write_text(pid)
    folder.rmdir()


@pytest.mark.usefixtures("needs_torch")
def test_a_rank_that_the_kernel_slows_is_named(tmp_path: Path, throttled: Path) -> None:
    before = SLOW.replace("{folder}", str(throttled))
    # Once more where a busy machine has also slowed another rank.
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        with preflight(folder, 4, before=before) as job:
            assert job.wait() == [0] * 4, job.output()
        found = result(folder)
        assert found["state"] == "bad", job.output()
        named = [item for item in found["findings"] if "GEMM" in item["text"]]
        if any(item["ranks"] == [3] for item in named):
            break
    assert any(item["ranks"] == [3] for item in named), found["findings"]
    assert set(found["figures"]) == {"gemm", "node", "all"}
    assert "preflight: rank 3 on nid1: its GEMM reached" in job.output()


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch")
def test_a_rank_that_hangs_costs_no_more_than_the_limit_and_is_named(tmp_path: Path) -> None:
    # It stops before it measures; the others wait for it at the next gate, rank 0 for the time.
    held = "import os, signal\nif {rank} == 1: os.kill(os.getpid(), signal.SIGSTOP)"
    with preflight(tmp_path, 2, "--seconds=2", before=held) as job:
        assert job.processes[0].wait(timeout=60) == 0, job.output()
        job.processes[1].send_signal(signal.SIGKILL)
    found = result(tmp_path)
    assert (found["state"], found["why"]) == ("bad", "rank 1 on nid0: did not answer")


@pytest.mark.usefixtures("needs_torch")
def test_gpus_that_pytorch_does_not_find_are_an_error_of_each_rank(tmp_path: Path) -> None:
    with preflight(tmp_path, 2, "--gpus=2") as job:
        assert job.wait() == [0, 0], job.output()
    found = result(tmp_path)
    assert [item["ranks"] for item in found["findings"]] == [[0], [1]]
    assert found["why"] == "rank 0 on nid0: PyTorch finds 0 GPUs, planned 2"


@pytest.mark.usefixtures("needs_torch")
def test_an_error_is_told_in_words_that_no_shell_has_to_quote(tmp_path: Path) -> None:
    broken = """
import torch
def randn(*size, **more):
    raise RuntimeError('HIP "error":\\n $(touch no) \\\\ it`s')
torch.randn = randn
"""
    with preflight(tmp_path, 2, before=broken.replace("{", "{{").replace("}", "}}")) as job:
        assert job.wait() == [0, 0], job.output()
    assert result(tmp_path)["why"] == "rank 0 on nid0: HIP error : (touch no) it s"


@pytest.mark.usefixtures("needs_torch")
def test_a_slow_start_of_pytorch_is_no_fault_of_a_rank(tmp_path: Path) -> None:
    # Rank 1 has not answered when rank 0, whose own start took most of the time, concludes.
    late = "import time\nreal = time.monotonic\nshift = iter([0.0])\n"
    late += "time.monotonic = lambda: real() + next(shift, 1.2)\n"
    held = "import os, signal\nif {rank} == 1: os.kill(os.getpid(), signal.SIGSTOP)"
    with preflight(tmp_path, 2, "--seconds=2", before=late + held) as job:
        assert job.processes[0].wait(timeout=60) == 0, job.output()
        job.processes[1].send_signal(signal.SIGKILL)
    found = result(tmp_path)
    assert (found["state"], found["why"]) == ("not run", "PyTorch took too long to start")


def test_without_torch_it_is_not_run_and_that_is_no_error(tmp_path: Path) -> None:
    for rank in ("1", "0"):
        environ = {"RUN_DIR": str(tmp_path), "RANK": rank, "WORLD_SIZE": "2"}
        # -S: no installed packages.
        words = [PYTHON, "-S", str(FOLDER / "preflight.py")]
        done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
    found = result(tmp_path)
    assert (found["state"], found["why"]) == ("not run", "no torch")
