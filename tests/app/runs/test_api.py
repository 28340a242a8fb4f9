"""The Python API as its page tells it: the page's own example, run as a notebook would."""

import ast
import inspect
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import lumitui
from lumitui.app import runs
from lumitui.app.follow.results.summary import Figures
from lumitui.app.history.metric_points import MetricPoint
from lumitui.app.history.run import Run
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.app.launch.send.preview import Preview
from lumitui.app.runs import Runs
from lumitui.app.scale.resubmission import Resubmission
from lumitui.app.scale.run_plan import RunPlan
from lumitui.remote.site.sites import BUILT_IN
from tests.support.places import ROOT
from tests.support.program.home import Home

PAGE = (ROOT / "docs" / "api.md").read_text()
YAML, TRAIN, NOTEBOOK, SWEEP = re.findall(r"```(?:yaml|python)\n(.*?)```", PAGE, re.DOTALL)


def in_python(code: str, folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_page_s_example_runs_a_job_and_runs_it_again_on_twice_the_nodes(
    home: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "job.yaml").write_text(YAML)
    (folder / "train.py").write_text(TRAIN)
    said = in_python(NOTEBOOK, folder, {**home.environ, "HOME": str(tmp_path)})
    rows = said.splitlines()
    first = next(row for row in rows if " done 0 [1.0, 0.5" in row)
    assert rows[-1].startswith(f"done {first.split()[0]} "), said
    with Runs(home.settings) as runs:
        assert [run.layout.nodes for run in runs.history.page(limit=3)] == [2, 1]
        assert len(runs.metrics("last")) == 20
        assert (
            runs.figures("last").summary.steps == runs.figures(first.split()[0]).summary.steps > 0
        )
        got = runs.fetch("last", str(tmp_path / "got"))
        assert {Path(file.path).name for file in got.files} >= {"metrics.jsonl"}


def test_the_page_s_sweep_gives_a_table_and_sends_the_best_run_on_two_nodes(
    home: Home, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "job.yaml").write_text(YAML)
    (folder / "train.py").write_text(TRAIN)
    said = in_python(SWEEP, folder, {**home.environ, "HOME": str(tmp_path)})
    rows = [ast.literal_eval(line) for line in said.splitlines()[1:]]
    assert [row["args"] for row in rows] == ["--lr 0.1", "--lr 0.03", "--lr 0.3", "--lr 0.03"]
    assert [row["nodes"] for row in rows] == [1, 1, 1, 2]
    assert {row["state"] for row in rows} == {"done"} and len({*map(len, rows)}) == 1
    assert min(rows, key=lambda row: row["loss"])["args"] == "--lr 0.03"


def test_importing_the_package_imports_nothing_of_it(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); import lumitui; "
        "print(*sorted(set(sys.modules) - before))"
    )
    assert in_python(code, tmp_path, dict(os.environ)).split() == ["lumitui"]


def test_every_name_of_the_package_is_there() -> None:
    assert lumitui.Runs is Runs
    for name in lumitui.__all__:
        assert inspect.isclass(getattr(lumitui, name)), name
    assert not hasattr(lumitui, "Rnus")


def test_what_the_page_names_is_there() -> None:
    calls = re.findall(r"^\| `runs\.(\w+)\((.*?)\)`", PAGE, re.MULTILINE)
    assert len(calls) > 12
    for name, given in calls:
        allowed = [*inspect.signature(getattr(Runs, name)).parameters]
        for place, part in enumerate(filter(None, given.split(", "))):
            word, is_named, _ = part.partition("=")
            assert not is_named or word in allowed, (name, part)
            assert is_named or place + 1 < len(allowed), (name, part)
    kinds = {Run: r"A `Run` has", Preview: r"`Preview`:", MetricPoint: r"`MetricPoint`s:"}
    kinds |= {
        Figures: r"`Figures`:",
        Resubmission: r"`Resubmission`:",
        RunPlan: r"and `plan` with",
        Diagnosis: r"first:",
    }
    for kind, start in kinds.items():
        row = re.search(rf"{start} ((?:`\w+`[,\s]*)+)", PAGE)
        assert row, kind
        for name in re.findall(r"`(\w+)`", row[1]):
            assert name in kind.__annotations__ or hasattr(kind, name), (kind, name)


def test_each_public_method_says_what_it_is_and_each_that_asks_a_run_what_it_raises() -> None:
    for name, method in inspect.getmembers(Runs, inspect.isfunction):
        if name.startswith("_"):
            continue
        words = inspect.getdoc(method) or ""
        assert words, name
        if "run_id" in inspect.signature(method).parameters:
            assert "Raises:" in words, name


HOMES: dict[str, tuple[str, str]] = vars(runs)["_HOMES"]


@pytest.mark.parametrize("name", sorted(HOMES))
def test_each_name_of_the_list_is_there(name: str) -> None:
    assert getattr(runs, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Rnus'"):
        _ = runs.Rnus  # type: ignore[attr-defined]


def test_the_door_itself_loads_no_other_package() -> None:
    words = "import sys, lumitui.app.runs as r; print(*(m for m in sys.modules if 'lumitui' in m))"
    loaded = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=True, timeout=60
    ).stdout.split()
    assert sorted(loaded) == ["lumitui", "lumitui.app", "lumitui.app.runs"]


def test_an_alias_of_the_host_is_not_polled_more_often_than_the_systems_profile_allows(
    home: Home, tmp_path: Path
) -> None:
    user, system, config = (tmp_path / name for name in ("user", "system", "config"))
    config.write_text("Host hpc\n  HostName Login.example.\nHost other\n  HostName b.example\n")
    for folder in (user, system):
        folder.mkdir()
    common = "extends: lumi\nname: {}\npoll_seconds: {}\nhosts: {{login: {}{}}}\n"
    (system / "hpc.yaml").write_text(common.format("hpc", 90, "login.example", ""))
    for name, host in (("mine", "hpc"), ("other", "other")):
        text = common.format(name, 5, host, f", ssh_config: {config}")
        (user / f"{name}.yaml").write_text(text)
    with Runs(replace(home.settings, profiles=(user, system, BUILT_IN))) as runs:
        pauses = [runs.sites.load(name).poll_seconds for name in ("mine", "other")]
    assert pauses == [90, 5]
