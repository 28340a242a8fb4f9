"""Replacements for srun, scontrol, scancel and timeout, for jobs that run as plain processes.

Started by path with the isolated interpreter (`-I -S`), like `supervisor`: this file and its
imports use only the standard library. Each command is in the folder that comes first in the job's
PATH.
"""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

# The package's folder comes last, so that it cannot hide the standard library.
sys.path.append(str(Path(__file__).absolute().parents[3]))

from lumitui.remote.laptop.job_store import CANCEL, DOOR, REQUEUE, knock
from lumitui.remote.laptop.process_tree import KILL_WAIT, STEPS_VARIABLE
from lumitui.remote.laptop.step import LocalStep, Task, report

ADDRESS = "127.0.0.1"
"""Every node's address: for some programs, `localhost` may be only ::1."""

_VALUED = """
account chdir constraint cpu-bind cpus-per-gpu cpus-per-task distribution error exclude export
export-file gpu-bind gpus gpus-per-node gpus-per-task gres hint input jobid job-name mem
mem-bind mem-per-cpu mem-per-gpu mpi network nodelist nodes ntasks ntasks-per-gpu
ntasks-per-node open-mode output partition qos relative reservation signal threads-per-core time
wait
"""
_SHORT = {"n": "ntasks", "N": "nodes", "K": "kill-on-bad-exit", "l": "label"}
_SHORT_VALUED = "ACDGJLMNRSTWceimnopqrtwx"


def parse(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return srun's options and the command; options without a meaning here are accepted."""
    options: dict[str, str] = {}
    words = list(arguments)
    while words and words[0].startswith("-") and words[0] != "-":
        word = words.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and name in _VALUED.split() and words:
                value = words.pop(0)
        else:
            name, value = _SHORT.get(word[1], word[1]), word[2:]
            if not value and word[1] in _SHORT_VALUED and words:
                value = words.pop(0)
        options[name] = value
    return options, words


def layout(options: dict[str, str], environment: dict[str, str]) -> list[Task]:
    """Return the tasks of a step, in blocks over the job's nodes.

    Raises:
        ValueError: a count is not a number, or less than 1, or more than the job has.
    """
    job_nodes = int(environment.get("SLURM_JOB_NUM_NODES", "1"))
    nodes = int(options["nodes"].partition("-")[0]) if "nodes" in options else job_nodes
    per_node = int(options["ntasks-per-node"]) if "ntasks-per-node" in options else None
    if "ntasks" in options:
        count = int(options["ntasks"])
    elif per_node is not None:
        count = nodes * per_node
    else:
        count = int(environment.get("SLURM_NTASKS", "1")) if nodes == job_nodes else nodes
    if min(count, nodes, per_node or 1) < 1 or nodes > job_nodes:
        raise ValueError("Unable to create step: Requested node configuration is not available")
    nodes = min(nodes, count)
    if per_node is not None and count > nodes * per_node:
        raise ValueError("Unable to create step: More processors requested than permitted")
    sizes = [count // nodes + (node < count % nodes) for node in range(nodes)]
    places = [(node, local) for node, size in enumerate(sizes) for local in range(size)]
    return [Task(rank, local, node) for rank, (node, local) in enumerate(places)]


def bound_cores(option: str) -> tuple[frozenset[int], ...]:
    """Return the cores of each local task from `--cpu-bind=[v,]mask_cpu:MASK,...`.

    Other kinds of binding do nothing, and so do systems without CPU affinity.
    """
    match = re.fullmatch(r"(?:(?:v|verbose|q|quiet),)?mask_cpu[:=](.+)", option)
    if not match or not hasattr(os, "sched_setaffinity"):
        return ()
    try:
        masks = [int(mask, 16) for mask in match[1].split(",")]
    except ValueError:
        return ()
    bits = (range(mask.bit_length()) for mask in masks)
    return tuple(
        frozenset(bit for bit in places if mask >> bit & 1)
        for mask, places in zip(masks, bits, strict=True)
    )


def srun(arguments: list[str]) -> int:
    """Run a command as the tasks of a step."""
    options, command = parse(arguments)
    try:
        tasks = layout(options, dict(os.environ))
    except ValueError as error:
        report(f"error: {error}")
        return 1
    if not command:
        report("fatal: No command given to execute.")
        return 1
    names = os.environ.get("SLURM_JOB_NODELIST", "node1").split(",")
    number, mark = 0, None
    if folder := os.environ.get(STEPS_VARIABLE):
        # The mark shows the supervisor that this process's descendants are tasks.
        mark = Path(folder) / str(os.getpid())
        mark.touch()
        number = _number(Path(folder))
    bad_exit = options.get("kill-on-bad-exit", "0") != "0"
    cores = bound_cores(options.get("cpu-bind", ""))
    try:
        return LocalStep(command, tasks, names, number, "label" in options, bad_exit, cores).run()
    finally:
        if mark is not None:
            mark.unlink(missing_ok=True)


def _number(folder: Path) -> int:
    """Return the step's number: the first that no other step of the job has."""
    number = 0
    while True:
        try:
            (folder / f"step.{number}").touch(exist_ok=False)
        except FileExistsError:
            number += 1
        else:
            return number


def scontrol(arguments: list[str]) -> int:
    """Run a job script's scontrol requests: node addresses, and its own job."""
    own = os.environ.get("SLURM_JOB_ID", "")
    match [word.lower() for word in arguments]:
        case ["show", "hostnames" | "hostname", *names]:
            listed = names[0] if names else os.environ.get("SLURM_JOB_NODELIST", "node1")
            print("\n".join(ADDRESS for _ in listed.split(",")))
        case ["show", "job", job] if job == own:
            restarts = os.environ.get("SLURM_RESTART_COUNT", "0")
            name = os.environ.get("SLURM_JOB_NAME", "")
            print(f"JobId={job} JobName={name} JobState=RUNNING Requeue=1 Restarts={restarts}")
        case ["requeue", job] if job == own:
            return _tell(REQUEUE)
        case _:
            print(
                "scontrol: error: only `show hostnames`, and `show job` and `requeue` of this "
                "job, are available here.",
                file=sys.stderr,
            )
            return 1
    return 0


def scancel(arguments: list[str]) -> int:
    """End this job; other jobs, including those of a real Slurm here, are inaccessible."""
    if arguments[-1:] != [os.environ.get("SLURM_JOB_ID", "")]:
        print("scancel: error: only this job can be cancelled here.", file=sys.stderr)
        return 1
    return _tell(CANCEL)


def _tell(words: bytes) -> int:
    """Tell the supervisor to end the job, or to end this attempt and start the next one."""
    door = knock(Path(os.environ.get(STEPS_VARIABLE, "")).parent / DOOR)
    if door is None:
        print("error: the job's supervisor is gone.", file=sys.stderr)
        return 1
    os.write(door, words)
    os.close(door)
    return 0


def timeout(arguments: list[str]) -> int:
    """Run a command with a time limit in seconds; return 124 after it, like GNU timeout."""
    patience = KILL_WAIT + 2
    if arguments[0] == "-k":
        patience, arguments = float(arguments[1]), arguments[2:]
    seconds, *command = arguments
    with subprocess.Popen(command, process_group=0) as process:
        try:
            code = process.wait(float(seconds))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            return 124
    return 128 - code if code < 0 else code


if __name__ == "__main__":
    programs = {"srun": srun, "scontrol": scontrol, "scancel": scancel, "timeout": timeout}
    sys.exit(programs[sys.argv[1]](sys.argv[2:]))
