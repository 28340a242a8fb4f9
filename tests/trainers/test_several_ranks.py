"""The trainers on several real ranks that talk over gloo on loopback."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.places import TRAINERS

PYTHON = os.environ.get("LUMITUI_TRAINER_PYTHON", sys.executable)
STOPPED_EARLY = 85

# 36 steps of 128 images; group norm, so that the number of ranks changes nothing. Only the order
# of float32 sums differs (1e-7 in the first step), and training amplifies that: over 3 seeds up to
# 4e-6 at this rate, but 1.5e-4 at ten times of it. A wrong share of the batch differs at once.
DDP = ("ddp.py", "--model", "cnn-gn", "--limit", "1536", "--epochs", "3", "--save-every", "5",
       "--eval", "end", "--lr", "0.001")  # fmt: skip
ZERO = ("deepspeed_zero.py", "--model", "vit", "--limit", "1024", "--epochs", "2",
        "--save-every", "5", "--eval", "end")  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def needs_torch() -> None:
    # Two cores are shared by up to four ranks: one thread each.
    asked = subprocess.run([PYTHON, "-c", "import torch.distributed"], check=False, timeout=60)
    if asked.returncode:
        pytest.skip(f"{PYTHON} has no PyTorch")


@pytest.fixture
def needs_deepspeed() -> None:
    if not importlib.util.find_spec("deepspeed"):
        pytest.skip("DeepSpeed is not installed")


def clean_environ(run_dir: Path) -> dict[str, str]:
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "tmp").mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(run_dir),
        "TMPDIR": str(run_dir / "tmp"),
        "OMP_NUM_THREADS": "1",
        "RUN_DIR": str(run_dir),
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass(frozen=True)
class Job:
    """Ranks, or one torchrun, that are training."""

    run_dir: Path
    processes: list["subprocess.Popen[str]"]

    def signal(self, number: signal.Signals) -> None:
        for process in self.processes:
            process.send_signal(number)

    def wait(self) -> list[int]:
        """Exit codes in the order of ranks."""
        return [process.wait(timeout=90) for process in self.processes]

    def output(self) -> str:
        return "".join(path.read_text() for path in sorted(self.run_dir.glob("*.out")))

    def wait_for_step(self, step: int) -> None:
        ends = time.monotonic() + 60
        while step not in losses(self.run_dir):
            assert time.monotonic() < ends, self.output()
            assert all(process.poll() is None for process in self.processes), self.output()
            time.sleep(0.005)


@contextmanager
def started(commands: list[list[str]], environs: list[dict[str, str]]) -> Iterator[Job]:
    """Start processes and leave none behind."""
    run_dir = Path(environs[0]["RUN_DIR"])
    processes = []
    for number, (command, environ) in enumerate(zip(commands, environs, strict=True)):
        with (run_dir / f"{number}.out").open("w") as out:
            processes.append(
                subprocess.Popen(command, env=environ, stdout=out, stderr=out, text=True)
            )
    try:
        yield Job(run_dir, processes)
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=30)


@contextmanager
def ranks(run_dir: Path, world_size: int, *words: str) -> Iterator[Job]:
    """Start a trainer as that many ranks, as srun would."""
    shared = clean_environ(run_dir) | {
        "WORLD_SIZE": str(world_size),
        "LOCAL_WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
    environs = [shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world_size)]
    command = [PYTHON, str(TRAINERS / words[0]), *words[1:]]
    with started([command] * world_size, environs) as job:
        yield job


def train(run_dir: Path, world_size: int, *words: str) -> Job:
    """Train to the end."""
    with ranks(run_dir, world_size, *words) as job:
        assert job.wait() == [0] * world_size, job.output()
    return job


def told(run_dir: Path) -> list[dict[str, object]]:
    path = run_dir / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def losses(run_dir: Path) -> dict[int, float]:
    """Loss by step; of a step trained twice the later one."""
    found = {}
    for line in told(run_dir):
        step, loss = line.get("step"), line.get("loss")
        if isinstance(step, int) and isinstance(loss, float):
            found[step] = loss
    return found


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[int, float]:
    """The losses of two ranks that nothing interrupts."""
    run_dir = tmp_path_factory.mktemp("reference")
    job = train(run_dir, 2, *DDP, "--batch-size", "64")
    found = losses(run_dir)
    assert list(found) == list(range(1, 37))
    assert found[36] < 0.8 * found[1]
    assert "test accuracy" in job.output().splitlines()[-1]
    return found


# --------------------------------------------------------------------------------- ddp


@pytest.mark.parametrize("world_size", [1, 4])
def test_the_number_of_ranks_does_not_change_the_training(
    tmp_path: Path, reference: dict[int, float], world_size: int
) -> None:
    train(tmp_path, world_size, *DDP, "--batch-size", str(128 // world_size))
    assert losses(tmp_path) == pytest.approx(reference, abs=1e-4)
    assert told(tmp_path)[0].items() >= {"world_size": world_size, "global_batch": 128}.items()


def test_a_killed_training_resumes_with_the_same_losses(
    tmp_path: Path, reference: dict[int, float]
) -> None:
    words = (*DDP, "--batch-size", "64")
    with ranks(tmp_path, 2, *words) as job:
        job.wait_for_step(13)  # in the second epoch, after a checkpoint at 10
        job.signal(signal.SIGKILL)
        assert job.wait() == [-signal.SIGKILL] * 2
    killed_at = max(losses(tmp_path))
    assert killed_at < 36
    train(tmp_path, 2, *words, "--resume")
    starts = [line for line in told(tmp_path) if line.get("event") == "start"]
    assert starts[1]["first_step"] == killed_at // 5 * 5 + 1
    assert losses(tmp_path) == reference  # to the last digit


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_to_one_rank_saves_and_ends_all(
    tmp_path: Path, reference: dict[int, float], number: signal.Signals
) -> None:
    with ranks(tmp_path, 2, *DDP, "--batch-size", "64") as job:
        job.wait_for_step(6)
        job.processes[1].send_signal(number)
        assert job.wait() == [STOPPED_EARLY] * 2, job.output()
    stop = told(tmp_path)[-1]
    assert stop["event"] == "stop"
    assert stop["step"] == max(losses(tmp_path)) < 36
    # The rest on another number of ranks, at the same global batch.
    train(tmp_path, 1, *DDP, "--batch-size", "128", "--resume")
    assert losses(tmp_path) == pytest.approx(reference, abs=1e-4)
    assert len(told(tmp_path)) == 36 + len([line for line in told(tmp_path) if "event" in line])


def torchrun_forwards_sigusr1() -> bool:
    """`--signals-to-handle` came with PyTorch 2.10."""
    asked = subprocess.run(
        [PYTHON, "-m", "torch.distributed.run", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "--signals-to-handle" in asked.stdout


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_to_torchrun_saves_and_leaves_no_rank_behind(
    tmp_path: Path, number: signal.Signals
) -> None:
    flags = []
    if number == signal.SIGUSR1:
        if not torchrun_forwards_sigusr1():
            pytest.skip("this torchrun cannot forward SIGUSR1")
        flags = ["--signals-to-handle=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1"]
    command = [
        *(PYTHON, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *flags),
        *(str(TRAINERS / DDP[0]), *DDP[1:], "--batch-size", "64", "--epochs", "50"),
    ]
    with started([command], [clean_environ(tmp_path)]) as job:
        job.wait_for_step(6)
        workers = children(job.processes[0].pid)
        assert len(workers) == 2
        job.signal(number)
        assert job.wait() == [1]  # torchrun's own code for every signal; the stop line says more
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    stop = told(tmp_path)[-1]
    assert (stop["event"], stop["signal"]) == ("stop", number.name)
    assert stop["step"] == max(losses(tmp_path))
    assert (tmp_path / "checkpoints" / "last.pt").exists()


def children(pid: int) -> list[int]:
    if not sys.platform.startswith("linux"):
        pytest.skip("needs /proc")
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_wrong_data_ends_every_rank_before_they_meet(tmp_path: Path) -> None:
    with ranks(tmp_path, 2, *DDP, "--data", "/nowhere") as job:
        assert job.wait() == [2, 2]
    assert job.output().count("There is no data folder /nowhere") == 1
    assert "Traceback" not in job.output()


# --------------------------------------------------------------------------- deepspeed


@pytest.mark.usefixtures("needs_deepspeed")
def test_deepspeed_trains_and_resumes_with_the_same_losses(tmp_path: Path) -> None:
    # Dropout in this model: a step's random numbers have to be the same after a resume.
    train(tmp_path / "whole", 2, *ZERO)
    expected = losses(tmp_path / "whole")
    assert list(expected) == list(range(1, 33))
    assert expected[32] < 0.9 * expected[1]
    start = told(tmp_path / "whole")[0]
    assert start.items() >= {"strategy": "zero1", "global_batch": 64, "world_size": 2}.items()
    tmp = tmp_path / "whole" / "tmp"
    assert not [*tmp.glob("deepspeed-*"), *tmp.rglob("*.so")]  # nothing compiled, nothing left

    parted = tmp_path / "parted"
    with ranks(parted, 2, *ZERO) as job:
        job.wait_for_step(18)
        job.processes[1].send_signal(signal.SIGUSR1)
        assert job.wait() == [STOPPED_EARLY] * 2, job.output()
    step = max(losses(parted))
    assert step < 32
    assert (parted / "checkpoints" / "latest").read_text() == f"step-{step:08d}"
    with ranks(parted, 1, *ZERO, "--resume") as job:
        assert job.wait() == [2]
    assert "parts are of 2 ranks, this run has 1" in job.output()
    train(parted, 2, *ZERO, "--resume")
    assert losses(parted) == expected  # to the last digit
    assert len(list((parted / "checkpoints").glob("step-*"))) == 1


@pytest.mark.usefixtures("needs_deepspeed")
def test_deepspeed_trains_alone_and_goes_on_with_an_edited_rate(tmp_path: Path) -> None:
    command = [PYTHON, str(TRAINERS / ZERO[0]), *ZERO[1:], "--steps", "3", "--seed", "1234567890"]
    with started([command], [clean_environ(tmp_path)]) as job:
        assert job.wait() == [0], job.output()
    assert list(losses(tmp_path)) == [1, 2, 3]
    # A rate that was edited since counts; the optimizer's state has the old one in it.
    config = json.loads((TRAINERS / "ds_config.json").read_text())
    config["optimizer"]["params"]["lr"] = 0.0005
    (tmp_path / "ds.json").write_text(json.dumps(config))
    command[-3] = "4"
    command += ["--resume", "--deepspeed_config", str(tmp_path / "ds.json")]
    with started([command], [clean_environ(tmp_path)]) as job:
        assert job.wait() == [0], job.output()
    assert [line["lr"] for line in told(tmp_path) if "loss" in line] == [0.002] * 3 + [0.0005]


KILLED_IN_SAVE = """
import os, runpy, signal, sys
from pathlib import Path
import deepspeed

