"""The cells of a run in the list, as far as they are not plain words."""

from dataclasses import replace

from rich.cells import cell_len

from lumitui.app.explain import run_facts, run_overview, words
from lumitui.app.explain.training_summary import Summary
from lumitui.app.follow.results.sweep import StepPace, SweepRow
from lumitui.app.history.listing.find_runs import Order, OrderBy
from lumitui.app.history.listing.page_cache import TreeLine
from lumitui.app.history.metric_points import Glance
from lumitui.app.tui.widgets.styled import GAP
from lumitui.app.tui.widgets.tables.run_columns import (
    Part,
    RowValues,
    cells_of,
    columns_for,
    heading,
    moves,
    row,
)
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

LIST = 76
"""Cells of the list in a terminal of 120, beside the facts of a run."""


def drawn(shown: RowValues, width: int = LIST, *, several: bool = False) -> dict[str, Part]:
    """Return the cells of a run in a list of nothing else, by their columns."""
    columns = columns_for(width, tuple(cells_of(shown)), several_sites=several)
    cells = row(columns, shown)
    for column, (text, _) in zip(columns, cells, strict=True):
        assert cell_len(text) == column.width + GAP
    names = [column.key for column in columns]
    return dict(zip(names, ((text.rstrip(), style) for text, style in cells), strict=True))


def cell_of(run_id: str, note: str, *, width: int = LIST, several: bool = False) -> str:
    run = a_run(run_id, state=State.DONE, note=note)
    shown = RowValues(run, TreeLine(run_id), Glance(), marked=False, now=2000.0)
    return drawn(shown, width, several=several)["run"][0]


def test_a_folded_series_says_how_its_runs_are_and_nothing_of_its_first_run() -> None:
    line = TreeLine(
        "vit-1", children=3, folded=True, summary="1 failed, 3 done", members=("vit-1",)
    )
    run = a_run("vit-1", state=State.DONE, started=1.0, ended=900.0)
    shown = RowValues(run, line, Glance(last_loss=1.0), marked=False, now=2000.0)
    cells = drawn(shown)
    assert cells["state"][0].split() == ["4", "runs"] and cells["run"][0] == "vit-1 +3"
    assert cells["note"] == ("1 failed, 3 done", "red")
    assert not {"time", "loss"} & set(cells)
    opened = drawn(replace(shown, line=TreeLine("vit-1")))
    assert "done" in opened["state"][0] and {"time", "loss", "cost"} <= set(opened)


def test_a_folded_ladder_has_the_range_of_its_sizes_and_what_they_cost_together() -> None:
    line = TreeLine("vit-1", children=2, folded=True, summary="3 done", members=("vit-1",))
    run = a_run("vit-1", state=State.DONE, started=1000.0, ended=1900.0)
    runs = tuple(replace(run, layout=replace(run.layout, nodes=nodes)) for nodes in (1, 2, 4))
    shown = RowValues(run, line, Glance(), marked=False, now=2000.0, members=runs)
    cells = drawn(shown)
    assert (cells["size"][0].strip(), cells["cost"][0].strip()) == ("1-4x8", "12.00")
    cores = replace(runs[0], layout=replace(run.layout, on_cpu=True))
    euros = replace(runs[0], price=replace(run.price, unit="EUR"))
    assert drawn(replace(shown, members=(*runs, cores)))["size"][0].strip() == "4 sizes"
    assert "cost" not in drawn(replace(shown, members=(*runs, euros)))


def test_a_speed_has_the_same_digits_in_every_place() -> None:
    run, totals = a_run("vit-1", state=State.DONE), Summary(9, None, 6266.9, None, None, 16, 256)
    shown = RowValues(run, TreeLine("vit-1"), Glance(samples_per_s=6266.9), marked=False, now=2e3)
    texts = [
        drawn(shown)["speed"][0],
        run_overview.speed(run, totals),
        run_overview.relative(run, 0, totals, None)[3],
        dict(run_facts.metrics(totals, 0))["throughput"],
        SweepRow("", pace=StepPace(samples_per_s=6266.9)).cells[2],
    ]
    assert {text.split()[0] for text in texts} == {"6,267"}
    assert [words.rate(each) for each in (None, 8.1234, 99.97, 640.123)] == [
        "-", "8.12", "100", "640",
    ]  # fmt: skip


