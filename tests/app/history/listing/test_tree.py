"""Runs as trees: every run once, children below their parents, folding hides and nothing else."""

from hypothesis import given
from hypothesis import strategies as some

from lumitui.app.history.listing.find_runs import Entry
from lumitui.app.history.listing.tree import Line, arranged, flat


def entries(parents: list[int | None]) -> list[Entry]:
    """Return a list, newest first, in which each run has the parent with that number, if any."""
    made = [
        Entry(f"r{number}", None if parent is None else f"r{parent}", (float(-number),))
        for number, parent in enumerate(parents)
    ]
    return list(reversed(made))


def drawn(lines: list[Line]) -> list[str]:
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


# Any parents at all: a damaged history may have circles.
PARENTS = some.lists(some.one_of(some.none(), some.integers(0, 12)), max_size=12)


@given(PARENTS, some.sets(some.integers(0, 12)))
def test_every_run_is_there_once_and_after_its_parent(
    parents: list[int | None], folded: set[int]
) -> None:
    listed = entries(parents)
    lines = arranged(listed)
    assert sorted(line.id for line in lines) == sorted(entry.id for entry in listed)
    place = {line.id: at for at, line in enumerate(lines)}
    assert all(line.parent is None or place[line.parent] < place[line.id] for line in lines)
    shown = arranged(listed, {f"r{number}" for number in folded})
    hidden = sum(line.children for line in shown if line.folded)
    assert len(shown) + hidden == len(lines)
    assert set(shown) <= set(lines) | {line for line in shown if line.folded}
