"""The command line sends every run of a grid, and says what that costs before."""

import json
from pathlib import Path

from lumitui.app.runs import Runs
from tests.support.command_line import HELLO, Here


def test_a_grid_is_shown_whole_sent_whole_and_can_be_continued(
    here: Here, job: Path, runs: Runs
) -> None:
    job.write_text(HELLO + 'grid: {env.SEED: ["1", "2", "3"]}\n')
    shown = here("preview", str(job))
    assert "  3  env.SEED=3  nothing is billed" in shown.stderr
    assert "3 runs; nothing is billed" in shown.stderr
    assert "SEED=1" in shown.stdout or "SEED='1'" in shown.stdout
    given = json.loads(here("preview", str(job), "--json").stdout)["data"]["runs"]
    assert [row["settings"] for row in given] == ["env.SEED=1", "env.SEED=2", "env.SEED=3"]
    assert here("submit", str(job), "--yes", "--wait").returncode == 2, "of which run?"
    refused = here("submit", str(job), "--yes", "--skip", "3")
    assert refused.returncode == 2 and "leaves no run" in refused.stderr
    assert not runs.history.page()

    sent = here("submit", str(job), "--yes", "--skip", "1")
    assert sent.returncode == 0, sent.stderr
    made = runs.history.page()
    assert sent.stdout.split() == [run.id for run in reversed(made)]
    assert [run.spec.env["SEED"] for run in reversed(made)] == ["2", "3"]
    notes = [run.note.split(": ") for run in made]
    assert notes[0][0] == notes[1][0] and notes[0][1] == "env.SEED=3"
    exported = here("export", str(job), str(job.parent / "out"))
    assert exported.returncode == 2 and "grid of 3 runs" in exported.stderr
