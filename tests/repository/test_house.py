"""The house fits a head: a name stands for one thing, and each package has a budget of lines."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import ROOT

LINES = {
    "app/cli": 5260, "app/tui": 14630, "app/runs": 2920, "app/scale": 3960, "app/follow": 4420,
    "app/survey": 1890, "app/launch": 9820, "app/explain": 3190, "app/history": 4320,
    "app/mcp": 950,
    "app/job": 2590, "app/knowledge": 16990, "remote/site": 3280, "remote/ssh": 3170,
    "remote/transport": 1090, "remote/scheduler": 2510, "remote/source": 1600,
    "remote/transfer": 4170, "remote/survey": 3240, "remote/laptop": 1470, "trainers": 8370,
}  # fmt: skip
"""Most lines of Python in each package. Who needs more removes some first."""
FEWEST = 3
"""A package with fewer modules belongs into its neighbour."""
SMALL_PACKAGES = {
    "app/cli/verbs/scale", "app/tui/loop", "trainers/preflight",
}  # fmt: skip
"""Those that are left; the set may only shrink."""
SAME_NAME = {
    "ddp": "a trainer is started by its name, and its strategy has the same",
    "fsdp": "a trainer is started by its name, and its strategy has the same",
}
"""Why two modules have one name."""

SAME_CLASS = {
    "Checkpoints", "Figures", "Finding", "Manifest", "Model",
    "Position", "Result", "Staging", "Strategy", "Task", "Text",
    "Training", "Watch", "Watcher", "Work",
}  # fmt: skip
"""Classes that share a name: all are the trainers', which are copied to the site
and import nothing of the rest. The set may only shrink."""


def modules(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT)


@pytest.mark.parametrize("package", LINES)
def test_a_package_keeps_to_its_budget_of_lines(package: str) -> None:
    count = sum(len((ROOT / path).read_text().splitlines()) for path in modules(package))
    assert count <= LINES[package], f"{package} has {count} lines"
    assert count > LINES[package] * 0.9, f"the budget of {package} can shrink to {count}"


def test_every_package_has_a_budget() -> None:
    roofs = {"/".join(path.parts[:2]) for path in modules("app", "remote") if len(path.parts) > 2}
    assert roofs == set(LINES) - {"trainers"}


def test_no_module_has_the_name_of_another() -> None:
    named = defaultdict(list)
    for path in modules("app", "remote", "trainers"):
        if path.stem != "__init__" and path.stem not in SAME_NAME:
            named[path.stem].append(str(path))
    assert {name: paths for name, paths in named.items() if len(paths) > 1} == {}


def test_no_class_has_the_name_of_another() -> None:
    """Classes inside a class (Textual's messages) are named after it: `LogView.Changed`."""
    defined = defaultdict(list)
    for path in modules("app", "remote", "trainers"):
        for node in ast.parse((ROOT / path).read_text()).body:
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(str(path))
    assert {name for name, paths in defined.items() if len(paths) > 1} == SAME_CLASS


def test_a_package_has_three_modules_or_more() -> None:
    inside = defaultdict(set)
    for path in modules("app", "remote", "trainers"):
        if path.parent == Path(path.parts[0]):
            continue
        if path.stem == "__init__":
            inside[str(path.parent.parent)].add(str(path.parent))
        else:
            inside[str(path.parent)].add(str(path))
    small = {folder for folder, names in inside.items() if len(names) < FEWEST}
    assert small == SMALL_PACKAGES
