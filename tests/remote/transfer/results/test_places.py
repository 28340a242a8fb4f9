"""What stands in the way on the laptop: one file is named, and the other files come."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LumiError
from lumitui.remote.transfer.results import laptop_files
from lumitui.remote.transfer.results.fetch_files import fetch
from lumitui.remote.transport.local import Local
from tests.support.servers.lying_site import LyingTransport
from tests.support.servers.small_disk import small_disk

CONTENT = {name: name.encode() * 100 for name in ("a/b/one", "a/two", "c/three", "d", "e")}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name, content in CONTENT.items():
        path = tmp_path / "run" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "run"


def test_each_obstacle_is_one_files(run: Path, tmp_path: Path) -> None:
    here, out = tmp_path / "here", tmp_path / "out"
    (here / "d").mkdir(parents=True)
    out.mkdir()
    (here / "a").mkdir()
    (here / "a" / "b").write_text("a file where a folder is wanted")
    (here / "c").symlink_to(out)
    (here / "e").symlink_to(out / "e")  # a link in the place of a file is replaced
    brought = fetch(Local(), str(run), ["*"], here)
    assert [item.name for item in brought.files] == ["a/two", "e"]
    assert {item.name: item.why for item in brought.left} == {
        "a/b/one": "a/b is not a folder here",
        "c/three": f"c is a link here that points outside {here}",
        "d": "a folder with that name exists here",
    }
    assert os.listdir(out) == [] and not (here / "e").is_symlink()
    assert (here / "a" / "b").read_text() == "a file where a folder is wanted"


def test_links_within_the_target_are_followed(run: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "real").mkdir(parents=True)
    (here / "a").symlink_to("real")
    (here / "c").symlink_to("c")  # to itself
    brought = fetch(Local(), str(run), ["*"], here)
    assert (here / "real" / "b" / "one").read_bytes() == CONTENT["a/b/one"]
    assert [item.name for item in brought.left] == ["c/three"]


def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(run: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    os.mkfifo(here / "d")
    assert fetch(Local(), str(run), ["*"], here).left == ()
    assert (here / "d").read_bytes() == CONTENT["d"]


def test_a_target_that_is_no_folder(run: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for target in (tmp_path / "file", tmp_path / "file" / "below", tmp_path / ("x" * 300)):
        with pytest.raises(LumiError, match="cannot be created"):
            fetch(Local(), str(run), ["*"], target)


def test_what_is_fetched_is_the_persons_own(run: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        fetch(Local(), str(run), ["*"], tmp_path / "here")
    finally:
        os.umask(before)
    modes = {oct(path.stat().st_mode & 0o777) for path in (tmp_path / "here").rglob("*")}
    assert modes == {"0o600", "0o700"}


def test_files_of_equal_content_come_once(run: Path, tmp_path: Path) -> None:
    (run / "latest").symlink_to("big")
    (run / "copy").write_bytes(os.urandom(300_000))
    os.link(run / "copy", run / "big")
    site = LyingTransport()
    brought = fetch(site, str(run), ["copy", "big", "latest"], tmp_path / "here")
    assert [item.name for item in brought.files] == ["big", "copy", "latest"]
    assert len({item.path.read_bytes() for item in brought.files}) == 1
    assert len({item.path.stat().st_ino for item in brought.files}) == 3
    assert 300_000 < site.came < 310_000


class OneCase(LyingTransport):
    """Behind it, the laptop's disk takes `A` and `a` for one file, as macOS's does."""

    def __init__(self, here: Path) -> None:
        super().__init__()
        self.here = here

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        for chunk in super().stream(script, stop=stop):
            yield chunk
            if (self.here / "A").exists() and not (self.here / "a").exists():
                os.link(self.here / "A", self.here / "a")


def test_names_that_are_one_for_the_disk_do_not_replace_each_other(tmp_path: Path) -> None:
    run, here = tmp_path / "run", tmp_path / "here"
    run.mkdir()
    (run / "A").write_bytes(os.urandom(200_000))
    (run / "a").write_bytes(os.urandom(200_000))
    for _ in range(2):
        brought = fetch(OneCase(here), str(run), ["A", "a"], here)
        assert [item.name for item in brought.files] == ["A"]
        assert [(item.name, item.why) for item in brought.left] == [
            ("a", "this disk cannot distinguish its name from A")
        ]
        assert (here / "A").read_bytes() == (run / "A").read_bytes()


def test_what_the_disk_has_no_room_for_is_left(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laptop_files, "KEPT_FREE", 0)
    for name in ("one", "two", "three"):
        (run / name).write_bytes(os.urandom(3_000_000))
    with small_disk(tmp_path / "disk", "8M") as disk:
        brought = fetch(Local(), str(run), ["one", "two", "three", "d"], disk / "here")
        assert [item.name for item in brought.files if item.size > 1000] == ["one", "two"]
        (left,) = brought.left
        assert left.name == "three" and left.why.startswith("it has 3.0 MB, but this disk has")
        assert {item.name for item in brought.files} == {"one", "two", "d"}
        # Once more: what is here needs no room.
        again = fetch(Local(), str(run), ["one", "two", "three", "d"], disk / "here")
        assert [item.name for item in again.files if not item.fresh] == ["d", "one", "two"]


def test_a_disk_that_fills_meanwhile_ends_the_fetch_and_keeps_no_part(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(laptop_files.FetchTargets, "free", lambda self: 10**12)
    for name in ("one", "two", "three"):
        (run / name).write_bytes(os.urandom(3_000_000))
    with small_disk(tmp_path / "disk", "8M") as disk:
        with pytest.raises(LumiError, match="disk is full"):
            fetch(Local(), str(run), ["one", "two", "three"], disk / "here")
        assert sorted(os.listdir(disk / "here")) == [".lumitui-fetch", "one", "two"]
        assert os.listdir(disk / "here" / ".lumitui-fetch") == []
