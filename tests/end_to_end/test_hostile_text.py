"""500 hostile strings the long way, on the mini cluster: unchanged at the end, and none was run.

Each goes job file -> preview -> bash -> sbatch -> ssh -> job, as an argument and as a variable,
and comes back byte by byte; names, folders and links are hostile too.
"""

import json
import os
import subprocess
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lumitui.app.history.history import History
from lumitui.app.history.run import Run
from lumitui.app.job.spec import read_job
from lumitui.app.launch.site_names import escaped_text, templates_of
from lumitui.app.runs import Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.attacks.hostile_text import (
    CANARY,
    as_yaml,
    file_name,
    one_line,
    passable,
    written,
)
from tests.support.jobs.small_jobs import wait_until
from tests.support.program.command_line import envelope, lt, on_terminal
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

STRINGS = 500
JOBS = 8
PROGRAM = """\
import json, os, sys
run = os.environ["RUN_DIR"]
hexed = lambda text: os.fsencode(text).hex()
said = {
    "argv": [hexed(word) for word in sys.argv[1:]],
    "env": {name: hexed(value) for name, value in os.environ.items() if name.startswith("V_")},
    "cwd": hexed(os.getcwd()),
    "file": hexed(__file__),
    "links": {hexed(entry.name): hexed(os.readlink(entry.path))
              for entry in os.scandir(run + "/code") if entry.is_symlink()},
}
with open(run + "/said.json", "w") as file:
    json.dump(said, file)
"""


@dataclass(frozen=True)
class Trip:
    """One job there and back."""

    data: dict[str, object]
    """The job file."""
    previewed: str
    run: Run
    said: dict[str, object]
    """What the program found, in hex."""
    fetched: str
    """job.sh as it was on the cluster."""


@dataclass(frozen=True)
class Trips:
    """All jobs, and where they were made."""

    home: Home
    folder: Path
    jobs: list[Trip]


def job_of(index: int, words: list[str], names: list[str], targets: list[str]) -> dict[str, object]:
    """Return the job file `index` with its share of the strings."""
    folder, script, link, other = names[4 * index : 4 * index + 4]
    return {
        "name": (targets[5 * index].strip() or "x")[:100],
        "site": "minilumi",
        "account": "project_462000001",
        "partition": "small-g",
        "gpus_per_node": 1,
        "time": "00:05:00",
        "launcher": ("plain", "srun")[index % 2],
        "strategy": "single",
        "proof": "off",
        "script": f"{folder}/{script}.py",
        "workdir": folder,
        "links": {f"l{link}": targets[5 * index + 1], f"l{other}": targets[5 * index + 2]},
        "args": words,
        "env": {f"V_{number}": word for number, word in enumerate(words)},
    }


def escaped_words(data: dict[str, Any], names: Collection[str]) -> dict[str, object]:
    """Return the job file in which `$HOME` and such mean themselves."""
    args = [escaped_text(word, names) for word in data["args"]]
    env = {name: escaped_text(word, names) for name, word in data["env"].items()}
    links = {name: escaped_text(word, names) for name, word in data["links"].items()}
    return {**data, "args": args, "env": env, "links": links}


