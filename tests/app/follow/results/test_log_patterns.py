"""Patterns that a person wrote, searched in a log: what they find, and never for ever."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli.views.show import gather, page_data, page_text
from lumitui.app.explain.run_facts import metrics
from lumitui.app.explain.run_overview import loss
from lumitui.app.follow.results.log_patterns import log_figures_of, series_of
from lumitui.app.follow.results.summary import SPEEDS
from lumitui.app.history.run import Run
from lumitui.app.job.json_schema import described_schema
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError
from tests.support.attacks.hostile_text import passable, written
from tests.support.jobs.endings import send
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import finish

LOCAL: dict[str, Any] = {"site": "laptop", "partition": "local", "gpus_per_node": 1}
LOG = "step 1 Images/sec: 100\nnothing \0 \ud800 🚀\nstep 2 Images/sec: 1,200.5\nImages/sec: fast\n"


def test_series_come_from_the_log() -> None:
    patterns = {"speed": r"Images/sec: (\S+)", "step": r"^step (\d+)", "a 'b' $(x)": "(nothing) "}
    found = series_of(LOG, patterns)
    assert found == {"speed": [100.0, 1200.5], "step": [1.0, 2.0], "a 'b' $(x)": []}
    assert series_of(LOG, {}) == {}


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("980.0", 980), ("1.2k", 1200), ("1.2K", 1200), ("3M", 3e6), ("1,200.5", 1200.5),
        ("1,200", 1200), ("1,00,000", 100_000), ("1.2e3", 1200), ("100,", 100), ("0,5", 0.5),
        ("0,125", 0.125), ("12,34", 12.34), ("5kimg", None),
    ],
)  # fmt: skip
def test_a_speed_has_the_size_that_was_printed(printed: str, number: float | None) -> None:
    found = series_of(f"speed {printed} \n", {"tokens_per_s": r"speed (\S+)"})
    assert found == {"tokens_per_s": [] if number is None else [number]}
    assert series_of(f"speed {printed}, x\n", {"tokens_per_s": "speed (.*?) ?x"}) == found
    digits = series_of(f"speed {printed} \n", {"tokens_per_s": "speed ([0-9.,e]+)", "loss": "(3)M"})
    assert digits["tokens_per_s"] == [number or 5]
    assert digits["loss"] == [3] * (printed == "3M")


@pytest.mark.parametrize("pattern", ["(?:a|aa)+$", r"(?:\w|\w\w)+\d"])
def test_a_pattern_that_would_take_for_ever_is_named(pattern: str) -> None:
    log = "step 1 Images/sec: 100\n" + "a" * 60 + "!\n"
    patterns = {"speed": r"Images/sec: (\S+)", "slow": f"({pattern})"}
    with pytest.raises(InputError, match="The pattern slow under `metrics:` needs more than"):
        series_of(log, patterns, seconds=0.7)


@pytest.mark.parametrize("pattern", ["(", "no group", "(a)|b", r"(?P<x>\w+)"])
def test_a_pattern_that_does_not_fit_gives_an_empty_series(pattern: str) -> None:
    assert series_of("no group b", {"x": pattern}) == {"x": []}


@given(st.text(), st.text(max_size=10))
def test_garbage_logs_and_patterns_never_raise(log: str, pattern: str) -> None:
    series_of(log, {"a": pattern, "b": f"({pattern})"})


def test_any_text_is_searched(tmp_path: object) -> None:
    text = "\n".join(written(passable, 100))
    assert series_of(text, {"digits": r"(\d+)"})["digits"]


def test_show_tells_what_the_patterns_found_in_the_log(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    text = "#!/bin/bash\nfor n in 100 200 300; do echo Images/sec: $n; done\n"
    (project / "program").write_text(text)
    (project / "program").chmod(0o755)
    patterns = {"images_per_s": "Images/sec: ([0-9]+)", "nothing": "never: (.*)"}
    run = finish(runs, send(runs, project, "logged", metrics=patterns, **LOCAL))
    page = gather(runs, run.id)
    assert page.series == {"images_per_s": [100.0, 200.0, 300.0], "nothing": []}
    assert re.search(r"images_per_s +300 \(last of 3 ", page_text(page, 0.0, 80))
    assert page_data(page)["log_metrics"] == page.series


@pytest.mark.slow
def test_a_slow_pattern_is_a_warning_of_show(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "program").write_text(f"#!/bin/bash\necho {'a' * 60}b\n")
    (project / "program").chmod(0o755)
    run = finish(runs, send(runs, project, "slow", metrics={"x": "((?:a|aa)+)$"}, **LOCAL))
    (warning,) = gather(runs, run.id).warnings
    assert "The pattern x under `metrics:` needs more than" in warning


def _logged(**metrics: str) -> Run:
    run = a_run()
    return replace(run, spec=run.spec.model_copy(update={"metrics": metrics}))


@pytest.mark.parametrize(
    ("line", "steps", "unit"),
    [
        ("step {n5} loss 0.{n}", [5, 10, 15, 20], "step"),
        ("iter {n5}/100, lr 0.1, loss 0.{n}", [5, 10, 15, 20], "step"),
        ("Epoch [{epoch}/2], Step [{half}/200], loss 0.{n}", [100, 200, 300, 400], "step"),
        ("Epoch: [{epoch}][ {half}/200]\tTime 0.1\tloss 0.{n}", [100, 200, 300, 400], "step"),
        ("{n5}/100 [00:12<00:40, 4.20it/s] loss 0.{n}", [5, 10, 15, 20], "step"),
        ("{n5}it [1:00:12, 4.20it/s] loss 0.{n}", [5, 10, 15, 20], "step"),
        (
            "Steps:  {n}%|# | {n5}/500 [1:00:12<2:00:40, 4.20it/s] loss 0.{n}",
            [5, 10, 15, 20],
            "step",
        ),
        ("rank 0/4 [12:00:01] step {n5} loss 0.{n}", [5, 10, 15, 20], "step"),
        ("step 0_0{n5:02} loss 0.{n}", [5, 10, 15, 20], "step"),
        ("step: 50{n} ms, iter {n5}, loss 0.{n}", [5, 10, 15, 20], "step"),
        ("\x1b[31mstep: {n5} \x1b[32mloss \x1b[1m0.{n}\x1b[39m", [5, 10, 15, 20], "step"),
        ("epoch=0/micro_step={n}/global_step={n5}, loss 0.{n}", [5, 10, 15, 20], "step"),
        ("Iter(train) [ {n5}/200]  lr: 0.1  loss 0.{n}", [5, 10, 15, 20], "step"),
        ("Epoch(train)  [{epoch}][ {half}/200]  loss 0.{n}", [100, 200, 300, 400], "step"),
        ('epoch 001: loss 0.{n}, "num_updates": "{n5}"', [5, 10, 15, 20], "step"),
        ("step {n}k loss 0.{n}", [1, 2, 3, 4], "line"),
        ("Epoch {n} of 4 loss 0.{n}", [1, 2, 3, 4], "epoch"),
        ("step 7 loss 0.{n}", [1, 2, 3, 4], "line"),  # does not grow
        ("Train Epoch: 1 [{n5}/60000 (1%)] loss 0.{n}", [1, 2, 3, 4], "line"),  # samples
        ("40ms/step {n5} loss 0.{n}", [1, 2, 3, 4], "line"),
    ],
)
def test_the_number_in_a_line_of_the_log_is_its_step(
    line: str, steps: list[int], unit: str
) -> None:
    text = "".join(
        line.format(n=n, n5=5 * n, epoch=(n + 1) // 2, half=100 if n % 2 else 200) + "\n"
        for n in range(1, 5)
    )
    run = _logged(loss=r"loss ([0-9.]+)")
    found = log_figures_of(run, lambda last: (0, text.encode()))
    assert [json.loads(one)["step"] for one in found.lines] == steps
    summary = found.figures.summary
    assert (summary.steps, summary.unit, summary.last_loss) == (steps[-1], unit, 0.4)
    assert found.figures.loss.unit == unit
    assert f"after {steps[-1]} {unit}s" in loss(summary)
    assert dict(metrics(summary, 0))[f"{unit}s"] == str(steps[-1])


def test_a_value_on_a_line_without_a_number_belongs_to_the_step_before() -> None:
    text = "".join(f"step {n} loss 0.{n}\nImages/sec: {n}00\n" for n in range(3, 6))
    run = _logged(loss=r"loss ([0-9.]+)", images_per_s="Images/sec: ([0-9]+)")
    found = log_figures_of(run, lambda last: (0, text.encode()))
    lines = [json.loads(line) for line in found.lines]
    assert lines[0] == {"step": 3, "loss": 0.3, "samples_per_s": 300.0}
    assert len(lines) == 3


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        # One count per epoch, and a line before it: the first value of a step must not be lost.
        ("loss 0.1\nstep 100 loss 0.2\nloss 0.3\nstep 200 loss 0.4\n", [0.1, 0.2, 0.3, 0.4]),
        ("Epoch 1 step 50 loss 0.1\nEpoch 1 step 100 loss 0.2\n"
         "Epoch 2 step 50 loss 0.3\nEpoch 2 step 100 loss 0.4\n", [0.1, 0.2, 0.3, 0.4]),
        # Each of two ranks prints its own line of a step.
        ("step 1 loss 0.1\nstep 1 loss 0.2\nstep 2 loss 0.3\nstep 2 loss 0.4\n", [0.2, 0.4]),
        ("Epoch 1 loss 0.1\nEpoch 1 loss 0.2\nEpoch 2 loss 0.3\nEpoch 2 loss 0.4\n", [0.2, 0.4]),
        ("Epoch 1 step 60 loss 0.1\nEpoch 2 step 60 loss 0.2\n", [0.1, 0.2]),
        ("Epoch 1: step 60/60 loss 0.1\nEpoch 2: step 60/60 loss 0.2\n", [0.1, 0.2]),
    ],
)  # fmt: skip
def test_no_value_of_an_epoch_is_lost(text: str, losses: list[float]) -> None:
    found = log_figures_of(_logged(loss=r"loss ([0-9.]+)"), lambda last: (0, text.encode()))
    assert [json.loads(line)["loss"] for line in found.lines] == losses


def test_the_job_files_schema_lists_the_names_that_count_as_throughput() -> None:
    words = described_schema(JobSpec)["properties"]["metrics"]["description"]
    assert re.findall(r"`(\w+_per_s)`", words) == list(SPEEDS)
