"""The paths that the documents, the CI and the Makefile name are there: a move renews them all."""

import re

import pytest

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
