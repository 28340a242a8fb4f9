"""Staged items in tests: what stands in a store, and a link that is cut in the middle of a send."""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from lumitui.remote.site.errors import LinkError
from lumitui.remote.transfer.contents.content_store import Item
from lumitui.remote.transfer.contents.content_upload import Shipped, stage
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Result, Transport


def staged(folder: str | Path, item: Item, over: Transport | None = None) -> Shipped:
    """Stage `item` in the store at `folder`, on this machine or `over` another transport."""
    return stage(over or Local(), str(folder), item, site="lumi", report=lambda progress: None)


def identical(sent: str, data: Path) -> bool:
    """Whether a folder on the site has exactly the names, contents, links and x bits of `data`."""
    return _listed(Path(sent), None) == _listed(data, data)


def _listed(folder: Path, root: Path | None) -> dict[str, tuple[object, ...]]:
    """Return what is below `folder`; with `root`, a link out of it counts as what it leads to."""
    found: dict[str, tuple[object, ...]] = {}
    for at, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            place = Path(at) / name
            own = str(place.relative_to(folder))
            if place.is_symlink() and (root is None or place.resolve().is_relative_to(root)):
                found[own] = ("link", os.readlink(place))
            elif place.is_file():
                found[own] = (place.read_bytes(), bool(place.stat().st_mode & 0o100))
    return found


def left_over(folder: str) -> list[str]:
    """Return what of a send is left in a store besides what stands."""
    names = [name for name in os.listdir(folder) if name.startswith(".")]
    return names + os.listdir(f"{folder}/parts")


class CutAfter:
    """A transport whose link is cut after so many bytes of input, in whichever request that is."""

    def __init__(self, transport: Transport, count: int) -> None:
        self.transport, self.left, self.passed = transport, count, 0

    def run(
        self, script: str, *, stdin: bytes | Iterable[bytes] = b"", timeout: float = 60.0
    ) -> Result:
        def some() -> Iterator[bytes]:
            for piece in [stdin] if isinstance(stdin, bytes) else stdin:
                yield piece[: self.left]
                self.passed += len(piece)
                self.left -= len(piece)
                if self.left <= 0:
                    return

        result = self.transport.run(script, stdin=some(), timeout=timeout)
        if self.left <= 0:
            raise LinkError("cut")
        return result

    def stream(self, script: str, *, stop: Callable[[], bool]) -> Iterator[bytes]:
        return self.transport.stream(script, stop=stop)

    def close(self) -> None:
        self.transport.close()
