"""`lumitui docs`: the pages travel with the program, and nothing cites a page that it lacks."""

import re
from pathlib import Path

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.explain import doc_pages
from tests.support.places import ROOT

CITED = re.compile(r"(?<![\w/-])docs/(\w+)\.md|`lumitui docs (\w+)`")
FOREIGN = {"design", "PAGE"}
"""A page of another project, as the source of a rule; and any page."""
TEXTS = {".py", ".yaml", ".j2", ".sh", ".md", ".json"}


def cited(path: Path) -> set[str]:
    text = path.read_text("utf-8", errors="replace")
    return {first or second for first, second in CITED.findall(text)}


def test_every_page_that_code_or_documents_cite_is_there() -> None:
    folders = ("app", "remote", "templates", "trainers", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = [path for path in files if path.suffix in TEXTS]
    found = {page for path in (*texts, *ROOT.glob("*.md")) for page in cited(path)}
    assert len(found) > 15
    assert found - FOREIGN <= set(doc_pages.page_names())


@pytest.mark.parametrize("word", ["lint", "lint.md", "docs/lint.md"])
def test_a_page_is_printed_by_any_of_its_names(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_verb(lumitui, ["docs", word]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "lint.md").read_text()


@pytest.mark.parametrize(
    ("word", "heading"),
    [
        ("why/gpu-memory", "### gpu-memory"),
        ("docs/why.md#gpu-memory", "### gpu-memory"),
        ("exit_codes/6", "## 6"),
        ("lineage", "## lineage"),
        ("first_job/when", "## When it fails"),
    ],
)
def test_a_section_is_printed_by_its_anchor_the_beginning_of_it_or_alone(
    word: str, heading: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_verb(lumitui, ["docs", word]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == heading
    assert not [line for line in lines[1:] if line.startswith("#")]


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("launcher-", "Did you mean launchers?"),
        ("why/gpu-memry", "Did you mean why/gpu-memory or why/"),
        ("why/chain", "Did you mean why/chain-"),
        ("time-limit", "Did you mean rules/time-limit or why/time-limit?"),
        ("why/0", "`lumitui docs why` prints all of it."),
    ],
)
def test_the_nearest_page_or_section_is_named(
    word: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_verb(lumitui, ["docs", word]) == 2
    assert hint in capsys.readouterr().err


def test_without_a_name_the_pages_are_listed_by_subject(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_verb(lumitui, ["docs"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("Tutorials\n  no_cluster ")
    assert re.search(r"(?m)^  first_job +Your first job$", text)
    named = re.findall(r"(?m)^  (\w+) ", text)
    assert sorted([*named, "index"]) == list(doc_pages.page_names())
