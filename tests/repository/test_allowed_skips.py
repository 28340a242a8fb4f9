"""Where every test should run, a skip that is not listed with its reason fails and is named."""

import os
import subprocess
import sys

import pytest

from tests.repository import skips
from tests.support.places import ALLOWED_SKIPS, ROOT

ZSH = "tests/remote/transport/test_local.py::test_a_script_that_does_not_parse_says_so[zsh]"
AT_IMPORT = "tests/app/launch/launchers/test_torchrun_binding.py"


def without_zsh_or_torch(**more: str) -> str:
    """Run both with a PATH on which nothing is, and without torch; return what pytest printed."""
    # A module that is None in sys.modules cannot be imported.
    code = "import sys, pytest; sys.modules['torch'] = None; sys.exit(pytest.main(sys.argv[1:]))"
    words = ["-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", ZSH, AT_IMPORT]
    env = {**os.environ, "PATH": "/nowhere", **more}
    argv = [sys.executable, "-c", code, *words]
    return subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True).stdout


def test_a_skip_fails_only_where_every_test_should_run() -> None:
    usual = without_zsh_or_torch(**{skips.VARIABLE: "0"})
    assert "2 skipped" in usual and "failed" not in usual and "error" not in usual, usual
    full = without_zsh_or_torch(**{skips.VARIABLE: "1"})
    assert "2 errors" in full and "skipped" not in full.splitlines()[-1], full
    for test in (ZSH, AT_IMPORT):
        assert f"{test} was skipped (" in full and f"tests/{ALLOWED_SKIPS.name}" in full


def test_a_line_of_the_list_is_about_tests_that_are_there() -> None:
    for line in skips.parse_allowed(ALLOWED_SKIPS.read_text()):
        file, _, name = line.pattern.partition("*")
        assert (ROOT / file).is_file(), line
        assert name.strip("*") in (ROOT / file).read_text(), line


def test_a_pattern_is_plain_text_but_for_its_stars() -> None:
    line = skips.AllowedSkip("tests/a.py::test_b[*x]", "why")
    assert line.matches("tests/a.py::test_b[1-x]")
    assert not line.matches("tests/a_py::test_b[1-x]")
    assert not line.matches("tests/a.py::test_b[1-y]")


def test_a_line_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no reason for tests/a\.py"):
        skips.parse_allowed("# a comment\n\ntests/a.py\n")
