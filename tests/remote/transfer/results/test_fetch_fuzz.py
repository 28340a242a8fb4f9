"""Mutated honest answers and random bytes: a fetch raises what a person is told, nothing else."""

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lumitui.remote.site.errors import LinkLost, LumiError
from lumitui.remote.transfer.results.fetch_files import fetch
from tests.support.servers.lying_site import LyingTransport

KINDS = ("walk()", "sums()", "give()", "")
Answers = dict[str, bytes]


def kind_of(script: str) -> str:
    return next(kind for kind in KINDS if kind in script)


class Recorded(LyingTransport):
    """Honest, and keeps its answers."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: Answers = {}

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        chunks = list(super().stream(script, stop=stop))
        mark = re.search(r"lumitui-[0-9a-f]{16}", script)
        out = b"".join(chunks)
        plain = out.replace(mark[0].encode(), b"MARK") if mark else out
        self.answers.setdefault(kind_of(script), plain)
        yield from chunks


class Replayed(LyingTransport):
    """Answers as was recorded, in pieces of `size` bytes; the link may be cut at the end."""

    def __init__(self, answers: Answers, size: int, cut: bool) -> None:
        super().__init__()
        self.answers, self.size, self.cut = answers, size, cut

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        kind = kind_of(script)
        mark = re.search(r"lumitui-[0-9a-f]{16}", script)
        out = self.answers[kind].replace(b"MARK", mark[0].encode() if mark else b"")
        for start in range(0, len(out), self.size):
            yield out[start : start + self.size]
        if self.cut and kind == "give()":
            raise LinkLost("cut")


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    folder = tmp_path_factory.mktemp("run")
    for name in ("one", "d/two", "d/three", "metrics.jsonl"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(name.encode() * 50)
    (folder / "out").symlink_to("/etc")
    (folder / "mem").symlink_to("/proc/self/mem")
    site = Recorded()
    fetch(site, str(folder), ["*", "none"], folder.parent / "honest")
    assert set(site.answers) == set(KINDS)
    return site.answers


TOKENS = [
    b"\0", b"\n", b" ", b"MARK", b"MARK 0 0\n", b"MARK 1 9\n", b"MARK end\n", b"file ", b"./",
    b"../", b"/etc/", b"sum ", b"link ", b"said ", b"shut x\0", b"end\0",
    b"trouble\0", b"fits 0 .\0", b"-1", b"9" * 20, b"\xff", b"\x1b[2J", b"x" * 300,
    b"file 3 ./d\0", b"file 0 ./one/x\0",
]  # fmt: skip
MUTATIONS = st.lists(
    st.tuples(
        st.sampled_from(KINDS),
        st.sampled_from(["flip", "insert", "drop", "double", "end"]),
        st.integers(0, 4000),
        st.integers(1, 80),
        st.sampled_from(TOKENS),
    ),
    min_size=1,
    max_size=6,
)


def mutated(honest: Answers, changes: list[tuple[str, str, int, int, bytes]]) -> Answers:
    answers = dict(honest)
    for kind, how, place, length, token in changes:
        old = answers[kind]
        at = place % (len(old) + 1)
        before, here, after = old[:at], old[at : at + length], old[at + length :]
        answers[kind] = {
            "flip": before + bytes(byte ^ (1 << length % 8) for byte in here) + after,
            "insert": before + token + here + after,
            "drop": before + after,
            "double": before + here + here + after,
            "end": before,
        }[how]
    return answers


def is_told(answers: Answers, size: int, cut: bool) -> None:
    """A fetch with these answers ends well or with two sentences, and writes only its target."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "up", "here")
        site = Replayed(answers, size, cut)
        try:
            brought = fetch(site, "/run", ["*", "none"], target)
        except LumiError as error:
            assert error.message and len(str(error)) < 2000
        else:
            claimed = answers["sums()"].replace(b"MARK", b"")  # as it is replayed
            for item in brought.files:
                digest = hashlib.sha256(item.path.read_bytes()).hexdigest()
                assert digest.encode() in claimed, item
                assert item.path.resolve().is_relative_to(target.resolve())
        assert os.listdir(folder) in ([], ["up"])
        assert not (target.parent.exists() and os.listdir(target.parent) != ["here"])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=MUTATIONS, size=st.sampled_from([1, 7, 64, 100_000]), cut=st.booleans())
def test_mutated_answers_are_told(
    honest: Answers, changes: list[tuple[str, str, int, int, bytes]], size: int, cut: bool
) -> None:
    is_told(mutated(honest, changes), size, cut)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kind=st.sampled_from(KINDS), parts=st.lists(st.sampled_from(TOKENS) | st.binary()))
def test_random_answers_are_told(honest: Answers, kind: str, parts: list[bytes]) -> None:
    is_told(honest | {kind: b"".join(parts)}, 100, False)


def test_unchanged_answers_bring_the_files(honest: Answers, tmp_path: Path) -> None:
    brought = fetch(Replayed(honest, 3, False), "/run", ["*", "none"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["d/three", "d/two", "metrics.jsonl", "one"]
    assert [item.name for item in brought.left] == ["mem"]
    assert (brought.links, brought.unmatched) == (("out",), ("none",))
