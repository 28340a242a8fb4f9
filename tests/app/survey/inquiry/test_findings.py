"""What a site answers about a job becomes findings, each beside what it speaks of."""

from dataclasses import replace

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.knowledge.bash import read_script
from lumitui.app.survey.inquiry import job_paths
from lumitui.app.survey.inquiry.findings import findings
from lumitui.app.survey.inquiry.job_paths import InquiryNeeds, JobPath, Role
from lumitui.app.survey.inquiry.topics import TOPICS
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.site.source_position import Position
from lumitui.remote.survey.ask_inquiry import (
    Answers,
    FoundEnvironment,
    OwnJob,
    PathState,
    Space,
    Trial,
)
from lumitui.remote.survey.meter_rows import BudgetRow, QuotaRow
from lumitui.remote.survey.slurm_records import Association, PartitionRecord, Qos

LUMI = Sites([BUILT_IN]).load("lumi")
NOW = 1_795_397_771.0
SCRATCH = "/scratch/project_1/me"
GOOD = PathState(SCRATCH, "folder", True, True, SCRATCH, True, Space("/scratch", 0.2, 0.1))
WANTED = InquiryNeeds(
    (JobPath(SCRATCH, "work", Position(field="account")),),
    "project_1", "dev-g", "normal", 3600, 2, 16.0, "GPU-hours",
    (("account", Position(field="account")), ("time", Position(field="time"))),
)  # fmt: skip
ANSWERS = Answers(
    (GOOD,),
    (OwnJob("RUNNING", "dev-g", "normal", "project_1"),),
    (Association("project_1", "", ("normal",), 10, 20),),
    (Qos("normal", None, 30),),
    PartitionRecord("dev-g", "UP", 10_800, 32),
    Trial(True, NOW + 7200, ""),
    (QuotaRow("/scratch/project_1", 10.0, 100.0, 5.0, 100.0),),
    (BudgetRow("project_1", 812.0, 1000.0),),
)


def said(answers: Answers, wanted: InquiryNeeds = WANTED) -> list[Finding]:
    """Return the findings but for the start's estimate."""
    return [one for one in findings(wanted, answers, NOW) if one.rule != "cluster-start"]


def test_all_runs_of_a_grid_count_for_the_budget_and_the_number_of_jobs() -> None:
    grid = replace(WANTED, jobs=20, price=900.0)
    full = [one.message for one in said(ANSWERS, grid)]
    assert "sbatch refuses some of the 20 runs." in full[0]
    assert "the 20 runs cost 900.0 GPU-hours, but project_1 has 812 left" in full[-1]
    assert said(ANSWERS, replace(grid, jobs=19, price=812.0)) == []
    little = replace(ANSWERS, budgets=(BudgetRow("project_1", 99.7, 1000.0),))
    assert "costs 99.9 GPU-hours, but project_1 has 99.7 left" in (
        said(little, replace(WANTED, price=99.9))[0].message
    )


def test_the_fix_of_a_refusal_names_the_site() -> None:
    refused = replace(ANSWERS, trial=Trial(False, None, "Node count specification invalid"))
    (only,) = findings(WANTED, refused, NOW, "breeze")
    assert "`lumitui site show breeze` shows" in only.do


def test_a_job_that_the_cluster_has_nothing_against_is_told_when_it_would_start() -> None:
    (only,) = findings(WANTED, ANSWERS, NOW)
    assert (only.rule, only.severity) == ("cluster-start", "note")
    assert "in 2 h" in only.message


