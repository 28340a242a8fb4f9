"""What is known of runs without asking a site: the last news, sites nobody knows, notes."""

import time
from pathlib import Path

import pytest

from lumitui.app.cli.session import refuse_silence
from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.history.history import History
from lumitui.app.runs import HistoryError, Runs
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.endings import accident
from tests.support.jobs.made_runs import a_run
from tests.support.jobs.small_jobs import hello_job, hello_project
from tests.support.program.command_line import Here, envelope, told
from tests.support.program.home import Home
from tests.support.servers.cluster import Cluster

AWAY = "extends: lumi\nhosts: {login: 127.0.0.1, port: 9, fingerprints: null}\n"
"""A site behind a port where nobody listens (discard, RFC 863)."""


@pytest.fixture
def kept(home: Home) -> History:
    """The history of a person whose site `away` cannot be reached."""
    (home.config / "sites" / "away.yaml").write_text(AWAY)
    history = History(home.settings.history)
    now = time.time()
    running = {"state": State.RUNNING, "job_id": "7", "started": now - 100, "updated": now - 59.5}
    history.begin(a_run("vit-running-000001", site="away", reason="None", **running))
    history.begin(a_run("vit-ended-000002", site="closed", state=State.DONE))
    return history


def test_an_unknown_site_is_an_error_that_names_the_known_ones(kept: History, here: Here) -> None:
    for verb in ("status", "history"):
        for more in ((), ("--json",)):
            told(
                here(verb, "--site", "lummi", *more), 2, "'lummi' is not a site", "away, ", "laptop"
            )
    # The profile of this site is gone; its runs are still listed.
    assert "vit-ended-000002" in here("history", "--site", "closed").stdout
    assert here("status", "--site", "closed").returncode == 0
    assert here("history", "--site", "laptop").returncode == 0
    assert here("status", "--site", "laptop").returncode == 0


def test_without_any_news_status_ends_with_3_and_shows_the_last(
    kept: History, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = here("status")
    assert "No answer from away" in told(done, 3, "warning: away: ", "127.0.0.1")
    heading, row = done.stdout.splitlines()
    assert "AS OF" in heading and max(map(len, (heading, row))) <= 80
    run = kept.get("vit-running")
    # The clock stands at the last news.
    assert words.clock(run.updated)[11:] in row and "00:00:40/01:00:00" in row
    answer = envelope(here("status", "--json"))
    assert (answer["error"]["exit_code"], answer["data"]["runs"][0]["stale"]) == (3, True)


def test_one_site_that_answers_is_enough(kept: History, here: Here, home: Home) -> None:
    # The job left nothing behind: this machine answers that it does not know the job.
    folder = str(home.data / "p")
    kept.begin(a_run("here-000003", site="laptop", state=State.RUNNING, job_id="1", root=folder,
                     folder=f"{folder}/runs/here-000003", started=1.0))  # fmt: skip
    done = here("status")
    assert done.returncode == 0, done.stderr
    assert "warning: away: " in done.stderr
    rows = {row.split()[0]: row for row in done.stdout.splitlines()}
    assert " now " in rows["here-000003"] and " now " not in rows["vit-running-000001"]
    stale = {row["id"]: row["stale"] for row in envelope(here("status", "--json"))["data"]["runs"]}
    assert stale == {"vit-running-000001": True, "here-000003": False}


def test_a_site_without_its_queue_reports_no_states(
    cluster: Cluster, cluster_runs: Runs, here: Here, tmp_path: Path
) -> None:
    project = hello_project(tmp_path / "p")
    (project / "hello.py").write_text("import time; time.sleep(60)\n")
    preview = cluster_runs.preview(hello_job(), project)
    run = cluster_runs.send(preview)
    with accident(cluster, "squeue", "echo 'squeue: error: no' >&2; exit 1"):
        done = here("status")
        assert "minilumi: squeue: error: no" in done.stderr
        heading, row = done.stdout.splitlines()
        last = cluster_runs.history.get(run.id)
        assert "AS OF" in heading and words.clock(last.updated)[11:] in row
        (shown,) = envelope(here("status", "--json"))["data"]["runs"]
        assert shown["stale"]
    assert "AS OF" not in here("status").stdout
    cluster_runs.cancel(run.id)


def test_the_last_news_of_another_day_has_its_date() -> None:
    now = time.mktime((2026, 11, 21, 10, 0, 0, 0, 0, -1))
    runs = [
        a_run("a-000001", state=State.RUNNING, updated=now - 86_400),
        a_run("b-000002", state=State.SENDING),
    ]
    stale = {run.id for run in runs}
    _, first, second = tables.run_table(runs, now, 100, stale).splitlines()
    assert "2026-11-20 10:00" in first and "never" in second
    assert tables.width(first) <= 100
    assert "AS OF" not in tables.run_table(runs, now, 100)


def test_a_note_is_kept_found_and_removed(
    kept: History, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "NOTE" not in here("history").stdout
    assert here("note", "vit-ended", "the wärm baseline").returncode == 0
    listed = here("history").stdout.splitlines()
    assert "NOTE" in listed[0] and "the wärm" in listed[1] + listed[2]
    assert max(map(len, listed)) <= 80
    (found,) = envelope(here("history", "--filter", "wärm", "--json"))["data"]
    assert (found["id"], found["note"]) == ("vit-ended-000002", "the wärm baseline")
    shown = here("show", "vit-ended").stdout.splitlines()
    assert ["note", "the", "wärm", "baseline"] in [line.split() for line in shown]
    for text in ("two\nlines", "a\ttab", "bell\x07", "\x9b5n", "a\u2028b", "x" * 201):
        told(here("note", "vit-ended", text), 2, "note")
    told(here("note", "nothing", "a"), 2, "'nothing' is not a run")
    assert kept.get("vit-ended").note == "the wärm baseline"
    assert envelope(here("note", "vit-ended", "", "--json"))["data"]["note"] == ""
    assert kept.get("vit-ended").note == ""


def test_a_history_that_cannot_be_written_is_not_a_site_that_does_not_answer() -> None:
    full = HistoryError("The history cannot grow: the disk is full.", "Free some space.")
    with pytest.raises(HistoryError, match="the disk is full"):
        refuse_silence({"away"}, {"away": full})
