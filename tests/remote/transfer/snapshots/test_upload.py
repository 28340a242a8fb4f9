"""Snapshots and fetched files, over a shell of this machine, busybox, and a real SSH server."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lumitui.remote.site.errors import InputError, RefusedError
from lumitui.remote.site.shell_text import quote
from lumitui.remote.source.manifest import Manifest
from lumitui.remote.source.scan import scan, source_of
from lumitui.remote.transfer.contents.content_upload import Shipped
from lumitui.remote.transfer.contents.pieces import gzipped
from lumitui.remote.transfer.snapshots.snapshot_store import copy_script, sync
from lumitui.remote.transport.local import Local
from lumitui.remote.transport.transport import Transport
from tests.support.files.snapshots import left_over, same, stored, writable
from tests.support.jobs.small_jobs import wait_until
from tests.support.servers.small_disk import small_disk
from tests.support.servers.transports import Cut

Send = Callable[..., Shipped]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for path in ("train.py", "pkg/a.py", "pkg/b.py", "it's $HOME/-x y.txt", "empty", "old/gone.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("" if path == "empty" else f"content of {path}\n" * 50)
    (root / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (root / "run.sh").chmod(0o755)
    (root / "link").symlink_to("pkg/a.py")
    (root / ("deep" * 20) / ("name" * 20)).mkdir(parents=True)
    (root / ("deep" * 20) / ("name" * 20) / "long.txt").write_text("long")
    return root


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "the site's" / "code")


@pytest.fixture
def send(transport: Transport, folder: str, project: Path) -> Send:
    """Sends the project as it is now."""

    def now(known: Manifest | None = None, manifest: Manifest | None = None) -> Shipped:
        return sync(transport, folder, manifest or scan(project), source_of(project), known)

    return now


def contents(manifest: Manifest) -> set[str]:
    """Return what the contents of its files are called in the store."""
    return {entry.sha256 + "x" * entry.executable for entry in manifest.files}


def test_the_first_time_everything_is_sent(send: Send, project: Path, folder: str) -> None:
    manifest = scan(project)
    done = send()
    assert (done.path, done.id) == (f"{folder}/{manifest.id}", manifest.id)
    assert (done.files_sent, done.requests) == (len(contents(manifest)), 2)
    assert same(done.path, manifest) and not writable(done.path)
    assert os.stat(folder).st_mode & 0o077 == os.stat(done.path).st_mode & 0o077 == 0
    assert set(stored(folder)) == {
        *contents(manifest),
        *(manifest.id + ending for ending in ("", ".facts", ".sealed", ".sums")),
    }


def test_nothing_changed_is_one_request_that_sends_nothing(send: Send, project: Path) -> None:
    send()
    for known in (scan(project), None):
        done = send(known)
        assert (done.requests, done.files_sent, done.bytes_sent) == (1, 0, 0)


def test_changes_are_one_request_with_what_changed(send: Send, project: Path, folder: str) -> None:
    before = scan(project)
    first = send()
    (project / "train.py").write_text("new\n")
    (project / "pkg" / "new.py").write_text("new")
    shutil.rmtree(project / "old")
    (project / "pkg" / "b.py").unlink()  # a file becomes a folder
    (project / "pkg" / "b.py").mkdir()
    (project / "pkg" / "b.py" / "c").write_text("c")
    shutil.rmtree(project / "it's $HOME")  # a folder becomes a file
    (project / "it's $HOME").write_text("file")
    (project / "link").unlink()  # a link points elsewhere
    (project / "link").symlink_to("train.py")
    (project / "run.sh").chmod(0o644)  # only the mode differs
    done = send(before)
    assert (done.requests, done.files_sent) == (1, 5)
    assert same(done.path, scan(project)) and not writable(done.path)
    assert same(first.path, before)
    assert not os.path.exists(f"{done.path}/old") and not left_over(folder)


def test_what_did_not_change_is_neither_copied_nor_sent(
    send: Send, project: Path, folder: str
) -> None:
    before = scan(project)
    first = send()
    (project / "train.py").write_text("new\n")
    (project / "pkg" / "a.py").rename(project / "pkg" / "moved.py")
    second = send(before)
    assert (second.requests, second.files_sent) == (1, 1)
    one, other = (
        os.stat(f"{done.path}/pkg/{name}.py") for done, name in ((first, "a"), (second, "moved"))
    )
    assert one.st_ino == other.st_ino and one.st_nlink == 3


@pytest.mark.parametrize("harm", ["folder", "file", "content", "all"])
def test_a_purged_or_changed_base_is_found_and_mended(
    send: Send, project: Path, transport: Transport, harm: str, folder: str
) -> None:
    before = scan(project)
    at = quote(send().path)
    deeds = {
        "folder": f"chmod -R u+w {at}; rm -rf {at}",
        "file": f"chmod u+w {at}/pkg; rm -f {at}/pkg/a.py",
        "content": f"chmod u+w {at}/pkg/a.py; echo other >{at}/pkg/a.py",
        "all": f"chmod -R u+w {quote(folder)}; rm -rf {quote(folder)}",
    }
    assert transport.run(deeds[harm]).code == 0
    (project / "train.py").write_text("new\n")
    done = send(before)
    assert done.requests == 3 and 0 < done.files_sent <= len(contents(before))
    assert same(done.path, scan(project)) and not left_over(folder)
    assert send(scan(project)).requests == 1


HARMS = (
    "rm -rf {at}", "echo other >{at}/pkg/a.py", "echo other >{at}/more", "rm -f {at}/link",
    "chmod a-x {at}/run.sh", "ln -sf other {at}/link", "rm -f {at}.sums",
)  # fmt: skip


def test_a_damaged_snapshot_is_found_and_made_again(
    send: Send, project: Path, transport: Transport, folder: str
) -> None:
    manifest = scan(project)
    at = quote(send().path)
    folders = f"find {at} -type d -exec chmod u+w {{}} +; chmod u+w {at}/pkg/a.py"
    for writable_first in (f"chmod -R u+w {at}", folders):
        for harm in HARMS:
            harmed = transport.run(f"{writable_first}; " + harm.format(at=at))
            assert harmed.code == 0, harm
            done = send(manifest, manifest)
            assert done.requests == 2, harm
            assert same(done.path, manifest) and not left_over(folder), harm
            assert not writable(done.path), harm


def test_several_at_once_make_one_snapshot(send: Send, project: Path, folder: str) -> None:
    with ThreadPoolExecutor(4) as threads:
        done = [future.result() for future in [threads.submit(send) for _ in range(4)]]
    assert len({item.path for item in done}) == 1
    assert same(done[0].path, scan(project))
    assert not left_over(folder) and len(stored(folder)) == 4 + len(contents(scan(project)))


def test_an_empty_project_and_one_without_files(send: Send, project: Path) -> None:
    shutil.rmtree(project)
    project.mkdir()
    assert same(send().path, Manifest(()))
    (project / "dangling").symlink_to("later")
    assert same(send(Manifest(())).path, scan(project))


def test_every_file_of_a_long_list_is_checked(
    transport: Transport, folder: str, tmp_path: Path
) -> None:
    # Long lists are checked by two processes, half each.
    root = tmp_path / "many"
    root.mkdir()
    for index in range(600):
        (root / f"file{index:03d}.py").write_text(f"{index}\n")
    manifest = scan(root)
    first = sync(transport, folder, manifest, source_of(root))
    again = sync(transport, folder, manifest, source_of(root), manifest)
    assert (again.requests, again.files_sent) == (1, 0)
    for number in (299, 300):
        damaged = Path(first.path) / f"file{number:03d}.py"
        damaged.chmod(0o644)
        damaged.write_text("xxx\n"[: len(damaged.read_text())])
        again = sync(transport, folder, manifest, source_of(root), manifest)
        assert again.files_sent == 1, number
    assert same(again.path, manifest)


def test_what_is_packed_ahead_ends_with_who_takes_it() -> None:
    def noise() -> Iterator[bytes]:
        for _ in range(64):
            yield os.urandom(1 << 18)
        raise InputError("a file changed")

    def packing() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "pack ahead"]

    stream = gzipped(noise())
    assert next(stream) and packing()
    stream.close()  # type: ignore[attr-defined]  # a generator
    assert not packing()
    with pytest.raises(InputError, match="a file changed"):
        list(gzipped(noise()))
    assert not packing()


@pytest.mark.slow
def test_an_openssl_that_does_not_work_decides_nothing(
    project: Path, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "openssl"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    manifest = scan(project)
    for body in ("exit 1", 'shift 3; for f; do echo "$(printf %064d 0) *$f"; done', "yes"):
        program.write_text(f"#!/bin/sh\n{body} | head -n 9\n")
        program.chmod(0o755)
        done = sync(Local(), folder, manifest, source_of(project))
        assert same(done.path, manifest), body
        assert sync(Local(), folder, manifest, source_of(project)).files_sent == 0, body
        damaged = Path(done.path) / "pkg" / "a.py"
        damaged.chmod(0o600)
        damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
        again = sync(Local(), folder, manifest, source_of(project))
        assert again.files_sent == 1 and same(again.path, manifest), body


def test_a_file_that_changed_since_ends_it_and_leaves_nothing(
    send: Send, project: Path, folder: str, transport: Transport
) -> None:
    for text in ("longer than it was " * 100, "short"):
        manifest = scan(project)
        (project / "train.py").write_text(text)
        with pytest.raises(InputError, match=r"'train\.py' changed"):
            send(manifest=manifest)
    (project / "train.py").unlink()
    with pytest.raises(InputError, match=r"'train\.py' changed"):
        send(manifest=manifest)
    wait_until(lambda: not stored(folder), 30, "nothing is left")


def test_a_folder_that_cannot_be_made_is_refused_with_the_site_s_words(
    transport: Transport, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError, match=r"(?i)not a directory|file exists"):
        sync(transport, f"{tmp_path}/file/code", scan(project), source_of(project))


def test_a_site_without_hard_links_between_folders_gets_all_files_each_time(
    send: Send, folder: str, project: Path
) -> None:
    """As where each folder is a file system of its own (AFS, some quotas by folder)."""
    Path(folder).mkdir(parents=True)
    with small_disk(Path(folder) / "blobs", "8m") as blobs:
        first, base = send(), scan(project)
        assert same(first.path, base) and first.files_sent > 1
        (project / "train.py").write_text("other")
        again = send(base)
        assert same(again.path, scan(project)) and again.files_sent == first.files_sent
        assert send().requests == 1
        assert not list(blobs.iterdir())


def test_a_full_disk_is_refused_and_leaves_nothing(
    transport: Transport, project: Path, tmp_path: Path
) -> None:
    (project / "big").write_bytes(os.urandom(1_000_000))
    with small_disk(tmp_path / "disk", "300k") as disk:
        with pytest.raises(RefusedError, match=r"(?i)no space left"):
            sync(transport, f"{disk}/code", scan(project), source_of(project))
        assert stored(f"{disk}/code") == []


def test_what_a_cut_connection_left_long_ago_is_removed(
    send: Send, project: Path, folder: str
) -> None:
    for name, age in (("old", 3600), ("young", 60)):
        left = Path(folder) / f".in-{name}" / "new"
        left.mkdir(parents=True)
        (left / "file").write_text("")
        left.chmod(0o500)
        os.utime(left, (time.time() - age,) * 2)
    send()
    assert left_over(folder) == [".in-young"]


def test_half_an_upload_makes_nothing(transport: Transport, project: Path, folder: str) -> None:
    manifest = scan(project)
    with pytest.raises(RefusedError):
        sync(Cut(transport), folder, manifest, source_of(project))
    assert stored(folder) == []


# A run's own copy


def test_a_run_s_copy_is_its_own_and_writable(
    send: Send, transport: Transport, project: Path, tmp_path: Path
) -> None:
    snapshot, target = send().path, f"{tmp_path}/a run/code"
    script = f"mkdir -p {quote(os.path.dirname(target))}\n{copy_script(snapshot, target)} || exit 9"
    assert transport.run(script).code == 0
    assert same(target, scan(project))
    assert transport.run(f"cd {quote(target)} && echo mine >pkg/a.py && ./run.sh").text == "ran\n"
    assert same(snapshot, scan(project))
    assert transport.run(script).code == 0  # repeated, as after a lost answer
    assert Path(target, "pkg/a.py").read_text() == "mine\n"
    assert not [name for name in os.listdir(target) if name.startswith("code")]


def test_equal_files_of_a_copy_are_two(
    send: Send, transport: Transport, project: Path, tmp_path: Path
) -> None:
    (project / "pkg" / "twin.py").write_text((project / "pkg" / "a.py").read_text())
    snapshot, target = send().path, f"{tmp_path}/code"
    assert transport.run(f"{copy_script(snapshot, target)} || exit 9").code == 0
    Path(target, "pkg/twin.py").write_text("mine\n")
    assert same(snapshot, scan(project)) and Path(target, "pkg/a.py").read_text() != "mine\n"
    assert not [name for name in os.listdir(tmp_path) if "part" in name]


def test_what_only_a_copy_finds_is_mended_by_the_next_send(
    send: Send, transport: Transport, project: Path, tmp_path: Path, folder: str
) -> None:
    """A byte that changed although its file's size, time and mode did not; a file's other name."""
    manifest, at = scan(project), Path(send().path)
    for harm in ("content", "name"):
        if harm == "content":
            place, seen = at / "pkg" / "a.py", (at / "pkg" / "a.py").stat()
            place.chmod(0o600)
            place.write_bytes(b"X" + place.read_bytes()[1:])
            place.chmod(0o400)
            os.utime(place, ns=(seen.st_atime_ns, seen.st_mtime_ns))
        else:
            (at / "pkg").chmod(0o700)
            (at / "pkg" / "a.py").rename(at / "pkg" / "c.py")
            (at / "pkg").chmod(0o500)
        assert send(manifest).files_sent == 0
        copy = f"{copy_script(str(at), f'{tmp_path}/code')} || exit 9"
        assert transport.run(copy).text == "damaged-snapshot\n"
        done = send(manifest)
        assert (done.requests, done.files_sent) == (2, int(harm == "content")), harm
        assert same(done.path, manifest) and not left_over(folder)
        assert transport.run(f"{copy} && rm -rf {tmp_path}/code").code == 0
        assert not (Path(folder) / ".suspect").exists()


def test_a_copy_of_a_damaged_snapshot_is_not_made(
    send: Send, transport: Transport, tmp_path: Path
) -> None:
    snapshot, target = send().path, f"{tmp_path}/code"
    assert (
        transport.run(f"chmod u+w {quote(snapshot)}/*; echo x >{quote(snapshot)}/empty").code == 0
    )
    result = transport.run(f"{copy_script(snapshot, target)} || exit 9")
    assert (result.code, result.text) == (9, "damaged-snapshot\n")
    assert transport.run(f"{copy_script('/no/such', target)} || exit 9").code == 9
    assert not [name for name in os.listdir(tmp_path) if name.startswith("code")]
