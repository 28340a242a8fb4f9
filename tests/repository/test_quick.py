"""`make quick` chooses the tests of what has changed."""

from pathlib import Path

from tests.repository.quick import MOST, chosen, module_of

EVERY = [
    Path("tests/app/runs/tour/test_recorded_runs.py"),
    Path("tests/app/tui/tour/test_tour.py"),
    Path("tests/remote/ssh/login/test_algorithms.py"),
]


def test_a_test_file_that_imports_a_changed_module_is_chosen() -> None:
    assert chosen([Path("app/runs/tour/recorded_runs.py")], EVERY) == EVERY[:2]
    assert chosen([Path("app/tui/tour/tour_line.py")], EVERY) == EVERY[1:2]
    assert chosen([Path("README.md")], EVERY) == []


def test_a_changed_test_comes_first_and_the_nearest_before_the_others() -> None:
    changed = [EVERY[2], Path("app/runs/tour/recorded_runs.py")]
    assert chosen(changed, EVERY)[0] == EVERY[2]
    assert len(chosen(EVERY * MOST, EVERY * MOST)) == MOST


def test_a_package_is_imported_by_its_own_name() -> None:
    assert module_of(Path("app/runs/__init__.py")) == "lumitui.app.runs"
    assert module_of(Path("tests/support/places.py")) == "tests.support.places"
