"""The environments on a site: listed, and removed when nobody uses them."""

import os
import time
from pathlib import Path

import pytest

from lumitui.remote.site.errors import AnswerUnusable
from lumitui.remote.transfer.environments.venvs import list_venvs, remove_venvs
from lumitui.remote.transport.transport import Transport
from tests.support.servers.transports import FixedAnswer

OLD, NEW, PLAIN = f"{'a' * 16}-17", f"{'b' * 16}-17", "c" * 16


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three environments, a build that goes on and one that was killed yesterday."""
    root = tmp_path / "it's" / "venvs"
    day = 86_400
    for name, days in ((OLD, 40), (NEW, 0), (PLAIN, 5)):
        data = root / f"{name}.nid001.site-12-34"
        (data / "tree").mkdir(parents=True)
        (data / "done").touch()
        (data / "used").touch()
        (data / "requirements.txt").write_text("einops==0.8\ntqdm\n")
        (data / "facts.json").write_text('{"python": "3.12.1", "packages": {"einops": "0.8.0"}}\n')
        os.utime(data / "used", (time.time() - days * day,) * 2)
        (root / name).symlink_to(data.name)
    for name, days in (("d" * 16, 2), ("e" * 16, 0)):
        left = root / f"{name}-3.nid-1-2"
        left.mkdir()
        os.utime(left, (time.time() - days * day,) * 2)
    return root


def left(folder: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in folder.iterdir()}


def test_they_are_listed_with_what_is_in_them(transport: Transport, folder: Path) -> None:
    found = list_venvs(transport, str(folder))
    assert [one.name for one in found] == [NEW, PLAIN, OLD]
    assert found[0].requirements == ("einops==0.8", "tqdm")
    assert (found[0].python, found[0].packages) == ("3.12.1", {"einops": "0.8.0"})
    assert found[0].kib > 0 and found[0].used
    assert list_venvs(transport, f"{folder}/none") == []


def test_a_prune_removes_what_nobody_used_for_a_while(transport: Transport, folder: Path) -> None:
    lock = folder / f".lock-{OLD}"
    lock.touch()
    os.utime(lock, (1, 1))
    dry = remove_venvs(transport, str(folder), (), unused_days=30, dry=True)
    assert lock.exists(), "a dry run removes nothing"
    assert dry.names == (OLD, "-")
    assert remove_venvs(transport, str(folder), [OLD.partition("-")[0]], unused_days=3).names == (
        PLAIN,
        "-",
    )
    assert left(folder) == {OLD, NEW, "e" * 16 + "-3"}
    assert remove_venvs(transport, str(folder), (), unused_days=0).names == (OLD, NEW)
    assert left(folder) == {"e" * 16 + "-3"}


def test_one_is_removed_by_its_name(transport: Transport, folder: Path) -> None:
    assert remove_venvs(transport, str(folder), [NEW], only=["b" * 16]).names == (NEW,)
    assert left(folder) >= {OLD, PLAIN}
    assert remove_venvs(transport, str(folder), (), only=["; rm -rf /", "*"]).names == ()


def test_an_unreadable_answer_is_an_error(folder: Path) -> None:
    with pytest.raises(AnswerUnusable):
        remove_venvs(FixedAnswer(b"what\n"), str(folder), ())
