"""Paths and links in the texts lead somewhere."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from lumitui.app.explain import doc_pages
from tests.support.places import ROOT

TEXTS = [
    *ROOT.glob("*.md"),
    *(path for path in (ROOT / "docs").glob("*.md") if path.name != "rules.md"),
    *(path for path in (ROOT / ".ci").iterdir() if not path.suffix),
    ROOT / "Makefile",
]
"""Of docs/rules.md the sources name paths of other projects."""
PLACES = ("app", "remote", "templates", "trainers", "tests", "docs", "end_to_end", "repository")
_PATH = re.compile(rf"(?<![\w./~$-])(?:{'|'.join(PLACES)})/[\w./*{{}},-]*[\w*/}}]")


def expanded(word: str) -> list[str]:
    """Return the words that bash makes of braces: `a_{b,c}.py` is `a_b.py` and `a_c.py`."""
    found = re.search(r"\{([^{}]*)\}", word)
    if found is None:
        return [word]
    parts = found[1].split(",")
    return [
        name
        for part in parts
        for name in expanded(word[: found.start()] + part + word[found.end() :])
    ]


def missing(text: str) -> list[str]:
    """Return the paths of a text that are neither in the repository nor, so written, in tests/."""
    return [
        path
        for word in _PATH.findall(text)
        for path in expanded(word)
        if not path.endswith("__pycache__")  # Python makes it
        and not any(next(iter(folder.glob(path)), None) for folder in (ROOT, ROOT / "tests"))
    ]


def test_every_path_that_is_named_is_there() -> None:
    assert len(TEXTS) > 20
    found = {path.name: missing(path.read_text()) for path in TEXTS}
    assert {name: paths for name, paths in found.items() if paths} == {}


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("`app/follow/test_gone.py`", ["app/follow/test_gone.py"]),
        ("pytest tests/app/{job,gone}", ["tests/app/gone"]),
        ("`end_to_end/gone_*.py`", ["end_to_end/gone_*.py"]),
        ("`app/follow/po*.py`, src/lumitui/app, docs/rules.md.", []),
        ("rm -r tests/__pycache__", []),
    ],
)
def test_a_planted_path_is_found(text: str, paths: list[str]) -> None:
    assert missing(text) == paths


DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.glob("*.md")), *sorted(ROOT.glob("*.md"))]
_LINK = re.compile(r"(?<!\\)\]\((?!https?:|mailto:)([^)\s]+)\)")
_CODE = re.compile(r"(?ms)^(```|~~~).*?^\1|^ {4,}\S.*?$|`[^`\n]+`")


def anchors(text: str) -> list[str]:
    return [one.anchor for one in doc_pages.headings(text)]


def faults(path: Path, text: str) -> Iterator[str]:
    """Yield the links of a page that lead nowhere, or out of the site."""
    for target in _LINK.findall(_CODE.sub("", text)):
        name, _, anchor = target.partition("#")
        other = (path.parent / name).resolve()
        if name and not other.exists():
            yield f"{target}: there is no such file"
        elif name and path.parent == DOCS and not other.is_relative_to(DOCS):
            yield f"{target}: the site has only what is in docs/"
        elif anchor and anchor not in anchors(other.read_text() if name else text):
            yield f"{target}: the page has no such section"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert list(faults(page, page.read_text())) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("[x](gone.md)", "gone.md: there is no such file"),
        ("![x](pictures/gone.svg)", "pictures/gone.svg: there is no such file"),
        ("[x](lint.md#gone)", "lint.md#gone: the page has no such section"),
        ("# A\n\n[x](#b)", "#b: the page has no such section"),
        ("[x](../README.md)", "../README.md: the site has only what is in docs/"),
    ],
)
def test_a_planted_fault_is_found(text: str, fault: str) -> None:
    assert list(faults(DOCS / "page.md", text)) == [fault]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_code_hosts_and_the_site_give_a_heading_the_same_anchor(page: Path) -> None:
    """Hosts number a second heading of the same text, and keep two hyphens; the site does not."""
    found = anchors(page.read_text())
    linked = {
        one
        for other in PAGES
        for one in re.findall(rf"{page.stem}\.md#([\w-]+)", other.read_text())
    }
    assert len(found) == len(set(found)) or page.parent != DOCS
    assert not [one for one in linked if "--" in one]


def test_the_navigation_of_the_site_is_that_of_the_first_page() -> None:
    config = tomllib.loads((ROOT / "zensical.toml").read_text())
    first, *subjects = config["project"]["nav"]
    assert first == {"lumitui": "index.md"}
    listed = {subject: [f"{name}.md" for name in names] for subject, names in doc_pages.contents()}
    assert {key: value for one in subjects for key, value in one.items()} == listed
    every = [name for names in listed.values() for name in names]
    assert sorted([*every, "index.md"]) == sorted(path.name for path in DOCS.glob("*.md"))


def test_a_page_begins_with_its_title_and_has_no_other() -> None:
    for path in DOCS.glob("*.md"):
        levels = [one.level for one in doc_pages.headings(path.read_text())]
        assert levels[0] == 1 and 1 not in levels[1:], path.name


def test_what_belongs_to_an_item_of_a_list_is_indented_by_four() -> None:
    """With less, the site ends the list, and numbers what follows from 1 again."""
    wrong = re.compile(r"(?m)^ {1,3}(?:```|\||[-*] ).*$")
    assert {path.name: wrong.findall(path.read_text()) for path in DOCS.glob("*.md")} == {
        path.name: [] for path in DOCS.glob("*.md")
    }