@pytest.fixture(scope="module")
def trips(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trips]:
    folder = tmp_path_factory.mktemp("trips")
    home = Home(folder / "config", folder / "data")
    (home.config / "sites").mkdir(parents=True)
    home.add_cluster(cluster)
    words = written(passable, STRINGS)
    names, targets = written(file_name, 4 * JOBS), written(one_line.filter(bool), 5 * JOBS)
    share = -(-STRINGS // JOBS)
    here = os.getcwd()
    (folder / "cwd").mkdir()
    os.chdir(folder / "cwd")
    runs = Runs(home.settings)
    made: list[tuple[dict[str, object], str, str]] = []
    expanded = templates_of(runs.sites.load("minilumi"))
    try:
        for index in range(JOBS):
            data = job_of(index, words[index * share : (index + 1) * share], names, targets)
            script = folder / "project" / str(data["script"])
            script.parent.mkdir(parents=True, exist_ok=True)
            script.write_text(PROGRAM)
            path = folder / "project" / f"job-{index}.yaml"
            path.write_text(as_yaml(escaped_words(data, expanded)), encoding="utf-8")
            preview = runs.preview(read_job(path), path.parent)
            run = runs.send(preview)
            made.append((data, preview.launch.script, run.id))
        wait_until(lambda: not runs.refresh().requests, 120, "the end of all jobs")
        jobs = []
        for data, script_text, run_id in made:
            to = folder / "results" / run_id
            runs.fetch(run_id, to, ["said.json", "job.sh"])
            run = runs.history.get(run_id)
            assert run.state is State.DONE, runs.read_log(run_id)[1].decode("utf-8", "replace")
            said = json.loads((to / "said.json").read_text())
            sent = (to / "job.sh").read_bytes().decode()
            jobs.append(Trip(data, script_text, run, said, sent))
        yield Trips(home, folder, jobs)
    finally:
        runs.close()
        os.chdir(here)


def hexed(text: str) -> str:
    return text.encode().hex()


def test_500_strings_reach_the_program_as_they_are(trips: Trips) -> None:
    seen = 0
    for trip in trips.jobs:
        args = trip.data["args"]
        assert isinstance(args, list)
        assert trip.said["argv"] == [hexed(word) for word in args]
        assert trip.said["env"] == {f"V_{n}": hexed(word) for n, word in enumerate(args)}
        seen += len(args)
    assert seen == STRINGS


def test_folders_scripts_and_links_have_their_names(trips: Trips) -> None:
    for trip in trips.jobs:
        links, said = trip.data["links"], trip.said
        assert isinstance(links, dict) and isinstance(said["links"], dict)
        assert said["links"] == {hexed(name): hexed(path) for name, path in links.items()}
        code = f"{trip.run.folder}/code/"
        for what, field in (("cwd", "workdir"), ("file", "script")):
            found = bytes.fromhex(str(said[what])).decode()
            assert found.endswith(f"/code/{trip.data[field]}"), (found, code)


def test_the_preview_is_what_the_cluster_had(trips: Trips) -> None:
    for trip in trips.jobs:
        assert trip.previewed == trip.run.script == trip.fetched


def test_history_and_the_command_line_tell_them_as_they_are(trips: Trips) -> None:
    kept = History(trips.home.settings.history)
    listed = {row["id"]: row for row in envelope(lt(trips.home, "history", "--json"))["data"]}
    for trip in trips.jobs:
        again = kept.get(trip.run.id)
        assert again.name == listed[again.id]["name"] == trip.data["name"]
        dumped = again.spec.model_dump(mode="json", exclude_defaults=True)
        assert dumped["args"] == trip.data["args"] and dumped["env"] == trip.data["env"]
    kept.close()
    trip = trips.jobs[0]
    shown = envelope(lt(trips.home, "show", trip.run.id, "--json"))["data"]
    assert shown["job"]["args"] == trip.data["args"]
    assert shown["script"] == trip.previewed


@pytest.mark.parametrize("verb", ["history", "show", "diff", "preview"])
def test_nothing_of_them_steers_a_terminal(trips: Trips, verb: str) -> None:
    one, two = (trip.run.id for trip in trips.jobs[:2])
    words = {"history": [], "show": [one], "diff": [one, two]}
    path = str(trips.folder / "project" / "job-0.yaml")
    code, shown = on_terminal(trips.home, [verb, *words.get(verb, [path])])
    assert code == 0, shown
    steering = set(shown) & {chr(code) for code in [*range(32), 127, *range(128, 160), 0x202E]}
    assert steering <= {"\n", "\r", "\t"}


def test_slurm_knows_the_runs_by_their_ids(trips: Trips, cluster: Cluster) -> None:
    ids = ",".join(str(trip.run.job_id) for trip in trips.jobs)
    runs = sorted(trip.run.id for trip in trips.jobs)

    def names() -> list[str]:
        rows = cluster.admin("sacct", "-n", "-P", "-X", "-j", ids, "-o", "JobName").stdout
        return sorted(filter(None, rows.split("\n")))

    # Slurmdbd knows a job's end before its beginning, with the step's name, for some seconds.
    wait_until(lambda: names() == runs, 60, "the names in accounting")


def test_none_of_them_was_run(trips: Trips, cluster: Cluster) -> None:
    home = cluster.login("echo ~").stdout.strip()
    folders = {str(trips.folder), str(cluster.root), home, trips.jobs[0].run.root}
    for pid_file in (cluster.root / "run").glob("*.pid"):
        with suppress(FileNotFoundError):  # a killed slurmd leaves its pid file
            folders.add(os.readlink(f"/proc/{pid_file.read_text().strip()}/cwd"))
    argv = ["find", *(folders - {"/"}), "-name", f"{CANARY}*"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == ""
    assert list(Path("/").glob(f"{CANARY}*")) + list(Path("/tmp").glob(f"{CANARY}*")) == []
