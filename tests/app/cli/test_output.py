"""What the verbs print: rows that fit, one JSON object with --json, and progress on a terminal."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli import output, send_progress
from lumitui.app.cli.views import tables
from lumitui.app.explain import row_words
from lumitui.app.follow.sites.cluster_overviews import RunGpus
from lumitui.app.job.launch import Price
from lumitui.remote.scheduler.job_step import GpuReading
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.safe_text import spell_out
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.made_runs import a_run
from tests.support.places import ROOT
from tests.support.program.command_line import HELLO, Here, envelope

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), min_size=1, max_size=4))
def test_tables_stay_in_80_columns_whatever_the_names(rows: list[tuple[str, str, str]]) -> None:
    text = tables.table(("RUN", "STATE", "REASON"), rows, 80, shrink=(2, 0, 1), ids=0)
    lines = text.split("\n")
    assert len(lines) == len(rows) + 1
    assert max(map(tables.width, lines)) <= 80
    assert spell_out(text, keep="\n") == text


def test_a_cut_id_keeps_its_distinct_end() -> None:
    name = "a-very-long-name-of-a-training-a1b2c3"
    assert tables.cut(name, 20, keep_end=True) == "a-very-long-…-a1b2c3"
    assert tables.width(tables.cut("日本語" * 9, 10)) <= 10


def test_a_long_text_is_cut_at_once() -> None:
    # A cut that looks at the whole text for each character takes minutes here.
    assert tables.width(tables.cut("日" * 300_000, 40)) <= 40
    assert len(tables.cut("e" + "\u0301" * 300_000, 40)) == 300_001


def test_a_list_of_runs_has_the_jobs_and_notes_where_there_are_any() -> None:
    first = a_run("run-000001", job_id="41")
    second = a_run("run-000002", parent="run-000001", note="best ä")
    plain, noted = tables.history_table([first], 80), tables.history_table([first, second], 100)
    assert re.sub(" +", " ", plain).startswith("RUN CREATED STATE JOB NODES SITE FROM\n")
    assert re.sub(" +", " ", noted).startswith("RUN CREATED STATE JOB NODES SITE NOTE FROM\n")
    assert " 41 " in plain and noted.endswith("best ä  run-000001")
    # Where not all of it fits, the parents go first: no id is cut for them.
    narrow = tables.history_table([first, second], 76)
    assert "FROM" not in narrow and narrow.endswith("somewhere  best ä")
    assert "run-000002" in narrow
    assert max(map(tables.width, tables.history_table([second] * 3, 66).splitlines())) <= 66
    assert tables.history_table([], 80) == ""


def test_the_list_of_runs_has_what_each_cost_in_80_columns() -> None:
    run = a_run("vit-l16-b83d5e", job_id="8124202", state=State.CANCELLED, site="lumi")
    ran = replace(run, price=Price(32.0, "GPU-hours", 32.0), started=0.0, ended=900.0)
    waits = replace(run, id="vit-l16-000001", state=State.QUEUED, site="lumi", updated=0.0)
    lines = tables.history_table([ran, waits], 80).splitlines()
    assert "NODES  GPU-H  SITE" in lines[0] and "2      8.00   lumi" in lines[1]
    assert "2             lumi" in lines[2] and max(map(len, lines)) <= 80
    other = replace(ran, price=Price(32.0, "CU", 32.0))
    assert "NODES  COST     SITE" in tables.history_table([ran, other], 80).splitlines()[0]
    assert row_words.total([ran, ran, waits], 1e9) == "16.00 GPU-hours"
    assert row_words.total([ran, other], 1e9) == row_words.total([waits], 1e9) == ""


def test_sites_are_a_line_each_in_80_columns_with_closed_ones_last() -> None:
    known = Sites([BUILT_IN])
    lines = tables.site_table([known.load(name) for name in known.names()], 80).splitlines()
    assert all(len(line) <= 80 for line in lines) and len(lines) == len(known.names()) + 1
    closed = [line.split()[0] for line in lines if "closed on" in line]
    assert closed == [line.split()[0] for line in lines[-len(closed) :]]
    assert lines[-1].endswith("closed on 2026-07-31; use roihu")


def test_the_gpus_of_a_run_are_lines_the_idle_ones_first() -> None:
    gpus = tuple(GpuReading("nid1", at, 480.0 - 471 * at, 5e10, 6.9e10, 90.0) for at in (0, 1))
    lines = tables.gpus_text(RunGpus(gpus, 150.0, 0.0), 80).splitlines()
    assert lines[:2] == ["2 GPUs on 1 node, 489 W together.", "GPU 1 on nid1 draws 9 W: idle."]
    assert lines[3].split() == ["NODE", "GPU", "POWER", "MEMORY", "USE"]
    assert lines[4].endswith("idle") and len(lines) == 6


def test_a_series_is_objects_as_one_run_is(here: Here, job: Path) -> None:
    job.write_text(HELLO.replace("args: [one]", "grid: {--lr: [1, 2]}"))
    data = envelope(here("submit", str(job), "--yes", "--json"))["data"]
    assert [run["price"]["amount"] for run in data["runs"]] == [0, 0]
    assert [member["run"] for member in data["members"]] == [run["id"] for run in data["runs"]]
    again = ["resubmit", data["runs"][0]["id"], "--ladder", "1,2", "--yes", "--force", "--json"]
    done = here(*again, "--set", "launcher=torchrun", "--set", "strategy=ddp")
    ladder = envelope(done)["data"]
    assert [run["nodes"] for run in ladder["runs"]] == [1, 2], done.stderr
    assert all(run["price"]["amount"] == 0 for run in ladder["runs"])


def test_an_unknown_type_is_a_mistake_and_not_its_repr() -> None:
    class Unknown:
        pass

    with pytest.raises(TypeError, match="Unknown"):
        output.as_data({"a": [Unknown()]})
    for path in (ROOT / "app/cli").rglob("*.py"):
        assert "default=str" not in path.read_text(), path


def test_a_transfer_is_one_line_that_changes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(send_progress, "has_person", lambda: True)
    for words in ("writing history", "staging D 1%", "staging D 2%", "staged D", "submitting"):
        send_progress.show_step("sync", words)
    back = "\r\x1b[K"
    assert capsys.readouterr().err == (
        f"… writing history\n… staging D 1%{back}… staging D 2%{back}… staged D\n… submitting\n"
    )


def test_nobody_watches_nothing_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(send_progress, "has_person", lambda: False)
    send_progress.show_step("sync", "staging D 1%")
    assert capsys.readouterr().err == ""
