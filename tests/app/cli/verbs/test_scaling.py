"""`lumitui scaling`: the table, the recommendation, the drawing, and what it refuses."""

import json
import stat
from pathlib import Path
from xml.etree import ElementTree

from lumitui.app.runs import Runs
from tests.support.jobs.trained_runs import train
from tests.support.program.command_line import Here


def test_a_lineage_is_shown_drawn_and_given_as_json(here: Here, runs: Runs, tmp_path: Path) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1940.0, 4: 3500.0})[0]
    shown = here("scaling", run.id)
    assert "are for the 5,120 samples that" in " ".join(shown.stdout.split())
    assert "An epoch has 60,000 samples." in shown.stdout
    assert "97 %" in shown.stdout and "predicted" in shown.stdout
    assert "Take 1 node." in shown.stdout and "for longer work." in shown.stdout
    longer = " ".join(here("scaling", run.id, "--samples", "100000000").stdout.split())
    assert "Take 4 nodes." in longer and "Whether larger sizes reach that is not known" in longer
    plot = tmp_path / "out.svg"
    for _ in range(2):  # an SVG that is there is replaced
        done = here("scaling", run.id, "--json", "--deadline", "1h", "--plot", str(plot))
        data = json.loads(done.stdout)["data"]
        assert data["advice"]["nodes"] == 1 and len(data["scaling"]["sizes"]) == 5
        ElementTree.parse(plot)
        assert stat.S_IMODE(plot.stat().st_mode) == 0o600
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    refused = here("scaling", run.id, "--plot", str(notes))
    assert refused.returncode == 2 and notes.read_text() == "mine"
    assert here("scaling", run.id, "--plot", str(tmp_path / "no" / "a.svg")).returncode == 2
    assert here("scaling", run.id, "--deadline", "soon").returncode == 2


def test_a_lineage_without_figures_says_how_to_get_some(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0}, steps=0)[0]
    shown = here("scaling", run.id)
    assert shown.returncode == 0 and "has reported samples/s" in shown.stdout
    assert here("scaling", run.id, "--plot", "out.svg").returncode == 2


def test_a_run_alone_predicts_other_sizes(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1200.0}, parameters=86_567_656)[0]
    shown = here("scaling", run.id, "--predict", "--json")
    data = json.loads(shown.stdout)["data"]["scaling"]
    assert [size["measured"] for size in data["sizes"][:2]] == [True, False]
    assert data["steps"]["exchange"]["links"]["between_nodes"] > 0
    text = " ".join(here("scaling", run.id, "--predict").stdout.split())
    assert "8 of 10 published trainings lie within the interval." in text
