"""The pages of the documentation in the package, and their sections."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from lumitui.remote.site.errors import InputError

_FOLDER = files("lumitui") / "docs"
_HEADING = re.compile(r"(#{1,6}) +(.*?) *$")
_FENCE = re.compile(r" {0,3}(```|~~~)")
_LISTED = re.compile(r"- \[.*?\]\((\w+)\.md\)")
_CONTENTS = "index"
"""The page that lists the others by subject, like the website's navigation."""


@dataclass(frozen=True)
class Heading:
    """A heading of a page."""

    line: int
    level: int
    text: str

    @property
    def anchor(self) -> str:
        """Its anchor on a code host and on the website."""
        words = re.sub(r"[^\w\s-]", "", self.text.lower())
        return re.sub(r"\s", "-", words.strip())


@cache
def page_names() -> tuple[str, ...]:
    """Return the names of the pages."""
    found = (item.name for item in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in found if name.endswith(".md")))


def headings(text: str) -> Iterator[Heading]:
    """Yield the headings of a page, excluding those inside code blocks."""
    fence = ""
    for number, line in enumerate(text.splitlines()):
        if mark := _FENCE.match(line):
            fence = "" if fence == mark[1] else fence or mark[1]
        elif not fence and (found := _HEADING.match(line)):
            yield Heading(number, len(found[1]), found[2])


def contents() -> Iterator[tuple[str, list[str]]]:
    """Yield each subject of the documentation and the names of its pages, in reading order."""
    text = _text_of(_CONTENTS)
    for heading in headings(text):
        found = _LISTED.findall(_below(text, heading))
        if heading.level > 1 and found:
            yield heading.text, found


def page_title(name: str) -> str:
    """Return the title of a page."""
    return _text_of(name).partition("\n")[0].lstrip("# ")


def page_text(name: str) -> str:
    """Return a page, one section of it (`why/gpu-memory`), or the only section of that name.

    A page may be given as another text names it: `docs/lint.md#in-ci`.

    Raises:
        InputError: there is no such page or section.
    """
    page, _, part = name.removeprefix("docs/").replace("#", "/").partition("/")
    page = page.removesuffix(".md")
    if page in page_names():
        return _section(page, part) if part else _text_of(page)
    places = [one for one in page_names() if not part and page.lower() in _anchors(one)]
    if len(places) == 1:
        return _section(places[0], page.lower())
    near = [f"{one}/{page}" for one in places] or get_close_matches(page, page_names(), 1, 0.5)
    raise _unknown(f"{name!r} is not a page.", near, "`lumitui docs` lists them.")


def _section(page: str, anchor: str) -> str:
    """Return the section of a page with an anchor, or the only one whose anchor starts with it."""
    found, text = _anchors(page), _text_of(page)
    fits = [anchor] if anchor in found else [one for one in found if one.startswith(anchor)]
    if len(fits) == 1:
        return _below(text, found[fits[0]]).rstrip("\n") + "\n"
    near = [f"{page}/{one}" for one in (fits[:3] or get_close_matches(anchor, found, 3))]
    message = f"The page {page!r} has no section {anchor!r}."
    raise _unknown(message, near, f"`lumitui docs {page}` prints all of it.")


def _unknown(message: str, near: list[str], otherwise: str) -> InputError:
    return InputError(message, f"Did you mean {' or '.join(near)}?" if near else otherwise)


def _below(text: str, heading: Heading) -> str:
    """Return a section: its heading and everything up to the next heading of its level or above."""
    later = (one for one in headings(text) if one.line > heading.line)
    end = next((one.line for one in later if one.level <= heading.level), None)
    return "\n".join(text.splitlines()[heading.line : end])


@cache
def _anchors(page: str) -> dict[str, Heading]:
    return {one.anchor: one for one in headings(_text_of(page))}


@cache
def _text_of(page: str) -> str:
    return (_FOLDER / f"{page}.md").read_text(encoding="utf-8")
