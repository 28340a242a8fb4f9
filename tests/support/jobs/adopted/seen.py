"""What a script's program finds when bash runs the script: its arguments and its variables.

Each program that the script starts is a stand-in: srun, containers and launchers become what they
start, Python writes down what it got, and what would change a file does nothing.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_STARTS = (
    "srun", "singularity", "apptainer", "mpirun", "timeout", "numactl", "nsys", "conda", "time",
    "env", "singularity_wrapper", "taskset",
)  # fmt: skip
_RECORDS = ("python", "python3", "python3.11", "torchrun", "accelerate", "deepspeed")
_NOTHING = (
    "mkdir", "cp", "mv", "rm", "tar", "rsync", "touch", "pip", "make", "sleep", "nvidia-smi",
    "wandb", "module", "ml", "git", "mktemp", "chmod",
)  # fmt: skip
_REAL = (
    "bash",
    "xargs",
    "grep",
    "ls",
    "sh",
    "sed",
    "cut",
    "head",
    "tr",
    "cat",
    "base64",
    "hostname",
    "date",
    "dirname",
)
_STAND_IN = """#!{python} -IS
import os, sys
name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "scontrol":
    print("node1\\nnode2")
elif name in {records}:
    import json
    with open(os.environ["SEEN"], "a") as file:
        file.write(json.dumps([[name, *words], dict(os.environ), os.getcwd()]) + "\\n")
else:
    if name == "srun":
        os.environ.update(SLURM_PROCID="0", SLURM_LOCALID="0", SLURM_NODEID="0")
        for number, word in enumerate(words):
            if word.startswith("--export=ALL,"):
                os.environ.update(part.split("=", 1) for part in word[13:].split(","))
    known = {records} + {starts} + ("bash", "sh", "./stage.sh")
    for number, word in enumerate(words):
        if os.path.basename(word) in known:
            program = os.path.basename(word)
            os.execvp(program, [program, *words[number + 1:]])
        if name == "env" and "=" in word:
            os.environ.update([word.split("=", 1)])
        if name == "singularity" and word == "--env":
            os.environ.update([words[number + 1].split("=", 1)])
"""
_SLURM = {
    "SLURM_JOB_ID": "4711", "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_ACCOUNT": "acc",
    "USER": "me", "HOME": "/home/me", "LANG": "C.UTF-8",
}  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """What one start of a program found."""

    words: tuple[str, ...]
    variables: dict[str, str]
    folder: str
    """Where it ran, from the project's root."""

    def after(self, program: str) -> tuple[str, ...] | None:
        """Return the arguments after `program`, a file's name; None: it was not started."""
        for number, word in enumerate(self.words):
            if word.rsplit("/", 1)[-1] == program:
                return self.words[number + 1 :]
        return None


def seen(script: str, folder: Path, slurm: dict[str, str]) -> list[Seen]:
    """Run a script with stand-ins in an empty folder and return what its programs found."""
    shutil.rmtree(folder, ignore_errors=True)
    tools, work = folder / "bin", folder / "work"
    tools.mkdir(parents=True)
    for inside in (work, work / "code"):
        (inside / "multi" / "data").mkdir(parents=True)
        (inside / "venv" / "bin").mkdir(parents=True)
        for name in ("venv/bin/activate", "env.sh", "list.txt"):
            (inside / name).touch()
    text = _STAND_IN.format(python=sys.executable, records=_RECORDS, starts=_STARTS)
    (tools / "stand-in").write_text(text)
    (tools / "stand-in").chmod(0o755)
    for name in (*_STARTS, *_RECORDS, *_NOTHING, "scontrol"):
        (tools / name).symlink_to("stand-in")
    for name in _REAL:
        (tools / name).symlink_to(shutil.which(name) or f"/usr/bin/{name}")
    log = folder / "seen"
    log.touch()
    variables = {**_SLURM, **slurm, "PATH": str(tools), "SEEN": str(log),
                 "SLURM_SUBMIT_DIR": str(work)}  # fmt: skip
    (work / "job.sh").write_text(script)
    subprocess.run(
        [shutil.which("bash") or "/bin/bash", "job.sh"], cwd=work, env=variables, timeout=20,
        stdin=subprocess.DEVNULL, capture_output=True, check=False,
    )  # fmt: skip
    found = [json.loads(line) for line in log.read_text().splitlines()]
    return [
        Seen(tuple(words), dict(each), os.path.relpath(at, work).removeprefix("code/"))
        for words, each, at in found
    ]


def base() -> set[str]:
    """Return the names of variables that every start has."""
    return {*_SLURM, *os.environ, "SEEN", "PATH", "PWD", "OLDPWD", "SHLVL", "_", "LC_CTYPE"}
