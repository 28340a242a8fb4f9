"""Mistakes in a document are shown all at once, each with its line."""

import pytest
from pydantic import BaseModel, ConfigDict

from lumitui.remote.errors import InputError
from lumitui.remote.site.validation import validate
from lumitui.remote.site.yaml_document import Document


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    colour: str = ""
    size: int = 0


class Outer(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str
    nodes: int = 1
    inner: Inner = Inner()
    many: dict[str, Inner] = {}
    listed: tuple[Inner, ...] = ()


def mistakes(text: str) -> list[str]:
    """Return the lines of the error about a document that is not an `Outer`."""
    document = Document(text, "job.yaml")
    with pytest.raises(InputError) as caught:
        validate(document, Outer, document.data)
    return caught.value.message.splitlines()


def test_an_unknown_key_is_shown_with_the_nearest_known_one() -> None:
    assert mistakes("name: a\nnoodes: 2\n") == [
        "job.yaml has a mistake:",
        "  job.yaml:2: noodes: unknown key; did you mean `nodes`?",
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("inner:\n  color: red\n", "3: inner.color: unknown key; did you mean `colour`?"),
        ("many:\n  x:\n    siez: 1\n", "4: many.x.siez: unknown key; did you mean `size`?"),
        ("listed:\n  - siez: 1\n", "3: listed.0.siez: unknown key; did you mean `size`?"),
        ("inner: {color: red}\n", "2: inner.color: unknown key; did you mean `colour`?"),
        ("zzz: 1\n", "2: zzz: unknown key"),
        ("inner: 5\n", "2: inner: Input should be a valid dictionary"),
    ],
)
def test_mistakes_inside_are_shown_at_their_line(text: str, shown: str) -> None:
    line = mistakes("name: a\n" + text)[1]
    assert line.startswith(f"  job.yaml:{shown}")


def test_all_mistakes_are_shown_at_once() -> None:
    lines = mistakes("nodes: many\nnoodes: 2\ninner:\n  size: big\n")
    assert lines[0] == "job.yaml has 4 mistakes:"
    assert [line.split(": ")[:2] for line in sorted(lines[1:])] == [
        ["  job.yaml:1", "name"],
        ["  job.yaml:1", "nodes"],
        ["  job.yaml:2", "noodes"],
        ["  job.yaml:4", "inner.size"],
    ]


def test_a_place_below_is_shown_with_the_file_it_is_in() -> None:
    above = Document("nodes: 1\n", "mine.yaml")
    above.below = Document("name: a\n\ninner:\n  size: big\n", "base.yaml")
    with pytest.raises(InputError) as caught:
        validate(above, Outer, {"name": "a", "nodes": "x", "inner": {"size": "big"}})
    assert "mine.yaml:1: nodes" in caught.value.message
    assert "base.yaml:4: inner.size" in caught.value.message
