"""`lumitui docs`: the pages travel with the program, and nothing cites a page that it lacks."""

import re
from pathlib import Path

import pytest

from lumitui.app.cli.main import lumitui
from lumitui.app.cli.process import run_verb
from lumitui.app.explain.doc_pages import page_names, page_text
from tests.support.places import ROOT

CITED = re.compile(r"(?<![\w/-])docs/(\w+)\.md|`lumitui docs (\w+)`")
FOREIGN = {"design"}
"""A page of another project, as the source of a rule."""
TEXTS = {".py", ".yaml", ".j2", ".sh", ".md", ".json"}
LINKED = re.compile(r"\]\((?!https?:)(?:docs/)?(\w+)\.md")


def cited(path: Path) -> set[str]:
    text = path.read_text("utf-8", errors="replace")
    return {first or second for first, second in CITED.findall(text)}


def test_every_page_that_code_or_documents_cite_is_there() -> None:
    folders = ("app", "remote", "templates", "trainers", "docs")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    texts = [path for path in files if path.suffix in TEXTS]
    found = {page for path in (*texts, *ROOT.glob("*.md")) for page in cited(path)}
    assert len(found) > 15
    assert found - FOREIGN <= set(page_names())


@pytest.mark.parametrize("page", page_names())
def test_every_link_of_a_page_leads_to_a_page_that_travels_too(page: str) -> None:
    beside = {path.stem for path in ROOT.glob("*.md")}
    assert set(LINKED.findall(page_text(page))) <= set(page_names()) | beside


@pytest.mark.parametrize("word", ["lint", "lint.md", "docs/lint.md"])
def test_a_page_is_printed_by_any_of_its_names(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_verb(lumitui, ["docs", word]) == 0
    assert capsys.readouterr().out == (ROOT / "docs" / "lint.md").read_text()


def test_without_a_name_the_pages_are_listed_with_their_titles(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_verb(lumitui, ["docs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == page_names()
    assert re.search(r"(?m)^first_job +Your first job$", "\n".join(lines))


def test_the_nearest_page_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verb(lumitui, ["docs", "launcher"]) == 2
    assert "Did you mean launchers?" in capsys.readouterr().err