real, calls, path, fatal = deepspeed.DeepSpeedEngine.save_checkpoint, [], sys.argv[1], sys.argv[2]

def save(engine, folder, tag, **options):
    calls.append(tag)
    if len(calls) == int(fatal):
        for file in Path(folder, tag).glob("*.pt"):
            file.write_bytes(b"")  # opened anew, and not a byte is written
        os.kill(os.getpid(), signal.SIGKILL)
    return real(engine, folder, tag=tag, **options)

deepspeed.DeepSpeedEngine.save_checkpoint = save
sys.argv[:3] = [path]
sys.path.insert(0, str(Path(path).parent))
runpy.run_path(path, run_name="__main__")
"""


@pytest.mark.usefixtures("needs_deepspeed")
def test_no_kill_while_deepspeed_saves_costs_the_last_checkpoint(tmp_path: Path) -> None:
    def killed_in_save(number: int) -> int:
        words = ("--limit", "128", "--epochs", "1", "--save-every", "2", "--eval", "never")
        program = [PYTHON, "-c", KILLED_IN_SAVE, str(TRAINERS / ZERO[0]), str(number), *words]
        with started([program], [clean_environ(tmp_path)]) as job:
            return job.wait()[0]

    folder = tmp_path / "checkpoints"
    # The last step is saved when it is due, and at the end only its position is written anew.
    assert killed_in_save(2) == 0
    assert (folder / "latest").read_text() == "step-00000002"
    kept = {path: path.read_bytes() for path in sorted(folder.glob("step-00000002/*"))}
    position = json.loads(kept[folder / "step-00000002" / "position.json"])
    assert (position["step"], position["epoch"], position["samples"]) == (2, 1, 0)
    # Begun anew in the same folder, the same step does not go over it either.
    assert killed_in_save(1) == -signal.SIGKILL
    assert {path: path.read_bytes() for path in kept} == kept
    assert killed_in_save(2) == 0
    assert (folder / "latest").read_text() == "step-00000002-anew"
    assert [path.name for path in folder.glob("step-*")] == ["step-00000002-anew"]


@pytest.mark.usefixtures("needs_deepspeed")
@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ('{"train_batch_size": 63}', "63 != 31 * 1 * 2"),
        ("{train_batch_size: ", "DeepSpeed refuses"),
        (None, "There is no DeepSpeed configuration"),
    ],
)
def test_a_wrong_configuration_gives_a_sentence(
    tmp_path: Path, config: str | None, complaint: str
) -> None:
    path = tmp_path / "ds.json"
    if config:
        path.write_text(config)
    with ranks(tmp_path, 2, *ZERO, "--deepspeed_config", str(path)) as job:
        assert job.wait() == [2, 2], job.output()
    assert complaint in job.output()
    assert "Traceback" not in job.output()
