"""A site is asked about a job when a person wants it, once, and silence is no error of the job."""

import json
import time
from pathlib import Path

import pytest

from lumitui.app.knowledge.bash import read_script
from lumitui.app.launch.send.draft import Draft
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.app.survey.inquiry.inquiries import Inquiries
from lumitui.app.survey.inquiry.kept_budgets import OLDEST_SECONDS, KeptBudgets
from lumitui.remote.connect import Connection
from lumitui.remote.site.errors import LinkError
from lumitui.remote.survey.meter_rows import BudgetRow
from tests.support.jobs.small_jobs import hello_job, hello_project
from tests.support.program.command_line import lt
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster


def previewed(runs: Runs, folder: Path, **changes: object) -> Preview:
    """Return the preview of a small job."""
    return runs.preview(hello_job(**changes), hello_project(folder))


def rules(runs: Runs, preview: Preview) -> dict[str, str]:
    """Return the rules that speak, each with its message."""
    return {one.rule: one.message for one in runs.inquiries.of_preview(preview).findings}


def test_a_site_that_cannot_be_reached_is_a_note(runs: Runs, tmp_path: Path) -> None:
    def unreachable(site: object) -> Connection:
        raise LinkError("The host does not answer.", "Try again.")

    preview = runs.preview(hello_job(site="lumi", partition="dev-g"), hello_project(tmp_path))
    found = Inquiries(unreachable).of_preview(preview)
    (only,) = found.findings
    assert (only.rule, only.severity) == ("cluster-silent", "note")
    assert only.message == "Could not query the cluster: The host does not answer."


def test_this_machine_has_no_slurm_to_ask(runs: Runs, tmp_path: Path) -> None:
    preview = previewed(runs, tmp_path, site="laptop", partition="local", account="none")
    before = runs.footprint("laptop").requests
    assert rules(runs, preview) == {}
    assert runs.footprint("laptop").requests == before + 1
    assert runs.inquiries._needs_of(preview, [preview]).jobs == 2, "a grid of two"


def test_what_was_answered_stands_beside_the_fields_of_the_draft(
    cluster_runs: Runs, tmp_path: Path
) -> None:
    runs, project = cluster_runs, hello_project(tmp_path)
    text = (
        "name: hello\nsite: minilumi\naccount: project_462000009\npartition: small-g\n"
        "time: 00:05:00\ngpus_per_node: 2\nscript: hello.py\n"
    )
    draft = Draft(text, project, "typed")
    before = runs.drafts.check(draft)
    assert before.previews and not [one for one in before.problems if one.at.field == "account"]
    runs.inquiries.of_preview(before.previews[0])
    asked = runs.footprint("minilumi").requests
    found = [one for one in runs.drafts.check(draft).problems if one.at.field == "account"]
    assert any("You have no account" in one.message for one in found)
    changed = runs.drafts.check(Draft(text.replace("00:05", "00:06"), project, "typed"))
    assert not [one for one in changed.problems if one.at.field == "account"]
    assert runs.footprint("minilumi").requests == asked


def test_the_same_question_is_asked_once_in_a_while(cluster_runs: Runs, tmp_path: Path) -> None:
    runs, preview = cluster_runs, previewed(cluster_runs, tmp_path)
    first = runs.inquiries.of_preview(preview)
    asked = runs.footprint("minilumi").requests
    assert runs.inquiries.of_preview(preview) == first
    assert runs.footprint("minilumi").requests == asked
    runs.inquiries.of_preview(preview, fresh=True)
    assert runs.footprint("minilumi").requests == asked + 1
    assert first.start is not None
    assert {one.rule for one in first.findings} <= {"cluster-start", "cluster-silent"}


