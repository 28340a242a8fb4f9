"""Runs beside each other: job file, script, metrics, files of the code, in the job file's words."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli.views.diff import Difference, difference_text
from lumitui.app.explain import run_facts, run_overview
from lumitui.app.follow.results.comparison import changes, contrasted_fields
from lumitui.app.follow.results.job_rows import differing_rows
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Launch
from lumitui.app.job.settings import Settings
from lumitui.app.job.spec import JobSpec, changed
from lumitui.app.runs import Runs
from lumitui.app.scale.changes import changes_between
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import SPEC, a_run
from tests.support.program.command_line import Here, envelope

FILES = st.dictionaries(st.text(max_size=4), st.sampled_from(["1", "2"]), max_size=6)


@given(FILES, FILES)
def test_the_changes_lead_from_one_list_of_files_to_the_other(
    old: dict[str, str], new: dict[str, str]
) -> None:
    found = {item.path: item.what for item in changes(old, new)}
    assert {path for path, what in found.items() if what == "added"} == set(new) - set(old)
    assert {path for path, what in found.items() if what == "removed"} == set(old) - set(new)
    same = {path for path in old if old[path] == new.get(path)}
    assert set(found) == {*old, *new} - same


def test_only_what_differs_is_told_of_three_runs(settings: Settings) -> None:
    runs = Runs(settings)
    for number, nodes in enumerate((1, 2, 2)):
        run = a_run(f"r{number}", created=float(number), state=State.DONE, ended=3600.0 * number)
        run = replace(run, started=3600.0) if number else run
        spec = run.spec.model_copy(update={"nodes": nodes})
        runs.history.begin(replace(run, spec=spec, script=f"#SBATCH --nodes={nodes}\nsrun x\n"))
        steps = [{"step": step, "loss": 1.0, "samples_per_s": 57800.0} for step in (1, 2, 3)]
        if number:
            runs.history.metrics.add(run.id, [json.dumps(one).encode() for one in steps], (0, 9))
    found = runs.comparisons.of(["r0", "r1", "r2"])
    assert [(item.what, item.values) for item in found.fields] == [("nodes", ("1", "2", "2"))]
    assert found.code == ()
    metrics = {item.what: item.values for item in found.metrics}
    assert metrics["samples/s"] == ("-", "57,800", "57,800")
    assert metrics["ran"] == ("-", "-", "1 h 00 min")
    assert metrics["billed"] == ("-", "-", "16 GPU-hours")
    assert [len(one.values) for one in found.losses] == [0, 3, 3]
    assert [line for line in found.scripts[0] if line[1:].startswith("#SBATCH")] == [
        "-#SBATCH --nodes=1", "+#SBATCH --nodes=2",
    ]  # fmt: skip
    (one, two) = runs.comparisons.code(["r0", "r1", "r2"])
    assert one.unknown == two.unknown == "The code of r0 is unknown: none was sent."
    for wrong in (["r0"], ["r0"] * 5):
        with pytest.raises(InputError, match="cannot be compared"):
            runs.comparisons.of(wrong)
    runs.close()


def test_the_files_of_two_snapshots_are_compared_after_the_code_changed(
    here: Here, job: Path, settings: Settings
) -> None:
    one, two, three = (sent(here, job, change) for change in ("", "# more", "# most"))
    found = envelope(here("diff", one, two, "--json"))["data"]
    assert found["files"] == [
        {"path": "hello.py", "what": "changed"},
        {"path": "new# more.py", "what": "added"},
    ]
    text = here("diff", one, two).stdout
    assert (
        "changed  hello.py" in text and f"+++ hello.py of {two}" in text and "  +# more\n" in text
    )
    assert found["lines"][-1] == "+# more"
    long = Difference((one, two), (), (), (), (), lines=("+ a",) * 70)
    assert "10 more lines: `--json` prints them." in difference_text(long, 80)
    runs = Runs(settings)
    assert runs.comparisons.code([one, one])[0].files == ()
    # The history has the last list; those of the site are asked for, and may be gone.
    root = Path(runs.history.get(one).root)
    for sums in (root / "code").glob("*.sums"):
        sums.chmod(0o600)
        sums.write_text("no checksums")
    (change,) = runs.comparisons.code([three, one])
    assert change.unknown == f"The code of {one} is unknown: its list of files is not on the site."
    runs.close()


def sent(here: Here, job: Path, change: str) -> str:
    """Send the project with `change` in it; return the run's id."""
    script = job.parent / "hello.py"
    script.write_text(script.read_text() + change)
    if change:
        (job.parent / f"new{change}.py").write_text("")
    done = here("submit", str(job), "--yes")
    assert done.returncode == 0, done.stderr
    return str(done.stdout.strip())


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
