"""The trainers in one process: checkpoints, what they refuse and what they report."""

import importlib
import importlib.metadata
import importlib.util
import io
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.places import TRAINER_MODULES, TRAINERS
from tests.support.trainers.forked import PYTHON
from tests.support.trainers.ranks import Load, alone, clean_environ, reported, train_alone

# ------------------------------------------------------------------------------- the folder


def library_names() -> set[str]:
    """What a file beside a trainer would hide: sys.path starts with the trainer's own folder."""
    well_known = {"accelerate", "datasets", "evaluate", "horovod", "lightning", "transformers"}
    installed = set(importlib.metadata.packages_distributions())
    return well_known | installed | set(sys.stdlib_module_names)


def test_no_trainer_is_named_like_a_library() -> None:
    assert {"torch", "json", "lightning"} <= library_names()
    assert not library_names() & set(TRAINER_MODULES)


@pytest.mark.usefixtures("load")
def test_a_project_with_packages_of_the_same_names_hides_none_of_ours(tmp_path: Path) -> None:
    for name in TRAINER_MODULES:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("raise SystemExit('the wrong package')")
    done = subprocess.run(
        [PYTHON, str(TRAINERS / "ddp.py"), "--help"],
        env=clean_environ(tmp_path) | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_trainers_import_nothing_of_the_laptop() -> None:
    for path in TRAINERS.rglob("*.py"):
        assert "lumitui" not in path.read_text(), path


# ------------------------------------------------------------------------ the learning rate


def test_the_learning_rate_warms_up_and_falls_to_nothing(load: Load) -> None:
    rates = [load("ddp").learning_rate(0.02, done / 1000) for done in range(1001)]
    assert rates[0] == pytest.approx(0.002)
    assert rates.index(max(rates)) == pytest.approx(50, abs=1)
    assert max(rates) == pytest.approx(0.02, rel=0.01)
    assert rates[1000] == pytest.approx(0)


# ---------------------------------------------------------------------------- who I am


FULL = {
    "RANK": "5",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "8",
    "MASTER_ADDR": "nid001",
    "MASTER_PORT": "15678",
}


def test_the_launcher_says_who_i_am(load: Load) -> None:
    ranks = load("ranks")
    assert ranks.read_ranks({}) == ranks.Ranks(0, 0, 1, 1, Path())
    mine = ranks.read_ranks(FULL | {"RUN_DIR": "/run", "LOCAL_WORLD_SIZE": "4"})
    assert mine == ranks.Ranks(5, 1, 8, 4, Path("/run"))
    assert ranks.read_ranks(FULL | {"SLURM_NTASKS_PER_NODE": "4"}).local_world_size == 4


@pytest.mark.parametrize(
    ("environ", "complaint"),
    [
        ({"RANK": "0", "WORLD_SIZE": "2"}, "LOCAL_RANK, MASTER_ADDR, MASTER_PORT"),
        (FULL | {"RANK": "8"}, "RANK=8 does not fit WORLD_SIZE=8"),
        (FULL | {"RANK": "$SLURM_PROCID"}, "not a whole number"),
        ({"SLURM_STEP_NUM_TASKS": "8"}, "RANK is not set"),
    ],
)
def test_a_wrong_launch_is_refused(load: Load, environ: dict[str, str], complaint: str) -> None:
    with pytest.raises(load("reporting").UsageError) as caught:
        load("ranks").read_ranks(environ)
    assert complaint in str(caught.value)


# ------------------------------------------------------------------------- checkpoints


SAVING = """
import resource, sys, torch
sys.path.insert(0, {trainers!r})
import checkpoint
from pathlib import Path
last = Path("last.pt")
checkpoint.save(last, {{"model": {{"step": 1}}}})
big = {{"model": {{"step": 2, "w": torch.zeros(2_000_000)}}}}
print("saved", flush=True)
{loop}
"""


def saver(run_dir: Path, loop: str) -> str:
    """A program that saves a good checkpoint, says so, then saves 8 MB ones."""
    program = run_dir / "saver.py"
    program.write_text(SAVING.format(trainers=str(TRAINERS), loop=loop))
    return str(program)


def step_of(load: Load, path: Path) -> object:
    torch = load("torch")
    tree = load("checkpoint").load(path, torch.device("cpu"))
    return tree["model"]["step"]


def test_a_full_disk_leaves_the_last_checkpoint_whole(load: Load, tmp_path: Path) -> None:
    # A limit on the file's size is the disk that fills up in the middle of a write.
    limited = "resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))\n"
    code, output = train_alone(tmp_path, saver(tmp_path, limited + "checkpoint.save(last, big)"))
    assert code == 1
    assert output.startswith("saved\n")
    assert "File too large" in output
    assert step_of(load, tmp_path / "last.pt") == 1
    assert not list(tmp_path.glob(".*"))


def test_a_kill_while_saving_leaves_a_whole_checkpoint(load: Load, tmp_path: Path) -> None:
    killed_within = 0
    part = tmp_path / ".last.pt.part"
    for _ in range(3):
        part.unlink(missing_ok=True)
        with alone(tmp_path, saver(tmp_path, "while True: checkpoint.save(last, big)")) as job:
            while job.output() != "saved\n":
                pass
            while job.processes[0].poll() is None and not (part.exists() and part.stat().st_size):
                pass
            job.signal(signal.SIGKILL)
            assert job.wait() == [-signal.SIGKILL], job.output()
        killed_within += part.exists()
        assert step_of(load, tmp_path / "last.pt") in (1, 2)
    assert killed_within  # at least one was killed in the middle of a write


class Attack:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self.path,)