def test_the_cluster_says_what_no_rule_can_know(
    cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs = cluster_runs
    found = rules(runs, previewed(runs, tmp_path, account="project_462000009"))
    assert "Slurm lists project_462000001" in found["cluster-account"]
    assert "cluster-refused" not in found
    image = {"image": "/scratch/project_462000001/none.sif"}
    found = rules(runs, previewed(runs, tmp_path, container=image, args=["/nowhere/data"]))
    assert "none.sif does not exist" in found["cluster-image"]
    assert "/nowhere/data does not exist" in found["cluster-path"]


SCRIPT = """#!/bin/bash
#SBATCH --account=project_462000001 --partition=standard-g
#SBATCH --nodes=2 --gpus-per-node=8 --time=01:00:00
#SBATCH --output=/scratch/project_462000001/nologs/%j.out
SIF=/scratch/project_462000001/my.sif
srun singularity exec -B /scratch/project_462000001,/nope:/data $SIF python t.py --data /dev/shm/x
"""


def test_what_the_cluster_says_of_a_script_stands_at_its_words(cluster_runs: Runs) -> None:
    site = cluster_runs.sites.load("minilumi")
    job = read_script(SCRIPT, site=site)
    found = cluster_runs.inquiries.of_script(job, site)
    placed = {one.rule: (one.at.line, one.severity) for one in found.findings}
    assert placed["cluster-output"] == (4, "error")
    assert placed["cluster-image"] == placed["cluster-bind"] == (6, "error")
    assert "cluster-path" not in placed and found.start is not None
    refused = read_script(SCRIPT.replace("--nodes=2", "--nodes=900"), site=site)
    said = {one.rule for one in cluster_runs.inquiries.of_script(refused, site).findings}
    assert "cluster-refused" in said


def test_lint_asks_the_cluster_when_it_is_told_to(
    home: Home, cluster: Cluster, tmp_path: Path
) -> None:
    home.add_cluster(cluster)
    script = tmp_path / "job.sh"
    script.write_text(SCRIPT)
    plain = lt(home, "lint", str(script), "--site", "minilumi", "--select", "cluster-image")
    assert (plain.returncode, plain.stdout.strip()) == (0, "")
    asked = lt(
        home, "lint", str(script), "--site", "minilumi", "--select", "cluster-image", "--cluster"
    )
    assert asked.returncode == 1
    assert "my.sif does not exist" in asked.stdout


def test_modules_and_wheels_that_are_not_there_are_said_before_the_job_is_sent(
    cluster_runs: Runs, tmp_path: Path
) -> None:
    good = rules(cluster_runs, previewed(cluster_runs, tmp_path))
    assert "cluster-environment" not in good
    venv = {"packages": ["einops"], "wheels": "/scratch/no/wheels"}
    bad = previewed(cluster_runs, tmp_path, modules=["nosuch/1.0"], venv=venv)
    found = cluster_runs.inquiries.of_preview(bad).findings
    words = " ".join(one.message for one in found if one.rule == "cluster-environment")
    assert "`module load nosuch/1.0` fails on the login node" in words
    assert "The folder of wheels /scratch/no/wheels does not exist." in words


def test_a_full_file_system_is_said_before_the_job_is_sent(
    home: Home, cluster_runs: Runs, cluster: Cluster, tmp_path: Path
) -> None:
    runs, folder = cluster_runs, f"{cluster.small}/inquiry"
    (home.config / "sites" / "smalldisk.yaml").write_text(
        f"extends: minilumi\nname: smalldisk\nwork_root: {folder}\n"
    )
    transport = runs._connections.get(runs.sites.load("minilumi")).transport
    try:
        transport.run(f"mkdir -p {folder} && head -c 99M /dev/zero >{folder}/fill 2>/dev/null")
        found = rules(runs, previewed(runs, tmp_path, site="smalldisk"))
        assert "of its space" in found["cluster-disk"]
    finally:
        transport.run(f"rm -rf {folder}")


def test_a_budget_is_known_to_the_next_call_and_for_a_day(tmp_path: Path) -> None:
    file = tmp_path / "data" / "budgets.json"
    now = time.time()
    KeptBudgets(file).keep("lumi", (BudgetRow("project_1", 812.0, 1000.0),), now)
    KeptBudgets(file).keep("mahti", (BudgetRow("project_1", 1.0),), now - OLDEST_SECONDS)
    KeptBudgets(file).keep("lumi", (), now)
    found = KeptBudgets(file).of("lumi", "PROJECT_1")
    assert found is not None and (found.row.left, found.at) == (812.0, now)
    assert KeptBudgets(file).of("mahti", "project_1") is None
    assert KeptBudgets(file).of("lumi", "project_2") is None


@pytest.mark.parametrize("text", ["", "[]", "{", '{"lumi a": 3}', '{"lumi a": ["a", "x", 1, 2]}'])
def test_a_broken_file_is_as_if_nobody_had_asked(tmp_path: Path, text: str) -> None:
    file = tmp_path / "budgets.json"
    file.write_text(text)
    assert KeptBudgets(file).of("lumi", "a") is None
    KeptBudgets(file).keep("lumi", (BudgetRow("a", 1.0),), time.time())
    assert KeptBudgets(file).of("lumi", "a") is not None
    assert list(json.loads(file.read_text()))[-1] == "lumi a"
