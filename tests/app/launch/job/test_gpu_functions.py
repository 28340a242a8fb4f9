"""gpus.sh: the readings of a node's GPUs become a few figures, whatever the command prints."""

import json
from pathlib import Path

import pytest

from lumitui.remote.site.gpu_use import GpuUse, gpu_use_of
from tests.support.jobs.job_functions import made_folder, run_bash, sourced
from tests.support.places import ROOT

ROCM = ROOT / "tests" / "support" / "replies" / "rocm_smi"
NVIDIA = "0, 412.55, 60123, 65247, 98\n1, 66.10, 4, 65247, 0\n"


def use_of(folder: Path, gpus: int, *readings: str) -> GpuUse | None:
    """Return the figures of readings that come after 10 s, 20 s, 40 s, and so on."""
    made_folder(folder)
    for at, text in enumerate(readings):
        (folder / f"reading-{at}").write_text(text)
    lines = " ".join(f"cat reading-{at}; echo read {10 * 2**at};" for at in range(len(readings)))
    done = run_bash(folder, f"{sourced('gpus')}{{ {lines} }} | lumitui_gpu_use {gpus}", {})
    assert (done.returncode, done.stderr) == (0, "")
    file = folder / "gpu_use.json"
    return gpu_use_of(json.loads(file.read_text())) if file.exists() else None


def test_each_reading_counts_for_its_time(tmp_path: Path) -> None:
    busy = NVIDIA.replace(", 0\n", ", 12\n")
    use = use_of(tmp_path / "run", 2, NVIDIA, NVIDIA, busy)
    # Of 140 GPU seconds, GPU 1 was idle in the first 30.
    assert use == GpuUse(70, 2, 2, 0.2143, round((98 * 70 + 12 * 40) / 140, 1), 60123, 65247)


def test_what_rocm_smi_prints(tmp_path: Path) -> None:
    text = "".join(run_bash(made_folder(tmp_path / "smi"), f"sh {ROCM}", {}).stdout)
    assert use_of(tmp_path / "run", 4, text) == GpuUse(10, 4, 2, 0.5, 49.8, 49152, 65520)


@pytest.mark.parametrize(
    "text",
    [NVIDIA, "", "no such command\n", '{"card0": {"GPU use (%)": "N/A"}}\n', "{\n0, 1, 2, 3, 4\n"],
    ids=["more GPUs than the job has", "nothing", "an error", "no figures", "cut"],
)
def test_what_is_not_the_jobs_own_gpus_is_left_out(tmp_path: Path, text: str) -> None:
    assert use_of(tmp_path / "run", 8, text) is None


def test_the_readings_run_beside_the_program_and_end_with_the_script(tmp_path: Path) -> None:
    folder = made_folder(tmp_path / "run it's-1", sleep="#!/bin/sh\nexec /bin/sleep 0.1\n")
    (folder / "gpu_use.json").write_text("an earlier attempt's")
    text = f"""{sourced("gpus")}lumitui_begin
lumitui_gpus 2 'echo "$$" >>pids; printf "{NVIDIA}"'
/bin/sleep 2; echo on"""
    done = run_bash(folder, text, {})  # it ends only when nothing holds its output any more
    assert (done.returncode, done.stdout, done.stderr) == (0, "on\n", "")
    use = gpu_use_of(json.loads((folder / "gpu_use.json").read_text()))
    assert use is not None and use.seconds >= 70 and use.low == 0.5
    run_bash(folder, "/bin/sleep 0.5", {})  # a reading may be under way when the script ends
    before = (folder / "pids").read_text()
    run_bash(folder, "/bin/sleep 0.5", {})
    assert (folder / "pids").read_text() == before


WRITTEN = {
    "seconds": 1, "gpus": 1, "busy": 0, "used_mib": 0, "memory_mib": 1, "low": 1, "mean": 1,
}  # fmt: skip


def test_a_whole_file_is_read() -> None:
    assert gpu_use_of(WRITTEN) == GpuUse(1, 1, 0, 1.0, 1.0, 0, 1)


@pytest.mark.parametrize(
    "data",
    [
        None, [], {}, {"seconds": 0}, "x" * 100,
        WRITTEN | {"low": 2}, WRITTEN | {"gpus": 0}, WRITTEN | {"busy": True},
    ],
)  # fmt: skip
def test_another_programs_file_tells_nothing(data: object) -> None:
    assert gpu_use_of(data) is None
