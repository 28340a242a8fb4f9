"""Filters and orders in SQL find what a slow look at each run finds."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from lumitui.app.explain import row_words
from lumitui.app.history.history import History
from lumitui.app.history.listing.filters import parse_filter
from lumitui.app.history.listing.find_runs import (
    Filter,
    ListedRun,
    Order,
    OrderBy,
    RunListing,
    is_descending,
)
from lumitui.app.history.listing.state_filter import STATE_GROUPS, WENT_WRONG, states_like
from lumitui.app.history.listing.tags import tags_of
from lumitui.app.history.run import Run
from lumitui.app.job.launch import Price, RankLayout
from lumitui.remote.scheduler.scheduler_protocol import State
from lumitui.remote.site.gpu_use import GpuUse
from tests.support.jobs.made_runs import SPEC, a_run

NOW = 1_700_000_000.0
NAMES = ("vit", "llama%7b", "whisper_x", "größe", "Vit-L")
NOTES = ("", "baseline #best", "#Best", "#bester", "100%_\\ sure", "lr 3e-4 #lr-3")
ARGS = (("--epochs", "30"), ("--lr", "3e-4"), ())
CAUSES = ("", "rank 1 train.py:53: NameError")
REASONS = ("", "Resources", "NonZeroExitCode", "oom-kill of vit", "Priority")

USES = tuple(GpuUse(3600, 8, 8, low, 40.0, 100, 65520) for low in (0.0, 0.3, 0.9))


def made_runs() -> list[Run]:
    dice = random.Random(7)
    runs = []
    for number in range(150):
        state, nodes = dice.choice(list(State)), dice.choice((1, 2, 4, 16, 1024))
        started = dice.choice((None, NOW - 90_000 + number))
        runs.append(
            a_run(
                f"run-{number:03d}",
                name=dice.choice(NAMES),
                site=dice.choice(("lumi", "mahti")),
                # Some of one moment: their ids tell them apart.
                created=NOW - 600.0 * (number // 2),
                layout=RankLayout(nodes, 8, 8, 7, dice.choice((0, 4, 8)), True),
                price=Price(dice.choice((0.0, 5.0, 32.0)), "GPU-hours", 16.0),
                state=state,
                job_id=dice.choice((None, f"8{number:03d}")),
                note=dice.choice(NOTES),
                reason=dice.choice(REASONS),
                started=started,
                ended=NOW - 5000 + number if started and state.is_final else None,
                updated=NOW - 80_000.0,
                gpu_use=dice.choice((None, *USES)),
                cause=dice.choice(CAUSES),
                spec=SPEC.model_copy(update={"args": dice.choice(ARGS)}),
            )
        )
    return runs


RUNS = made_runs()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[History]:
    path: Path = tmp_path_factory.mktemp("listing") / "history.db"
    history = History(path)
    history.adopt(RUNS)
    yield history
    history.close()


@dataclass(frozen=True)
class Typed:
    """A filter, and what it means."""

    text: str
    holds: Callable[[Run], bool]


def found_in(word: str, run: Run) -> bool:
    words = " ".join((run.id, run.name, run.job_id or "", run.note))
    caused = WENT_WRONG | STATE_GROUPS["waiting"] | STATE_GROUPS["unknown"]
    cause = f"{run.cause} {run.reason}" if run.state in caused else ""
    arguments = " ".join(run.spec.args) if word.startswith("--") else ""
    return (
        word.casefold() in words.casefold()
        or word.casefold() in cause.casefold()
        or word.casefold() in arguments.casefold()
        or run.state in states_like(word)
    )


def typed_terms() -> some.SearchStrategy[Typed]:
    words = ("vit", "failed", "RUN-01", "8%", "_x", "\\", "größe", "GRÖSSE", "oom-kill", "memory",
             "sure", "nameerror", "--epochs", "epochs")  # fmt: skip
    simple = [Typed(word, lambda run, w=word: found_in(w, run)) for word in words]  # type: ignore[misc]
    simple += [
        Typed("state:failed", lambda run: run.state in STATE_GROUPS["failed"]),
        Typed("state:unfinished,done", lambda run: not run.state.is_final or run.state == "done"),
        Typed("site:LUMI", lambda run: run.site == "lumi"),
        Typed("nodes:>=4", lambda run: run.layout.nodes >= 4),
        Typed("nodes:1-2,16", lambda run: run.layout.nodes in (1, 2, 16)),
        Typed("nodes:3", lambda run: False),
        Typed("nodes>=4", lambda run: run.layout.nodes >= 4),
        Typed("2x8", lambda run: row_words.size(run) == "2x8"),
        Typed("1x8r", lambda run: row_words.size(run) == "1x8r"),
        Typed("age<6h", lambda run: run.created >= NOW - 21_600),
        Typed("gpus:<=16", lambda run: run.layout.nodes * run.layout.gpus_per_node <= 16),
        Typed("since:6h", lambda run: run.created >= NOW - 21_600),
        Typed("until:6h", lambda run: run.created < NOW - 21_600),
        Typed("#best", lambda run: "best" in map(str.lower, tags_of(run.note))),
        Typed("tag:bester,lr-3", lambda run: {"bester", "lr-3"} & set(tags_of(run.note)) != set()),
        Typed("name:vit", lambda run: "vit" in run.name.lower()),
        Typed("name:GRÖßE", lambda run: run.name == "größe"),
        Typed("job:81", lambda run: "81" in (run.job_id or "")),
        Typed('"--epochs 30"', lambda run: found_in("--epochs 30", run)),
        Typed("args:LR,adam", lambda run: "--lr" in run.spec.args),
        Typed("note:%_", lambda run: "%_" in run.note),
    ]
    simple += [
        Typed("idle:<=30%", lambda run: run.gpu_use is not None and run.gpu_use.low <= 0.3),
        Typed("idle>=30%", lambda run: run.gpu_use is not None and run.gpu_use.low >= 0.3),
    ]
    turned = [Typed(f"!{term.text}", lambda run, t=term: not t.holds(run)) for term in simple]  # type: ignore[misc]
    return some.sampled_from(simple + turned)


@settings(max_examples=120, deadline=None)
@given(some.lists(typed_terms(), max_size=4))
def test_a_filter_finds_what_a_look_at_each_run_finds(filled: History, terms: list[Typed]) -> None:
    wanted = Filter(terms=parse_filter(" ".join(term.text for term in terms)))
    expected = [run for run in RUNS if all(term.holds(run) for term in terms)]
    expected.sort(key=lambda run: (run.created, run.id), reverse=True)
    entries = filled.finder.entries(RunListing(wanted, now=NOW), 1000, None)
    assert [entry.id for entry in entries] == [run.id for run in expected]
    if not any(word in term.text for term in terms for word in ("since", "until", "age")):
        assert filled.finder.count_states(wanted) == Counter(run.state for run in expected)


def slow_key(run: Run, by: OrderBy) -> object:
    match by:
        case OrderBy.NAME:
            return run.name.casefold()
        case OrderBy.NODES:
            return -run.layout.nodes
        case OrderBy.COST:
            return -round(run.billed(NOW), 6)
        case OrderBy.END:
            return -(run.ended or 1e12)
        case _:
            return 0


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("by", list(OrderBy))
def test_pages_of_any_order_follow_each_other_without_gaps(
    filled: History, by: OrderBy, reverse: bool
) -> None:
    order = Order(by, reverse)
    listing, pages, place = RunListing(order=order, now=NOW), list[ListedRun](), None
    while page := filled.finder.entries(listing, 13, place):
        pages += page
        place = page[-1].place
    by_id = {run.id: run for run in RUNS}
    shown = [by_id[entry.id] for entry in pages]
    assert len(shown) == len(RUNS) == len(set(by_id))
    assert [run.id for run in filled.listed(1000, Filter(), order)] == [
        run.id for run in shown
    ] or (
        by is OrderBy.COST  # of the runs that go on, it counts to the moment it is asked
    )
    if by is OrderBy.STATE:
        states = [run.state for run in shown]
        groups = [state for state, _ in itertools.groupby(states)]
        assert len(groups) == len(set(groups))
        assert (states[-1] if reverse else states[0]) is State.RUNNING
        return
    keys = [slow_key(run, by) for run in shown]
    assert keys == sorted(keys, reverse=reverse)  # type: ignore[type-var]
    assert is_descending(Order()) and not is_descending(Order(OrderBy.NAME))


def test_failed_finds_what_is_shown_as_failed(filled: History) -> None:
    """The word on the screen is a word that the search knows."""
    for run in RUNS[:20]:
        found = filled.finder.entries(
            RunListing(Filter(terms=parse_filter(f'"{run.state}"')), now=NOW), 999, None
        )
        assert run.id in {entry.id for entry in found}
