"""A wrong clock of this machine is named once, and dates no file on a site."""

import os
import time
from pathlib import Path

import pytest

from lumitui.app.follow.poll import clock_words
from lumitui.app.job.spec import parse_job
from lumitui.app.runs import Runs

JOB = """\
name: clock
site: laptop
partition: local
gpus_per_node: 1
time: "00:05:00"
launcher: plain
script: wait.sh
proof: "off"
"""
NOW, YEAR = 1_800_000_000.0, 31_536_000.0


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (None, ""),
        (NOW + 30, ""),
        (NOW - 59, ""),
        (NOW + 90, ""),  # the answer took a minute
        (NOW - 120, "2 min ahead of the site's"),
        (NOW + 60 + YEAR, "365 d 00 h behind the site's"),
    ],
)
def test_clocks_that_differ_are_named_by_how_much(clock: float | None, words: str) -> None:
    said = clock_words(clock, NOW, NOW + 60)
    assert (words in said) if words else not said


def test_a_wrong_clock_is_said_once_and_the_site_dates_the_files(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wait.sh").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "wait.sh").chmod(0o755)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() - 5 * YEAR - 600)
    run = runs.send(runs.preview(parse_job(JOB, "job"), tmp_path))
    try:
        said = [words for _ in range(2) for words in runs.refresh("laptop").warnings]
        assert [words for words in said if "1825 d 00 h behind the site's" in words] == said[:1]
        for path in Path(run.folder).rglob("*"):
            assert abs(os.lstat(path).st_mtime - right()) < 600, path
    finally:
        runs.cancel(run.id)
