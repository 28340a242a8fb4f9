"""`lumitui scaling`: the table, the recommendation, and what it refuses."""

import json

from lumitui.app.runs import Runs
from tests.support.jobs.trained_runs import train
from tests.support.program.command_line import Here


def test_a_lineage_is_shown_and_given_as_json(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1940.0, 4: 3500.0})[0]
    shown = here("scaling", run.id)
    assert "are for the 5,120 samples that" in " ".join(shown.stdout.split())
    assert "An epoch has 60,000 samples." in shown.stdout
    assert "97 %" in shown.stdout and "predicted" in shown.stdout
    assert "Take 1 node." in shown.stdout and "for longer training." in shown.stdout
    longer = " ".join(here("scaling", run.id, "--samples", "100000000").stdout.split())
    assert "Take 4 nodes." in longer and "It is unknown whether larger sizes reach this" in longer
    data = json.loads(here("scaling", run.id, "--json", "--deadline", "1h").stdout)["data"]
    assert data["advice"]["nodes"] == 1 and len(data["scaling"]["sizes"]) == 5
    assert here("scaling", run.id, "--deadline", "soon").returncode == 2


def test_a_lineage_without_figures_says_how_to_get_some(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0}, steps=0)[0]
    shown = here("scaling", run.id)
    assert shown.returncode == 0 and "has reported samples/s" in shown.stdout


def test_a_run_alone_predicts_other_sizes(here: Here, runs: Runs) -> None:
    run = train(runs.history, {1: 1000.0, 2: 1200.0}, parameters=86_567_656)[0]
    shown = here("scaling", run.id, "--predict", "--json")
    data = json.loads(shown.stdout)["data"]["scaling"]
    assert [size["measured"] for size in data["sizes"][:2]] == [True, False]
    assert data["steps"]["exchange"]["links"]["between_nodes"] > 0
    text = " ".join(here("scaling", run.id, "--predict").stdout.split())
    assert "8 of 10 published trainings lie within the interval." in text
