"""Several sends of the same content at once, from machines that know nothing of each other."""

import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumitui.remote.site.errors import LumiError
from lumitui.remote.transfer.contents.content_store import Item
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.contents.staged_files import find, read
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result, Transport
from tests.support.files.staged import CutAfter, identical, left_over, staged

Send = Callable[..., Shipped]


class Meanwhile:
    """A link over which another send does something between two requests, or in one's middle."""

    def __init__(self, transport: Transport, at: int, act: Callable[[], object]) -> None:
        self.transport, self.at, self.act = transport, at, act
        self.requests = 0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        self.requests += 1
        if self.requests != self.at:
            return self.transport.run(script, stdin=stdin, timeout=timeout)

        def some() -> Iterator[bytes]:
            whole = b"".join([stdin] if isinstance(stdin, bytes) else stdin)
            yield whole[: len(whole) // 2]
            self.act()
            yield whole[len(whole) // 2 :]

        return self.transport.run(script, stdin=some(), timeout=timeout)

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        return self.transport.stream(script, stop=stop)

    def close(self) -> None:
        self.transport.close()


def _parts(folder: str) -> list[Path]:
    return [path for path in Path(folder, "parts").iterdir() if not path.name.startswith(".")]


@pytest.fixture
def large(tmp_path: Path) -> Path:
    place = tmp_path / "large"
    place.write_bytes(random.Random(4).randbytes(3_000_000))
    return place


def _cut_short(large: Path, folder: str) -> None:
    """Leave the first part of `large` in the store."""
    with pytest.raises(LumiError):
        staged(folder, read(find("L", large)), CutAfter(Local(), 1_000_000))
    assert _parts(folder)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("kept", [True, False])
def test_a_part_that_another_send_takes_is_no_error(
    stored: bool, kept: bool, large: Path, folder: str
) -> None:
    """The first part, or this send's own (`kept`: the first one alone goes), is gone or used up."""
    item = read(find("L", large))
    _cut_short(large, folder)
    first = _parts(folder)

    def act() -> None:
        if stored:
            staged(folder, item)
        for part in first if kept else _parts(folder):
            part.unlink(missing_ok=True)

    done = staged(folder, item, Meanwhile(Local(), 2, act))
    assert Path(done.path).read_bytes() == large.read_bytes() and not left_over(folder)


def test_a_part_whose_sender_still_writes_is_not_shortened(large: Path, folder: str) -> None:
    item = read(find("L", large))
    _cut_short(large, folder)
    (part,) = _parts(folder)
    whole = large.read_bytes()
    with part.open("r+b", buffering=0) as writing:
        writing.seek(0, os.SEEK_END)

        def act() -> None:
            writing.write(whole[writing.tell() : writing.tell() + 100_000])

        done = staged(folder, item, Meanwhile(Local(), 2, act))
        writing.write(b"the rest")
        assert writing.tell() == os.fstat(writing.fileno()).st_size
    assert Path(done.path).read_bytes() == whole and done.requests == 3


def test_a_seal_is_of_the_send_that_was_first(data: Path, folder: str, send: Send) -> None:
    item = read(find("DATA", data, follow=["from*"]))
    done = send(item, Meanwhile(Local(), 4, lambda: send(item)))
    assert identical(done.path, data) and not left_over(folder)
    assert send(item).requests == 1


@pytest.mark.slow
def test_many_sends_of_one_large_file_at_once_are_all_right(large: Path, tmp_path: Path) -> None:
    for number in range(20):
        large.write_bytes(random.Random(number).randbytes(4_000_000))
        item, together = read(find("L", large)), threading.Barrier(3)

        def one(_: int, item: Item = item, together: threading.Barrier = together) -> Shipped:
            together.wait()
            return staged(str(tmp_path / "s"), item)

        with ThreadPoolExecutor(3) as pool:
            for done in pool.map(one, range(3)):
                assert Path(done.path).read_bytes() == large.read_bytes()
