"""`$USER` and the folders of a profile in a job file: what they become, and what stays."""

import getpass
import json
import os
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.job.spec import JobSpec, changed, parse_job
from lumitui.app.launch.site_names import escaped, expanded, without_names
from lumitui.app.runs import Runs
from lumitui.remote.site.profile import Site
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.sites.lumi_job import JOB
from tests.support.jobs.small_jobs import finish
from tests.support.program.command_line import LAPTOP, Here, write
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

LUMI = Sites([BUILT_IN]).load("lumi")
TEXTS = st.text("$ {}\"'\\\nSCRATHUEMO_x", max_size=30) | st.lists(
    st.sampled_from(["$", "${", "}", "SCRATCH", "USER", "HOME", "_", "x", "'"]), max_size=9
).map("".join)


def fill(template: str) -> str:
    return template.format(account="project_1", user="$USER 'quoted'", home="/h")


def become(text: str, site: Site = LUMI) -> str:
    return expanded(changed(JOB, {"args": [text]}, "t"), site, fill).args[0]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("--data=$SCRATCH/x", "--data=/scratch/project_1/x"),
        ("${SCRATCH}2", "/scratch/project_12"),
        ("$FLASH", "/flash/project_1"),
        ("$$SCRATCH/x", "$SCRATCH/x"),
        ("$${SCRATCH}", "${SCRATCH}"),
        ("$$$SCRATCH", "$$SCRATCH"),
        ("$SCRATCHES", "$SCRATCHES"),
        ("$SCRATCH_2", "$SCRATCH_2"),
        ("$SCRATCHä", "$SCRATCHä"),
        ("${SCRATCH:-/tmp}", "${SCRATCH:-/tmp}"),
        ("$scratch $LR $(id) `id` $1 $$", "$scratch $LR $(id) `id` $1 $$"),
        ("$STAGE_DATA", "$STAGE_DATA"),
        ("${data.root}", "${data.root}"),
    ],
)
def test_only_these_names_are_expanded(text: str, expected: str) -> None:
    found = become(text)
    # `\w` of a shell is ASCII: what follows may be a letter of another alphabet.
    assert found == ("/scratch/project_1ä" if text == "$SCRATCHä" else expected)


def test_what_is_put_in_is_not_expanded_again() -> None:
    assert become("$USER") == "$USER 'quoted'"


@given(TEXTS)
def test_an_escaped_text_comes_back_as_it_was(text: str) -> None:
    spec = changed(JOB, {"args": [text], "env": {"A": text}}, "t")
    again = expanded(escaped(spec, LUMI), LUMI, fill)
    assert (again.args, again.env) == (spec.args, spec.env)


@given(TEXTS)
def test_a_text_without_names_stays(text: str) -> None:
    if without_names(text, ("USER", *LUMI.folders)) == text and "$$" not in text:
        assert become(text) == text


def test_the_keys_that_have_names_are_these_four() -> None:
    text = "$SCRATCH/x"
    keys = {"args": [text], "env": {"A": text}, "links": {"data": text}}
    spec = expanded(changed(JOB, keys, "t"), LUMI, fill)
    path = "/scratch/project_1/x"
    assert (spec.args, spec.env, spec.links) == ((path,), {"A": path}, {"data": path})


def laptop_job(folder: Path, **keys: object) -> JobSpec:
    (folder / "show.py").write_text(
        "import json, os, sys\n"
        "names = ('A', 'B')\n"
        "seen = [sys.argv[1:], [os.environ.get(name) for name in names]]\n"
        "open(os.path.join(os.environ['RUN_DIR'], 'seen'), 'w').write(json.dumps(seen))\n"
    )
    data = {"name": "names", "site": "laptop", "partition": "local", "time": "00:05:00",
            "script": "show.py", "proof": "off", "gpus_per_node": 1}  # fmt: skip
    return parse_job(yaml.safe_dump(data | keys), "job")


HOSTILE = ["$HOME/a b", "$$HOME", "'$USER'", '"$HOME"', "line\n$USER\n#SBATCH --x", "$(id)", "`id`",
           "\\$HOME", "$$", "$LR", "${HOME}\\", "ends with $"]  # fmt: skip