@pytest.mark.parametrize(
    ("answers", "rule", "severity", "words"),
    [
        ({"quotas": (QuotaRow("/scratch/project_1", 96.0, 100.0),)}, "quota", "warning", "96% of"),
        ({"quotas": (QuotaRow("/scratch/project_1", 1.0, 9.0, 101.0, 100.0),)}, "quota", "error",
         "101% of its quota of files"),
        ({"associations": (Association("project_2", "", (), None, None),)}, "account", "error",
         "Slurm lists project_2"),
        ({"associations": (Association("project_1", "small-g", (), None, None),)}, "account",
         "error", "may not use the partition"),
        ({"associations": (Association("project_1", "", ("debug",), None, None),)}, "account",
         "error", "may not use the QOS normal"),
        ({"partition": PartitionRecord("dev-g", "DOWN")}, "partition", "warning", "wait"),
        ({"partition": PartitionRecord("dev-g", "INACTIVE")}, "partition", "error",
         "refuses"),
        ({"partition": PartitionRecord("dev-g", "UP", 1800)}, "partition", "error", "00:30:00"),
        ({"partition": PartitionRecord("dev-g", "UP", None, 1)}, "partition", "error", "2 nodes"),
        ({"associations": (Association("project_1", "", (), None, 1),)}, "jobs", "error",
         "allows 1: sbatch refuses"),
        ({"qos": (Qos("normal", 1, None),)}, "jobs", "note", "You run 1 job"),
        ({"budgets": (BudgetRow("PROJECT_1", 12.0, 1000.0),)}, "budget", "warning", "has 12 left"),
        ({"budgets": (BudgetRow("project_1", -3.0, 1000.0),)}, "budget", "warning", "used up"),
        ({"trial": Trial(False, None, "Node count specification invalid")}, "refused", "error",
         "Node count"),
        ({"trial": Trial(False, None, "Unable to contact slurm controller")}, "silent", "note",
         "could not test"),
        ({"faults": {"quota": "`lumi-workspaces` did not answer within 12 s."}}, "silent", "note",
         "12 s"),
        ({"paths": (replace(GOOD, space=Space("/scratch", 0.2, 0.99)), ), "quotas": ()}, "disk",
         "warning", "99% of its files"),
        ({"paths": (replace(GOOD, kind="none", above="/scratch", above_writable=False),)},
         "output", "error", "you cannot write to /scratch"),
    ],
)  # fmt: skip
def test_each_thing_that_is_wrong_is_said_once(
    answers: dict[str, object], rule: str, severity: str, words: str
) -> None:
    changed = replace(ANSWERS, **answers)  # type: ignore[arg-type]  # each is one of its fields
    (only,) = said(changed)
    assert (only.rule, only.severity) == (f"cluster-{rule}", severity)
    assert words in only.message


@pytest.mark.parametrize(
    ("role", "state", "rule"),
    [
        ("image", PathState("/x/a.sif", "none", False, False, "/x", True), "cluster-image"),
        ("image", PathState("/x/a.sif", "link", False, False, "/x", True), "cluster-image"),
        ("image", PathState("/x/a.sif", "file", False, False, "/x", True), "cluster-image"),
        ("bind", PathState("/x/a.sif", "none", False, False, "/x", True), "cluster-bind"),
        ("wheels", PathState("/x/a.sif", "none", False, False, "/x", True), "cluster-environment"),
        ("wheels", PathState("/x/a.sif", "folder", True, False, "/x", True), ""),
        ("data", PathState("/x/a.sif", "none", False, False, "/", False), "cluster-path"),
        ("output", PathState("/x/a.sif", "none", False, False, "/x", True), "cluster-output"),
        ("output", PathState("/x/a.sif", "folder", True, False, "/x", False), "cluster-output"),
        ("image", PathState("/x/a.sif", "file", True, False, "/x", False), ""),
        ("bind", PathState("/x/a.sif", "folder", True, False, "/x", False), ""),
        ("data", PathState("/x/a.sif", "none", False, False, "/x", True), ""),
        ("input", PathState("/x/a.sif", "none", False, False, "/x", True), "cluster-path"),
        ("input", PathState("/x/a.sif", "file", True, False, "/x", True), ""),
        ("output", PathState("/x/a.sif", "folder", True, True, "/x", True), ""),
    ],
)
def test_a_path_is_judged_by_what_the_job_does_with_it(
    role: Role, state: PathState, rule: str
) -> None:
    at = Position(line=7)
    wanted = InquiryNeeds((JobPath("/x/a.sif", role, at),))
    found = said(Answers((state,)), wanted)
    assert [(one.rule, one.at) for one in found] == ([(rule, at)] if rule else [])


