"""PartialFiles of killed fetches are continued or swept, and never those of a fetch that runs."""

import os
import subprocess
from pathlib import Path

import pytest

from lumitui.remote.transfer.results.fetch_files import fetch
from lumitui.remote.transfer.results.laptop_files import PartialFiles
from lumitui.remote.transport.local import Local
from tests.support.program.child import child
from tests.support.servers.lying_site import LyingTransport

KILLED = """
import os, signal, sys
from pathlib import Path
from lumitui.remote.transfer.results.fetch_files import fetch
from tests.support.servers.lying_site import LyingTransport

class Slow(LyingTransport):
    def stream(self, script, *, stop):
        for chunk in super().stream(script, stop=stop):
            yield chunk
            if "give()" in script and self.came > 600_000:
                print("now", flush=True)
                signal.pause()

fetch(Slow(), sys.argv[1], ["big*"], Path(sys.argv[2]))
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "big1").write_bytes(os.urandom(2_000_000))
    (folder / "big2").write_bytes(os.urandom(2_000_000))
    return folder


def begun(run: Path, here: Path) -> "subprocess.Popen[str]":
    """Begin a fetch that stops when 600 kB have come."""
    process = child(KILLED, str(run), str(here))
    assert process.stdout and process.stdout.readline() == "now\n"
    return process


def on_the_way(target: Path) -> list[Path]:
    return sorted((target / ".lumitui-fetch").iterdir())


def test_killed_fetches_go_on_and_leave_nothing(run: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    for _ in range(2):
        process = begun(run, here)
        # While it runs, another fetch of the same run leaves its part alone.
        before = on_the_way(here)
        fetch(Local(), str(run), ["none"], here)
        assert on_the_way(here) == before and len(before) == 1
        process.kill()
        process.communicate()
    there = sum(path.stat().st_size for path in here.rglob("*") if path.is_file())
    site = LyingTransport()
    assert len(fetch(site, str(run), ["big*"], here).files) == 2
    assert site.came < 4_000_000 - there + 10_000 and there > 1_000_000
    assert sorted(os.listdir(here)) == ["big1", "big2"]
    for name in ("big1", "big2"):
        assert (here / name).read_bytes() == (run / name).read_bytes()


def test_what_a_killed_fetch_left_is_swept_by_a_fetch_of_other_files(
    run: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    process = begun(run, here)
    process.kill()
    process.communicate()
    assert len(on_the_way(here)) == 1
    (run / "small").write_text("x")
    fetch(Local(), str(run), ["small"], here)
    assert os.listdir(here) == ["small"]


def test_two_fetches_of_one_file_at_once(run: Path, tmp_path: Path) -> None:
    here = tmp_path / "here"
    process = begun(run, here)
    assert len(fetch(Local(), str(run), ["big*"], here).files) == 2
    assert len(on_the_way(here)) == 1
    process.kill()
    process.communicate()
    fetch(Local(), str(run), ["big*"], here)
    assert sorted(os.listdir(here)) == ["big1", "big2"]


def test_a_part_belongs_to_one_process(tmp_path: Path) -> None:
    first, second = PartialFiles(tmp_path), PartialFiles(tmp_path)
    part = first.open("a")
    part.write(b"begun")
    other = second.open("a")
    assert other.path != part.path and other.size == 0
    second.sweep()
    assert len(on_the_way(tmp_path)) == 2
    part.keep()
    other.discard()
    again = second.open("a")
    assert (again.path, again.size) == (part.path, 5)
    again.write(b" again")
    again.put(tmp_path / "a")
    second.sweep()
    assert (tmp_path / "a").read_bytes() == b"begun again" and os.listdir(tmp_path) == ["a"]


def test_leftovers_are_swept(tmp_path: Path) -> None:
    parts = PartialFiles(tmp_path)
    for number in range(100):
        part = parts.open(f"file {number}")
        part.write(b"x" * 1000)
        part.keep()
    began = len(on_the_way(tmp_path))
    parts.sweep(["file 7"])
    assert (began, len(on_the_way(tmp_path))) == (100, 1)
    parts.sweep()
    assert os.listdir(tmp_path) == []
