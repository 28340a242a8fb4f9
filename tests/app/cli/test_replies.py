"""What each verb prints with --json is what its schema says, and never the repr of an object."""

import json
import re
from pathlib import Path

import click
import pytest

from lumitui.app.cli import output
from lumitui.app.cli.main import lumitui
from lumitui.app.cli.replies import REPLIES, reply_schema
from tests.support.places import ROOT
from tests.support.program.command_line import CLUSTER, HELLO, Here, envelope, runs_of, write
from tests.support.program.home import Home
from tests.support.program.json_schema import mistakes
from tests.support.program.verbs import command_lines
from tests.support.servers.cluster import Cluster

SCRIPT = """\
#!/bin/bash
#SBATCH --account=project_462000001 --partition=small-g --nodes=1 --gpus-per-node=1 --time=1:00:00
srun --cpu-bind=closest python train.py --lr 0.1
"""


def with_json(verb: click.Command) -> bool:
    return any("--json" in param.opts for param in verb.params)


def holds(here: Here, *words: str) -> bool:
    """Assert that a verb prints what its schema says; return whether that was no error."""
    done = here(*words, *([] if "--json" in words else ["--json"]))
    assert "internal error" not in done.stderr, done.stderr
    if not done.stdout:
        assert done.returncode, (words, done.stderr)
        return False
    found, schema = json.loads(done.stdout), reply_schema(lumitui.verb_of(words))
    assert list(mistakes(found, schema, schema)) == [], words
    # A rule may quote a call: `SLURMEnvironment(auto_requeue=False)`.
    reprs = re.findall(r'"[A-Z]\w+\(\w+=[^"]*|<\w+ object at|<\w+\.\w+: ', done.stdout)
    assert reprs == [] or words[0] == "rules"
    return "data" in found


def test_every_verb_with_json_has_a_schema(here: Here) -> None:
    assert {name for name, verb in lumitui.every().items() if with_json(verb)} == set(REPLIES)
    for verb in REPLIES:
        assert json.loads(here("schema", "--reply", *verb.split()).stdout) == reply_schema(verb)
    assert here("schema", "--reply", "logs").returncode == 2


def test_what_each_verb_prints_is_what_its_schema_says(
    here: Here, job: Path, tmp_path: Path
) -> None:
    assert holds(here, "submit", str(job), "--yes", "--wait")
    (run,) = runs_of(here)
    told = set()
    lines = list(command_lines(job, run["id"], tmp_path / "new"))
    script, grid = tmp_path / "old.sh", job.with_name("grid.yaml")
    script.write_text(SCRIPT)
    grid.write_text(HELLO.replace("args: [one]", "grid: {--lr: [1, 2]}\nfetch: ['*.json']"))
    slow = job.with_name("slow.yaml")
    slow.write_text(HELLO.replace("hello.py", "slow.py"))
    slow.with_name("slow.py").write_text("import time; time.sleep(60)")
    profile = tmp_path / "mine.yaml"
    profile.write_text("extends: lumi\nretired: 2020-01-01\npoll_seconds: 0.1\n")
    ladder = ["--ladder", "1,2", "--yes", "--set", "launcher=torchrun", "--force"]
    lines += [
        ["submit", str(grid), "--yes"], ["preview", str(grid)], ["grid", "last"],
        ["submit", str(grid), "--yes", "--rest"], ["resubmit", run["id"], "--yes"],
        ["resubmit", run["id"], *ladder],
        ["status"], ["history", "--limit", "5"], ["history", "--check"],
        ["history", "--recover", "laptop"], ["show", "last"],
        ["fetch", run["id"], "--to", str(tmp_path / "got")],
        ["new", "--site", "laptop", "--trainer", "ddp", "--output", str(tmp_path / "1.yaml")],
        ["submit", str(slow), "--yes"], ["cancel", "last", "--yes"],
        ["wait", "last"],
        ["note", "last", "x", "--tag", "best"],
        ["lint", str(script), "--site", "lumi"], ["lint", str(script), "--format", "json"],
        ["import", str(script), "--site", "lumi", "-o", str(tmp_path / "adopted.yaml")],
        ["export", str(tmp_path / "adopted.yaml"), str(tmp_path / "exported")],
        ["why", "--log", str(script)], ["rules"], ["rules", "cluster-image"],
        ["site", "show"], ["site", "show", "lumi"], ["site", "show", "nosuch"],
        ["site", "check", "--file", str(profile)], ["site", "venvs", "laptop", "--prune"],
        ["site", "prune", "laptop"], ["site", "data", "laptop", "--prune"],
        ["bind", "lumi"], ["new", "--list"], ["diff", run["id"], run["id"]],
    ]  # fmt: skip
    (tmp_path / "train.py").write_text("")
    for words in lines:
        verb = lumitui.verb_of(words)
        if verb in REPLIES and not {"sarif", "--tensorboard"} & {*words} and holds(here, *words):
            told.add(verb)
    # The site laptop has no images and measures no training.
    assert set(REPLIES) - told <= {"site add", "site images", "scaling"}


def test_a_series_is_objects_as_one_run_is(here: Here, job: Path) -> None:
    job.write_text(HELLO.replace("args: [one]", "grid: {--lr: [1, 2]}"))
    data = envelope(here("submit", str(job), "--yes", "--json"))["data"]
    assert [run["price"]["amount"] for run in data["runs"]] == [0, 0]
    assert [member["run"] for member in data["members"]] == [run["id"] for run in data["runs"]]
    again = ["resubmit", data["runs"][0]["id"], "--ladder", "1,2", "--yes", "--force", "--json"]
    done = here(*again, "--set", "launcher=torchrun", "--set", "strategy=ddp")
    ladder = envelope(done)["data"]
    assert [run["nodes"] for run in ladder["runs"]] == [1, 2], done.stderr
    assert all(run["price"]["amount"] == 0 for run in ladder["runs"])


def test_what_only_a_cluster_prints_is_what_its_schema_says(
    here: Here, home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    home.add_cluster(cluster)
    job = write(tmp_path / "job.yaml", CLUSTER)
    assert holds(here, "preview", str(job), "--cluster")
    paid = ["--account", "project_462000001"]
    for words in (["images"], ["live"], ["check"], ["venvs", *paid], ["data", *paid]):
        assert holds(here, "site", words[0], "minilumi", *words[1:]), words


def test_an_unknown_type_is_a_mistake_and_not_its_repr() -> None:
    class Unknown:
        pass

    with pytest.raises(TypeError, match="Unknown"):
        output.as_data({"a": [Unknown()]})
    for path in (ROOT / "app/cli").rglob("*.py"):
        assert "default=str" not in path.read_text(), path
