"""Files that come back, over a shell of this machine, busybox, and a real SSH server."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from lumitui.remote.errors import InputError, LinkError, RefusedError
from lumitui.remote.fetch import fetch
from lumitui.remote.transport import Result, Transport
from tests.transport_fixture import Cut, transport

__all__ = ["transport"]  # fixtures


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
    assert [item.name for item in brought] == names and all(item.fresh for item in brought)
    assert all(item.path.read_bytes() == (results / item.name).read_bytes() for item in brought)
    (results / "log").write_text("longer now")
    again = fetch(transport, str(results), patterns, target)
    assert [item.name for item in again if item.fresh] == ["log"]
    assert sorted(os.listdir(target / "checkpoints")) == ["latest.pt", "one.pt", "two words.pt"]


def test_nothing_that_matches_is_nothing(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    assert fetch(transport, str(results), ["*.none"], tmp_path / "here") == []


@pytest.mark.parametrize("pattern", ["/etc/passwd", "../*", "a/../../b", "~/x"])
def test_patterns_that_leave_the_run_are_refused(
    transport: Transport, results: Path, tmp_path: Path, pattern: str
) -> None:
    with pytest.raises(InputError, match="leaves the run's folder"):
        fetch(transport, str(results), [pattern], tmp_path)


def test_a_pattern_is_no_command(transport: Transport, results: Path, tmp_path: Path) -> None:
    pattern = f"$(touch {tmp_path}/ran);`touch {tmp_path}/ran`'*"
    assert fetch(transport, str(results), [pattern], tmp_path / "here") == []
    assert not (tmp_path / "ran").exists()


def test_a_missing_run_is_said(transport: Transport, tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match="could not read"):
        fetch(transport, f"{tmp_path}/none", ["*"], tmp_path / "here")


def test_a_file_that_changes_meanwhile_is_not_put_in_place(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    class Changing(Cut):
        def run(
            self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
        ) -> Result:
            answer = self.transport.run(script, stdin=stdin, timeout=timeout)
            (results / "log").write_text("other")
            return answer

        def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
            return self.transport.stream(script, stop=stop)

    with pytest.raises(RefusedError, match="log changed"):
        fetch(Changing(transport), str(results), ["log"], tmp_path / "here")
    assert os.listdir(tmp_path / "here") == []


def test_a_cut_link_leaves_no_part_of_a_file(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    with pytest.raises(LinkError, match="cut"):
        fetch(Cut(transport), str(results), ["log", "checkpoints/*"], tmp_path / "here")
    left = [name for _, _, names in os.walk(tmp_path / "here") for name in names]
    assert not [name for name in left if name.endswith(".part")]


def test_a_stopped_fetch_ends_quietly(transport: Transport, results: Path, tmp_path: Path) -> None:
    done = fetch(transport, str(results), ["log"], tmp_path / "here", stop=lambda: True)
    assert done == []


def test_a_link_on_this_side_is_not_followed_out(
    transport: Transport, results: Path, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "here" / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RefusedError, match="leads out"):
        fetch(transport, str(results), ["checkpoints/one.pt"], tmp_path / "here")
    assert os.listdir(tmp_path / "elsewhere") == []
