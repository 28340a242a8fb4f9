"""Patterns that a person wrote, searched in a log: what they find, and never for ever."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli.views.show import gather, page_data, page_text
from lumitui.app.follow.results.log_patterns import lines_of, series_of
from lumitui.app.job.json_schema import described_schema
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import Runs
from lumitui.remote.site.errors import InputError
from tests.support.attacks.hostile_text import passable, written
from tests.support.jobs.endings import send
from tests.support.jobs.small_jobs import finish

LOCAL: dict[str, Any] = {"site": "laptop", "partition": "local", "gpus_per_node": 1}
LOG = "step 1 Images/sec: 100\nnothing \0 \ud800 🚀\nstep 2 Images/sec: 1,200.5\nImages/sec: fast\n"


def test_series_come_from_the_log() -> None:
    patterns = {"speed": r"Images/sec: (\S+)", "step": r"^step (\d+)", "a 'b' $(x)": "(nothing) "}
    found = series_of(LOG, patterns)
    assert found == {"speed": [100.0, 1200.5], "step": [1.0, 2.0], "a 'b' $(x)": []}
    assert series_of(LOG, {}) == {}


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


def test_the_job_files_schema_lists_the_names_that_count_as_throughput() -> None:
    words = described_schema(JobSpec)["properties"]["metrics"]["description"]
    units = ("samples", "images", "examples", "sequences", "tokens", "batches")
    counted = [f"{unit}_per_s" for unit in units
               if b"samples_per_s" in lines_of({f"{unit}_per_s": [1.0]})[0]]  # fmt: skip
    assert counted == re.findall(r"`(\w+_per_s)`", words)
