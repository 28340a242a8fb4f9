"""`make quick`: the tests of what has changed since the last commit, and those of form.

These are the test files that import a changed module, the nearest first, as far as a minute goes.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from tests.support.places import ROOT

ALWAYS = ("tests/repository/test_house.py", "tests/repository/reading")
MOST = 12
"""Test files; one takes 3 s on average with two processes."""
ONLY = "not cluster and not slow"


def changed() -> list[Path]:
    """Return the files that differ from the last commit, and the new ones."""
    names = ("git diff --name-only --diff-filter=d HEAD", "git ls-files -o --exclude-standard")
    found = [
        subprocess.run(name.split(), cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for name in names
    ]
    return [Path(name) for text in found for name in text.splitlines()]


def module_of(path: Path) -> str:
    """Return the module that tests import a file as; empty: it is not one."""
    if path.suffix != ".py":
        return ""
    parts = path.with_suffix("").parts
    return ".".join(parts if parts[0] == "tests" else ("lumitui", *parts)).removesuffix(".__init__")


def imports(test: Path) -> set[str]:
    """Return the modules that a test file imports, and the names from them."""
    found = set[str]()
    for node in ast.walk(ast.parse((ROOT / test).read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{item.name}" for item in node.names)}
    return found


def chosen(paths: Iterable[Path], tests: Iterable[Path]) -> list[Path]:
    """Return the tests of changed `paths`: these themselves, and those that import one of them.

    What shares most folders with a changed file comes first.
    """
    paths = list(paths)
    modules = {module for path in paths if (module := module_of(path))}
    meant = [test for test in tests if test in paths or modules & imports(test)]

    def far(test: Path) -> int:
        return -max(len(set(test.parts) & set(path.parts)) for path in paths)

    return sorted(meant, key=lambda test: (test not in paths, far(test), str(test)))[:MOST]


def main() -> int:
    """Run them; return pytest's exit code."""
    every = [path.relative_to(ROOT) for path in (ROOT / "tests").rglob("test_*.py")]
    names = [str(test) for test in chosen(changed(), every)]
    argv = [sys.executable, "-m", "pytest", "--quiet", "-m", ONLY, "--numprocesses=2"]
    return subprocess.run([*argv, *ALWAYS, *names], cwd=ROOT).returncode


if __name__ == "__main__":
    raise SystemExit(main())
