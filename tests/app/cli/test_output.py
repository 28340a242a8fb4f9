"""What is shown is safe and fits: tables in 80 columns, plain objects as JSON."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lumitui.app.cli.views import tables
from lumitui.app.explain import words
from lumitui.app.follow.sites.cluster_overviews import RunGpus
from lumitui.remote.scheduler.job_step import GpuReading
from lumitui.remote.site.safe_text import spell_out
from lumitui.remote.site.sites import BUILT_IN, Sites
from tests.support.jobs.made_runs import a_run

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


@pytest.mark.parametrize("columns", [20, 60, 200])
def test_a_list_of_runs_is_a_table_with_notes_where_there_are_any(columns: int) -> None:
    titles = ["RUN", "CREATED", "STATE", "NODES", "SITE", "FROM", "NOTE"]
    runs = [a_run(f"run-{number:06d}", parent="run-000000" if number else None,
                  note="best ä" if number == 3 else "") for number in range(5)]  # fmt: skip
    for some, count in ((runs, 7), (runs[:2], 6)):
        rows = [
            (run.id, words.clock(run.created)[:16], run.state.value, run.layout.nodes, run.site,
             run.parent or "-", run.note)[:count]
            for run in some
        ]  # fmt: skip
        shrink = [6, 5, 4, 0][7 - count :]
        whole = tables.table(titles[:count], rows, columns, shrink=shrink, ids=0)
        assert tables.history_table(some, columns) == whole
    assert tables.history_table([], columns) == ""


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
