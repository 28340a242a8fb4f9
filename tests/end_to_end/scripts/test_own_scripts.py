"""The examples of own scripts stop, save and resume as docs/scripts.md says a script may."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.jobs.small_jobs import wait_until
from tests.support.trainers.own_scripts import (
    JAX,
    STEPS,
    TINY,
    TRANSFORMERS,
    TRL,
    environment,
    events,
    horovod_python,
    project,
    run_script,
)
from tests.support.trainers.ranks import STOPPED_EARLY, losses, ranks, reported

PYTHONS: dict[str, Callable[[], Path | None]] = {
    "simple-ddp": lambda: None,
    "accelerate": lambda: None,
    "hf-trainer": lambda: environment("transformers", TRANSFORMERS, sees_ours=True),
    "jax": lambda: environment("jax", JAX),
    "horovod": horovod_python,
}
SLOW = ("hf-trainer", "jax", "horovod")
"""They bring an environment of their own."""
LIMITS = 4
"""Attempts that a training is spread over: as many time limits of a chain."""


def steps(run_dir: Path) -> list[object]:
    """Return the steps in metrics.jsonl, in its order."""
    return [line["step"] for line in reported(run_dir) if "loss" in line]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in PYTHONS],
)
def test_a_script_stops_when_asked_and_goes_on_as_if_it_had_not(tmp_path: Path, name: str) -> None:
    python, script = PYTHONS[name](), project(tmp_path / "code", name)
    words = ("--steps", str(STEPS), "--save-every", "5")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run_script(whole, 2, python, script, *words) == [0, 0]
    curve = losses(whole)
    assert list(curve) == list(range(1, STEPS + 1)) and curve[STEPS] < curve[1]
    assert events(whole) == ["start", "end"]
    assert len(list((whole / "checkpoints").iterdir())) == 2, "after 10 and 12; 5 went"

    parts.mkdir()
    for _ in range(LIMITS - 1):
        (parts / "stop").touch()
        resume = ["--resume"] * (parts / "checkpoints").exists()
        assert run_script(parts, 2, python, script, *words, *resume) == [STOPPED_EARLY] * 2
        assert not (parts / "stop").exists(), "the next attempt would stop, too"
    assert run_script(parts, 2, python, script, *words, "--resume") == [0, 0]
    assert events(parts) == ["start", "stop"] * (LIMITS - 1) + ["start", "end"]
    assert losses(parts) == pytest.approx(curve, rel=1e-5)
    assert steps(parts) == list(range(1, STEPS + 1)), "no step was trained twice"


def test_lightning_stops_and_trains_each_step_once(tmp_path: Path) -> None:
    # Not the same losses: its loader has no state, so that an epoch begins with its first samples.
    script, parts = project(tmp_path / "code", "own-lightning"), tmp_path / "parts"
    parts.mkdir()
    for _ in range(LIMITS - 1):
        (parts / "stop").touch()
        resume = ["--resume"] * (parts / "checkpoints").exists()
        assert run_script(parts, 2, None, script, "--epochs", "2", *resume) == [STOPPED_EARLY] * 2
    assert run_script(parts, 2, None, script, "--epochs", "2", "--resume") == [0, 0]
    assert events(parts) == ["start", "stop"] * (LIMITS - 1) + ["start", "end"]
    assert steps(parts) == list(range(1, 41)), "20 of them in an epoch"


@pytest.mark.slow
def test_a_fine_tuning_with_trl_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    python = environment("trl", TRL, sees_ours=True)
    script = project(tmp_path / "code", "hf-sft")
    subprocess.run([str(python), "-c", TINY, str(tmp_path)], check=True, timeout=120)
    words = ("--model", str(tmp_path / "model"), "--data", str(tmp_path / "train.jsonl"),
             "--batch-size", "8")  # fmt: skip
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run_script(whole, 2, python, script, *words) == [0, 0]
    assert list(losses(whole)) == list(range(1, 13)), "192 lines, 16 a step"
    parts.mkdir()
    for _ in range(LIMITS - 1):
        (parts / "stop").touch()
        resume = ["--resume"] * (parts / "checkpoints").exists()
        assert run_script(parts, 2, python, script, *words, *resume) == [STOPPED_EARLY] * 2
    assert run_script(parts, 2, python, script, *words, "--resume") == [0, 0]
    assert losses(parts) == pytest.approx(losses(whole), rel=1e-5)
    assert steps(parts) == list(range(1, 13))
    assert (parts / "adapter" / "adapter_model.safetensors").is_file()


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGTERM])
def test_a_signal_to_one_rank_stops_all_with_a_checkpoint(
    tmp_path: Path, number: signal.Signals
) -> None:
    script, run_dir = project(tmp_path / "code", "simple-ddp"), tmp_path / "run"
    with ranks(run_dir, 2, str(script), "--steps", "1000000") as job:
        wait_until(lambda: (run_dir / "metrics.jsonl").exists())
        os.kill(job.processes[1].pid, number)
        assert job.wait() == [STOPPED_EARLY] * 2, job.output()
    last = max(losses(run_dir))
    assert (run_dir / f"checkpoints/step-{last:08}/state.pt").is_file()
    assert events(run_dir) == ["start", "stop"]


LOADED = """
import os, signal, torch
from torch.utils.data import DataLoader, TensorDataset
import lumitui_run as run
loader = DataLoader(TensorDataset(torch.arange(4e5)), 4, num_workers=2, persistent_workers=True)
batches = iter(loader)
run.start(global_batch=4)
for step, batch in enumerate(batches, 1):
    run.log(step=step, loss=float(batch[0].sum()))
    if step == 20:
        for process in [*(worker.pid for worker in batches._workers), os.getpid()]:
            os.kill(process, signal.SIGUSR1)
    if run.stop_requested():
        break
run.finish()
"""


def test_a_signal_that_reaches_the_processes_that_read_data_kills_none(tmp_path: Path) -> None:
    # Slurm sends its signal to every process of a step; and those that live on hold nothing up.
    project(tmp_path / "code", "simple-ddp")
    script, run_dir = tmp_path / "code" / "loaded.py", tmp_path / "run"
    script.write_text(LOADED)
    with ranks(run_dir, 1, str(script)) as job:
        assert job.wait() == [STOPPED_EARLY], job.output()
    assert events(run_dir) == ["start", "stop"] and "killed" not in job.output()


def test_a_save_that_was_cut_and_a_line_that_was_cut_are_left_out(tmp_path: Path) -> None:
    script, run_dir = project(tmp_path / "code", "simple-ddp"), tmp_path / "run"
    assert run_script(run_dir, 1, None, script, "--steps", "3") == [0]
    (run_dir / "checkpoints" / ".step-00000009").mkdir()
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "lo')
    assert run_script(run_dir, 1, None, script, "--steps", "6", "--resume") == [0]
    whole = [line for line in (run_dir / "metrics.jsonl").read_text().splitlines() if "}" in line]
    assert [line for line in whole if '"step": 4,' in line]
    assert (run_dir / "checkpoints" / "step-00000006").is_dir()


@pytest.mark.slow
def test_jax_learns_the_same_on_any_number_of_ranks(tmp_path: Path) -> None:
    python, script = PYTHONS["jax"](), project(tmp_path / "code", "jax")
    words = ("--steps", "12")
    run_script(tmp_path / "one", 1, python, script, *words, "--batch-size", "64")
    run_script(tmp_path / "two", 2, python, script, *words, "--batch-size", "32")
    assert losses(tmp_path / "two") == pytest.approx(losses(tmp_path / "one"), rel=1e-4)
