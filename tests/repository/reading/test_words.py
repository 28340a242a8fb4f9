"""The words of this repository: plain English in what it says, in its docs and in its comments."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.places import ROOT

SUFFIXES = {".py", ".md", ".yaml", ".sh", ".j2", ".tcss", ".toml"}
OWN = Path(__file__)
"""This module, which names what it forbids."""
FORBIDDEN = {
    r"\bwhoever\b": "name the one who acts: a user, a client, a program",
    r"\bas well(?! as\b)(?=\W*[.,;:)\"]|\W*$)": "write `also` before the verb, or `too`",
}
"""What no sentence has, and what to write instead."""


def files() -> Iterator[Path]:
    """Yield what this project wrote; data of tests may quote the words of others."""
    yield from ROOT.glob("*.*")
    for folder in ("app", "remote", "templates", "trainers", "docs", ".ci"):
        yield from (ROOT / folder).rglob("*")
    yield from (ROOT / "tests").rglob("*.py")


TEXTS = sorted(
    path for path in files() if path.suffix in SUFFIXES and path.is_file() and path != OWN
)


def faults(text: str) -> list[str]:
    """Return the forbidden words of a text, each with what to write; a line may break in them."""
    words = re.sub(r"\s*\n[\s#>*-]*", " ", text)
    return [
        f"{words[max(0, found.start() - 30) : found.end() + 5]}: {instead}"
        for pattern, instead in FORBIDDEN.items()
        for found in re.finditer(pattern, words, re.IGNORECASE)
    ]


def test_no_text_has_a_forbidden_word() -> None:
    assert len(TEXTS) > 1000
    found = {path.relative_to(ROOT).as_posix(): faults(path.read_text()) for path in TEXTS}
    assert {name: said for name, said in found.items() if said} == {}


@pytest.mark.parametrize(
    "text",
    [
        "Whoever sends it",
        "It works on CPUs as well.",
        "on CPUs as\n    # well, too",
        "a (b as well)",
    ],
)
def test_a_planted_word_is_found(text: str) -> None:
    assert len(faults(text)) == 1


@pytest.mark.parametrize("text", ["by GPUs as well as by nodes", "as well-known", "well, as said"])
def test_other_words_are_none(text: str) -> None:
    assert faults(text) == []
