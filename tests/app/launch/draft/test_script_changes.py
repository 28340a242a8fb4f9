"""A changed script shows which lines are new and which are gone, in their places."""

from lumitui.app.launch.draft.script_changes import count_changes, script_changes


def test_a_changed_line_is_gone_and_new_in_its_place() -> None:
    found = script_changes("a\nb\nc\n", "a\nB\nc\nd\n")
    assert [(line.kind, line.text) for line in found] == [
        ("same", "a"), ("gone", "b"), ("new", "B"), ("same", "c"), ("new", "d"), ("same", ""),
    ]  # fmt: skip
    assert count_changes(found) == 2


def test_without_another_script_nothing_is_marked() -> None:
    assert {line.kind for line in script_changes(None, "a\nb")} == {"same"}
    assert count_changes(script_changes("a", "a")) == 0
