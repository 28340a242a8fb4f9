"""The pages that `make reference` writes are those of the program, and every id has its section."""

import ast
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.explain import doc_pages
from lumitui.app.job.json_schema import described_schema
from lumitui.app.job.spec import JobSpec
from lumitui.app.runs import LumiError, Sites
from lumitui.app.runs.rulebook import topics
from lumitui.remote.site.errors import (
    InputError,
    InternalError,
    LinkLost,
    NeverStarts,
    OutcomeUnknown,
    RefusedError,
    RunFailed,
    WaitTimedOut,
)
from lumitui.remote.site.sites import BUILT_IN
from tests.frozen.kept import read
from tests.repository.reference import DOCS, MANUAL, SEE, causes, written
from tests.support.places import ROOT


@pytest.mark.parametrize("name", ["commands.md", "job_file.md", "why.md", "rules.md", "lumitui.1"])
def test_a_page_is_as_the_program_is(name: str) -> None:
    assert (DOCS / name).read_text() == written()[name], "run `make reference`"


def ids() -> Iterator[str]:
    """Yield the section of everything that an error, a finding or a help names."""
    known = Sites([BUILT_IN])
    yield from (f"rules/{one.id}" for one in topics(map(known.load, known.names())))
    yield from (f"why/{one.id}" for one in causes())
    yield from (f"commands/{name.replace(' ', '-')}" for name in lumitui.every())
    yield from (f"job_file/{name}" for name in described_schema(JobSpec)["properties"])
    yield from (f"exit_codes/{code}" for code in (0, 130, *exit_codes(LumiError)))


def exit_codes(kind: type[LumiError]) -> set[int]:
    return {kind.exit_code}.union(*map(exit_codes, kind.__subclasses__()))


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (LumiError, "Any other error"),
        (InputError, "is invalid. Nothing was sent."),
        (LinkLost, "There was no connection, or it broke."),
        (RefusedError, "The cluster refused"),
        (RunFailed, "The job itself failed"),
        (OutcomeUnknown, "The outcome is unknown"),
        (NeverStarts, "it can never start"),
        (InternalError, "lumitui crashed"),
        (WaitTimedOut, "The wait timed out"),
    ],
)
def test_an_error_ends_with_the_code_whose_section_describes_it(
    kind: type[LumiError], words: str
) -> None:
    assert words in doc_pages.page_text(f"exit_codes/{kind.exit_code}")


def test_every_id_has_a_section_of_its_own() -> None:
    every = list(ids())
    assert len(every) > 450
    for one in every:
        heading = doc_pages.page_text(one).partition("\n")[0].lstrip("# ")
        assert heading.replace(" ", "-") == one.partition("/")[2]


def test_each_cause_that_a_log_has_shown_is_on_the_page() -> None:
    """Those that no table has, too: the screens look each one up."""
    counts = (word for entry in read("why").values() for word in entry.words.split())
    shown = {word.partition("=")[0] for word in counts if "=" in word}
    made = {
        node.args[0].value
        for path in (ROOT / "app" / "knowledge" / "failure").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Diagnosis", "Meaning")
        if node.args and isinstance(node.args[0], ast.Constant)
    }
    assert len(shown) > 70 and "chain-late" in made
    assert shown | made <= {one.id for one in causes()}
    assert set(SEE) <= {one.id for one in causes()}


def test_a_key_of_the_job_file_has_an_example() -> None:
    for name in described_schema(JobSpec)["properties"]:
        assert f"`{name}: " in doc_pages.page_text(f"job_file/{name}").replace("\n", " ")


@pytest.mark.parametrize(
    "words",
    [["groff", "-man", "-ww", "-Tutf8"], ["mandoc", "-Tlint", "-Wwarning"]],
    ids=["groff", "mandoc"],
)
def test_the_manual_page_renders_without_a_warning(words: list[str]) -> None:
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    done = subprocess.run([*words, MANUAL], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "warning" not in done.stdout.lower().partition("lumitui(1)")[0]