@pytest.mark.parametrize(
    ("found", "bound", "severity", "words"),
    [
        (FoundEnvironment("module load a", "unknown: a.", "3.11"), "", "warning",
         "`module load a` fails on the login node: unknown: a."),
        (FoundEnvironment("", "", ""), "", "error", "python3, does not start"),
        (FoundEnvironment("", "", "3.9"), ">=3.10", "error", "is 3.9, but `venv:` requires >=3.10"),
        (FoundEnvironment("", "", "3.13"), ">=3.10, <3.13", "error", "is 3.13"),
        (FoundEnvironment("", "", "3.13"), ">=3.10,<3.13.5", "", ""),
        (FoundEnvironment("", "", "3.11"), ">=3.9.2,<4.0", "", ""),
        (FoundEnvironment("", "", "3.11"), "", "", ""),
    ],
)  # fmt: skip
def test_the_environment_is_judged_by_what_the_login_node_has(
    found: FoundEnvironment, bound: str, severity: str, words: str
) -> None:
    needs = replace(WANTED, python="python3", python_bound=bound)
    given = said(replace(ANSWERS, environment=found), needs)
    assert [one.severity for one in given] == ([severity] if severity else [])
    assert all(one.rule == "cluster-environment" and words in one.message for one in given)


def test_a_containers_python_is_compared_without_a_question() -> None:
    needs = replace(WANTED, python_version="3.9", python_bound=">=3.10")
    (only,) = said(ANSWERS, needs)
    assert only.message == "The job's Python is 3.9, but `venv:` requires >=3.10."


def test_a_refusal_that_is_explained_is_not_said_twice() -> None:
    changed = replace(
        ANSWERS,
        associations=(Association("project_2", "", (), None, None),),
        trial=Trial(False, None, "Invalid account"),
    )
    assert [one.rule for one in said(changed)] == ["cluster-account"]


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        ("", []),
        (" --deepspeed_config", []),
        (" --deepspeed_config /data/ds.json", [("/data/ds.json", "config")]),
    ],
)
def test_the_paths_of_a_script_are_those_of_its_arguments(
    arguments: str, paths: list[tuple[str, Role]]
) -> None:
    job = read_script(f"#!/bin/bash\nsrun python train.py{arguments}\n", site=LUMI)
    assert [(one.path, one.role) for one in job_paths.of_job(job, LUMI)] == paths


def test_the_paths_of_a_job_file_have_its_fields() -> None:
    spec = parse_job(
        "name: a\nsite: lumi\naccount: project_1\npartition: standard-g\ntime: 01:00:00\n"
        "script: t.py\nargs: [--data=/scratch/p/x, /tmp/y, $HOME/z, --lr, '0.1']\n"
        "links: {data: /scratch/p/data}\n"
        "container: {image: /pfs/i.sif, binds: ['/flash/p:/flash/p:ro', $X]}\n",
        "job.yaml",
    )
    found = job_paths.of_spec(spec, LUMI, "/scratch/project_1/me")
    assert [(place.path, place.role, place.at.field) for place in found] == [
        ("/pfs/i.sif", "image", "container.image"),
        ("/flash/p", "bind", "container.binds"),
        ("/scratch/p/data", "data", "links.data"),
        ("/scratch/p/x", "input", "args"),
        ("/scratch/project_1/me", "work", "account"),
    ]


@pytest.mark.parametrize(
    ("arguments", "role"),
    [
        ("--data /scratch/p/x", "input"),
        ("--train-file=/scratch/p/x", "input"),
        ("--val_dir /scratch/p/x", "input"),
        ("--dataset-path /scratch/p/x", "input"),
        ("--tokenizer /scratch/p/x", "input"),
        ("--output-dir /scratch/p/x", "data"),
        ("--data-cache /scratch/p/x", "data"),
        ("--data --save /scratch/p/x", "data"),
        ("/scratch/p/x", "data"),
    ],
)
def test_an_options_name_tells_whether_its_path_must_exist(arguments: str, role: Role) -> None:
    spec = parse_job(
        "name: a\nsite: lumi\naccount: project_1\npartition: standard-g\ntime: 01:00:00\n"
        f"script: t.py\nargs: [{arguments.replace(' ', ', ')}]\n",
        "job.yaml",
    )
    script = read_script(f"#!/bin/bash\nsrun python3 t.py {arguments}\n", site=LUMI)
    paths = (*job_paths.of_spec(spec, LUMI, "/w"), *job_paths.of_job(script, LUMI))
    assert [one.role for one in paths if one.path == "/scratch/p/x"] == [role] * 2


def test_every_finding_has_its_topic() -> None:
    assert len({topic.id for topic in TOPICS}) == len(TOPICS)
    assert all(topic.why.endswith(".") and topic.subject == "cluster" for topic in TOPICS)