def test_a_column_that_says_nothing_is_left_out_and_reasons_are_in_the_last() -> None:
    failed = a_run("vit-1", state=State.FAILED, rc=1, cause="out of memory")
    shown = RowValues(failed, TreeLine("vit-1"), Glance(), marked=False, now=2000.0)
    cells = drawn(shown)
    assert [*cells] == ["state", "run", "age", "size", "time", "note"]
    assert cells["note"] == ("out of memory", "red") and "/1h00" in cells["time"][0]
    mine = replace(shown, run=a_run("vit-1", state=State.DONE, note="the baseline #best"))
    assert drawn(mine)["note"] == ("the baseline", "italic")
    assert "note" not in drawn(replace(mine, run=a_run("vit-1", state=State.DONE)))
    assert "site" in drawn(shown, several=True)


def test_the_arrow_says_whether_the_values_below_it_rise() -> None:
    run = a_run("vit-1", created=1000.0, state=State.DONE, started=1.0, ended=1900.0)
    shown = RowValues(run, TreeLine("vit-1"), Glance(), marked=False, now=2000.0)
    cells, arrows = tuple(cells_of(shown)), []
    for by in OrderBy:
        columns = columns_for(120, cells, several_sites=False, by=by)
        assert (by is OrderBy.END) == any(column.key == "ended" for column in columns)
        for reverse in (False, True):
            words = "".join(text for text, _ in heading(columns, Order(by, reverse))).split()
            arrows += [word for word in words if word[-1] in "▴▾"]
    assert arrows == ["Age▴", "Age▾", "State▴", "State▾", "Run▴", "Run▾", "Size▾", "Size▴",
                      "Cost▾", "Cost▴", "Ended▴", "Ended▾"]  # fmt: skip
    assert (
        columns_for(120, cells, several_sites=False, by=OrderBy.END)[5].cell(shown, 5)[0] == "1m40"
    )


def test_tags_stand_behind_the_id_of_a_run() -> None:
    assert cell_of("vit-tiny-000001", "a try #best") == "vit-tiny-000001 #best"
    assert cell_of("vit-tiny-000001", "as #12 says") == "vit-tiny-000001"
    for several in (False, True):
        for run_id in ("n" * 32 + "-0a1b2c", "実験" * 10 + "-0a1b2c", "vit"):
            cell = cell_of(run_id, "#best", several=several)
            assert cell.endswith(" #best") and run_id[-7:] in cell, cell
    assert "0a1b2c #an" in cell_of("n" * 32 + "-0a1b2c", "#another-long-one", several=True)
    assert cell_of("vit-1", "#look #oom", width=79) == "vit-1 #look #oom"
    for width in range(24, 200):
        cell_of("n" * 32 + "-0a1b2c", "#best #実験実験実験", width=width)


def test_only_the_row_of_a_run_that_goes_on_or_is_new_moves_by_seconds() -> None:
    done = a_run("done-000001", created=1000.0, state=State.DONE)
    assert [moves(done, now) for now in (1030.0, 1061.0)] == [True, False]
    assert moves(a_run("goes-000001", created=1000.0, state=State.RUNNING), 9000.0)


def test_a_narrow_list_has_name_state_nodes_site_age_figure_and_reason() -> None:
    run = a_run("vit-tiny-000001", state=State.FAILED, rc=1, cause="out of memory", started=1.0)
    shown = RowValues(
        run, TreeLine(run.id), Glance((3.0, 2.5), 2.5, 842.0), marked=False, now=2000.0
    )
    cells = drawn(shown, several=True)
    assert [*cells] == ["state", "run", "age", "site", "size", "loss", "note"]
    assert cells["run"][0] == run.id and cells["note"][0] == "out of memory"
    # A column that does not fit leaves its cells to a narrower one.
    needed = tuple(cells_of(replace(shown, run=replace(run, cause="", rc=None, ended=900.0))))
    kept = [[column.key for column in columns_for(width, needed, several_sites=True)]
            for width in range(60, 120)]  # fmt: skip
    assert any("cost" in keys and "time" not in keys for keys in kept)
    assert all("cost" in keys for keys in kept if "speed" in keys), "a budget comes first"
    assert {"time", "speed"} <= {*kept[-1]}
    assert columns_for(80, (), several_sites=False) == (), "a list without runs"


def test_a_reason_leaves_the_speed_and_the_cost_of_the_other_runs_in_100_columns() -> None:
    done = a_run("vit-l16-000001", state=State.DONE, started=1.0, ended=900.0, site="lumi")
    refused = a_run("vit-l16-000002", state=State.REFUSED, reason="Invalid account " * 9)
    glances = Glance((3.0, 2.5), 2.5, 842.0), Glance()
    each = [
        cells_of(RowValues(run, TreeLine(run.id), glance, marked=False, now=2000.0))
        for run, glance in zip((done, refused), glances, strict=True)
    ]
    for several in (False, True):
        shown = columns_for(96, tuple(map(max, *each)), several_sites=several)
        assert {"loss", "speed", "cost", "note"} <= {column.key for column in shown}
