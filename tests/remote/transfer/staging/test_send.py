"""Staged files: identical on the site, never sent twice, whatever cuts the link or fills a disk."""

import grp
import os
import random
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from lumitui.remote.site.errors import (
    AnswerUnusable,
    InputError,
    LinkError,
    LumiError,
    RefusedError,
)
from lumitui.remote.transfer.contents import content_store
from lumitui.remote.transfer.contents.content_upload import Shipped, stage
from lumitui.remote.transfer.contents.pieces import shrinks
from lumitui.remote.transfer.contents.shipment_progress import ShipmentProgress
from lumitui.remote.transfer.contents.staged_files import find, read
from lumitui.remote.transfer.contents.staging_upkeep import Loose, remove, stock
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.files.snapshots import writable
from tests.support.files.staged import CutAfter, identical, left_over, staged
from tests.support.servers.link_proxy import link_proxy
from tests.support.servers.small_disk import as_root, small_disk
from tests.support.servers.sshd import running_sshd
from tests.support.servers.transports import FixedAnswer

Send = Callable[..., Shipped]


def test_everything_arrives_once_and_what_changed_after_that(
    transport: Transport, send: Send, data: Path, folder: str, told: list[ShipmentProgress]
) -> None:
    first = send(over=transport)
    assert identical(first.path, data) and not left_over(folder)
    assert not writable(first.path)
    assert (first.files_sent, first.bytes_sent) == (
        47 - 2,
        told[-1].total,
    )  # two contents are twice
    # Asked, two large files, two batches.
    assert first.requests == 5 and len(os.listdir(f"{folder}/blobs")) == first.files_sent
    again = send(over=transport)
    assert (again.requests, again.bytes_sent, again.path) == (1, 0, first.path)
    (data / "class 0" / "0.bin").write_bytes(b"new")
    (data / "link").unlink()
    other = send(over=transport)
    assert (other.requests, other.files_sent, other.bytes_sent) == (2, 1, 3)
    assert identical(other.path, data) and other.path != first.path
    # What the site purges is noticed, and that alone is sent again.
    blob = max(Path(folder, "blobs").iterdir(), key=lambda path: path.stat().st_size)
    os.chmod(other.path, 0o700)
    os.unlink(f"{other.path}/large.bin")
    blob.unlink()
    mended = send(over=transport)
    assert (mended.files_sent, mended.bytes_sent) == (1, 300_000) and identical(mended.path, data)


def test_one_file_keeps_its_name(folder: str, data: Path) -> None:
    item = read(find("IMAGE", data / "large.bin"))
    done = staged(folder, item)
    assert done.path == f"{folder}/{done.id}/large.bin"
    assert Path(done.path).read_bytes() == (data / "large.bin").read_bytes()


def cut(count: int, send: Send, data: Path, folder: str) -> None:
    """Cut a send after `count` bytes, then again and again; at the end all is there, once."""
    shutil.rmtree(folder, ignore_errors=True)
    item = read(find("DATA", data, follow=["from*"]))
    sent, chance = 0, random.Random(count)
    for _ in range(2):
        link = CutAfter(Local(), count)
        try:
            send(item, link)
        except LumiError:
            assert not os.path.exists(f"{folder}/{item.manifest.id}"), "half of it can be used"
        sent, count = sent + link.passed, chance.randrange(1, 400_000)
    done = send(item)
    assert identical(done.path, data) and not left_over(folder), f"cut after {count}"


@pytest.mark.parametrize("count", [1, 40_000, 200_000, 330_000, 480_000])
def test_a_send_that_is_cut_goes_on(count: int, send: Send, data: Path, folder: str) -> None:
    cut(count, send, data, folder)


@pytest.mark.slow
def test_a_send_that_is_cut_at_any_byte_goes_on(send: Send, data: Path, folder: str) -> None:
    chance = random.Random(200)
    for _ in range(200):
        cut(chance.randrange(1, 560_000), send, data, folder)


def test_a_large_file_goes_on_at_its_last_byte(tmp_path: Path, folder: str) -> None:
    large = tmp_path / "large.bin"
    large.write_bytes(random.Random(3).randbytes(4_000_000))
    item = read(find("MODEL", large))
    with running_sshd(tmp_path / "sshd") as server, link_proxy(server.port) as proxy:
        server.trust(f"[127.0.0.1]:{proxy.port}")
        server.configure(f"Port {proxy.port}")
        site = server.connect()
        proxy.cut_after(2_500_000, "up")
        with pytest.raises(LinkError):
            staged(folder, item, site)
        has = sum(path.stat().st_size for path in Path(folder, "parts").iterdir())
        assert has > 100_000
        done = staged(folder, item, site)
        site.close()
    assert done.bytes_sent <= 4_000_000 - has and not left_over(folder)
    assert Path(done.path).read_bytes() == large.read_bytes()


