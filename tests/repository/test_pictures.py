"""The pictures of the documents look alike in Chromium, Firefox and rsvg, whatever their fonts."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.measure.pictures.diagrams import DRAWN
from tests.support.places import ROOT

PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
FILMS = [path for path in PICTURES if path.stem not in DRAWN]
"""Pictures of the TUI."""
SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("picture", FILMS, ids=lambda path: path.stem)
def test_no_column_depends_on_blanks_or_on_the_width_of_a_sign(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    assert "white-space:pre" in "".join(root.itertext())
    parts = list(root.iter(f"{SVG}tspan"))
    assert len(parts) > 50
    for part in parts:
        words = part.text or ""
        assert "  " not in words
        if re.search("[\u2800-\u28ff]", words):
            assert len(part.get("x", "").split()) == len(words)


def test_a_viewer_without_animation_shows_the_first_screen() -> None:
    text = (ROOT / "docs" / "pictures" / "tour.svg").read_text()
    assert ".s0{visibility:visible}" in text
    assert text.count('<g class="s s') == 9


def test_every_picture_is_in_a_document() -> None:
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))
    text = "".join(path.read_text() for path in documents)
    assert [path.name for path in PICTURES if f"pictures/{path.name}" not in text] == []


@pytest.mark.parametrize("name", DRAWN)
def test_a_diagram_is_as_the_program_is_and_follows_the_readers_theme(name: str) -> None:
    text = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
    assert text == DRAWN[name](), "run `make diagrams`"
    assert "prefers-color-scheme:dark" in text
    assert len(text) < 20_000
    ElementTree.fromstring(text)
