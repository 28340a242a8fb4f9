"""What differs between job files is told in words of the job file, never in Python's."""

import itertools
import re

import pytest

from lumitui.app.explain import run_facts, run_overview
from lumitui.app.follow.results.comparison import contrasted_fields
from lumitui.app.follow.results.job_rows import differing_rows
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.scale.changes import changes_between
from tests.support.jobs.made_runs import SPEC, a_run

PLAIN = changed(SPEC, {"args": [], "env": {}, "metrics": {}}, "a test")
VALUES: dict[str, tuple[object, ...]] = {
    "account": ("project_462000001",),
    "nodes": (16,),
    "gpus_per_node": (4,),
    "cpus_per_task": (7,),
    "memory": ("60G",),
    "exclusive": (True,),
    "launcher": ("torchrun",),
    "strategy": ("single",),
    "args": (["--lr", "0.1"], ["--lr", "-1e-3", "--amp"], ["data", "--lr=0.1"], ["two words"]),
    "resume": (["--resume"], ["--from", "checkpoints/last"]),
    "signal": ("USR1@120",),
    "env": ({"NCCL_DEBUG": "INFO"}, {"A": "", "B": "1"}),
    "secrets": (["WANDB_API_KEY"],),
    "container": ({"generation": "laif"}, {"none": True}, {"binds": ["/a:/b", "/c"]}),
    "binding": ("none",),
    "proof": ("strict",),
    "ship_secrets": (["keys/*.pem"],),
    "workdir": ("train",),
    "links": ({"resources": "/scratch/resources"},),
    "fetch": (["checkpoints/*.pt", "out"],),
    "metrics": ({"images": "Images/sec: (1+)"},),
    "deepspeed": ({"config": "ds.json"},),
    "scale": (
        {"lr": {"rule": "sqrt"}},
        {"batch": {"arg": "--batch-size", "keep": "per_gpu"}, "lr": {"arg": "--lr"}},
    ),
    "sbatch": (["--exclude=nid005001"],),
    "grid": ({"lr": ["1e-3", "3e-4"]},),
}
SPECS = [
    changed(PLAIN, {key: value}, "a test") for key, values in VALUES.items() for value in values
]
PYTHON = re.compile(r"[{}\[\]()']|\b(None|True|False)\b")


def launch_of(spec: JobSpec) -> Launch:
    run = a_run()
    return Launch(spec, run.script, run.layout, run.price)


def told(one: Run, other: Run) -> list[str]:
    """Return all that Compare, `diff` and the table of a resubmission say of two job files."""
    said = [word for row in contrasted_fields((one, other)) for word in (row.what, *row.values)]
    for change in changes_between(launch_of(one.spec), launch_of(other.spec)):
        said += [change.what, change.before, change.after]
    for run in (one, other):
        said += [word for row in run_overview.rows(run, 2000.0, None, None, None) for word in row]
        said += [word for row in run_facts.facts(run, 2000.0) for word in row]
    return said


def test_no_value_of_a_job_file_is_told_in_pythons_words() -> None:
    runs = [a_run(spec=spec) for spec in (PLAIN, *SPECS)]
    pairs = [*((runs[0], run) for run in runs[1:]), *itertools.pairwise(runs[1:])]
    assert len(pairs) > 60
    for one, other in pairs:
        # An exponent of the pattern of a series has brackets, and the person wrote them.
        found = [word for word in told(one, other) if PYTHON.search(word.replace("(1+)", ""))]
        assert not found, found
        assert contrasted_fields((one, other)), (one.spec, other.spec)


@pytest.mark.parametrize(
    ("change", "rows"),
    [
        ({"scale": {"lr": {"rule": "sqrt"}}}, [("scale.lr.rule", ("none", "sqrt"))]),
        ({"exclusive": True}, [("exclusive", ("no", "yes"))]),
        ({"env": {"A": "1"}}, [("env.A", ("-", "1"))]),
        ({"args": ["--lr=0.1", "--amp"]}, [("--lr", ("-", "0.1")), ("--amp", ("-", "given"))]),
        ({"args": ["a b", "-1"]}, [("args", ("-", '"a b" -1'))]),
        ({"scale": {}}, []),
    ],
)
def test_a_key_below_another_is_a_row(
    change: dict[str, object], rows: list[tuple[str, tuple[str, str]]]
) -> None:
    assert differing_rows([PLAIN, changed(PLAIN, change, "a test")]) == rows


def test_arguments_in_another_order_are_one_row() -> None:
    specs = [
        changed(PLAIN, {"args": args}, "a test") for args in (["--a", "1", "--b"], ["--b", "--a=1"])
    ]
    assert differing_rows(specs) == [("args", ("--a 1 --b", "--b --a=1"))]
