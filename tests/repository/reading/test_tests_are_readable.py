"""The tests themselves: each module says what it proves and depends on no other test module."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import ROOT

FILES = sorted((ROOT / "tests").rglob("*.py"))
MODULES = [path for path in FILES if path.name.startswith("test_")]


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield each module, and each `module.name`, that a file imports, late imports included."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def fixtures(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
            if any(words.startswith(("pytest.fixture", "fixture")) for words in decorators):
                yield node.name


def faults(path: Path, text: str) -> list[str]:
    """Return what a file of tests/ does that makes it depend on another test module."""
    tree = ast.parse(text)
    found = [
        f"it imports {name}: move what is shared to tests/support"
        for name in imported(tree)
        if name.startswith("tests.")
        and any(part.startswith("test_") or part == "conftest" for part in name.split("."))
    ]
    if path.name != "conftest.py" and not path.name.startswith("test_"):
        found += [f"its fixture {name} belongs in a conftest.py" for name in fixtures(tree)]
    return found


def test_no_file_depends_on_a_test_module() -> None:
    found = {str(path.relative_to(ROOT)): faults(path, path.read_text()) for path in FILES}
    assert {path: depends for path, depends in found.items() if depends} == {}


def test_a_module_says_what_it_proves() -> None:
    silent = [path for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))]
    assert silent == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_new.py", "from tests.app.job.test_spec import JOB"),
        ("test_new.py", "def late():\n    import tests.app.job.test_spec"),
        ("test_new.py", "from tests.app.conftest import here"),
        ("support.py", "@pytest.fixture(scope='module')\ndef job() -> None: ..."),
    ],
)
def test_a_planted_dependency_is_found(name: str, text: str) -> None:
    assert len(faults(Path(name), text)) == 1
