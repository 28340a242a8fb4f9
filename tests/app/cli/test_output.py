"""What is shown is safe and fits: tables in 80 columns, plain objects as JSON."""

import contextlib
import dataclasses
import io
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from lumitui.app.cli import output
from lumitui.app.cli.views import diff, show, tables
from lumitui.app.explain import words
from lumitui.app.explain.proof.binding_proof import verdict
from lumitui.app.explain.training_summary import Summary
from lumitui.app.follow.recover import PassedOver
from lumitui.app.follow.results.comparison import Contrast
from lumitui.app.follow.results.run_figures import Figures
from lumitui.app.follow.results.summary import Curve
from lumitui.app.history.run import Run
from lumitui.app.job.spec import changed
from lumitui.app.knowledge.failure.diagnosis import Diagnosis
from lumitui.app.launch.adviser.adviser import findings
from lumitui.app.launch.compose import compose
from lumitui.app.launch.core_binding import rank_bindings
from lumitui.app.scale.lineage_overview import Relative, RunOverview
from lumitui.remote.site.errors import LumiError
from lumitui.remote.site.safe_text import spell_out
from lumitui.remote.site.sites import BUILT_IN, Sites
from lumitui.remote.survey.doctor.check_result import Check
from lumitui.remote.transfer.results.fetch_files import Fetched, FetchOutcome
from lumitui.remote.transfer.snapshots.prune import Pruned
from tests.support.jobs.binding.binding_reports import EXACT, reports
from tests.support.jobs.made_runs import SPEC, a_run

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


def as_objects(value: object) -> object:
    """Return what `--json` promises of a value: dataclasses and models become objects."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [item.name for item in dataclasses.fields(value)]
        return {name: as_objects(getattr(value, name)) for name in names}
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): as_objects(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [as_objects(item) for item in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


def a_page(run: Run) -> show.ShownRun:
    # A folder may have a name that is not UTF-8.
    run = dataclasses.replace(
        run, project="/home/me/\udcff", nodes_used="nid\x1b", rc=1, failed_rank=2
    )
    proof = verdict(json.dumps(reports(EXACT)), EXACT)
    summary = Summary(1, math.nan, None, 0.5, 1.0, 2, 3)
    why = (Diagnosis("exception", "Rank 2 raised.", "Read it.", "line\x1b", 2),)
    figures = Figures(summary, Curve(), 0, 0)
    overview = RunOverview(run, proof, figures, (Relative(run, 0, summary, None),))
    return show.ShownRun(overview, {"a": (1.0, math.inf)}, why, ("a",))


LUMI = Sites([BUILT_IN]).load("lumi")
LAUNCH = compose(
    changed(SPEC, {"site": "lumi", "account": "project_1", "partition": "small-g"}, "a job"), LUMI
)


@pytest.mark.parametrize(
    "data",
    [
        output.run_data(a_run()) | {"stale": True},  # status, history, cancel, note, submit
        show.page_data(a_page(a_run())),
        diff.Difference(("a", "b"), (Contrast("args", ("-", "x")),), (), (), ("+a",)),
        {"path": "job.yaml", "findings": findings(LAUNCH, LUMI)},  # init
        {"price": LAUNCH.price, "layout": LAUNCH.layout, "files": LAUNCH.files},  # preview
        [LUMI],  # sites
        LUMI,
        [Check("queue", "failed", "none", "some", "Ask.")],  # doctor
        {"/scratch/me": Pruned(("abc",), 3, 4096)},
        rank_bindings(LUMI.node, 8),
        FetchOutcome((Fetched("b", Path("a\udcff/b"), 3, True),), links=("c",)),
        {
            "rebuilt": [],
            "passed_over": (PassedOver("a", "b"),),
            "roots": {"b"},
            "proxy": MappingProxyType({}),
        },
    ],
    ids=lambda data: type(data).__name__,
)
def test_what_json_says_are_plain_objects(data: object) -> None:
    assert json.dumps(output.as_data(data)) == json.dumps(as_objects(data))


def enveloped(items: Iterable[object], error: LumiError | None = None) -> str:
    """Return what --json prints of a list that is printed as it comes."""
    reply, printed = output.Reply(json=True, verb="history"), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        reply.give_each(items)
        reply.close(error, 1)
    return printed.getvalue()


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("error", [None, LumiError("It broke.", "Try again.")])
def test_a_list_that_is_printed_as_it_comes_is_the_envelope(
    count: int, error: LumiError | None
) -> None:
    items = [{"id": number, "note": "a\nb ä", "price": {"unit": ""}} for number in range(count)]
    whole, printed = output.Reply(json=True, verb="history"), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        whole.give(items)
        whole.close(error, 1)
    assert enveloped(items, error) == printed.getvalue()


def test_an_item_is_printed_before_the_next_is_asked_for() -> None:
    printed = io.StringIO()

    def items() -> Iterator[object]:
        for number in range(3):
            assert f'"number-{number}"' not in printed.getvalue()
            yield f"number-{number}"
            assert f'"number-{number}"' in printed.getvalue()

    with contextlib.redirect_stdout(printed):
        assert output.Reply(json=True, verb="history").give_each(items()) == 3


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
    assert list(tables.history_lines(lambda: [], columns)) == []


def test_sites_are_a_line_each_in_80_columns_with_closed_ones_last() -> None:
    known = Sites([BUILT_IN])
    lines = tables.site_table([known.load(name) for name in known.names()], 80).splitlines()
    assert all(len(line) <= 80 for line in lines) and len(lines) == len(known.names()) + 1
    closed = [line.split()[0] for line in lines if "closed on" in line]
    assert closed == [line.split()[0] for line in lines[-len(closed) :]]
    assert lines[-1].endswith("closed on 2026-07-31; use roihu")
