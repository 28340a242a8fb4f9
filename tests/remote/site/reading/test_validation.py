"""Mistakes in a document are shown all at once, each with its line."""

import re

import pytest
from pydantic import BaseModel, ConfigDict

from lumitui.app.job.spec import JobSpec
from lumitui.remote.site.errors import InputError
from lumitui.remote.site.profile import Site
from lumitui.remote.site.reading.validation import Mistakes, validate
from lumitui.remote.site.reading.yaml_document import Document


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
        ("inner: 5\n", "2: inner: 5 is not a block of `key: value` lines"),
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


_JUNK: tuple[object, ...] = (
    None, "", "two", "x" * 300, "a b", "-1", "0", 3, -7, 10**30, 2.5, float("nan"), True, [], [[1]],
    ["a", 1], {}, {"a": {"b": 1}}, {"none": "maybe"}, {"keep": "x", "rule": 3},
)  # fmt: skip


@pytest.mark.parametrize("model", [JobSpec, Site])
def test_no_mistake_is_told_in_words_for_programmers(model: type[BaseModel]) -> None:
    document, said = Document("name: a\n", "job.yaml"), set()
    for junk in _JUNK:
        with pytest.raises(Mistakes) as caught:
            validate(document, model, dict.fromkeys(model.model_fields, junk))
        said |= {item.message for item in caught.value.mistakes}
    assert len(said) > 30
    for message in said:
        assert not re.search(r"Input|should|valid|pars|Python|type=|regex|\^|instance", message)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nodes: two", "nodes: 'two' is not a whole number"),
        ("nodes: 0", "nodes: '0' is less than 1, the minimum"),
        ("nodes: 999999", "nodes: '999999' is more than 10,000, the maximum"),
        ("exclusive: maybe", "exclusive: 'maybe' is not true or false"),
        ("args: --x", "args: '--x' is not a list; write [A, B]"),
        ("env: [A]", "env: a list is not a block of `key: value` lines"),
        ("proof: onn", "proof: 'onn' is not one of on, strict or off"),
        ("memory: lots", "memory: 'lots' is not an amount of memory like 60G"),
        ("name:", "name: an empty value is not text"),
        ("partition: a b", "partition: 'a b' has a character that is not allowed"),
    ],
)
def test_a_mistake_of_each_kind_is_a_sentence(text: str, words: str) -> None:
    document = Document(text, "job.yaml", plain=True)
    with pytest.raises(InputError) as caught:
        validate(document, JobSpec, document.data)
    assert f"  job.yaml:1: {words}" in caught.value.message


@pytest.mark.parametrize(
    ("billing", "words"),
    [
        ("{kind: gpu}", "'gpu' is not a kind; write `kind:` with one of node, slice, sum"),
        ("{per_gpu_hour: 1}", "`kind:` is missing; `lumitui schema site` lists the kinds"),
    ],
)
def test_a_block_of_several_kinds_says_which_there_are(billing: str, words: str) -> None:
    text = f"partitions: {{gpu: {{billing: {billing}}}}}"
    document = Document(text, "ours.yaml")
    with pytest.raises(InputError) as caught:
        validate(document, Site, document.data)
    assert f"ours.yaml:1: partitions.gpu.billing: {words}" in caught.value.message
