"""Jobs whose ranks say themselves where they are, to hold against the proof of binding."""

import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, parse_job
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.remote.site.run_folder import MACHINERY, PROBE_SCRIPT
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

WHERE = """\
import json, os, sys, time
rank = os.environ["RANK"]
here = {"rank": int(rank), "local_rank": int(os.environ["LOCAL_RANK"]), "host": os.uname().nodename,
        "cores": sorted(os.sched_getaffinity(0)), "gpus": os.environ.get("ROCR_VISIBLE_DEVICES")}
with open(os.path.join(os.environ["RUN_DIR"], f"where-{rank}.json"), "w") as file:
    json.dump(here, file)
if sys.argv[1:] == ["wait"]:
    while not os.path.exists(os.path.join(os.environ["RUN_DIR"], "go")):
        time.sleep(0.2)
"""
Plant = Callable[[str], str]
"""A change of what is sent: a fault."""
CONTAINERS: dict[str, dict[str, object]] = {
    "laif": {"generation": "laif"},
    "legacy": {"generation": "legacy"},
    "none": {"none": True},
}


@dataclass(frozen=True)
class Where:
    """What one rank of the program itself measured."""

    rank: int
    local_rank: int
    host: str
    cores: tuple[int, ...]
    gpus: str | None


@dataclass(frozen=True)
class Proving:
    """The core with the mini cluster, and a project whose ranks say where they are."""

    runs: Runs
    cluster: Cluster
    project: Path

    def preview(self, spec: JobSpec) -> Preview:
        """Return the launch of `spec` with the project's program."""
        return self.runs.preview(spec, self.project)

    def send(self, spec: JobSpec, script: Plant | None = None, probe: Plant | None = None) -> Run:
        """Send a job; `script` (for job.sh and lumitui.sh) and `probe` change what is sent.

        A job that the rules refuse is sent, too: it is the fault that the proof must find.
        """
        preview = self.preview(spec)
        launch = preview.launch
        if script is not None:
            launch = replace(launch, script=script(launch.script))
            launch = _planted(launch, MACHINERY, script)
            assert launch != preview.launch
        if probe is not None:
            before = launch
            launch = _planted(launch, PROBE_SCRIPT, probe)
            assert launch != before
        return self.runs.send(replace(preview, launch=launch, forced=True))

    def finish(self, runs: Sequence[Run], seconds: float = 720.0) -> list[Run]:
        """Wait until all have ended; they run side by side."""
        deadline = time.monotonic() + seconds
        while True:
            for site in {run.site for run in runs}:
                self.runs.refresh(site)
            now = [self.runs.history.get(run.id) for run in runs]
            if all(run.state.is_final for run in now):
                return now
            waiting = [f"{run.id} {run.state} {run.reason}" for run in now]
            assert time.monotonic() < deadline, waiting
            time.sleep(0.5)

    def where(self, run: Run) -> list[Where]:
        """Return what the program's ranks measured, by rank."""
        texts = [path.read_text() for path in Path(run.folder).glob("where-*.json")]
        found = [json.loads(text) for text in texts]
        return sorted(
            (Where(**item | {"cores": tuple(item["cores"])}) for item in found),
            key=lambda item: item.rank,
        )

    def log(self, run: Run) -> str:
        """Return the run's log."""
        return self.runs.read_log(run.id)[1].decode()


def _planted(launch: Launch, name: str, plant: Plant) -> Launch:
    files = [replace(f, content=plant(f.content)) if f.name == name else f for f in launch.files]
    return replace(launch, files=tuple(files))


def in_tasks(words: str) -> Plant:
    """Plant sh into every task, before the probe and before the program."""
    export = re.compile(r"export RANK=\$SLURM_PROCID LOCAL_RANK=\$SLURM_LOCALID[^;]*; ")
    return lambda script: export.sub(lambda found: f"{found[0]}{words} ", script)


def in_probe(words: str) -> Plant:
    """Plant sh into the beginning of the probe."""
    return lambda probe: probe.replace("umask 077\n", f"umask 077\n{words}\n", 1)


def before_proof(words: str) -> Plant:
    """Plant bash into the job, before the proof."""
    return lambda script: script.replace("\nlumitui_prove ", f"\n{words}\nlumitui_prove ", 1)


def where_job(
    *,
    launcher: str = "srun",
    container: str = "none",
    ranks: int = 8,
    nodes: int = 1,
    **more: object,
) -> JobSpec:
    """Return a job on whole nodes whose ranks only say where they are."""
    data = {
        "name": f"where-{launcher}-{container}-{ranks}x{nodes}",
        "site": "minilumi",
        "account": "project_462000001",
        "partition": "standard-g",
        "nodes": nodes,
        "gpus_per_node": ranks,
        "time": "00:05:00",
        "launcher": launcher,
        "container": CONTAINERS[container],
        "script": "where.py",
    }
    return parse_job("\n".join(f"{k}: {json.dumps(v)}" for k, v in (data | more).items()), "where")


@contextmanager
def proving(home: Home, cluster: Cluster, project: Path) -> Iterator[Proving]:
    """Open the core; make the project; jobs without a container find the cluster's Python."""
    sites = {
        "minilumi": "",
        "numa": "torchrun_binding: numa\n",
        "masks": "torchrun_binding: masks\n",
        "hydra": "",
    }
    for name, more in sites.items():
        home.add_cluster(cluster, name)
        profile = home.config / "sites" / f"{name}.yaml"
        text = profile.read_text()
        if name == "hydra":
            text = text.replace("openmpi, command: mpirun.openmpi", "hydra, command: mpiexec.hydra")
        profile.write_text(f"{text}\npython: {cluster.python}\n{more}")
    (project / "where.py").write_text(WHERE)
    core = Runs(home.settings)
    yield Proving(core, cluster, project)
    core.close()
