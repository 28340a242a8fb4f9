"""A data set with everything that a file system allows, and a store to send it to."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_store import Item
from lumitui.remote.transfer.contents.content_upload import Shipped, stage
from lumitui.remote.transfer.contents.shipment_progress import ShipmentProgress
from lumitui.remote.transfer.contents.staged_files import find, read
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport

Send = Callable[..., Shipped]


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make 64 KiB a large file, and 128 KiB a whole batch of small ones."""
    monkeypatch.setattr(content_store, "LARGE", 1 << 16)
    monkeypatch.setattr(content_store, "BATCH", 1 << 17)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    chance = random.Random(17)
    folder = tmp_path / "data set"
    for number in range(40):
        place = folder / f"class {number % 3}" / f"{number}.bin"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(chance.randbytes(6000) if number % 4 else b"the same" * number)
    (folder / "large.bin").write_bytes(chance.randbytes(300_000))
    (folder / "large.txt").write_bytes(b"squeezed " * 20_000)
    (folder / "odd\nname \udcff $(x) '\\").write_text("odd")
    (folder / ".hidden").write_text("")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "again.bin").write_bytes((folder / "large.bin").read_bytes())
    (folder / "link").symlink_to("class 1/1.bin")
    (folder / "folder link").symlink_to("class 2")
    outside = tmp_path / "outside.bin"
    outside.write_bytes(b"elsewhere")
    (folder / "from outside").symlink_to(outside)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "the site's" / "stage")


@pytest.fixture
def told() -> list[ShipmentProgress]:
    return []


@pytest.fixture
def send(folder: str, data: Path, told: list[ShipmentProgress]) -> Send:
    """Sends the data as it is now, or an item that was read before."""

    def now(item: Item | None = None, over: Transport | None = None) -> Shipped:
        return stage(
            over or Local(),
            folder,
            item or read(find("DATA", data, follow=["from*"])),
            site="lumi",
            report=told.append,
        )

    return now
