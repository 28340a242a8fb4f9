"""Runs as trees: every run once, children below their parents, folding hides and nothing else."""

from hypothesis import given
from hypothesis import strategies as some

from lumitui.app.history.listing.find_runs import ListedRun
from lumitui.app.history.listing.page_cache import TreeLine, arranged, flat


def entries(parents: list[int | None]) -> list[ListedRun]:
    """Return a list, newest first, in which each run has the parent with that number, if any."""
    made = [
        ListedRun(f"r{number}", None if parent is None else f"r{parent}", (float(-number),))
        for number, parent in enumerate(parents)
    ]
    return list(reversed(made))


def drawn(lines: list[TreeLine]) -> list[str]:
    return [f"{line.guide}{line.id}{f'+{line.children}' if line.folded else ''}" for line in lines]


def test_a_family_stands_where_its_newest_run_is_with_its_root_first() -> None:
    listed = entries([None, None, 0, 0, None, 3, 99])
    assert drawn(arranged(listed)) == ["r6", "r0", "├r3", "│└r5", "└r2", "r4", "r1"]
    assert drawn(arranged(listed, {"r3"})) == ["r6", "r0", "├r3+1", "└r2", "r4", "r1"]
    assert drawn(arranged(listed, {"r0", "r3"})) == ["r6", "r0+3", "r4", "r1"]
    assert [line.parent for line in arranged(listed)] == [None, None, "r0", "r3", "r0", None, None]
    assert arranged(entries([None, None])) == flat(entries([None, None]))


def test_a_long_chain_is_not_indented_off_the_screen() -> None:
    lines = arranged(entries([None, *range(500)]))
    assert len(lines) == 501 and max(len(line.guide) for line in lines) == 5
    assert lines[0].children == 500


def test_the_runs_of_a_series_stand_below_the_first_that_was_sent() -> None:
    """r0 is a run; r1 to r3 a grid; r4 a resubmission of r2; r5 and r6 a ladder of r0."""
    series = {1: "grid", 2: "grid", 3: "grid", 5: "ladder", 6: "ladder", 7: "alone"}
    made = [None, None, None, None, 2, 0, 0, None]
    states = ["done", "done", "failed", "done", "running", "queued", "queued", "done"]
    listed = [
        entry._replace(series=series.get(number), member=number, state=states[number])
        for number, entry in zip(range(7, -1, -1), entries(made), strict=True)
    ]
    lines = arranged(listed)
    assert drawn(lines) == ["r7", "r0", "└┌r5", " └r6", "┌r1", "├r2", "│└r4", "└r3"]
    by_id = {line.id: line for line in lines}
    assert by_id["r1"].summary == "1 failed, 2 done, 1 running (1 resubmitted)", "with r4"
    assert by_id["r5"].summary == "2 queued" and by_id["r7"].summary == ""
    again = [entry._replace(member=2) if entry.id == "r3" else entry for entry in listed]
    summary = next(line.summary for line in arranged(again) if line.id == "r1")
    assert summary == "2 done, 1 running, 1 sent again (1 resubmitted)", (
        "what failed was sent again"
    )
    assert drawn(arranged(listed, {"r1", "r5"})) == ["r7", "r0", "└r5+1", "r1+3"]


# Any parents at all: a damaged history may have circles.
PARENTS = some.lists(some.one_of(some.none(), some.integers(0, 12)), max_size=12)


@given(PARENTS, some.sets(some.integers(0, 12)), some.lists(some.sampled_from("abc-"), min_size=13))
def test_every_run_is_there_once_and_after_its_parent(
    parents: list[int | None], folded: set[int], series: list[str]
) -> None:
    listed = [
        entry._replace(series=None if name == "-" else name)
        for entry, name in zip(entries(parents), series, strict=False)
    ]
    lines = arranged(listed)
    assert sorted(line.id for line in lines) == sorted(entry.id for entry in listed)
    place = {line.id: at for at, line in enumerate(lines)}
    assert all(line.parent is None or place[line.parent] < place[line.id] for line in lines)
    shown = arranged(listed, {f"r{number}" for number in folded})
    hidden = sum(line.children for line in shown if line.folded)
    assert len(shown) + hidden == len(lines)
    assert set(shown) <= set(lines) | {line for line in shown if line.folded}
