"""Jobs that end in every way a job can, on the mini cluster, and what is awaited of them."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lumitui.app.history.run import Run
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import RefusedError
from tests.support.jobs.small_jobs import hello_job, wait_until
from tests.support.places import CLUSTER
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

PROGRAM = """\
#!/bin/bash
attempt=$((${SLURM_RESTART_COUNT:-0} + 1))
echo "rank $RANK of $HOW, attempt $attempt"
eat() { head -c 700000000 /dev/zero | tail -c 650000000 >/dev/null; exit; }
say() { [ "$RANK" != 0 ] || echo "$1" >>"$RUN_DIR/metrics.jsonl"; }
say '{"event": "start", "world_size": 2}'
for step in 1 2 3; do say "{\\"step\\": $step, \\"loss\\": 0.$attempt, \\"seconds\\": 1}"; done
case $HOW in
  well) exit 0 ;;
  rank-3) [ "$RANK" != 3 ] || exit 7 ;;
  memory) [ "$RANK" = 0 ] || eat ;;
  memory-alone) eat ;;
  again*) [ $attempt = 1 ] || exit "${HOW#again-}" ;;
  # Each attempt leaves an exit file.
  revived) if [ $attempt = 1 ]; then exit 9; else exit 3; fi ;;
  until-told) until [ -e "$RUN_DIR/go-on" ]; do sleep 0.2; done; exit 0 ;;
esac
sleep 600 & wait
"""
"""What the ranks do: HOW says it."""


@contextmanager
def opened(cluster: Cluster, folder: Path) -> Iterator[Runs]:
    """Open a core of its own with the mini cluster as its site."""
    home = Home(folder / "config", folder / "data")
    (home.config / "sites").mkdir(parents=True)
    home.add_cluster(cluster)
    core = Runs(home.settings)
    yield core
    core.close()


def send(runs: Runs, project: Path, how: str, **changes: object) -> Run:
    """Send a job that ends as `how` says; two ranks on one node unless told otherwise."""
    project.mkdir(exist_ok=True)
    program = project / "program"
    if not program.exists():
        program.write_text(PROGRAM)
        program.chmod(0o755)
    job: dict[str, object] = {
        "name": how,
        "script": "program",
        "env": {"HOW": how},
        "container": {"none": True},
        "cpus_per_task": 1,
        "memory": "400M",
        "proof": "off",
    }
    return runs.send(runs.preview(hello_job(**(job | changes)), project))


def text_of(runs: Runs, run: Run, attempt: int = 1) -> str:
    """Return the log of an attempt as far as it is there."""
    try:
        return runs.read_log(run.id, attempt=attempt)[1].decode()
    except RefusedError:
        return ""


def until_it_says(runs: Runs, run: Run, words: str, attempt: int = 1) -> None:
    """Wait until the log of an attempt has `words`."""
    wait_until(lambda: words in text_of(runs, run, attempt), 90, f"{run.id} says {words}")


def queue(cluster: Cluster, run: Run) -> str:
    """Return squeue's word for the run's job; "" when it is forgotten."""
    shown = cluster.admin("squeue", "-h", "-t", "all", "-o", "%A %T").stdout.split()
    return dict(zip(shown[::2], shown[1::2], strict=True)).get(run.job_id or "", "")


def start_again(cluster: Cluster, run: Run) -> None:
    """Let a requeued job start soon; by itself it waits for two minutes.

    Not at once: slurmd compares the new credential's time with the revoked one's in whole seconds,
    and in the same second it also refuses the new one (the job fails: "credential revoked").
    """
    wait_until(lambda: queue(cluster, run) == "PENDING", 60, f"{run.id} waits again")
    done = cluster.admin("scontrol", "update", f"jobid={run.job_id}", "StartTime=now+2seconds")
    assert done.returncode == 0, done.stderr


def in_shell(cluster: Cluster, command: str) -> str:
    """Run a command as the person would on the login node."""
    done = cluster.login(command, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def occupy(cluster: Cluster, node: str) -> str:
    """Start somebody else's job, of more priority, on the whole of a node; return its id."""
    options = f"-A {cluster.account} -p small-g -t 5 -w {node} --exclusive -o /dev/null"
    return in_shell(cluster, f"sbatch --parsable {options} --wrap {shlex.quote('sleep 300')}")


def bring_up(cluster: Cluster) -> None:
    """Start again what was ended of the cluster, and bring its configuration back."""
    env = {**os.environ, "ROOT": str(cluster.root)}
    up = [str(CLUSTER / "up")]
    # A node's first registration may be lost while the machine is busy; it comes again.
    for _ in range(2):
        done = subprocess.run(up, capture_output=True, text=True, timeout=180, env=env)
        if done.returncode == 0:
            return
    raise AssertionError(done.stderr)


def limits_memory(cluster: Cluster) -> bool:
    """Whether the kernel limits the memory of the cluster's jobs."""
    return "TaskPlugin=task/cgroup" in (cluster.root / "etc" / "slurm.conf").read_text()


@contextmanager
def accident(cluster: Cluster, command: str, script: str) -> Iterator[None]:
    """Let `script` stand before a Slurm command of the login node; it gets the real one's path."""
    folder = cluster.root / "accidents"
    folder.mkdir(exist_ok=True)
    path = folder / command
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    try:
        yield
    finally:
        path.unlink()


def pid_of(cluster: Cluster, name: str) -> int:
    """Return the process id of a daemon of the cluster."""
    return int((cluster.root / "run" / f"{name}.pid").read_text())


def ended_daemon(cluster: Cluster, name: str) -> None:
    """End a daemon of the cluster by its pid, and wait until it is gone."""
    pid = pid_of(cluster, name)
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: not Path(f"/proc/{pid}").exists(), 20, f"{name} has ended")


def kill_node(cluster: Cluster, node: str) -> None:
    """Kill every process with the host name of a node, as if its power failed."""
    daemon = pid_of(cluster, f"slurmd.{node}")
    there = os.stat(f"/proc/{daemon}/ns/uts").st_ino
    pids = []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if os.stat(entry / "ns" / "uts").st_ino == there:
                pids.append(int(entry.name))
    assert daemon in pids
    assert len(pids) > 4  # slurmstepd of a job and of its step, its shell and its tasks
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def process_of(run: Run, rank: int) -> int:
    """Return the id of the process that trains as a rank; the nodes are this machine."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            known = (folder / "environ").read_bytes().split(b"\0")
            name = (folder / "cmdline").read_bytes().split(b"\0")[0]
        except OSError:
            continue
        mine = f"RANK={rank}".encode() in known and f"RUN_DIR={run.folder}".encode() in known
        if mine and b"python" in name:
            return int(folder.name)
    raise AssertionError(f"no process of rank {rank}")
