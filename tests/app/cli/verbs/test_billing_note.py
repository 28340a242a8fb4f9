"""Where a person agrees to a price, the site's way of counting stands beside it."""

from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.job.spec import parse_job
from lumitui.app.launch.job_price import node_rate
from lumitui.app.mcp.agent_views import previews_view
from lumitui.app.runs import Runs
from lumitui.app.tui.widgets.launch_text import rate, series_terms, terms
from lumitui.remote.site.finding import Finding
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.program.command_line import CLUSTER, Here, write
from tests.support.program.home import Home

LUMI = CLUSTER | {"site": "lumi", "memory": "60G", "proof": "off", "script": "train.py"}
NOTE = "LUMI bills a card of two GCDs as one GPU, so an hour on one GCD costs 0.5 GPU-hours."


@pytest.fixture
def lumi(path: Path) -> Path:
    """Return a job file for LUMI with a program."""
    write(path, LUMI)
    (path.parent / "train.py").write_text("print()\n")
    return path


def test_the_preview_and_the_question_explain_the_price(here: Here, lumi: Path) -> None:
    for words in (["preview", str(lumi)], ["submit", str(lumi)]):
        assert f"note: {NOTE}\n" in here(*words).stderr
    assert NOTE not in here("preview", "--script", str(lumi)).stderr


def test_a_grid_explains_its_price_once(here: Here, path: Path, lumi: Path) -> None:
    write(path, LUMI | {"grid": {"env.SEED": [1, 2]}})
    assert here("preview", str(lumi)).stderr.count(NOTE) == 1


def test_a_grid_over_several_sites_names_the_rate_of_each(
    here: Here, path: Path, lumi: Path, runs: Runs, home: Home
) -> None:
    profile = home.config / "sites" / "other.yaml"
    profile.write_text("extends: lumi\nbilling_note: An hour of one GCD costs 2 coins.\n")
    write(path, LUMI | {"grid": {"site": ["lumi", "other"], "env.SEED": [1, 2]}})
    previews = runs.previews(path)
    notes = [f"lumi: {NOTE}", "other: An hour of one GCD costs 2 coins."]
    assert [words for label, words in series_terms(previews) if label == "rate"] == notes
    assert previews_view(previews)["rate"] == " ".join(notes)
    assert rate(previews[2:]) == [("rate", "An hour of one GCD costs 2 coins.")]
    done = here("submit", str(lumi), "--force")
    assert all(done.stderr.count(f"note: {note}\n") == 1 for note in notes), done.stderr
    assert "Submit these 4 runs to lumi, other?" in done.stderr


def test_a_job_that_costs_nothing_needs_no_note(here: Here, job: Path) -> None:
    assert "note: LUMI bills" not in here("preview", str(job)).stderr


def test_the_dialog_has_the_same_words(runs: Runs, lumi: Path) -> None:
    preview = runs.preview(parse_job(lumi.read_text(), "job"), lumi.parent)
    assert ("rate", NOTE) in terms(preview)
    assert ("rate", NOTE) in series_terms((preview, preview))


def test_the_question_names_the_warnings_once_and_then_the_notes(runs: Runs, lumi: Path) -> None:
    note = Finding("b", "note", "A note.")
    found = [note, *(Finding("a", "warning", f"Warning {at}.") for at in range(2))]
    preview = replace(runs.preview(parse_job(lumi.read_text(), "job"), lumi.parent),
                      findings=tuple(found))  # fmt: skip
    rows = [("warning", "Warning 0."), ("warning", "Warning 1."), ("note", "A note.")]
    assert terms(preview)[-3:] == rows
    more = replace(preview, findings=(*found, Finding("b", "note", "Another note.")))
    assert terms(more)[-4:] == [*rows, ("", "… and 1 more")]
    several = series_terms((preview, preview))
    assert [row for row in several if row in rows] == rows


def test_each_note_agrees_with_the_rates_of_its_profile() -> None:
    sites = Sites([BUILT_IN])
    for site in map(sites.load, sites.names()):
        if site.billing_note:
            rates = {
                f"{node_rate(item.billing, cores, 0, gpus=1):g}"
                for item in site.partitions.values()
                for cores in (0, site.cores_per_gpu)
            }
            assert site.billing_unit in site.billing_note
            assert rates & set(site.billing_note.split()), site.name