def test_a_file_that_is_no_checkpoint_is_refused(load: Load, tmp_path: Path) -> None:
    checkpoint, reporting, torch = load("checkpoint"), load("reporting"), load("torch")
    whole = io.BytesIO()
    torch.save({"model": {"step": 1}}, whole)
    contents = {
        "cut": whole.getvalue()[:-100],
        "empty": b"",
        "text": b"step 1",
        "other": pickle.dumps([1, 2], protocol=2),
        "code": pickle.dumps(Attack(str(tmp_path / "attacked")), protocol=2),
    }
    for name, content in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(reporting.UsageError, match="not a checkpoint"):
            checkpoint.load(path, torch.device("cpu"))
    assert not (tmp_path / "attacked").exists()


# ----------------------------------------------------------------------- what it tells


def test_metrics_survive_a_torn_line_and_numbers_json_has_not(load: Load, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1}\n{"step": 2, "lo')
    report = load("reporting").Reporter(tmp_path, 0, 10)
    report.step(step=3, epoch=1, loss=float("nan"), lr=0.1, samples=8, seconds=0.5)
    torn, mine = (tmp_path / "metrics.jsonl").read_text().splitlines()[1:]
    assert torn == '{"step": 2, "lo'
    assert json.loads(mine) | {"seconds": 0} == {
        "step": 3,
        "epoch": 1,
        "loss": None,
        "lr": 0.1,
        "samples_per_s": 16.0,
        "seconds": 0,
    }
    load("reporting").Reporter(tmp_path / "other", 1, 10).end(step=3, accuracy=0.5)
    assert not (tmp_path / "other").exists()  # only rank 0 speaks


def test_attempts_are_counted_from_one(load: Load) -> None:
    attempt = load("reporting").attempt
    assert attempt({}) == 1
    assert attempt({"SLURM_RESTART_COUNT": "2"}) == 3
    assert attempt({"SLURM_RESTART_COUNT": "2", "RUN_ATTEMPT": "7"}) == 7


@pytest.mark.slow
@pytest.mark.usefixtures("needs_torch")
def test_the_sample_teaches_the_network(tmp_path: Path) -> None:
    code, output = train_alone(tmp_path, "ddp.py", "--epochs", "1", "--eval", "end")
    assert code == 0, output
    told = reported(tmp_path)
    assert told[0].items() >= {"event": "start", "world_size": 1, "global_batch": 32}.items()
    assert [line["step"] for line in told if "loss" in line] == list(range(1, 251))
    assert told[-1]["event"] == "end"
    accuracy = told[-1]["test_accuracy"]
    assert isinstance(accuracy, float)
    assert accuracy >= 0.9
    assert output.splitlines()[-1] == f"test accuracy {accuracy:.4f}"
    assert (tmp_path / "checkpoints" / "last.pt").exists()


@pytest.mark.usefixtures("needs_torch")
@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("--data", "/nowhere"), "ddp.py: There is no data folder /nowhere. Give --data"),
        (("--epochs", "0"), "'0' is not a whole number of at least 1"),
        (("--limit", "31"), "31 training images are fewer than one global batch of 32 x 1"),
    ],
)
def test_wrong_arguments_give_a_sentence(
    tmp_path: Path, words: tuple[str, ...], complaint: str
) -> None:
    code, output = train_alone(tmp_path, "ddp.py", *words)
    assert code == 2
    assert complaint in output
    assert "Traceback" not in output
    assert not (tmp_path / "checkpoints").exists()


SHORT = ("ddp.py", "--limit", "64", "--steps", "1", "--eval", "never")


@pytest.mark.usefixtures("needs_torch")
def test_a_seed_may_have_any_size_but_may_not_change(tmp_path: Path) -> None:
    code, output = train_alone(tmp_path, *SHORT, "--seed", str(2**70 + 1))
    assert code == 0, output
    code, output = train_alone(tmp_path, *SHORT, "--resume")
    assert code == 2
    assert f"made with seed {2**70 + 1}, this run asks for 0" in output


@pytest.mark.usefixtures("needs_torch")
def test_an_error_leaves_its_file_and_a_new_attempt_removes_it(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("in the way")
    assert train_alone(tmp_path, *SHORT)[0] == 1
    error = json.loads((tmp_path / "errors" / "rank-0.json").read_text())["message"]
    assert "FileExistsError" in error["message"]
    assert int(error["extraInfo"]["timestamp"]) > 1_700_000_000
    (tmp_path / "checkpoints").unlink()
    assert train_alone(tmp_path, *SHORT)[0] == 0
    assert not list((tmp_path / "errors").iterdir())