def test_two_sends_at_once_disturb_each_other_in_nothing(
    send: Send, data: Path, folder: str
) -> None:
    item, together = read(find("DATA", data, follow=["from*"])), threading.Barrier(2)

    def one(_: int) -> Shipped:
        together.wait()
        return send(item)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(one, range(2))
    assert first.path == second.path and identical(first.path, data) and not left_over(folder)


def test_a_file_that_changes_is_named_and_nothing_is_used(
    send: Send, data: Path, folder: str
) -> None:
    for path in ("large.txt", "class 1/1.bin"):
        item = read(find("DATA", data, follow=["from*"]))
        (data / path).write_bytes(b"!" * (data / path).stat().st_size)
        with pytest.raises(InputError, match=f"DATA: the file '.*{Path(path).name}' changed"):
            send(item)
        assert not os.path.exists(f"{folder}/{item.manifest.id}")
    assert identical(send().path, data)


def test_what_must_not_be_sent_is_named(data: Path) -> None:
    (data / "id_rsa").write_text("-----BEGIN OPENSSH PRIVATE KEY-----\n")
    (data / "gone").symlink_to("nowhere")
    os.mkfifo(data / "pipe")
    with pytest.raises(InputError) as refused:
        find("DATA", data, follow=["from*"])
    for words in (
        "'id_rsa' looks like",
        "'gone' is a link to 'nowhere'",
        "'pipe' is not a file or folder",
    ):
        assert words in refused.value.message
    with pytest.raises(InputError, match="which is not a file or folder"):
        find("DATA", data / "absent")


LIES = [
    b"stands?",
    b"",
    b"m 1 99999999\nasked\n",
    b"m 0 1\nasked\n",
    b"m 5 2\nasked\n",
    b"p ../../etc/passwd 5\nasked\n",
    b"m 1 2\n",
    b"\x00" * 5000,
]


@pytest.mark.parametrize("said", LIES)
def test_an_answer_that_is_none_is_a_sentence(said: bytes, data: Path, folder: str) -> None:
    item = read(find("DATA", data, follow=["from*"]))
    with pytest.raises(AnswerUnusable, match="instead of a list of its files"):
        staged(folder, item, FixedAnswer(said))


def test_a_site_that_claims_parts_it_does_not_have_gets_the_file_again(
    send: Send, data: Path, folder: str
) -> None:
    send()
    item = read(find("DATA", data, follow=["from*"]))
    entry = next(one for one in item.manifest.files if one.path == "large.bin")
    shutil.rmtree(folder)
    Path(folder, "parts").mkdir(parents=True)
    Path(folder, "parts", f"{entry.sha256}-0-0badf00d").write_bytes(b"not this file" * 1000)
    done = send(item)
    assert identical(done.path, data) and not left_over(folder)


def test_a_full_disk_is_a_sentence_and_room_lets_it_go_on(tmp_path: Path, data: Path) -> None:
    with small_disk(tmp_path / "disk", "420k") as disk:
        for _ in range(2):  # in a large file, then in the small ones or again
            with pytest.raises(RefusedError, match=r"could not store DATA.*(?i:space)"):
                staged(disk / "stage", read(find("DATA", data, follow=["from*"])))
            assert as_root("mount", "-o", "remount,size=600k", str(disk))
        assert as_root("mount", "-o", "remount,size=8m", str(disk))
        done = staged(disk / "stage", read(find("DATA", data, follow=["from*"])))
        assert identical(done.path, data) and not left_over(f"{disk}/stage")


def test_a_disk_that_dead_sends_filled_has_room_for_the_next_send(
    tmp_path: Path, data: Path
) -> None:
    with small_disk(tmp_path / "disk", "8m,nr_inodes=400") as disk:
        send = partial(stage, Local(), f"{disk}/stage", site="lumi", report=print)
        send(read(find("DATA", data, follow=["from*"])))
        (left := disk / "stage" / ".left-1" / "tree").mkdir(parents=True)
        (left.parent / "new").mkdir()
        with pytest.raises(OSError, match="No space"):
            for number in range(400):
                (left / str(number)).touch()
        (data / "run.sh").write_text("another")
        again = send(read(find("DATA", data, follow=["from*"])))
        assert identical(again.path, data) and not left_over(f"{disk}/stage")