def test_the_program_gets_the_literal_bytes(runs: Runs, tmp_path: Path) -> None:
    spec = laptop_job(tmp_path, args=HOSTILE, env={"A": "$HOME/'x'", "B": "$$USER"})
    preview = runs.preview(spec, tmp_path)
    home, user = os.environ["HOME"], getpass.getuser()
    assert f"{home}/a b" in preview.launch.script, "the preview shows what it becomes"
    run = finish(runs, runs.send(preview))
    arguments, variables = json.loads(Path(run.folder, "seen").read_text())
    plain = [re.sub(r"\$(\$?)(\{HOME\}|HOME)", lambda m: m[0][1:] if m[1] else home, text)
             for text in HOSTILE]  # fmt: skip
    assert arguments == [text.replace("$USER", user) for text in plain]
    assert variables == [f"{home}/'x'", "$USER"]
    # The run is sent again with the same bytes, and its job file opens as it was written.
    again = runs.plan_resubmission(run.id)
    assert again.preview.launch.spec.args == run.spec.args
    opened = runs.drafts.run(run.id)
    assert runs.drafts.check(opened).previews[0].launch.spec.args == run.spec.args


def test_the_rest_of_a_grid_is_sent_with_the_same_bytes(runs: Runs, tmp_path: Path) -> None:
    spec = laptop_job(tmp_path, args=["$$HOME", "$HOME"], grid={"nodes": [1], "lr": ["1", "2"]})
    previews = runs.previews(spec, tmp_path)
    series = runs.series.begin_grid(previews)
    plan = json.loads(series.members[0].plan)["spec"]
    assert plan["args"][:2] == ["$$HOME", os.environ["HOME"]]


def test_a_change_of_a_resubmission_may_use_the_names(runs: Runs, tmp_path: Path) -> None:
    spec = laptop_job(tmp_path, args=["--data", "x"])
    run = finish(runs, runs.send(runs.preview(spec, tmp_path)))
    planned = runs.plan_resubmission(run.id, settings=["env={A: $HOME/y}"])
    assert planned.preview.launch.spec.env == {"A": f"{os.environ['HOME']}/y"}


def test_a_doubled_dollar_gets_no_warning(runs: Runs, tmp_path: Path) -> None:
    for text, expected in (("$$HOME", []), ("$LR", ["literal-argument"])):
        preview = runs.preview(laptop_job(tmp_path, args=[text]), tmp_path)
        assert [item.rule for item in preview.findings if "literal" in item.rule] == expected


@pytest.mark.parametrize(
    "text, expected", [("$$USER", []), ("$${HOME}/x", []), ("$LR", ["literal-variable"])]
)
def test_a_doubled_dollar_in_env_gets_no_warning(
    runs: Runs, tmp_path: Path, text: str, expected: list[str]
) -> None:
    preview = runs.preview(laptop_job(tmp_path, env={"A": text}), tmp_path)
    assert [item.rule for item in preview.findings if "literal" in item.rule] == expected


def test_the_preview_shows_where_links_point(here: Here, tmp_path: Path) -> None:
    laptop_job(tmp_path)
    path = write(tmp_path / "job.yaml", LAPTOP | {"script": "show.py", "links": {"d": "$HOME/x"}})
    home = os.environ["HOME"]
    assert f"link: d -> {home}/x" in here("preview", str(path)).stderr
    assert json.loads(here("preview", str(path), "--json").stdout)["data"]["links"] == {
        "d": f"{home}/x"
    }


@pytest.mark.cluster
def test_the_ranks_of_a_cluster_get_the_literal_bytes(
    cluster_runs: Runs, cluster: Cluster, home: Home, tmp_path: Path
) -> None:
    profile = home.config / "sites" / "minilumi.yaml"
    text = profile.read_text()
    profile.write_text(text + '\nfolders: {HOME: "/home/{user}", SCRATCH: "/s/{account}"}\n')
    spec = laptop_job(
        tmp_path, site="minilumi", account="project_462000001", partition="small-g",
        args=["$SCRATCH/a 'b' \"$USER\"\n", "$$SCRATCH", "${HOME}"], env={"A": "$SCRATCH"},
    )  # fmt: skip
    run = finish(cluster_runs, cluster_runs.send(cluster_runs.preview(spec, tmp_path)))
    seen = json.loads(cluster.login(f"cat {run.folder}/seen").stdout)
    user = cluster_runs.drafts.connections.get(cluster_runs.sites.load("minilumi")).user()
    path = "/s/project_462000001"
    assert seen[0] == [f"{path}/a 'b' \"{user}\"\n", "$SCRATCH", f"/home/{user}"]
    assert seen[1][0] == path
