"""The shapes of keys: each is found with its line, and nothing else is taken for one."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lumitui.remote.site.secret_shapes import KeyMark, ShapeSearch, shape_of
from tests.support.files.secrets import KEYS, NO_KEYS, Key
from tests.support.places import ROOT


def marks(*pieces: bytes) -> tuple[KeyMark, ...]:
    search = ShapeSearch()
    for piece in pieces:
        search.feed(piece)
    return search.marks


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.text[:12])
def test_each_kind_of_key_is_found_with_its_line(key: Key) -> None:
    for before, after in (("", ""), ("token: ", "\n"), ('"', '"'), ("\\n", ""), ("=", ";")):
        text = f"one\ntwo\n{before}{key.text}{after}"
        found = marks(text.encode())
        assert found and found[0].line == 3, (before, text)
        assert key.what in shape_of(found[0]).what
        wide = marks(text.encode("utf-16"))
        assert [shape_of(mark).what for mark in wide] == [shape_of(mark).what for mark in found]


@pytest.mark.parametrize("text", NO_KEYS, ids=lambda text: text[:20])
def test_what_only_looks_like_a_key_is_not_taken_for_one(text: str) -> None:
    assert marks(text.encode()) == ()


@given(st.data())
def test_a_key_is_found_wherever_the_file_is_cut(data: st.DataObject) -> None:
    key = data.draw(st.sampled_from(KEYS))
    before = data.draw(st.binary(max_size=3000)) + b"\n"
    assume(b"wandb" not in before.lower())  # the mark of a key begins at such a word near it
    text = before + key.text.encode() + b"\n" + data.draw(st.binary(max_size=2000))
    cut = sorted(data.draw(st.sets(st.integers(1, len(text)), max_size=3)))
    pieces = [text[a:b] for a, b in zip([0, *cut], [*cut, len(text)], strict=True)]
    at = before.count(b"\n") + 1
    if text[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        assert at in {mark.line for mark in marks(*filter(None, pieces))}


def test_a_file_of_this_project_has_none() -> None:
    """A normal repository: no false alarm in all that git tracks here."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True).stdout
    for name in filter(None, listed.decode().split("\0")):
        path = ROOT / name
        if path.is_file():
            assert marks(path.read_bytes()) == (), name


def test_a_thousand_modules_of_libraries_have_none(tmp_path: Path) -> None:
    import pydantic
    import textual

    for package in (pydantic, textual):
        for path in Path(package.__path__[0]).rglob("*.py"):
            assert marks(path.read_bytes()) == (), path
