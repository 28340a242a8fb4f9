"""Files that come back, over a shell of this machine, busybox, and a real SSH server."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError, LinkError, RefusedError
from lumitui.remote.transfer.results.fetch_files import fetch
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.servers.transports import Cut


@pytest.fixture
def results(tmp_path: Path) -> Path:
    run = tmp_path / "a run's"
    for path in ("checkpoints/one.pt", "checkpoints/two words.pt", "checkpoints/x.tmp", "log"):
        (run / path).parent.mkdir(parents=True, exist_ok=True)
        (run / path).write_bytes(path.encode() * 40_000)
    (run / "checkpoints" / "latest.pt").symlink_to("one.pt")
    return run


def test_files_come_back_once(transport: Transport, results: Path, tmp_path: Path) -> None:
    target = tmp_path / "here"
    patterns = ["checkpoints/*.pt", "lo[a-g]", "none/*", "checkpoints/o?e.pt"]
    brought = fetch(transport, str(results), patterns, target)
    names = [f"checkpoints/{name}.pt" for name in ("latest", "one", "two words")] + ["log"]
    files = brought.files
    assert [item.name for item in files] == names and all(item.fresh for item in files)
    assert all(item.path.read_bytes() == (results / item.name).read_bytes() for item in files)
    assert (brought.unmatched, brought.left, brought.troubles) == (("none/*",), (), ())
    (results / "log").write_text("longer now")
    again = fetch(transport, str(results), patterns, target)
    assert [item.name for item in again.files if item.fresh] == ["log"]
    assert sorted(os.listdir(target / "checkpoints")) == ["latest.pt", "one.pt", "two words.pt"]


def test_nothing_that_matches_is_nothing(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    (results / "empty").mkdir()
    (results / ".secrets").write_text("A=b")
    patterns = ["*.none", "empty", "empty/*", ".secrets"]
    brought = fetch(transport, str(results), patterns, tmp_path / "here")
    assert (brought.files, brought.unmatched) == ((), tuple(patterns))


def test_all_patterns_that_leave_the_run_are_named(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    patterns = ["[", "../*", "*.txt", "/etc/passwd", "a/../../b", "~/x"]
    with pytest.raises(InputError, match="leave the run's folder") as caught:
        fetch(transport, str(results), patterns, tmp_path)
    said = caught.value.message
    assert "'../*', '/etc/passwd', 'a/../../b', '~/x'" in said
    assert "'['" not in said  # a file may have this name


def test_a_pattern_is_no_command(transport: Transport, results: Path, tmp_path: Path) -> None:
    pattern = f"$(touch {tmp_path}/ran);`touch {tmp_path}/ran`'*"
    assert fetch(transport, str(results), [pattern], tmp_path / "here").files == ()
    assert not (tmp_path / "ran").exists()


def test_a_missing_run_is_refused(transport: Transport, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"no longer exists at the site: /.*/none\. Its log"):
        fetch(transport, f"{tmp_path}/none", ["*"], tmp_path / "here")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(RefusedError, match="could not read"):
        fetch(transport, f"{tmp_path}/file", ["*"], tmp_path / "here")


class Meanwhile(Cut):
    """A transport behind which something happens before files are hashed, and before they come."""

    def __init__(self, transport: Transport, happens: Callable[[], object], *before: str) -> None:
        super().__init__(transport)
        self.happens, self.before, self.streams = happens, before or ("sums()", "give()"), 0

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        self.streams += "give()" in script
        if any(words in script for words in self.before):
            self.happens()
        yield from self.transport.stream(script, stop=stop)


def test_folders_come_with_all_that_is_in_them(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    """As DeepSpeed saves: a folder, and `latest` that names it."""
    names = [f"checkpoints/step-2/{name}" for name in ("mp_rank_00.pt", "zero/a\nb", "zero/c\\d")]
    for name in names:
        (results / name).parent.mkdir(parents=True, exist_ok=True)
        (results / name).write_text(name)
    out = tmp_path / "elsewhere"
    out.mkdir()
    (out / "huge").write_text("not ours")
    links = {"same.pt": "mp_rank_00.pt", "out": str(out), "file": f"{out}/huge", "none": "no"}
    for name, to in links.items():
        (results / "checkpoints" / "step-2" / name).symlink_to(to)
    (results / "checkpoints" / "last").symlink_to("step-2")
    (results / "away").symlink_to(out)
    patterns = ["checkpoints/*", "away"]
    brought = fetch(transport, str(results), patterns, tmp_path / "here")
    came = {item.name: item.path.read_text() for item in brought.files}
    assert {name: came[name] for name in names} == {name: name for name in names}
    assert came["checkpoints/step-2/same.pt"] == came["checkpoints/last/mp_rank_00.pt"] == names[0]
    assert len(came) == 12
    lost = {f"checkpoints/{at}/{name}" for at in ("step-2", "last") for name in list(links)[1:]}
    assert set(brought.links) == lost | {"away"}
    assert (brought.unmatched, brought.left) == (("away",), ())
    # The whole folder, by names of every kind.
    again = fetch(transport, str(results), ["./checkpoints", "."], tmp_path / "here")
    assert {item.name for item in again.files if item.fresh} == {"log"}
    assert again.unmatched == ()


def test_what_grows_meanwhile_comes_as_it_was_listed(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    growing = [results / name for name in ("metrics.jsonl", "attempt-1.out", "log")]
    for path in growing:
        path.write_text("begun\n")

    def grow() -> None:
        for path in growing:
            with path.open("a") as file:
                file.write("more\n")

    brought = fetch(Meanwhile(transport, grow), str(results), ["*"], tmp_path / "here")
    assert (brought.left, brought.troubles) == ((), ())
    here = {item.name: item.path.read_text() for item in brought.files if "/" not in item.name}
    # What is not known to be appended to is asked for a second time, when it has two lines more.
    assert here.pop("log") == "begun\nmore\nmore\n"
    assert here == {"metrics.jsonl": "begun\n", "attempt-1.out": "begun\n"}


def test_files_that_change_or_vanish_are_reported_and_the_rest_comes(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    (results / "gone").write_text("x")
    texts = iter("abcdef")

    def change() -> None:
        (results / "log").write_text(next(texts))
        (results / "gone").unlink(missing_ok=True)

    target = tmp_path / "here"
    brought = fetch(Meanwhile(transport, change), str(results), ["*"], target)
    assert [(item.name, item.why) for item in brought.left] == [
        ("gone", "it does not exist or is unreadable"), ("log", "it changed meanwhile")
    ]  # fmt: skip
    assert [item.name for item in brought.files if item.name.endswith("one.pt")]
    assert os.listdir(target) == ["checkpoints"]


def test_a_file_that_cannot_be_read_is_reported_and_the_rest_comes(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    for name in ("attempt-1.out", "mem"):
        (results / name).symlink_to("/proc/self/mem")  # also root cannot
    brought = fetch(transport, str(results), ["attempt-1.out", "mem", "log"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["log"]
    assert [item.name for item in brought.left] == ["attempt-1.out", "mem"]
    assert all(re.match("it cannot be read: .*rror", item.why) for item in brought.left)
    assert "mem" in "".join(brought.troubles)


class CutAfter(Cut):
    """A transport whose link is cut after so many bytes of content; it counts what came."""

    def __init__(self, transport: Transport, most: int) -> None:
        super().__init__(transport)
        self.most, self.came = most, 0

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        for chunk in self.transport.stream(script, stop=stop):
            if "give()" not in script:
                yield chunk
                continue
            self.came += len(chunk)
            yield chunk[: len(chunk) - max(0, self.came - self.most)]
            if self.came >= self.most:
                raise LinkError("cut")


def parts(target: Path) -> list[Path]:
    return sorted((target / ".lumitui-fetch").glob("*"))


def test_a_cut_file_goes_on_where_it_was(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    big, target = os.urandom(3_000_000), tmp_path / "here"
    (results / "big").write_bytes(big)
    for _ in range(3):
        with pytest.raises(LinkError, match="cut"):
            fetch(CutAfter(transport, 500_000), str(results), ["big"], target)
        assert len(parts(target)) == 1 and not (target / "big").exists()
    there = parts(target)[0].stat().st_size
    assert 1_400_000 < there < 1_500_000
    (results / "big").write_bytes(big + b"grown")
    link = CutAfter(transport, 10_000_000)
    brought = fetch(link, str(results), ["big"], target)
    assert [(item.name, item.size) for item in brought.files] == [("big", 3_000_005)]
    assert (target / "big").read_bytes() == big + b"grown"
    assert link.came < 3_000_005 - there + 1000
    assert os.listdir(target) == ["big"]


def test_a_cut_file_with_another_beginning_comes_from_its_beginning(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    target = tmp_path / "here"
    for content in (os.urandom(3_000_000), os.urandom(2_000_000), b"short"):
        (results / "big").write_bytes(content)
        if content != b"short":
            with pytest.raises(LinkError, match="cut"):
                fetch(CutAfter(transport, 1_500_000), str(results), ["big"], target)
    assert fetch(transport, str(results), ["big"], target).left == ()
    assert (target / "big").read_bytes() == b"short" and os.listdir(target) == ["big"]


def test_a_stopped_fetch_ends_quietly(transport: Transport, results: Path, tmp_path: Path) -> None:
    done = fetch(transport, str(results), ["log"], tmp_path / "here", stop=lambda: True)
    assert (done.files, done.left) == ((), ())


def test_a_cut_file_goes_on_behind_many_others(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "here"
    (results / "zz").write_bytes(os.urandom(500_000))
    with pytest.raises(LinkError, match="cut"):
        fetch(CutAfter(Local(), 400_000), str(results), ["zz"], target)
    for number in range(150):
        (results / f"small-{number}").write_text(str(number))
    link = CutAfter(Local(), 10_000_000)
    assert len(fetch(link, str(results), ["small-*", "zz"], target).files) == 151
    assert link.came < 150_000
    assert (target / "zz").read_bytes() == (results / "zz").read_bytes()


@pytest.mark.parametrize(
    "change", ["grow", "vanish", pytest.param("shrink", marks=pytest.mark.slow)]
)
def test_a_small_file_that_changes_harms_none_of_those_that_come_with_it(
    results: Path, tmp_path: Path, change: str
) -> None:
    names = [f"small-{number}" for number in range(120)]
    for name in names:
        (results / name).write_text(name * 10)

    def happens() -> None:
        if change == "vanish":
            (results / "small-7").unlink(missing_ok=True)
        else:
            (results / "small-7").write_text("other" * (100 if change == "grow" else 1))

    site = Meanwhile(Local(), happens, "give()")
    brought = fetch(site, str(results), ["small-*"], tmp_path / "here")
    came = {item.name: item.path.read_text() for item in brought.files}
    assert {name: came[name] for name in names if name != "small-7"} == {
        name: name * 10 for name in names if name != "small-7"
    }
    gone = [("small-7", "it does not exist or is unreadable")] if change == "vanish" else []
    assert [(item.name, item.why) for item in brought.left] == gone
    assert site.streams == 2
