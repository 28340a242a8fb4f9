"""Runs the functions that job.sh calls in bash, with stand-ins for Slurm's programs."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lumitui.app.launch.launcher_templates import TEMPLATES


def sourced(*more: str) -> str:
    """Return the lines that load what every job calls, and the files `more`."""
    files = (TEMPLATES / f"job/{name}.sh" for name in ("lumitui", "proof", "failed_rank", *more))
    return "set -eo pipefail\n" + "".join(f". {file}\n" for file in files)


def made_folder(folder: Path, **programs: str) -> Path:
    """Return a run's folder whose first attempt begins, with stand-ins for `programs`."""
    for name in ("bin", "attempt-1.submit"):
        (folder / name).mkdir(parents=True)
    for name, text in programs.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    (folder / "attempt-1.out").write_text("")
    return folder


def run_bash(
    folder: Path, text: str, environ: Mapping[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Run the text of a job in the run's folder; stand-ins write what they are asked to `calls`."""
    (folder / "calls").write_text("")
    env = {
        "PATH": f"{folder}/bin:{os.environ['PATH']}", "CALLS": f"{folder}/calls",
        "SLURM_JOB_ID": "9", "SLURM_JOB_NUM_NODES": "2", "SLURM_SUBMIT_DIR": str(folder),
    }  # fmt: skip
    return subprocess.run(
        ["bash", "-c", text], env={**env, **environ}, cwd=folder, capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
