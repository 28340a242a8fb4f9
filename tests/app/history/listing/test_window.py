"""What a screen reads of a long list: pages of ids, the rows it shows, nothing twice."""

import contextlib
from collections.abc import Iterator

import pytest

from lumitui.app.follow.results.summary import summarize
from lumitui.app.history.history import History
from lumitui.app.history.listing.filters import parse_filter
from lumitui.app.history.listing.find_runs import Filter, Order, OrderBy
from lumitui.app.history.listing.page_cache import PAGE, ROWS_AROUND, RunWindow
from lumitui.app.history.listing.series_runs import RunSeries, SeriesMember
from lumitui.remote.scheduler.scheduler_protocol import State
from tests.support.jobs.made_runs import a_run

RUNS = 3 * PAGE


@pytest.fixture
def many(history: History) -> History:
    history.adopt(
        [
            a_run(f"r-{number:06d}", created=float(number), state=State.DONE)
            for number in range(RUNS)
        ]
    )
    return history


@contextlib.contextmanager
def reads(history: History) -> Iterator[list[str]]:
    """Collect the queries that read runs."""
    asked: list[str] = []
    history._file._db.set_trace_callback(
        lambda query: asked.append(query) if "FROM runs" in query else None
    )
    yield asked
    history._file._db.set_trace_callback(None)


def test_a_list_is_read_a_page_at_a_time_and_its_rows_where_they_are_shown(many: History) -> None:
    window = RunWindow(many.finder)
    with reads(many) as asked:
        assert window.refresh()
        assert len(window.lines) == PAGE and window.total == RUNS and not window.complete
        assert window.read(0, 20) and not window.read(5, 20)
        assert not window.refresh()
    page, count, rows = asked
    assert f"LIMIT {PAGE}" in page and "count(*)" in count and rows.count("'r-") == 20 + ROWS_AROUND
    assert window.run("r-000599") is not None and window.run("r-000400") is None
    assert window.more() and window.more()
    assert [line.id for line in window.lines] == [f"r-{n:06d}" for n in reversed(range(RUNS))]
    assert not window.more() and window.complete
    many.update("r-000000", note="x")
    with reads(many) as asked:
        assert window.refresh()
    assert len(asked) == 2
    assert len(window.lines) == RUNS


def test_a_filter_and_an_order_begin_a_list_anew(many: History) -> None:
    window = RunWindow(many.finder)
    window.show(Filter(terms=parse_filter("!r-0005")), Order(OrderBy.NAME, reverse=True))
    assert not window.is_tree and window.total == RUNS - 100
    window.whole()
    assert len(window.lines) == RUNS - 100 and window.complete
    assert window.place(window.lines[7].id) == 7 and window.place("r-000500") is None
    window.show()
    assert window.is_tree and window.lines[0].id == "r-000599"


def test_a_run_that_moves_between_pages_is_listed_once(many: History) -> None:
    window = RunWindow(many.finder)
    window.show(order=Order(OrderBy.END))
    # It ends after the first page was read, and so belongs to the second one too.
    many.update(window.lines[0].id, ended=0.5)
    window.whole()
    ids = [line.id for line in window.lines]
    assert len(ids) == len(set(ids)) == RUNS


def test_a_run_that_cannot_be_read_is_asked_for_once(many: History) -> None:
    window = RunWindow(many.finder)
    with many._file.transaction() as db:
        db.execute("UPDATE runs SET attempt = 'many' WHERE id = 'r-000599'")
    window.refresh()
    assert window.read(0, 3) and not window.read(0, 3)
    assert window.run("r-000599") is None and window.run("r-000598") is not None


def test_a_look_at_metrics_has_a_curve_of_few_points_and_the_speed_of_all(many: History) -> None:
    key = ("r-000001", 9)
    lines = [
        f'{{"step": {at}, "loss": {at}, "samples_per_s": {at}}}'.encode() for at in range(3000)
    ]
    lines[7] = b'{"event": "start", "world_size": 16}'
    lines[900] = b'{"event": "step", "step": 900, "loss": NaN, "samples_per_s": 9000.5}'
    many.metrics.add(key[0], [*lines, b'{"event": "end"}'])
    assert many.glances.known(key) is None
    asked: list[str] = []
    many._file._db.set_trace_callback(asked.append)
    many.glances.take([key, ("r-000002", 0), key])
    many._file._db.set_trace_callback(None)
    glance = many.glances.known(key)
    assert glance is not None and glance.last_loss == 2999.0
    assert glance.loss[0] == 0.0 and len(glance.loss) == 23 and glance.samples_per_s is not None
    assert glance.samples_per_s == summarize(many.metrics.of(key[0])).samples_per_s
    newer = (key[0], 10**9)
    assert many.glances.known(newer) is None
    assert many.glances.latest(newer) is glance, "until more points are read"
    assert len(asked) == 2, "a query for each run"


def test_tags_are_written_for_all_runs_or_for_none(many: History) -> None:
    many.update("r-000001", note="x" * 198)
    with pytest.raises(Exception, match="more than 200"):
        many.tag(["r-000000", "r-000001"], "best")
    assert many.get("r-000000").note == ""
    many.tag(["r-000000", "r-000002", "nowhere"], "best")
    assert sum(many.finder.count_states(Filter(terms=parse_filter("#best"))).values()) == 2


def test_the_list_begins_at_the_newest_run_that_goes_on_or_else_the_newest(
    history: History,
) -> None:
    window = RunWindow(history.finder)
    window.refresh()
    assert window.foremost is None
    history.adopt([a_run(f"r-{at}", created=at * 10.0, state=State.DONE) for at in range(3)])
    history.adopt([a_run("child", created=99.0, parent="r-0", state=State.DONE)])
    window.refresh()
    assert window.lines[0].id == "r-0" and window.foremost == "child"
    history.update("r-1", state=State.QUEUED)
    history.update("r-0", state=State.RUNNING)
    window.refresh()
    assert window.foremost == "r-1"
    window.show(Filter(terms=parse_filter("done")))
    assert window.foremost == "child"
    window.show(Filter(), Order(OrderBy.NAME))
    assert window.foremost == "r-1"


def test_a_series_is_one_row_until_it_is_opened(history: History) -> None:
    for number in range(4):
        history.begin(a_run(f"r-{number}", created=float(number), state=State.DONE))
    members = tuple(SeriesMember(place, f"cell {place}", "{}") for place in (1, 2, 3))
    history.series.begin(RunSeries("grid-1", "grid", "lumi", "", 1.0, members))
    for place in (1, 2, 3):
        history.series.claim("grid-1", place, f"r-{place}")
    window = RunWindow(history.finder)
    window.refresh()
    assert [(line.id, line.children, line.summary) for line in window.lines] == [
        ("r-1", 2, "3 done"), ("r-0", 0, ""),
    ]  # fmt: skip
    assert window.place("r-3") == 0, "a hidden run is found where its series stands"
    assert window.stood_for("r-1") == ("r-1", "r-2", "r-3"), "a folded series is one thing"
    assert window.stood_for("r-0") == ("r-0",)
    window.fold("r-1", folded=False)
    assert [line.id for line in window.lines] == ["r-1", "r-2", "r-3", "r-0"]
    assert window.stood_for("r-1") == ("r-1",)
    window.fold("r-1", folded=True)
    assert len(window.lines) == 2
    window.reveal("r-3")
    assert [line.id for line in window.lines] == ["r-1", "r-2", "r-3", "r-0"]
    window.show(order=Order(OrderBy.NAME))
    assert len(window.lines) == 4, "a list that is sorted otherwise has no families"