def test_a_disk_without_room_is_named_with_the_command_that_makes_some(
    tmp_path: Path, data: Path
) -> None:
    with small_disk(tmp_path / "disk", "8m,nr_inodes=20") as disk:
        (disk / "stage" / "parts").mkdir(parents=True)
        (disk / "stage" / "blobs").mkdir()
        for free in range(3):
            with suppress(OSError):
                for number in range(20):
                    (disk / str(number)).touch()
            for number in range(free):
                (disk / str(number)).unlink()
            with pytest.raises(RefusedError, match=r"could not store DATA.*(?i:space)") as refused:
                staged(disk / "stage", read(find("DATA", data, follow=["from*"])))
            assert "`lumitui site data lumi --prune`" in refused.value.hint


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another group")
def test_files_get_the_group_of_the_site(tmp_path: Path, data: Path, folder: str) -> None:
    item = read(find("DATA", data, follow=["from*"]))
    done = stage(Local(), folder, item, group="games", site="lumi", report=lambda progress: None)
    groups = {
        os.lstat(os.path.join(at, name)).st_gid
        for at, folders, files in os.walk(folder)
        for name in [*folders, *files]
    }
    assert groups == {grp.getgrnam("games").gr_gid} and identical(done.path, data)
    with pytest.raises(RefusedError, match="nosuchgroup"):
        stage(Local(), folder, item, group="nosuchgroup", site="lumi", report=lambda progress: None)


def test_progress_has_a_rate_and_ends_complete(send: Send, told: list[ShipmentProgress]) -> None:
    send()
    assert {one.phase for one in told} == {"asking", "sending"}
    assert content_store.LARGE and all(0 <= one.done <= one.total for one in told)


def test_what_does_not_shrink_is_not_squeezed(tmp_path: Path) -> None:
    for size in (100, 20_000, 100_000, 130_000, 2_000_000):
        (tmp_path / "noise").write_bytes(random.Random(size).randbytes(size))
        (tmp_path / "words").write_bytes(b"a few words " * (size // 12))
        assert not shrinks(tmp_path / "noise", size) and shrinks(tmp_path / "words", size), size


def test_removing_an_item_leaves_the_files_of_another_sealed(folder: str, tmp_path: Path) -> None:
    for name, own in (("A", "y"), ("B", "z")):
        (tmp_path / name / "deep").mkdir(parents=True)
        (tmp_path / name / "deep" / "x").write_text("shared")
        (tmp_path / name / own).write_text(own)
    first, second = (staged(folder, read(find(name, tmp_path / name))) for name in "AB")
    assert remove(Local(), folder, [second.id], sweep=True) == ((second.id,), Loose())
    assert not os.path.exists(second.path) and not writable(first.path)
    assert len(os.listdir(f"{folder}/blobs")) == 2


def test_what_a_job_changed_on_the_site_is_sent_again(send: Send, data: Path, folder: str) -> None:
    place = Path(send().path, "class 1", "1.bin")
    before = place.read_bytes()
    for mode in (0o600, 0o400):  # left writable; and sealed again afterwards
        place.chmod(0o600)
        place.write_bytes(bytes(len(before)))
        place.chmod(mode)
        again = send()
        assert (again.files_sent, again.bytes_sent) == (1, len(before))
        assert identical(again.path, data) and not writable(again.path)
        assert send().requests == 1


def test_a_content_that_was_changed_is_no_part_of_another_item(
    send: Send, data: Path, folder: str
) -> None:
    place = Path(send().path, "class 1", "1.bin")
    place.chmod(0o600)
    place.write_bytes(bytes(place.stat().st_size))
    (data / "run.sh").write_text("another item")
    assert identical(send().path, data)


def test_a_sweep_removes_what_dead_sends_left_and_nothing_under_way(
    send: Send, data: Path, folder: str
) -> None:
    done = send()
    for name, minutes in ((".left-1", 0), (".in-2", 11), (".in-3", 0)):
        place = Path(folder, name, "new")
        place.mkdir(parents=True)
        (place / "x").write_text("x")
        then = place.stat().st_mtime - 60 * minutes
        os.utime(place, (then, then))
    swept = remove(Local(), folder, (), sweep=True, dry=True)
    assert swept == ((), Loose(2, 2)) == remove(Local(), folder, (), sweep=True)
    assert stock(Local(), folder, lambda holders: ()).loose == Loose(1, 1)
    assert [name for name in os.listdir(folder) if name.startswith(".")] == [".in-3"]
    assert identical(done.path, data)
