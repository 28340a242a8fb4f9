"""What a list of runs reads: one walk along one index, and of the table what is shown."""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lumitui.app.history.history import History
from lumitui.app.history.listing.filters import parse_filter
from lumitui.app.history.listing.find_runs import Filter, RunListing
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.errors import InputError
from tests.support.jobs.made_runs import a_run

RUNS = 600
FILTERS = {
    "none": Filter(),
    "a rare site": Filter(site="rare"),
    "a state": Filter(state=State.DONE),
    "a rare state": Filter(state=State.FAILED),
    "site and state": Filter(site="somewhere", state=State.FAILED),
    "a text": Filter(terms=parse_filter("R-0001")),
    "a text, site and state": Filter("somewhere", State.DONE, parse_filter("77")),
    "nothing": Filter(terms=parse_filter("nowhere")),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a history of 600 runs, with one of another site and state."""
    runs = [a_run(f"r-{number:06d}", created=float(number), state=State.DONE)
            for number in range(RUNS)]  # fmt: skip
    runs[7] = replace(runs[7], site="rare", state=State.FAILED)
    path = tmp_path_factory.mktemp("many") / "history.db"
    with contextlib.closing(History(path)) as history:
        history.adopt(runs)
    return path


@pytest.fixture
def many(written: Path, path: Path) -> Iterator[History]:
    """A copy of that history."""
    path.parent.mkdir()
    shutil.copy(written, path)
    with contextlib.closing(History(path)) as history:
        yield history


@contextlib.contextmanager
def queries(history: History) -> Iterator[list[str]]:
    """Collect what SQLite is asked."""
    asked: list[str] = []
    history._file._db.set_trace_callback(asked.append)
    yield asked
    history._file._db.set_trace_callback(None)


def plan_of(history: History, query: str) -> str:
    return "; ".join(
        str(row["detail"]) for row in history._file.rows(f"EXPLAIN QUERY PLAN {query}")
    )


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("later", [False, True])
def test_a_page_is_one_query_along_one_index_without_sorting(
    many: History, name: str, later: bool
) -> None:
    with queries(many) as asked:
        if later:
            many.finder.entries(RunListing(FILTERS[name]), 50, (400.0, "r-000400"))
        else:
            many.listed(50, FILTERS[name])
    (query,) = asked
    plan = plan_of(many, query)
    assert "INDEX runs_listed" in plan
    assert "TEMP B-TREE" not in plan
    # Whatever is joined is found by its number.
    assert plan.count("SCAN") == (0 if later else 1), plan


@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_reads_no_row_that_it_does_not_show(many: History, name: str) -> None:
    """A run that is not shown costs an entry of the index, not a row with what it says."""
    wanted = FILTERS[name]
    asked = many.listed(50, wanted)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    many._file._db.set_progress_handler(count, 1)
    many.listed(50, wanted)
    many._file._db.set_progress_handler(None, 1)
    a_row, an_entry = 150, 18  # instructions of SQLite's machine
    assert steps < 1000 + len(asked) * a_row + RUNS * an_entry


def test_a_count_asks_once_and_of_an_index(many: History) -> None:
    for count in (many.count, many.count_unfinished):
        with queries(many) as asked:
            count()
        (query,) = asked
        assert "USING COVERING INDEX" in plan_of(many, query)


@pytest.mark.parametrize("key", ["r-000100", "r-00010", "last"])
def test_one_run_is_found_without_reading_all(many: History, key: str) -> None:
    with queries(many) as asked, contextlib.suppress(InputError):
        many.get(key)
    assert "runs" in asked[0]
    assert all("SCAN" not in plan_of(many, query) or "LIMIT 1" in query for query in asked)


def test_runs_of_one_moment_are_all_on_some_page(history: History) -> None:
    history.adopt([a_run(f"r-{number:03d}", created=5.0) for number in range(120)])
    seen, place = list[str](), None
    while page := history.finder.entries(RunListing(), 50, place):
        seen += [run.id for run in page]
        place = page[-1].place
    assert seen == [f"r-{number:03d}" for number in reversed(range(120))]


def test_a_run_that_cannot_be_read_does_not_end_the_list(many: History) -> None:
    with contextlib.closing(sqlite3.connect(many._file.path, isolation_level=None)) as db:
        db.execute("UPDATE runs SET attempt = 'many' WHERE created BETWEEN 570 AND 584")
    assert len(many.listed(10_000, Filter())) == RUNS - 15
    assert len(many.take_warnings()) == 15


def test_one_spec_is_read_once_for_all_its_runs(many: History) -> None:
    first, *others = many.page(100)
    assert all(run.spec is first.spec or run.spec == first.spec for run in others)


def test_words_are_searched_as_they_are_now(history: History) -> None:
    history.begin(a_run("a-1", name="thing"))
    history.update("a-1", note="Erste Notiz", job_id="4711")
    for text in ("erste", "4711", "THING", "a-1"):
        listed = history.listed(9, Filter(terms=parse_filter(text)))
        assert [run.id for run in listed] == ["a-1"]
    history.update("a-1", note="")
    assert history.listed(9, Filter(terms=parse_filter("erste"))) == []
