"""The cells of a run in the list, as far as they are not plain words."""

from dataclasses import replace

from rich.cells import cell_len

from lumitui.app.history.listing.page_cache import TreeLine
from lumitui.app.history.metric_points import Glance
from lumitui.app.tui.widgets.tables.run_columns import RowValues, columns_for, moves, row
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

LIST = 76
"""Cells of the list in a terminal of 120, beside the facts of a run."""


def cell_of(run_id: str, note: str, *, width: int = LIST, several: bool = False) -> str:
    columns = columns_for(width, several_sites=several)
    run = a_run(run_id, state=State.DONE, note=note)
    cells = row(columns, RowValues(run, TreeLine(run_id), Glance(), marked=False, now=2000.0))
    for column, (text, _) in zip(columns, cells, strict=True):
        assert cell_len(text) == column.width + 1
    return cells[1][0].rstrip()


def test_a_folded_series_says_how_its_runs_stand() -> None:
    line = TreeLine("vit-1", children=3, folded=True, summary="1 failed, 3 done")
    shown = RowValues(a_run("vit-1", state=State.DONE), line, Glance(), marked=False, now=2000.0)
    cells = row(columns_for(LIST, several_sites=False), shown)
    assert cells[0][0].split() == ["4", "runs"] and cells[1][0].rstrip() == "vit-1 +3"
    assert cells[-1][0].rstrip() == "1 failed, 3 done" and cells[-1][1] == "red"
    opened = row(columns_for(LIST, several_sites=False), replace(shown, line=TreeLine("vit-1")))
    assert "done" in opened[0][0]


def test_tags_stand_behind_the_id_of_a_run() -> None:
    assert cell_of("vit-tiny-000001", "a try #best") == "vit-tiny-000001 #best"
    assert cell_of("vit-tiny-000001", "as #12 says") == "vit-tiny-000001"
    for several in (False, True):
        for run_id in ("n" * 32 + "-0a1b2c", "実験" * 10 + "-0a1b2c", "vit"):
            cell = cell_of(run_id, "#best", several=several)
            assert cell.endswith(" #best") and run_id[-7:] in cell, cell
    assert cell_of("vit-tiny-000001", "#best #another-long-one").endswith("000001 #best …")
    assert "…0a1b2c #an" in cell_of("n" * 32 + "-0a1b2c", "#another-long-one", several=True)
    assert cell_of("vit-1", "#look #oom", width=79) == "vit-1 #look #oom"
    for width in range(24, 200):
        cell_of("n" * 32 + "-0a1b2c", "#best #実験実験実験", width=width)


def test_only_the_row_of_a_run_that_goes_on_or_is_new_moves_by_seconds() -> None:
    done = a_run("done-000001", created=1000.0, state=State.DONE)
    assert [moves(done, now) for now in (1030.0, 1061.0)] == [True, False]
    assert moves(a_run("goes-000001", created=1000.0, state=State.RUNNING), 9000.0)
